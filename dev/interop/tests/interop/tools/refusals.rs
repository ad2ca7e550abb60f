//! Tools that are refused, or find no server, and the errors that they get; and tools that wait until there is a server.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use phalanx_interop::{
    Job, Library::Pmix5, Outcome, Running, copy_program, debian_file, eventually, host, libpmix, needs_root,
    new_directory, pmix, pmix_tool, px, px_binary, rust_tool,
};
use rustix::process::Signal;
use tempfile::TempDir;

/// A launcher that writes its address into a file of this directory.
fn launcher(place: &Path) -> (Running, PathBuf) {
    let file = place.join("uri");
    let running = px(["--report-uri"]).arg(&file).args(["-n", "1", "sleep", "1000"]).start();
    eventually("the launcher says where it is", || file.exists());
    (running, file)
}

fn uri(file: &Path) -> String {
    fs::read_to_string(file).expect("readable").lines().next().expect("an address").to_owned()
}

/// A directory that every user can enter, with copies of these programs.
fn public(programs: &[&Path]) -> (TempDir, Vec<PathBuf>) {
    let place = new_directory();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    let copy = |program: &&Path| {
        let to = place.path().join(program.file_name().expect("a name"));
        copy_program(program, &to);
        to
    };
    let copies = programs.iter().map(copy).collect();
    (place, copies)
}

fn as_nobody(program: &Path) -> Job {
    needs_root("another user takes part");
    let ids = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".to_owned()];
    Job::new("setpriv").args(ids).arg(program)
}

fn attach(job: Job, words: &[&str]) -> Outcome {
    job.args(words).args(["pmix.tool.mretries=0", "--", "query"]).run()
}

#[test]
fn tools_of_other_users_are_refused_with_the_reason() {
    let place = new_directory();
    let (running, file) = launcher(place.path());
    let (_public, programs) = public(&[&rust_tool("attach")]);
    let outcome = attach(as_nobody(&programs[0]), &[&format!("pmix.srvr.uri={}", uri(&file))]);
    let _ = outcome
        .expect_failure()
        .expect_stdout(&["the server refused: PMIX_ERR_NO_PERMISSIONS", "it serves its own user and root"]);
    // They cannot read its address either.
    let outcome = attach(as_nobody(&programs[0]), &[&format!("pmix.tool.attach={}", file.display())]);
    let _ = outcome.expect_failure().expect_stdout(&["Permission denied"]);
    running.end();
}

#[test]
fn tools_of_other_users_are_served_by_hosts_that_say_so() {
    let (place, programs) = public(&[&rust_tool("attach")]);
    let over = place.path().join("over");
    let wait = format!("until [ -e '{}' ]; do sleep 0.05; done", over.display());
    let native = Job::new(rust_tool("host")).args(["pmix.srvr.tool", "pmix.srvr.ftools"]);
    let in_c = Job::new(pmix("host")).env("HOST_SERVES", "foreign").env("LD_LIBRARY_PATH", libpmix());
    let hosts = [native, in_c].map(|job| {
        let job = job.args(["1", "/bin/sh", "-c", &wait]).env("HOST_TMPDIR", place.path());
        job.env("TMPDIR", place.path()).start()
    });
    for running in &hosts {
        let file = place.path().join(format!("pmix.{}.tool.{}", host(), running.pid()));
        eventually("the host can be found", || file.exists());
        let pid = format!("pmix.srvr.pidinfo={}", running.pid());
        let tool = as_nobody(&programs[0]).args([&pid, "--", "me"]).env("TMPDIR", place.path()).run();
        let _ = tool.expect_code(0).expect_stdout(&["init SUCCESS", "me tool"]);
    }
    fs::write(&over, "").expect("writing");
    hosts.into_iter().for_each(|running| drop(running.wait().expect_code(0)));
}

/// 4.2 tools take any answer for a welcome, and then wait forever or fail at random: they get no answer.
#[test]
fn tools_of_openpmix_get_refusals_that_they_can_read() {
    let place = new_directory();
    let (running, file) = launcher(place.path());
    let (_public, programs) = public(&[&pmix_tool("attach")]);
    let uri = uri(&file);
    for _ in 0..5 {
        let stranger = as_nobody(&programs[0]).args(["uri", &uri, "retries", "0", "--"]).run();
        stranger.expect_failure().assert_line("init UNREACHABLE");
    }
    let ready = place.path().join("ready");
    let named = |words: &[&str]| {
        let tool = Job::new(pmix_tool("attach")).args(["uri", &uri, "self", "held", "rank", "0", "--"]);
        tool.args(words)
    };
    let holder = named(&["spawn", &format!("touch '{}'", ready.display()), "lost"]).start();
    eventually("the name is taken", || ready.exists());
    named(&[]).run().expect_failure().assert_line("init UNREACHABLE");
    named(&[]).with(Pmix5).run().expect_failure().assert_line("init PMIX_ERR_EXISTS");
    holder.signal(Signal::KILL);
    let _ = holder.wait();
    running.end();
}

#[test]
fn root_is_served_by_everybody() {
    needs_root("another user takes part");
    let (place, programs) = public(&[px_binary()]);
    let home = place.path().join("home");
    fs::create_dir(&home).expect("a directory");
    chown(&home, Some(NOBODY), Some(NOBODY)).expect("giving it away");
    let file = home.join("uri");
    let running = as_nobody(&programs[0])
        .args(["run", "--report-uri"])
        .arg(&file)
        .args(["-n", "1", "sleep", "1000"])
        .env("TMPDIR", &home)
        .dir(&home)
        .start();
    eventually("the launcher says where it is", || file.exists());
    // Which servers root trusts is another question.
    let named = format!("pmix.tool.attach={}", file.display());
    let outcome = attach(Job::new(rust_tool("attach")), &[&named]);
    let _ = outcome.expect_failure().expect_stdout(&["belongs to the user 65534, who is not trusted"]);
    let trust = format!("phalanx.trust.user={NOBODY}");
    let outcome = attach(Job::new(rust_tool("attach")), &[&named, &trust]);
    let _ = outcome.expect_code(0).expect_stdout(&["query SUCCESS", "px-"]);
    running.signal(Signal::TERM);
    let _ = running.wait().expect_code(143);
}

#[test]
fn searches_do_not_follow_symbolic_links() {
    let place = new_directory();
    let (running, _) = launcher(place.path());
    let elsewhere = new_directory();
    symlink(running.tmpdir(), elsewhere.path().join("px.here")).expect("a link");
    let pid = format!("pmix.srvr.pidinfo={}", running.pid());
    let search = |dir: &Path| {
        let below = format!("pmix.srvr.tmpdir={}", dir.display());
        attach(Job::new(rust_tool("attach")), &[&pid, &below])
    };
    eventually("it is found where it is", || search(running.tmpdir()).stdout.contains("query SUCCESS"));
    let _ = search(elsewhere.path()).expect_failure().expect_stdout(&["there is no such file"]);
    running.end();
}

#[test]
fn files_of_dead_servers_are_removed_if_unlocked() {
    let place = new_directory();
    let mut dead = std::process::Command::new("true").spawn().expect("a process");
    dead.wait().expect("its end");
    let file = place.path().join(format!("pmix.{}.tool.{}", host(), dead.id()));
    let text = format!("gone.0;tcp4://127.0.0.1:1\n5.0.11\n{}\n0:0\nFri Nov 20 16:20:01 2026\n\n", dead.id());
    let pid = format!("pmix.srvr.pidinfo={}", dead.id());
    let tool = || Job::new(rust_tool("attach")).env("TMPDIR", place.path());
    fs::write(&file, &text).expect("writing");
    let _ = attach(tool(), &[&pid]).expect_failure().expect_stdout(&["may live in another container"]);
    fs::write(&file, text + "locked\n").expect("writing");
    let outcome = attach(tool(), &[&pid]).expect_failure();
    let _ = outcome.expect_stdout(&[&format!("its server, process {}, has ended; removed", dead.id())]);
    assert!(!file.exists());
}

#[test]
fn files_of_servers_in_other_containers_stay() {
    let place = new_directory();
    let (running, _) = launcher(place.path());
    eventually("it can be found", || running.rendezvous_file().is_some());
    let ip = debian_file("/usr/sbin/ip", "iproute2");
    // A new network namespace does not refuse connections: its loopback interface is still down.
    let inside = "\"$0\" link set lo up && exec \"$@\"";
    needs_root("a container is made");
    let container =
        Job::new("unshare").args(["--pid", "--fork", "--net", "--mount-proc", "sh", "-c", inside]);
    let tool = container.arg(ip).arg(rust_tool("attach")).env("TMPDIR", running.tmpdir());
    let pid = format!("pmix.srvr.pidinfo={}", running.pid());
    let _ =
        attach(tool, &[&pid]).expect_failure().expect_stdout(&["is alive, though not to be seen from here"]);
    assert!(running.rendezvous_file().is_some());
    let tool = Job::new(rust_tool("attach")).env("TMPDIR", running.tmpdir());
    let _ = attach(tool, &[&pid]).expect_code(0).expect_stdout(&["query SUCCESS"]);
    running.end();
}

#[test]
fn a_tool_obeys_its_timeout_and_its_number_of_retries() {
    let place = new_directory();
    let tool = |words: &[&str]| {
        let tool = Job::new(rust_tool("attach")).args(words).args(["--", "query"]);
        tool.env("TMPDIR", place.path())
    };
    let nobody = format!("pmix.srvr.pidinfo={NO_PROCESS}");
    let patient = tool(&[&nobody, "pmix.timeout=1"]).run().expect_failure();
    assert!(patient.took >= Duration::from_secs(1), "{patient}");
    let stubborn = [&nobody, "pmix.tool.mretries=2", "pmix.tool.retry=1"];
    let stubborn = tool(&stubborn).run().expect_failure();
    assert!(stubborn.took >= Duration::from_secs(2), "{stubborn}");
    // A server that appears while the tool waits is found.
    let file = place.path().join("uri");
    let waiting = tool(&[&format!("pmix.tool.attach={}", file.display()), "pmix.timeout=100"]).start();
    let (running, _) = launcher(place.path());
    let _ = waiting.wait().expect_code(0).expect_stdout(&["query SUCCESS"]);
    running.end();
}

const NOBODY: u32 = 65534;
/// Beyond any kernel's pids: tools search below `/tmp` as well, where containers' first processes may be servers.
const NO_PROCESS: u32 = (1 << 22) + 1;
