//! Tools of ours, in Rust and in C on our `libpmix.so.2`: at `px run`, and at other launchers.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::Path;

use phalanx_interop::{
    Job, Outcome, Running, c_tool, eventually, host, launcher, libpmix, mpirun_4, new_directory, pmix_tool,
    rust_tool, some_prterun, soon,
};
use rustix::process::Signal;

/// Our tool in Rust, looking where `tmpdir` is, and in `system` below it for the server of the system.
fn tool(tmpdir: &Path, arguments: &[&str]) -> Outcome {
    let job = Job::new(rust_tool("attach")).args(arguments).env("TMPDIR", tmpdir);
    job.env("PMIX_SYSTEM_TMPDIR", tmpdir.join("system")).run()
}

#[test]
fn c_programs_have_several_servers_on_our_library() {
    let (first, second) = (launcher(2), launcher(2));
    let name = |running: &Running| format!("px-{}-{}", host(), running.pid());
    let (one, two) = (name(&first), name(&second));
    let other = second.rendezvous_file();
    let other = other.as_deref().and_then(Path::to_str).expect("a file");
    let words = [
        "pid",
        &first.pid().to_string(),
        "--",
        "me",
        "servers",
        "attach",
        "file",
        other,
        "servers",
        "primary",
        &two,
        "servers",
        "query",
        "detach",
        &two,
        "query",
        "servers",
        "primary",
        &one,
        "query",
    ];
    let outcome = c_tool(first.tmpdir(), &words).run().expect_code(0);
    let job = |running: &Running| format!("query PMIX_SUCCESS px-{}-{}@", host(), running.pid());
    let expected = [
        "init PMIX_SUCCESS",
        &format!("me {one}-tool"),
        &format!("servers PMIX_SUCCESS {one}"),
        &format!("attach PMIX_SUCCESS {two}"),
        &format!("servers PMIX_SUCCESS {one} {two}"),
        "primary PMIX_SUCCESS",
        &format!("servers PMIX_SUCCESS {two} {one}"),
        &job(&second),
        "detach PMIX_SUCCESS",
        "query PMIX_ERR_UNREACH",
        &format!("servers PMIX_SUCCESS {one}"),
        "primary PMIX_SUCCESS",
        &job(&first),
        "finalize PMIX_SUCCESS",
    ];
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{outcome}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line:?} does not begin with {expected:?}\n{outcome}");
    }
    first.end();
    second.end();
}

#[test]
fn a_tool_learns_that_its_server_has_died() {
    let launcher = launcher(2);
    let place = new_directory();
    let (pid, tmpdir) = (launcher.pid().to_string(), launcher.tmpdir().to_owned());
    let said = place.path().join("said");
    let script = format!("\"$@\" | tee '{}'", said.display());
    let tool = Job::new("sh")
        .args(["-c", &script, "sh"])
        .arg(pmix_tool("attach"))
        .args(["pid", &pid, "--", "lost", "query"])
        .env("TMPDIR", &tmpdir)
        .env("LD_LIBRARY_PATH", libpmix())
        .start();
    eventually("the tool listens", || fs::read_to_string(&said).is_ok_and(|text| text.contains("ready\n")));
    launcher.signal(Signal::KILL);
    let outcome = tool.wait().expect_code(0);
    outcome.assert_line("lost PMIX_ERR_LOST_CONNECTION");
    outcome.assert_line("query PMIX_ERR_UNREACH");
    let _ = launcher.wait();
}

/// The pid of a process that has ended.
fn dead() -> u32 {
    let mut child = std::process::Command::new("true").spawn().expect("a process");
    child.wait().expect("its end");
    child.id()
}

#[test]
fn a_tool_that_finds_nobody_says_where_it_looked() {
    let place = new_directory();
    let (dir, host) = (place.path().display().to_string(), host());
    let file = format!("{dir}/none");
    // A process that is not a server: tools search below `/tmp` as well, where a container's first process may be one.
    let me = std::process::id();
    let cases: [(&str, Vec<String>); 9] = [
        (
            &format!("pmix.srvr.pidinfo={me}"),
            vec![format!("looked for pmix.{host}.tool.{me} below {dir}"), "no such file\n".into()],
        ),
        (&format!("pmix.srvr.pidinfo={}", dead()), vec!["no such file, nor such a process\n".into()]),
        ("pmix.srv.nspace=gone", vec![format!("looked for pmix.{host}.tool.gone below {dir}")]),
        ("pmix.cnct.sys", vec![format!("looked for pmix.sys.{host} in {dir}/system")]),
        (
            "pmix.srvr.tmpdir=/nowhere",
            vec![format!("looked for pmix.{host}.tool* below /nowhere: there is no")],
        ),
        (&format!("pmix.tool.attach={file}"), vec![format!("the file {file}: No such file")]),
        ("pmix.srvr.uri=nonsense", vec!["`nonsense` is not a server's address".into()]),
        ("pmix.srvr.uri=a.0;tcp4://127.0.0.1:1", vec!["nobody accepts connections there".into()]),
        ("pmix.tool.rank=3", vec!["a rank without PMIX_TOOL_NSPACE names nobody".into()]),
    ];
    for (directive, parts) in cases {
        let outcome = tool(place.path(), &[directive, "pmix.tool.mretries=0", "--"]).expect_failure();
        for part in parts {
            assert!(outcome.stdout.contains(&part), "expected {part:?}\n{outcome}");
        }
    }
    let both = tool(place.path(), &["pmix.srvr.uri=a", "pmix.tcp.uri=b", "--"]).expect_failure();
    let _ = both.expect_stdout(&["pmix.tcp.uri", "only one of them can be given"]);
    // A server that is not required may be missing.
    let alone = tool(place.path(), &["pmix.tool.nocon", "--", "me", "servers"]).expect_code(0);
    let _ = alone.expect_stdout(&[&format!("me tool-{host}-"), "servers \n"]);
    let optional = ["pmix.cnct.sys", "pmix.tool.conopt", "pmix.tool.mretries=0", "--", "me"];
    let _ = tool(place.path(), &optional).expect_code(0).expect_stdout(&[&format!("me tool-{host}-")]);
}

#[test]
fn a_named_server_is_the_one_or_none() {
    let launcher = launcher(2);
    // The search would find this server, but the tool names another one.
    let outcome = tool(launcher.tmpdir(), &["pmix.srv.nspace=other", "pmix.tool.mretries=0", "--"]);
    let _ = outcome.expect_failure().expect_stdout(&["tool.other"]);
    // With the system server first, a search continues. In /tmp it would find other servers, which may be ending.
    let below = format!("pmix.srvr.tmpdir={}", launcher.tmpdir().display());
    let _ = tool(launcher.tmpdir(), &["pmix.cnct.sys.first", &below, "--", "query"])
        .expect_code(0)
        .expect_stdout(&["query SUCCESS"]);
    let available = tool(launcher.tmpdir(), &["pmix.tool.nocon", "--", "available"]).expect_code(0);
    let _ = available.expect_stdout(&[&format!("px-{}-{}", host(), launcher.pid()), "pmix.srv.arr"]);
    launcher.end();
}

#[test]
fn a_name_that_is_taken_is_refused_with_the_reason() {
    let launcher = launcher(2);
    let (place, pid) = (new_directory(), launcher.pid().to_string());
    let here = format!("pmix.srvr.pidinfo={pid}");
    let ready = place.path().join("ready");
    let show = format!("touch '{}'", ready.display());
    let named = ["pid", &pid, "self", "our-tool", "rank", "0", "--", "spawn", &show, "lost"];
    let first = c_tool(launcher.tmpdir(), &named).start();
    eventually("the first is attached", || ready.exists());
    let second = tool(launcher.tmpdir(), &[&here, "pmix.tool.nspace=our-tool", "--"]).expect_failure();
    let _ = second.expect_stdout(&["the server refused: PMIX_ERR_EXISTS", "another process has the name"]);
    first.signal(Signal::KILL);
    let _ = first.wait();
    eventually("the name is free", || {
        tool(launcher.tmpdir(), &[&here, "pmix.tool.nspace=our-tool", "--"]).stdout.contains("init SUCCESS")
    });
    launcher.end();
}

#[test]
fn our_tools_attach_to_prterun_of_open_mpi_5() {
    some_prterun(":", |launcher| {
        let (pid, tmpdir) = (launcher.running.pid(), launcher.running.tmpdir());
        let (named, below) =
            (format!("pmix.srvr.pidinfo={pid}"), format!("pmix.srvr.tmpdir={}", tmpdir.display()));
        let me = format!("me prterun-{}-{pid}@", host());
        let runs = "PMIX_PROC_STATE_RUNNING";
        let native = |how: &str| {
            let words = [how, "--", "me", "query", "table", &launcher.job];
            let tool = Job::new(rust_tool("attach")).args(words).env("TMPDIR", tmpdir).deadline(15);
            tool.run().shows(&[&me, "query SUCCESS", &launcher.job, runs])
        };
        let in_c = || {
            let tool = c_tool(tmpdir, &["pid", &pid.to_string(), "--", "query"]).deadline(15);
            tool.run().shows(&["init PMIX_SUCCESS", "query PMIX_SUCCESS prterun-"])
        };
        soon(|| native(&named)) && soon(|| native(&below)) && soon(in_c)
    });
}

/// Debian's mpirun 4.1 has no upcall for tools: its libpmix refuses any tool, and then crashes.
#[test]
fn mpirun_4_refuses_tools_and_ours_say_so() {
    let (mpirun, uri) = mpirun_4();
    let outcome = tool(mpirun.tmpdir(), &[&format!("pmix.srvr.uri={uri}"), "--"]).expect_failure();
    let _ = outcome.expect_stdout(&["the server refused: PMIX_ERR_NOT_SUPPORTED", "it serves no tools"]);
    mpirun.signal(Signal::KILL);
    let _ = mpirun.wait();
}
