//! The promises of the standard's chapter on tools about connections: which server is chosen, the tool's identity, and what becomes of both.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs::{self, File};
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use phalanx_interop::{
    Job, Running, c_tool, eventually, host, libpmix, new_directory, pmix, pmix_tool, px, px_binary, rust_tool,
};
use rustix::process::{Pid, Signal, kill_process};

fn launcher_at(tmpdir: &Path) -> Running {
    let running = px(["-n", "1", "sleep", "1000"]).env("TMPDIR", tmpdir).start();
    eventually("the launcher can be found", || !files_of(tmpdir, running.pid()).is_empty());
    running
}

/// The files through which tools find the server of this process.
fn files_of(tmpdir: &Path, pid: u32) -> Vec<PathBuf> {
    let names = [
        format!("pmix.{}.tool", host()),
        format!("pmix.{}.tool.{pid}", host()),
        format!("pmix.{}.tool.{}", host(), name(pid)),
    ];
    let sessions = fs::read_dir(tmpdir).into_iter().flatten().flatten().map(|session| session.path());
    let own = sessions.filter(|session| names.iter().all(|name| session.join(name).exists()));
    own.flat_map(|session| names.clone().map(|name| session.join(name))).collect()
}

fn name(pid: u32) -> String {
    format!("px-{}-{pid}", host())
}

/// A job in a directory without servers of other tests.
fn below(tmpdir: &Path, program: impl AsRef<Path>, words: &[&str]) -> Job {
    Job::new(program.as_ref()).args(words).env("TMPDIR", tmpdir)
}

#[test]
fn newest_of_several_servers_is_used_and_all_are_logged() {
    let place = new_directory();
    let (first, second) = (launcher_at(place.path()), launcher_at(place.path()));
    let at = |words: &[&str]| below(place.path(), px_binary(), words);
    let long_ago = SystemTime::now() - Duration::from_secs(1000);
    for (newer, older) in [(&second, &first), (&first, &second)] {
        let set = |running: &Running, to: SystemTime| {
            for file in files_of(place.path(), running.pid()) {
                File::open(file).and_then(|file| file.set_modified(to)).expect("setting its time");
            }
        };
        set(newer, SystemTime::now());
        set(older, long_ago);
        for _ in 0..3 {
            // The job belongs to the newer one.
            let job = format!("JOB_SIZE:NSPACE={}@{}", name(newer.pid()), newer.pid() & 0xffff);
            let said = at(&["query", &job]).env("PHALANX_LOG", "warn").run().expect_code(0);
            said.assert_line("PMIX_JOB_SIZE: 1");
            let dir = |running: &Running| {
                let file = files_of(place.path(), running.pid()).swap_remove(0);
                file.parent().expect("a directory").display().to_string()
            };
            let line =
                said.stderr.lines().find(|line| line.contains("several PMIx servers fit")).expect("a line");
            let at = |what: &str| line.find(what).unwrap_or_else(|| panic!("no {what:?} in {line}"));
            let (chosen, others) = (at("chosen="), at("others="));
            assert!(
                chosen < at(&dir(newer)) && at(&dir(newer)) < others && others < at(&dir(older)),
                "{line}"
            );
            let in_c = below(place.path(), pmix_tool("attach"), &["--", "servers"]);
            let in_c = in_c.env("LD_LIBRARY_PATH", libpmix()).run().expect_code(0);
            in_c.assert_line(&format!("servers PMIX_SUCCESS {}", name(newer.pid())));
            let native = below(place.path(), rust_tool("attach"), &["--", "servers"]).run();
            native.expect_code(0).assert_line(&format!("servers {}", name(newer.pid())));
        }
        // A command that follows one server refuses to choose among several, whichever is newer.
        let refused = at(&["query", "QUERY_NAMESPACES"]).run().expect_failure();
        assert_eq!(refused.stdout, "", "{refused}");
        let _ = refused.expect_stderr(&["2 servers fit", &name(first.pid()), &name(second.pid())]);
    }
    first.end();
    // A single server is used.
    let only = at(&["query", "QUERY_NAMESPACES"]).run().expect_code(0);
    let _ = only.expect_stdout(&[&name(second.pid())]);
    second.end();
}

/// Only a search that queries servers finds the right one of several, and avoids one that does not answer.
#[test]
fn commands_about_a_job_find_the_server_that_knows_it() {
    let place = new_directory();
    let (older, newer, silent) =
        (launcher_at(place.path()), launcher_at(place.path()), launcher_at(place.path()));
    let long_ago = SystemTime::now() - Duration::from_secs(1000);
    for running in [&older, &silent] {
        for file in files_of(place.path(), running.pid()) {
            File::open(file).and_then(|file| file.set_modified(long_ago)).expect("setting its time");
        }
    }
    silent.signal(Signal::STOP);
    let job = |running: &Running| format!("{}@{}", name(running.pid()), running.pid() & 0xffff);
    for running in [&older, &newer] {
        let at = |words: &str| {
            let words: Vec<&str> = words.split(' ').collect();
            below(place.path(), px_binary(), &words).run()
        };
        let job = job(running);
        at(&format!("query JOB_SIZE:NSPACE={job}")).expect_code(0).assert_line("PMIX_JOB_SIZE: 1");
        let refused = at(&format!("attach {job}:5")).expect_failure();
        let _ = refused.expect_stderr(&[&format!("job {job} has no rank 5"), "its ranks are 0 to 0"]);
        let shown = at(&format!("ps {job}")).expect_code(0);
        assert!(shown.stdout.contains(&job), "{shown}");
        assert_eq!(
            shown.stdout.matches("px-").count(),
            3,
            "the server, its job and the job's ranks: {shown}"
        );
        let _ = shown.expect_stderr(&[&name(silent.pid()), "the server did not answer in time"]);
    }
    let nobody = below(place.path(), px_binary(), &["attach", "nobody@1"]).run().expect_failure();
    let _ = nobody.expect_stderr(&["nobody@1", "'px ps' lists the jobs"]);
    silent.signal(Signal::CONT);
    [older, newer, silent].into_iter().for_each(|running| drop(running.end()));
}

/// Adds the newest of all servers: it accepts connections and reads requests, but never answers. It hangs up when `hears` returns true.
/// `pid`: the process that it claims to be.
fn add_mute_server(beside: &Running, tmpdir: &Path, pid: u32, hears: impl Fn() -> bool + Send + 'static) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its port").port();
    let text = fs::read_to_string(files_of(tmpdir, beside.pid()).swap_remove(0)).expect("readable");
    let version = text.lines().nth(1).expect("a version");
    let text = format!("mute.0;tcp4://127.0.0.1:{port}\n{version}\n{pid}\n");
    let dir = tmpdir.join(format!("mute{port}"));
    fs::create_dir(&dir).expect("a directory");
    fs::write(dir.join(format!("pmix.{}.tool", host())), text).expect("writing");
    thread::spawn(move || {
        for mut tool in listener.incoming().flatten() {
            let said = tool.read(&mut [0; 64]).is_ok_and(|length| length > 0);
            if !(said && hears()) {
                let _ = tool.read_to_end(&mut Vec::new());
            }
        }
    });
}

#[test]
fn silent_servers_do_not_hold_a_search_up() {
    let place = new_directory();
    let (living, stopped) = (launcher_at(place.path()), launcher_at(place.path()));
    let long_ago = SystemTime::now() - Duration::from_secs(1000);
    for file in files_of(place.path(), living.pid()) {
        File::open(file).and_then(|file| file.set_modified(long_ago)).expect("setting its time");
    }
    stopped.signal(Signal::STOP);
    add_mute_server(&living, place.path(), std::process::id(), || false);
    let at = |program: &Path, words: &[&str]| {
        let said = below(place.path(), program, words).env("LD_LIBRARY_PATH", libpmix()).run();
        // With a server named explicitly, a tool may take thirty seconds.
        assert!(said.took < Duration::from_secs(20), "{said}");
        said.expect_code(0)
    };
    let servers = &["--", "servers"];
    at(&rust_tool("attach"), servers).assert_line(&format!("servers {}", name(living.pid())));
    at(&pmix_tool("attach"), servers).assert_line(&format!("servers PMIX_SUCCESS {}", name(living.pid())));
    let listed = at(px_binary(), &["ps"]);
    let listed = listed.expect_stdout(&[&format!("{}@", name(living.pid()))]);
    let _ = listed.expect_stderr(&["mute", &name(stopped.pid()), "the server did not answer in time"]);
    stopped.signal(Signal::CONT);
    [living, stopped].into_iter().for_each(|running| drop(running.end()));
}

#[test]
fn a_command_says_that_a_named_server_is_silent() {
    let place = new_directory();
    let silent = launcher_at(place.path());
    silent.signal(Signal::STOP);
    let pid = silent.pid().to_string();
    let listing = below(place.path(), px_binary(), &["ps", "--pid", &pid]).start();
    let as_json = below(place.path(), px_binary(), &["ps", "--pid", &pid, "--json"]).start();
    let note = "no PMIx server has answered for 3 s; still waiting";
    listing.until_said(note);
    as_json.until_said(&format!(r#"{{"text":"{note}","type":"note"}}"#));
    silent.signal(Signal::CONT);
    let _ = listing.wait().expect_code(0).expect_stdout(&[&name(silent.pid())]);
    let _ = as_json.wait().expect_code(0);
    silent.end();
}

#[test]
fn many_silent_servers_cost_a_search_no_more_than_one() {
    let place = new_directory();
    let living = launcher_at(place.path());
    let stopped = [launcher_at(place.path()), launcher_at(place.path())];
    let long_ago = SystemTime::now() - Duration::from_secs(1000);
    for file in files_of(place.path(), living.pid()) {
        File::open(file).and_then(|file| file.set_modified(long_ago)).expect("setting its time");
    }
    stopped.iter().for_each(|stopped| stopped.signal(Signal::STOP));
    // A busy process, such as this one, may be slow to answer.
    let asleep = Job::new("sleep").arg("1000").start();
    for _ in 0..18 {
        add_mute_server(&living, place.path(), asleep.pid(), || false);
    }
    for program in [rust_tool("attach"), pmix_tool("attach")] {
        let said = below(place.path(), &program, &["--", "servers"]);
        let said = said.env("LD_LIBRARY_PATH", libpmix()).run().expect_code(0);
        assert!(said.stdout.contains(&name(living.pid())), "{said}");
        // One after another they would take one second per server.
        assert!(said.took < Duration::from_secs(15), "{said}");
    }
    stopped.iter().for_each(|stopped| stopped.signal(Signal::CONT));
    stopped.into_iter().chain([living]).for_each(|running| drop(running.end()));
    drop(asleep);
}

/// The server that answers may not be the intended one.
#[test]
fn a_dvm_is_not_stopped_beside_silent_servers() {
    let place = new_directory();
    let dvm = Job::new(px_binary()).args(["dvm", "start"]).env("TMPDIR", place.path()).start();
    eventually("the DVM can be found", || files_of(place.path(), dvm.pid()).len() == 3);
    for _ in 0..20 {
        add_mute_server(&dvm, place.path(), std::process::id(), || false);
    }
    let stop = |words: &[&str]| below(place.path(), px_binary(), &[&["dvm", "stop"], words].concat()).run();
    let refused = stop(&[]).expect_failure();
    let living = format!("{} (pid {})", name(dvm.pid()), dvm.pid());
    let refused =
        refused.expect_stderr(&["21 servers may be meant", &living, "mute", "does not answer", "--pid"]);
    assert!(refused.took < Duration::from_secs(20), "{refused}");
    let _ = stop(&["--pid", &dvm.pid().to_string()]).expect_code(0);
    let _ = dvm.wait().expect_code(0);
}

#[test]
fn a_search_asks_slow_servers_again() {
    let place = new_directory();
    let slow = launcher_at(place.path());
    slow.signal(Signal::STOP);
    let (pid, heard) = (slow.pid(), AtomicU32::new(0));
    // The other server resumes when all have been asked once.
    add_mute_server(&slow, place.path(), std::process::id(), move || {
        let is_again = heard.fetch_add(1, Ordering::Relaxed) > 0;
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw).filter(|_| is_again);
        process.is_some_and(|process| kill_process(process, Signal::CONT).is_ok())
    });
    let found = below(place.path(), rust_tool("attach"), &["--", "servers"]).run().expect_code(0);
    found.assert_line(&format!("servers {}", name(pid)));
    slow.signal(Signal::CONT);
    slow.end();
}

/// A rank that writes its server's address to a file.
fn rank_that_tells(file: &Path, until: &Path) -> String {
    let (file, until) = (file.display(), until.display());
    format!(
        "echo $PMIX_SERVER_URI41 > '{file}.new'; mv '{file}.new' '{file}'; until [ -e '{until}' ]; do sleep 0.05; done"
    )
}

#[test]
fn a_server_that_serves_no_tools_lets_none_in() {
    let place = new_directory();
    let native = Job::new(rust_tool("host")).arg("1");
    let in_c = Job::new(pmix("host")).arg("1").env("LD_LIBRARY_PATH", libpmix());
    // With support for tools, but without the upcall that admits them.
    let unasked =
        Job::new(pmix("host")).arg("1").env("LD_LIBRARY_PATH", libpmix()).env("HOST_SERVES", "unasked");
    for (number, job) in [native, in_c, unasked].into_iter().enumerate() {
        let (file, over) =
            (place.path().join(format!("uri{number}")), place.path().join(format!("over{number}")));
        let job = job.args(["/bin/sh", "-c", &rank_that_tells(&file, &over)]);
        let running = job.env("HOST_TMPDIR", place.path()).env("TMPDIR", place.path()).start();
        eventually("the rank has told", || file.exists());
        let uri = fs::read_to_string(&file).expect("readable");
        let refused = c_tool(place.path(), &["uri", uri.trim(), "retries", "0", "--"]).run().expect_failure();
        refused.assert_line("init PMIX_ERR_NOT_SUPPORTED");
        let theirs = Job::new(pmix_tool("attach")).args(["uri", uri.trim(), "retries", "0", "--"]);
        let theirs = theirs.run().expect_failure();
        theirs.assert_line("init UNREACHABLE");
        let native = Job::new(rust_tool("attach")).arg(format!("pmix.srvr.uri={}", uri.trim())).arg("--");
        let said = native.run().expect_failure();
        let _ = said.expect_stdout(&["the server refused: PMIX_ERR_NOT_SUPPORTED", "it serves no tools"]);
        fs::write(&over, "").expect("writing");
        let _ = running.wait().expect_code(0);
    }
}

#[test]
fn a_server_of_a_program_lets_tools_in_if_its_host_does() {
    let place = new_directory();
    let native = Job::new(rust_tool("host")).args(["pmix.srvr.tool", "1"]);
    let in_c = Job::new(pmix("host")).arg("1").env("LD_LIBRARY_PATH", libpmix()).env("HOST_SERVES", "tools");
    for (number, job) in [native, in_c].into_iter().enumerate() {
        let (file, over) =
            (place.path().join(format!("uri{number}")), place.path().join(format!("over{number}")));
        let job =
            job.args(["/bin/sh", "-c", &rank_that_tells(&file, &over)]).env("HOST_TMPDIR", place.path());
        let running = job.env("TMPDIR", place.path()).start();
        eventually("the rank has told", || file.exists());
        let pid = running.pid().to_string();
        let attached = c_tool(place.path(), &["pid", &pid, "--", "me"]).run().expect_code(0);
        let _ = attached.expect_stdout(&["init PMIX_SUCCESS", "me tool"]);
        fs::write(&over, "").expect("writing");
        let _ = running.wait().expect_code(0);
    }
}

#[test]
fn dead_tool_is_forgotten_with_handlers_and_pulls() {
    for library in [Path::new("/nonexistent"), libpmix()] {
        let place = new_directory();
        let over = place.path().join("over");
        let said = Arc::new(Mutex::new(String::new()));
        let heard = said.clone();
        let rank = format!("until [ -e '{}' ]; do sleep 0.05; done", over.display());
        let host = Job::new(pmix("host")).args(["1", "/bin/sh", "-c", &rank]).env("HOST_SERVES", "tools");
        let host = host.env("HOST_TMPDIR", place.path()).env("TMPDIR", place.path());
        let host = host.env("LD_LIBRARY_PATH", libpmix()).reading(move |piece| {
            heard.lock().expect("it works").push_str(&String::from_utf8_lossy(piece));
        });
        let host = host.start();
        let has = |line: &str| said.lock().expect("it works").lines().any(|said| said == line);
        let find = format!("pmix.{}.tool.{}", phalanx_interop::host(), host.pid());
        eventually("the host can be found", || place.path().join(&find).exists());
        let tool = Job::new(pmix_tool("pull")).args(["pid", &host.pid().to_string(), "hosted-job", "0", "2"]);
        let tool = tool.env("TMPDIR", place.path()).env("LD_LIBRARY_PATH", library).start();
        eventually("its host knows what it wants", || has("ok register_events") && has("ok iof_pull"));
        assert!(!has("ok deregister_events") && !has("ok iof_stop"), "{}", said.lock().expect("it works"));
        tool.signal(Signal::KILL);
        let _ = tool.wait();
        eventually("and that nobody wants it", || has("ok deregister_events") && has("ok iof_stop"));
        fs::write(&over, "").expect("writing");
        let _ = host.wait().expect_code(0);
    }
}

#[test]
fn tool_keeps_its_claimed_or_given_name() {
    let (here, there) = (new_directory(), new_directory());
    let (first, second) = (launcher_at(here.path()), launcher_at(there.path()));
    let pid = first.pid().to_string();
    let other = files_of(there.path(), second.pid()).swap_remove(0);
    let (other, far) = (other.to_str().expect("UTF-8"), name(second.pid()));
    let given = format!("{}-tool", name(first.pid()));
    let cases: [(&[&str], String); 3] = [
        (&["self", "our-tool", "rank", "7"], "our-tool 7".to_owned()),
        (&["self", "our-tool"], "our-tool 0".to_owned()),
        (&[], given.clone()),
    ];
    for (words, expected) in cases {
        let at_both = ["--", "me", "attach", "file", other, "primary", &far, "me", "publish", "whose", "x"];
        let words = [&["pid", &*pid], words, &at_both, &["lookup", "whose"]].concat();
        let outcome = c_tool(here.path(), &words).run().expect_code(0);
        // An attachment that changes the tool's name also returns the new one.
        outcome.assert_line(&format!("attach PMIX_SUCCESS {far} "));
        let names: Vec<&str> = outcome.stdout.lines().filter_map(|line| line.strip_prefix("me ")).collect();
        assert!(names.len() == 2 && names[0] == names[1] && names[0].starts_with(&expected), "{outcome}");
        let nspace = names[0].split(' ').next().expect("a namespace");
        outcome.assert_line(&format!("lookup PMIX_SUCCESS {nspace} x"));
    }
    // A tool with a name at one server is refused at another where the same name is in use.
    let ready = here.path().join("ready");
    let show = format!("touch '{}'", ready.display());
    let there_pid = second.pid().to_string();
    let known = c_tool(there.path(), &["pid", &there_pid, "self", "our-tool", "--", "spawn", &show, "lost"]);
    let known = known.start();
    eventually("the other is attached", || ready.exists());
    let words = ["pid", &*pid, "self", "our-tool", "--", "attach", "file", other, "servers"];
    let clash = c_tool(here.path(), &words).run().expect_code(0);
    let clash = clash.expect_stdout(&["attach PMIX_ERR_EXISTS"]);
    clash.assert_line(&format!("servers PMIX_SUCCESS {}", name(first.pid())));
    second.end();
    let _ = known.wait();
    // Without a server the tool names itself, and sends no requests.
    for words in [&["alone", "--"][..], &["nspace", "nobody", "optional", "retries", "0", "--"]] {
        let alone = c_tool(here.path(), &[words, &["me", "servers", "query", "available"]].concat())
            .run()
            .expect_code(0);
        let alone = alone.expect_stdout(&[&format!("me tool-{}-", host()), "servers PMIX_ERR_UNREACH"]);
        let alone = alone.expect_stdout(&["query PMIX_ERR_UNREACH"]);
        let available = alone.stdout.lines().find_map(|line| line.strip_prefix("available PMIX_SUCCESS "));
        let own = name(first.pid());
        assert!(available.is_some_and(|servers| servers.split(' ').any(|server| server == own)), "{alone}");
    }
    let optional = c_tool(here.path(), &["pid", &pid, "optional", "--", "servers"]).run().expect_code(0);
    optional.assert_line(&format!("servers PMIX_SUCCESS {}", name(first.pid())));
    first.end();
}

#[test]
fn a_server_is_named_once_and_waited_for_as_long_as_was_said() {
    let place = new_directory();
    let file = place.path().join("late");
    let path = file.to_str().expect("UTF-8");
    let both =
        c_tool(place.path(), &["uri", "a.0;tcp4://127.0.0.1:1", "tcp", "a.0;tcp4://127.0.0.1:1", "--"]);
    both.run().expect_failure().assert_line("init PMIX_ERR_BAD_PARAM");
    let twice =
        c_tool(place.path(), &["file", path, "retries", "2", "delay", "1", "--"]).run().expect_failure();
    twice.assert_line("init PMIX_ERR_UNREACH");
    assert!(twice.took >= Duration::from_secs(2), "two more attempts, a second apart: {twice}");
    // The server appears before the next attempt.
    let early = c_tool(place.path(), &["file", path, "retries", "90", "delay", "1", "--", "servers"]).start();
    let launcher = px(["-n", "1", "sleep", "1000"]).env("PMIX_LAUNCHER_RNDZ_FILE", &file).start();
    let found = early.wait().expect_code(0);
    found.assert_line(&format!("servers PMIX_SUCCESS {}", name(launcher.pid())));
    launcher.end();
}

#[test]
fn the_primary_server_may_be_one_that_is_still_to_come() {
    let (here, there) = (new_directory(), new_directory());
    let (first, second) = (launcher_at(here.path()), launcher_at(there.path()));
    let (pid, far) = (first.pid().to_string(), name(second.pid()));
    let other = files_of(there.path(), second.pid()).swap_remove(0);
    let other = other.to_str().expect("UTF-8");
    let words =
        ["primary", &far, "primary-when", &far, "1", "primary-coming", &far, "file", other, "servers"];
    let outcome = c_tool(here.path(), &[&["pid", &*pid, "--"][..], &words].concat()).run().expect_code(0);
    outcome.assert_line("primary PMIX_ERR_UNREACH");
    outcome.assert_line("primary-when PMIX_ERR_TIMEOUT");
    outcome.assert_line("primary-coming PMIX_SUCCESS");
    outcome.assert_line(&format!("servers PMIX_SUCCESS {far} {}", name(first.pid())));
    first.end();
    second.end();
}

#[test]
fn a_tool_connects_to_the_server_whose_file_was_left_for_it() {
    let (here, there) = (new_directory(), new_directory());
    let (first, second) = (launcher_at(here.path()), launcher_at(there.path()));
    let (one, two) = (name(first.pid()), name(second.pid()));
    let file = files_of(there.path(), second.pid()).swap_remove(0);
    let variables = ["PMIX_LAUNCHER_RNDZ_FILE", "PMIX_LAUNCHER_RENDEZVOUS_FILE"];
    for variable in variables {
        let left = c_tool(here.path(), &["--", "servers"]).env(variable, &file).run().expect_code(0);
        left.assert_line(&format!("servers PMIX_SUCCESS {two}"));
        let named = ["pid", &first.pid().to_string(), "--", "servers"];
        let named = c_tool(here.path(), &named).env(variable, &file).run().expect_code(0);
        named.assert_line(&format!("servers PMIX_SUCCESS {one}"));
    }
    let attribute = format!("pmix.tool.lncrnd={}", file.display());
    let native = Job::new(rust_tool("attach")).args([&attribute, "--", "servers"]);
    let native = native.env("TMPDIR", here.path()).env(variables[0], "/nowhere").run().expect_code(0);
    native.assert_line(&format!("servers {two}"));
    second.end();
    // A file that does not exist is ignored.
    let gone = c_tool(here.path(), &["nspace", &one, "--", "servers"]).env(variables[0], &file).run();
    gone.expect_code(0).assert_line(&format!("servers PMIX_SUCCESS {one}"));
    assert!(!file.exists());
    first.end();
}

#[test]
fn inits_of_a_tool_are_counted() {
    let place = new_directory();
    let launcher = launcher_at(place.path());
    let words = ["pid", &launcher.pid().to_string(), "--", "again", "servers"];
    let counted = c_tool(place.path(), &words).run().expect_code(0);
    counted.assert_line("again PMIX_SUCCESS PMIX_SUCCESS same");
    counted.assert_line(&format!("servers PMIX_SUCCESS {}", name(launcher.pid())));
    counted.assert_line("finalize PMIX_SUCCESS");
    launcher.end();
}

#[test]
fn a_tool_connects_back_to_its_starter() {
    let (here, there) = (new_directory(), new_directory());
    let (first, second) = (launcher_at(here.path()), launcher_at(there.path()));
    let (pid, one, two) = (first.pid().to_string(), name(first.pid()), name(second.pid()));
    let file = files_of(there.path(), second.pid()).swap_remove(0);
    let uri = fs::read_to_string(&file).expect("readable").lines().next().expect("an address").to_owned();
    let started = |words: &[&str], uri: &str| {
        c_tool(here.path(), &[words, &["--", "servers", "query"]].concat()).env("PMIX_LAUNCHER_RNDZ_URI", uri)
    };
    let both = started(&["pid", &pid], &uri).run().expect_code(0);
    both.assert_line(&format!("servers PMIX_SUCCESS {one} {two}"));
    let _ = both.expect_stdout(&[&format!("query PMIX_SUCCESS {one}@")]);
    let known = started(&["uri", &uri], &uri).run().expect_code(0);
    known.assert_line(&format!("servers PMIX_SUCCESS {two}"));
    let only = started(&[], &uri).run().expect_code(0);
    only.assert_line(&format!("servers PMIX_SUCCESS {two}"));
    let named = c_tool(here.path(), &["--", "me"]).env("PMIX_LAUNCHER_RNDZ_URI", &uri);
    let named = named.env("PMIX_NAMESPACE", "given").env("PMIX_RANK", "3").run().expect_code(0);
    named.assert_line("me given 3");
    // Programs run by px are started by px, not by its starter.
    let told =
        px(["-n", "1", "sh", "-c", "env | grep -c PMIX_LAUNCHER_"]).env("PMIX_LAUNCHER_RNDZ_URI", &uri);
    told.run().expect_code(1).assert_line("0");
    second.end();
    let lost = started(&["pid", &pid], &uri).run().expect_failure();
    lost.assert_line("init PMIX_ERR_UNREACH");
    first.end();
}

#[test]
fn launcher_connects_back_and_says_when_it_is_ready() {
    let (here, there) = (new_directory(), new_directory());
    let starter = launcher_at(here.path());
    let (pid, file) = (starter.pid().to_string(), files_of(here.path(), starter.pid()).swap_remove(0));
    let uri = fs::read_to_string(file).expect("readable").lines().next().expect("an address").to_owned();
    let at = |words: &[&str]| Job::new(px_binary()).args(words).env("TMPDIR", here.path());
    let job = |words: &[&str]| {
        Job::new(px_binary()).args(words).env("TMPDIR", there.path()).env("PMIX_LAUNCHER_RNDZ_URI", &uri)
    };
    // Servers deliver earlier events to tools that register late.
    let dvm = job(&["dvm", "start"]).env("PMIX_NAMESPACE", "given").env("PMIX_RANK", "0").start();
    let ready = at(&["events", "--code", "LAUNCHER_READY", "--count", "1", "--json", "--pid", &pid]).run();
    let ready: serde_json::Value = serde_json::from_str(&ready.expect_code(0).stdout).expect("JSON");
    assert_eq!(ready["source"]["nspace"], "given", "the name that it was given: {ready}");
    assert_eq!(ready["info"]["PMIX_SERVER_NSPACE"], name(dvm.pid()), "{ready}");
    assert_eq!(ready["info"]["PMIX_SERVER_PIDINFO"], dvm.pid(), "{ready}");
    let told = ready["info"]["PMIX_SERVER_URI"].as_str().expect("an address");
    let run = at(&["run", "--uri", told, "-n", "1", "sh", "-c", "echo $PMIX_NAMESPACE"]).run().expect_code(0);
    let _ = run.expect_stdout(&[&name(dvm.pid())]);
    dvm.signal(Signal::TERM);
    let _ = dvm.wait().expect_code(0);
    let _ = job(&["run", "-n", "1", "echo", "hello"]).run().expect_code(0).expect_lines(["hello"]);
    // Long-lived commands end with their starter.
    let lasting = [&["dvm", "start"][..], &["run", "-n", "1", "sh", "-c", "echo is ready; exec sleep 1000"]];
    let lasting = lasting.map(|words| {
        let running = job(words).start();
        running.until_said("is ready");
        running
    });
    let (agent, asked) = (there.path().join("agent"), there.path().join("asked"));
    fs::write(&agent, format!("> '{}'; exec sleep 1000", asked.display())).expect("writable");
    let agent = format!("sh '{}'", agent.display());
    let waits = job(&["dvm", "start", "--host", "other", "--launch-agent", &agent]).start();
    eventually("the DVM waits for its host", || asked.exists());
    starter.end();
    for (running, code) in lasting.into_iter().chain([waits]).zip([0, 143, 0]) {
        let _ = running.wait().expect_code(code).expect_nothing_left();
    }
    for words in [&["dvm", "start"][..], &["run", "-n", "1", "echo", "hello"]] {
        let lost = job(words).run().expect_code(1).expect_nothing_left();
        assert_eq!(lost.stdout, "", "{lost}");
        let _ = lost.expect_stderr(&[
            "cannot connect back to the process that started this launcher",
            "nobody accepts connections there",
            "PMIX_LAUNCHER_RNDZ_URI says where",
        ]);
    }
}

#[test]
fn calls_to_a_server_end_with_it() {
    let place = new_directory();
    let launcher = launcher_at(place.path());
    let said = place.path().join("said");
    let script = format!("\"$@\" | tee '{}'", said.display());
    let waiting = Job::new("sh")
        .args(["-c", &script, "sh"])
        .arg(pmix_tool("attach"))
        .args(["pid", &launcher.pid().to_string(), "--", "pending", "nobody.publishes.it", "query"])
        .env("TMPDIR", place.path())
        .env("LD_LIBRARY_PATH", libpmix())
        .start();
    let why = || {
        let why = Job::new(px_binary()).args(["why", "--pid", &launcher.pid().to_string()]);
        why.env("TMPDIR", place.path()).run().expect_code(0)
    };
    eventually("the tool waits", || why().stdout.contains("lookup"));
    launcher.signal(Signal::KILL);
    let outcome = waiting.wait().expect_code(0);
    outcome.assert_line("pending ended with PMIX_ERR_LOST_CONNECTION");
    outcome.assert_line("query PMIX_ERR_UNREACH");
    let _ = launcher.wait();
}
