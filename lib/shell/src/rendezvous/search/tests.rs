//! Searches in directories that the tests create.

use std::net::TcpListener;
use std::time::{Duration, Instant, SystemTime};

use super::*;

fn file(dir: &Path, name: &str, server: &str, address: &str, pid: u32) {
    let text = format!("{server}.0;tcp4://{address}\n5.0.11\n{pid}\n0:0\nnow\n\nlocked\n");
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join(name), text).unwrap();
}

fn search(wanted: Wanted, top: &Path) -> Search {
    Search::run(wanted, "h", vec![top.to_owned()], &Trust::default())
}

fn names(search: &Search) -> Vec<&str> {
    search.found.iter().map(|found| found.rendezvous.uri.server.nspace.as_str()).collect()
}

fn dead() -> (u32, String) {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    (child.id(), gone.to_string())
}

#[test]
fn servers_are_found_by_pid_and_namespace() {
    let top = tempfile::tempdir().unwrap();
    let me = std::process::id();
    file(&top.path().join("a/b"), "pmix.h.tool.77", "one", "127.0.0.1:1", me);
    file(&top.path().join("a/b"), &format!("pmix.h.tool.{me}"), "one", "127.0.0.1:1", me);
    file(&top.path().join("c"), "pmix.h.tool.two", "two", "127.0.0.1:2", me);
    file(&top.path().join("c"), "pmix.h.tool.two.more", "three", "127.0.0.1:3", me);
    let run = |wanted| search(wanted, top.path());
    assert_eq!(names(&run(Wanted::Pid(me))), ["one"]);
    assert_eq!(names(&run(Wanted::Nspace("two".into()))), ["two"]);
    let other = run(Wanted::Pid(77));
    assert_eq!(names(&other), [""; 0]);
    assert!(other.to_string().contains(&format!("it is of process {me}")), "{other}");
    let none = run(Wanted::Nspace("four".into())).to_string();
    assert!(none.contains("pmix.h.tool.four") && none.contains("there is no such file"), "{none}");
}

#[test]
fn processes_of_other_users_are_recognized() {
    let (pid, me) = (std::process::id(), geteuid().as_raw());
    assert_eq!(other_user(pid, me), None);
    assert_eq!(other_user(pid, me + 1), Some(me));
    assert_eq!(other_user(pid, 0), None);
    assert_eq!(other_user(dead().0, me + 1), None);
}

#[test]
fn each_server_is_found_once_and_the_newest_first() {
    let top = tempfile::tempdir().unwrap();
    let me = std::process::id();
    let old = SystemTime::now() - std::time::Duration::from_secs(100);
    for name in ["pmix.h.tool", "pmix.h.tool.9", "pmix.h.tool.x"] {
        file(&top.path().join("z"), name, "old", "127.0.0.1:1", me);
        let file = fs::File::options().append(true).open(top.path().join("z").join(name)).unwrap();
        file.set_modified(old).unwrap();
    }
    file(top.path(), "pmix.h.tool.10", "new", "127.0.0.1:2", me);
    file(top.path(), "pmix.h.toolbox", "no", "127.0.0.1:3", me);
    file(top.path(), "pmix.other.tool", "no", "127.0.0.1:4", me);
    let search = self::search(Wanted::Any, top.path());
    assert_eq!(names(&search), ["new", "old"]);
}

#[test]
fn the_system_server_is_only_at_the_top() {
    let top = tempfile::tempdir().unwrap();
    let me = std::process::id();
    file(&top.path().join("deep"), "pmix.sys.h", "hidden", "127.0.0.1:1", me);
    let run = || search(Wanted::System, top.path());
    assert_eq!(names(&run()), [""; 0]);
    file(top.path(), "pmix.sys.h", "sys", "127.0.0.1:1", me);
    assert_eq!(names(&run()), ["sys"]);
}

#[test]
fn files_of_dead_servers_go_and_unreadable_are_named() {
    let top = tempfile::tempdir().unwrap();
    let (pid, address) = dead();
    file(top.path(), "pmix.h.tool.1", "dead", &address, pid);
    fs::write(top.path().join("pmix.h.tool.2"), "").unwrap();
    fs::write(top.path().join("pmix.h.tool.3"), "nonsense").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        top.path().join("pmix.h.tool.4"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let search = self::search(Wanted::Any, top.path());
    assert_eq!(names(&search), [""; 0]);
    let said = search.to_string();
    for expected in [
        &format!("pmix.h.tool.1: its server, process {pid}, has ended; removed"),
        "pmix.h.tool.2: it is empty",
        "pmix.h.tool.3: `nonsense` is not a server's address",
        "pmix.h.tool.4: it is not a regular file",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    assert!(!top.path().join("pmix.h.tool.1").exists());
}

#[test]
fn nothing_that_strangers_have_made_counts() {
    let top = tempfile::tempdir().unwrap();
    let me = std::process::id();
    for n in 0..200 {
        file(top.path(), &format!("pmix.h.tool.{n}"), "foreign", "127.0.0.1:1", me);
    }
    file(&top.path().join("theirs"), "pmix.h.tool.a", "inside", "127.0.0.1:2", me);
    let run = |trust: &Trust| Search::run(Wanted::Any, "h", vec![top.path().to_owned()], trust);
    let search = run(&Trust::nobody());
    assert_eq!(names(&search), [""; 0]);
    let said = search.to_string();
    assert!(said.contains("and 199 more: they belong to the user"), "{said}");
    assert_eq!(names(&run(&Trust::default())).len(), 2);
}

#[test]
fn files_that_everybody_can_write_and_links_do_not_count() {
    let top = tempfile::tempdir().unwrap();
    let me = std::process::id();
    let (open, ours) = (top.path().join("pmix.h.tool.1"), top.path().join("ours"));
    file(top.path(), "pmix.h.tool.1", "open", "127.0.0.1:3", me);
    fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    file(&ours, "pmix.h.tool.2", "ours", "127.0.0.1:2", me);
    std::os::unix::fs::symlink(&ours, top.path().join("link")).unwrap();
    std::os::unix::fs::symlink(ours.join("pmix.h.tool.2"), top.path().join("pmix.h.tool.3")).unwrap();
    let search = self::search(Wanted::Any, top.path());
    assert_eq!(names(&search), ["ours"]);
    assert_eq!(search.found[0].path, ours.join("pmix.h.tool.2"));
    let said = search.to_string();
    assert!(said.contains("tool.1: everybody can write to it"), "{said}");
    assert!(said.contains("tool.3: it is a symbolic link"), "{said}");
}

#[test]
fn files_of_unseen_servers_are_kept() {
    let top = tempfile::tempdir().unwrap();
    let (pid, address) = dead();
    let (ours, theirs) = (top.path().join("pmix.h.tool.1"), top.path().join("pmix.h.tool.2"));
    file(top.path(), "pmix.h.tool.1", "ours", &address, pid);
    fs::write(&theirs, format!("theirs.0;tcp4://{address}\n5.0.11\n{pid}\n0:0\nnow\n\n")).unwrap();
    let held = fs::File::options().append(true).open(&ours).unwrap();
    assert!(crate::rendezvous::stale::lock(&held));
    let run = || search(Wanted::Any, top.path());
    let search = run();
    assert_eq!(names(&search), [""; 0]);
    let said = search.to_string();
    for expected in [
        format!("tool.1: server ours:0, pid {pid} is alive, though not to be seen from here"),
        format!("tool.2: server theirs:0, pid {pid} is not to be seen from here, but may live"),
    ] {
        assert!(said.contains(&expected), "{said}");
    }
    drop(held);
    // A child that another test has just forked may still hold the lock for a moment.
    let begun = Instant::now();
    while ours.exists() {
        let search = run();
        assert!(begun.elapsed() < Duration::from_secs(60), "{search}");
    }
    assert!(theirs.exists());
}
