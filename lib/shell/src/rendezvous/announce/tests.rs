use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use std::fs;

use super::*;
use crate::trust::Trust;

fn read(path: &Path) -> Result<Rendezvous, String> {
    crate::rendezvous::read(path, &Trust::default())
}

fn notice(dir: &Path, address: &str) -> Notice {
    Notice {
        uri: ServerUri::parse(&format!("srv-1.0;tcp4://{address}")).unwrap(),
        version: "5.0.11".into(),
        hostname: "host".into(),
        secret: None,
        mode: Mode::default(),
        system_dir: Some(dir.to_owned()),
        server_dir: Some(dir.to_owned()),
        files: vec![dir.join("extra")],
    }
}

fn made_in_the_end(notice: &Notice) -> Announcement {
    let begun = Instant::now();
    loop {
        match Announcement::make(notice) {
            Ok(made) => return made,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(60), "{error}"),
        }
        std::thread::yield_now();
    }
}

/// An address where nothing listens, and for the moment nothing will.
fn deserted() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn names(dir: &Path) -> Vec<String> {
    let mut all: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    all
}

/// The content of the file of a server with this pid.
fn of_pid(pid: u32, address: &str) -> String {
    format!("old.0;tcp4://{address}\n5.0.11\n{pid}\n0:0\nFri Nov 20 16:20:01 2026\n\nlocked\n")
}

/// The pid of a process that has ended.
fn dead_pid() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

#[test]
fn all_files_say_the_same_and_go_with_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let made = Announcement::make(&notice(dir.path(), "127.0.0.1:7")).unwrap();
    let pid = std::process::id();
    let by_pid = format!("pmix.host.tool.{pid}");
    let mut expected = ["extra", "pmix.host.tool", &by_pid, "pmix.host.tool.srv-1", "pmix.sys.host"];
    expected.sort_unstable();
    assert_eq!(names(dir.path()), expected);
    assert_eq!(made.files().count(), 5);
    for name in expected {
        let path = dir.path().join(name);
        let file = read(&path).unwrap();
        assert_eq!((file.uri.to_string().as_str(), file.pid), ("srv-1.0;tcp4://127.0.0.1:7", Some(pid)));
        assert_eq!(file.version.as_deref(), Some("5.0.11"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(file.locked && fs::read_to_string(&path).unwrap().ends_with("\n\nlocked\n"));
    }
    drop(made);
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn living_server_keeps_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let system = dir.path().join("pmix.sys.host");
    fs::write(&system, of_pid(std::process::id(), &deserted())).unwrap();
    let error = Announcement::make(&notice(dir.path(), "127.0.0.1:7")).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("pmix.sys.host") && text.contains("old:0") && text.contains("is alive"), "{text}");
    assert_eq!(names(dir.path()), ["pmix.sys.host"]);
}

#[test]
fn a_dead_server_is_replaced_unless_somebody_answers_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let system = dir.path().join("pmix.sys.host");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    fs::write(&system, of_pid(dead_pid(), &listener.local_addr().unwrap().to_string())).unwrap();
    assert!(Announcement::make(&notice(dir.path(), "127.0.0.1:7")).is_err());
    drop(listener);
    fs::write(&system, of_pid(dead_pid(), &deserted())).unwrap();
    let made = Announcement::make(&notice(dir.path(), "127.0.0.1:7")).unwrap();
    assert_eq!(read(&system).unwrap().pid, Some(std::process::id()));
    drop(made);
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn unseen_servers_are_replaced_only_if_certainly_dead() {
    let dir = tempfile::tempdir().unwrap();
    let (system, address) = (dir.path().join("pmix.sys.host"), deserted());
    let notice = || notice(dir.path(), "127.0.0.1:7");
    let text = of_pid(dead_pid(), &address);
    fs::write(&system, text.replace("locked\n", "")).unwrap();
    let error = Announcement::make(&notice()).unwrap_err().to_string();
    assert!(error.contains("may live in another container: remove the file"), "{error}");
    fs::write(&system, text).unwrap();
    let held = File::open(&system).unwrap();
    assert!(lock(&held));
    let error = Announcement::make(&notice()).unwrap_err().to_string();
    assert!(error.contains("is alive") && error.contains("another container"), "{error}");
    assert_eq!(names(dir.path()), ["pmix.sys.host"]);
    drop(held);
    // A child that another test has just forked may still hold the lock for a moment.
    let made = made_in_the_end(&notice());
    for file in made.files() {
        let file = File::open(file).unwrap();
        assert!(!lock(&file), "the server holds it");
    }
}

#[test]
fn zombie_server_counts_as_dead() {
    let dir = tempfile::tempdir().unwrap();
    let system = dir.path().join("pmix.sys.host");
    let mut unseen = std::process::Command::new("true").stdout(std::process::Stdio::piped()).spawn().unwrap();
    // Its streams close when it ends, a moment before it is a zombie.
    unseen.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
    fs::write(&system, of_pid(unseen.id(), &deserted())).unwrap();
    let made = made_in_the_end(&notice(dir.path(), "127.0.0.1:7"));
    assert_eq!(read(&system).unwrap().pid, Some(std::process::id()));
    drop(made);
    unseen.wait().unwrap();
}

#[test]
fn links_are_not_followed_and_strangers_files_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, dir.path().join("pmix.sys.host")).unwrap();
    let error = Announcement::make(&notice(dir.path(), "127.0.0.1:7")).unwrap_err().to_string();
    assert!(error.contains("symbolic link"), "{error}");
    fs::remove_file(dir.path().join("pmix.sys.host")).unwrap();
    fs::rename(&victim, dir.path().join("extra")).unwrap();
    let error = Announcement::make(&notice(dir.path(), "127.0.0.1:7")).unwrap_err().to_string();
    assert!(error.contains("something else"), "{error}");
    assert_eq!(fs::read_to_string(dir.path().join("extra")).unwrap(), "precious");
    assert_eq!(names(dir.path()), ["extra"]);
}

#[test]
fn a_file_that_replaced_ours_is_not_removed() {
    let dir = tempfile::tempdir().unwrap();
    let made = Announcement::make(&notice(dir.path(), "127.0.0.1:7")).unwrap();
    let extra = dir.path().join("extra");
    fs::remove_file(&extra).unwrap();
    fs::write(&extra, "another's").unwrap();
    drop(made);
    assert_eq!(names(dir.path()), ["extra"]);
}

#[test]
fn first_server_in_a_directory_has_the_common_name() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("pmix.host.tool"), of_pid(std::process::id(), "127.0.0.1:9")).unwrap();
    let notice = Notice { system_dir: None, files: Vec::new(), ..notice(dir.path(), "127.0.0.1:7") };
    let made = Announcement::make(&notice).unwrap();
    assert_eq!(made.files().count(), 2);
    assert_eq!(read(&dir.path().join("pmix.host.tool")).unwrap().uri.server.nspace.as_str(), "old");
}

#[test]
fn others_may_read_if_the_server_wants_it() {
    let dir = tempfile::tempdir().unwrap();
    let mode = Mode { bits: 0o644, gid: Some(getegid().as_raw()) };
    let _made = Announcement::make(&Notice { mode, ..notice(dir.path(), "127.0.0.1:7") }).unwrap();
    let file = dir.path().join("pmix.sys.host");
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn times_are_written_like_the_c_library_writes_them() {
    assert_eq!(as_ctime(0), "Thu Jan  1 00:00:00 1970");
    assert_eq!(as_ctime(951_827_696), "Tue Feb 29 12:34:56 2000");
    assert_eq!(as_ctime(1_795_278_001), "Sat Nov 21 16:20:01 2026");
}

#[test]
fn files_of_the_dead_are_replaced_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let address = deserted();
    let by_pid = format!("pmix.host.tool.{}", std::process::id());
    for name in [by_pid.as_str(), "pmix.host.tool.srv-1", "pmix.host.tool"] {
        fs::write(dir.path().join(name), of_pid(dead_pid(), &address)).unwrap();
    }
    let made = Announcement::make(&notice(dir.path(), "127.0.0.1:7")).unwrap();
    assert_eq!(made.files().count(), 5);
    for file in made.files() {
        assert_eq!(read(file).unwrap().pid, Some(std::process::id()), "{}", file.display());
    }
    drop(made);
    assert_eq!(names(dir.path()), [""; 0]);
}

/// Gives the file to another user; only root can.
fn give_to_nobody(path: &Path) -> bool {
    std::os::unix::fs::lchown(path, Some(65_534), None).is_ok()
}

#[test]
fn a_file_of_another_user_that_was_named_stays() {
    let dir = tempfile::tempdir().unwrap();
    let extra = dir.path().join("extra");
    let of_dead = of_pid(dead_pid(), &deserted());
    for text in ["precious\n", &of_dead] {
        fs::write(&extra, text).unwrap();
        if !give_to_nobody(&extra) {
            return;
        }
        let error = Announcement::make(&notice(dir.path(), "127.0.0.1:7")).unwrap_err().to_string();
        assert!(error.contains("extra") && error.contains("65534"), "{error}");
        assert_eq!(fs::read_to_string(&extra).unwrap(), text);
        assert_eq!(names(dir.path()), ["extra"]);
    }
    fs::remove_file(&extra).unwrap();
    std::os::unix::fs::symlink("nowhere", &extra).unwrap();
    give_to_nobody(&extra);
    assert!(Announcement::make(&notice(dir.path(), "127.0.0.1:7")).is_err());
    assert_eq!(names(dir.path()), ["extra"]);
}

#[test]
fn a_strangers_file_does_not_keep_root_from_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let system = dir.path().join("pmix.sys.host");
    fs::write(&system, "in the way").unwrap();
    if !give_to_nobody(&system) {
        return;
    }
    let made = Announcement::make(&notice(dir.path(), "127.0.0.1:7")).unwrap();
    assert_eq!(read(&system).unwrap().pid, Some(std::process::id()));
    drop(made);
    assert_eq!(names(dir.path()), [""; 0]);
}
