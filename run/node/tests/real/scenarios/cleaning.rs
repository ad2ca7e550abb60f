//! Nothing is left behind, however a launcher ends.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use phalanx_dvm::{Cleanup, DirectoryRules, Report};
use phalanx_node::StdinSource;
use phalanx_wire::Text;
use rustix::process::{Pid, Signal, kill_process};

use super::Scenario;
use crate::launcher::{Script, begin, connect_and_wait_for, run, shell, with_node, with_node_in};
use crate::until;

pub(super) const ALL: &[Scenario] = &[
    ("an_orderly_end_leaves_nothing", an_orderly_end_leaves_nothing),
    ("a_killed_launcher_leaves_nothing", a_killed_launcher_leaves_nothing),
    (
        "some_are_asked_to_end_when_their_launcher_is_killed",
        some_are_asked_to_end_when_their_launcher_is_killed,
    ),
    ("what_a_rank_asked_to_be_removed_goes_with_it", what_a_rank_asked_to_be_removed_goes_with_it),
    ("a_killed_group_leaves_nothing", a_killed_group_leaves_nothing),
    ("a_launcher_that_just_exits_leaves_nothing", a_launcher_that_just_exits_leaves_nothing),
    ("leftovers_of_the_dead_are_swept", leftovers_of_the_dead_are_swept),
    ("the_name_of_the_directory_cannot_be_guessed", the_name_of_the_directory_cannot_be_guessed),
    ("a_directory_that_is_already_there_is_not_used", a_directory_that_is_already_there_is_not_used),
    ("the_next_launcher_finishes_what_is_left", the_next_launcher_finishes_what_is_left),
    ("launchers_do_not_disturb_each_other", launchers_do_not_disturb_each_other),
    ("a_forgotten_job_leaves_no_process", a_forgotten_job_leaves_no_process),
    ("a_node_that_fails_leaves_nothing", a_node_that_fails_leaves_nothing),
    ("a_node_that_stops_early_leaves_nothing", a_node_that_stops_early_leaves_nothing),
];

pub(super) const PARTS: &[Scenario] = &[("launcher_that_waits", launcher_that_waits)];

/// Prints its session directory, and the pids of its rank and of the rank's descendants, then waits for ever.
fn launcher_that_waits() {
    let (inherited, session) = begin();
    let dir = session.dir().to_owned();
    println!("{}", dir.display());
    // As an MPI library does with its shared memory.
    let segment = std::env::var("SEGMENT").map(|path| (Text::from(path), Cleanup::File));
    let all = Cleanup::Directory(DirectoryRules { recursive: true, ..DirectoryRules::default() });
    let segments = std::env::var("SEGMENTS").map(|path| (Text::from(path), all));
    // Its registration in the journal makes the directory.
    let nothing = ("/nowhere/at all".into(), Cleanup::File);
    let cleanup = segment.into_iter().chain(segments).chain([nothing]).collect();
    let asked = std::env::var("ASKED").ok();
    let script = Script { cleanup, asked_first: asked.is_some(), ..Script::default() };
    with_node_in(inherited, session, script, async |node, _| {
        // One child in the group, one that left it, one that left it and has lost its parent. The shell prints a message at the end of its children,
        // when its output has no reader.
        let trap =
            asked.map(|path| format!("exec 2>/dev/null; trap 'sleep 0.1; echo >\"{path}\"; exit' TERM; "));
        let end = if trap.is_some() { "sleep 1000" } else { "exec sleep 1000" };
        let script = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; \
                      (setsid sh -c 'echo $$; exec sleep 1000' &); echo $$; ";
        let script = [trap.as_deref().unwrap_or_default(), script, end].concat();
        node.handle.submit(shell(2, &script), StdinSource::Empty).await.unwrap();
        let mut output = Vec::new();
        loop {
            if let Report::Output { data, .. } = node.reports.recv().await.unwrap() {
                output.extend_from_slice(&data);
                if output.iter().filter(|b| **b == b'\n').count() == 8 {
                    break;
                }
            }
        }
        while !dir.exists() {
            node.handle.explain().await.unwrap();
        }
        std::fs::write(dir.join("a file"), "x").unwrap();
        std::io::stdout().write_all(&output).unwrap();
        std::io::stdout().write_all(b"ready\n").unwrap();
        if std::env::var_os("JUST_EXIT").is_some() {
            std::process::exit(0);
        }
        node.reports.recv().await;
    });
}

struct Waiting {
    child: Child,
    dir: PathBuf,
    pids: Vec<i32>,
}

fn start_waiting(command: &mut Command) -> Waiting {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let dir = PathBuf::from(lines.next().unwrap());
    let pids: Vec<i32> = lines.take_while(|line| line != "ready").map(|line| line.parse().unwrap()).collect();
    assert_eq!(pids.len(), 8);
    Waiting { child, dir, pids }
}

impl Waiting {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn wait_until_nothing_is_left(mut self) {
        self.child.wait().unwrap();
        until(|| self.pids.iter().all(|pid| is_gone(*pid)));
        until(|| !self.dir.exists() && !lock_of(&self.dir).exists());
    }
}

/// The lock file. The directory's name is that of the lock file plus a secret that only the file's owner can read there.
fn lock_of(dir: &Path) -> PathBuf {
    dir.with_extension("lock")
}

/// Whether there is no such process, or only a zombie.
fn is_gone(pid: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
}

fn an_orderly_end_leaves_nothing() {
    let (inherited, session) = begin();
    let dir = session.dir().to_owned();
    let lock = lock_of(&dir);
    assert_eq!(lock.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let scratch = dir.join("scratch");
    let script = Script { scratch: Some(scratch.to_str().unwrap().to_owned()), ..Script::default() };
    with_node_in(inherited, session, script, async |node, address| {
        assert!(!dir.exists());
        // A client that connects may use the directories of the ranks.
        let scratch_text = scratch.to_str().unwrap();
        let connect =
            connect_and_wait_for(address, scratch_text) + &format!("; ls -ld \"{scratch_text}\"/$RANK");
        let seen = run(node, shell(2, &connect), StdinSource::Empty).await;
        assert!(
            seen.iter().all(|seen| seen.code() == 0 && seen.text().starts_with("drwx------")),
            "{seen:?}"
        );
        assert!(!scratch.exists() && dir.exists());
        assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    });
    assert!(!dir.exists() && !lock.exists());
    // Not even the warden is left to wait for.
    assert_eq!(
        rustix::process::wait(rustix::process::WaitOptions::NOHANG).unwrap_err(),
        rustix::io::Errno::CHILD
    );
}

fn a_killed_launcher_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let segment = place.path().join("segment");
    std::fs::write(&segment, "").unwrap();
    let segments = place.path().join("segments");
    std::fs::create_dir_all(segments.join("deep")).unwrap();
    std::fs::write(segments.join("deep/segment"), "").unwrap();
    std::fs::create_dir(place.path().join("precious")).unwrap();
    std::os::unix::fs::symlink("../precious", segments.join("link")).unwrap();
    let mut launcher = crate::part("launcher_that_waits");
    let waiting = start_waiting(launcher.env("SEGMENT", &segment).env("SEGMENTS", &segments));
    assert!(waiting.dir.join("a file").exists() && waiting.pids.iter().all(|pid| !is_gone(*pid)));
    kill_process(waiting.pid(), Signal::KILL).unwrap();
    waiting.wait_until_nothing_is_left();
    assert!(!segment.exists() && !segments.exists() && place.path().join("precious").exists());
}

/// And may react to it.
fn some_are_asked_to_end_when_their_launcher_is_killed() {
    let place = tempfile::tempdir().unwrap();
    let asked = place.path().join("asked");
    let waiting = start_waiting(crate::part("launcher_that_waits").env("ASKED", &asked));
    kill_process(waiting.pid(), Signal::KILL).unwrap();
    waiting.wait_until_nothing_is_left();
    assert!(asked.exists());
}

fn what_a_rank_asked_to_be_removed_goes_with_it() {
    let segment = tempfile::NamedTempFile::new().unwrap();
    let path = segment.path().to_str().unwrap().to_owned();
    let cleanup = vec![(Text::from(path), Cleanup::File)];
    with_node(Script { cleanup, ..Script::default() }, async |node, _| {
        run(node, shell(1, "true"), StdinSource::Empty).await;
        assert!(!segment.path().exists());
    });
}

fn a_killed_group_leaves_nothing() {
    use std::os::unix::process::CommandExt;
    let waiting = start_waiting(crate::part("launcher_that_waits").process_group(0));
    rustix::process::kill_process_group(waiting.pid(), Signal::KILL).unwrap();
    waiting.wait_until_nothing_is_left();
}

fn a_launcher_that_just_exits_leaves_nothing() {
    start_waiting(crate::part("launcher_that_waits").env("JUST_EXIT", "1")).wait_until_nothing_is_left();
}

fn leftovers_of_the_dead_are_swept() {
    let tmp = tempfile::tempdir().unwrap();
    let me = rustix::process::geteuid().as_raw();
    let leave = |name: String| {
        let dir = tmp.path().join(name).with_extension("abcdefghijkl");
        std::fs::create_dir_all(dir.join("deep")).unwrap();
        std::fs::write(dir.join("deep/file"), "x").unwrap();
        let said = format!("abcdefghijkl\n{}\n", dir.metadata().unwrap().ino());
        let lock = lock_of(&dir);
        std::fs::write(&lock, said).unwrap();
        (dir, lock)
    };
    let dead = leave(format!("px.{me}.1.dead.x"));
    let alive = leave(format!("px.{me}.2.alive.x"));
    let others = leave(format!("px.{}.3.others.x", me + 1));
    let no_lock = leave(format!("px.{me}.4.no-lock.x"));
    std::fs::remove_file(&no_lock.1).unwrap();
    let link = leave(format!("px.{me}.5.link.x"));
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    std::fs::remove_file(&link.1).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), &link.1).unwrap();
    // Another file has the directory's name by now, or a link leads elsewhere.
    let replaced = leave(format!("px.{me}.6.replaced.x"));
    std::fs::write(&replaced.1, "abcdefghijkl\n1\n").unwrap();
    let led_astray = leave(format!("px.{me}.7.led-astray.x"));
    let victim = tmp.path().join("victim");
    std::fs::rename(&led_astray.0, &victim).unwrap();
    std::os::unix::fs::symlink(&victim, &led_astray.0).unwrap();
    let foul = leave(format!("px.{me}.8.foul.x"));
    std::fs::write(&foul.1, format!("/../victim\n{}\n", victim.metadata().unwrap().ino())).unwrap();
    let unfinished = leave(format!("px.{me}.9.unfinished.x"));
    std::fs::write(&unfinished.1, "abcdefghijkl\n").unwrap();
    std::fs::remove_dir_all(unfinished.0.join("deep")).unwrap();
    let lock = std::fs::File::open(&alive.1).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();

    let options = phalanx_node::SessionOptions { tmpdir: Some(tmp.path().to_owned()), ..Default::default() };
    let session = phalanx_node::Session::begin(&options).unwrap();
    for (dir, lock) in [dead, unfinished] {
        until(|| !dir.exists() && !lock.exists());
    }
    for (_, lock) in [&replaced, &led_astray, &foul] {
        until(|| !lock.exists());
    }
    session.end();
    for (dir, _) in [alive, others, no_lock, link, replaced, led_astray, foul] {
        assert!(dir.join("deep/file").exists(), "{}", dir.display());
    }
    assert!(elsewhere.path().exists());
}

/// Others can read the name only once the directory exists, and then it is too late.
fn the_name_of_the_directory_cannot_be_guessed() {
    let tmp = tempfile::tempdir().unwrap();
    let options = phalanx_node::SessionOptions { tmpdir: Some(tmp.path().to_owned()), ..Default::default() };
    let session = phalanx_node::Session::begin(&options).unwrap();
    let name = session.dir().file_name().unwrap().to_str().unwrap().to_owned();
    let lock = lock_of(session.dir());
    let names = || std::fs::read_dir(tmp.path()).unwrap().flatten().map(|entry| entry.path());
    assert_eq!(names().collect::<Vec<_>>(), std::slice::from_ref(&lock));
    let secret = name.rsplit('.').next().unwrap();
    assert!(secret.len() >= 12 && !lock.to_str().unwrap().contains(secret), "{name}");
    assert_eq!(std::fs::read_to_string(&lock).unwrap(), "");
    session.end();
    assert_eq!(names().count(), 0);
}

/// Another user has guessed the name all the same, and has put something there.
fn a_directory_that_is_already_there_is_not_used() {
    let victim = tempfile::tempdir().unwrap();
    std::fs::write(victim.path().join("precious"), "x").unwrap();
    let (inherited, session) = begin();
    let dir = session.dir().to_owned();
    std::os::unix::fs::symlink(victim.path(), &dir).unwrap();
    let scratch = dir.join("scratch").to_str().unwrap().to_owned();
    let cleanup = vec![(Text::from(victim.path().join("none").to_str().unwrap()), Cleanup::File)];
    let script = Script { scratch: Some(scratch.clone()), cleanup, ..Script::default() };
    with_node_in(inherited, session, script, async |node, address| {
        let connect = format!("perl -MIO::Socket::INET -e 'IO::Socket::INET->new(\"{address}\") or die'");
        let seen = run(node, shell(1, &connect), StdinSource::Empty).await;
        assert!(seen.iter().all(|seen| seen.code() == 0), "{seen:?}");
    });
    let left: Vec<_> = std::fs::read_dir(victim.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["precious"]);
    assert!(dir.is_symlink());
    std::fs::remove_file(dir).unwrap();
}

/// After the launcher and its warden were both killed.
fn the_next_launcher_finishes_what_is_left() {
    let tmp = tempfile::tempdir().unwrap();
    let mut waiting = start_waiting(crate::part("launcher_that_waits").env("TMPDIR", tmp.path()));
    let launcher = waiting.child.id();
    let child_of_it = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains("(phalanx-warden)") && stat.split_whitespace().nth(3) == Some(&launcher.to_string())
    };
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let warden = Pid::from_raw(pids.find(child_of_it).unwrap() as i32).unwrap();
    kill_process(warden, Signal::KILL).unwrap();
    kill_process(waiting.pid(), Signal::KILL).unwrap();
    waiting.child.wait().unwrap();
    // The warden holds the lock, too, and killed processes may need a moment to die. A launcher looks for leftovers once.
    until(|| is_gone(warden.as_raw_pid()));
    // Descendants that were not the launcher's own children are still there.
    assert!(waiting.dir.join("a file").exists() && waiting.pids.iter().any(|pid| !is_gone(*pid)));

    let options = phalanx_node::SessionOptions { tmpdir: Some(tmp.path().to_owned()), ..Default::default() };
    let session = phalanx_node::Session::begin(&options).unwrap();
    waiting.wait_until_nothing_is_left();
    session.end();
}

fn launchers_do_not_disturb_each_other() {
    let waiting: Vec<Waiting> =
        (0..5).map(|_| start_waiting(&mut crate::part("launcher_that_waits"))).collect();
    let mut dirs: Vec<&Path> = waiting.iter().map(|waiting| waiting.dir.as_path()).collect();
    dirs.sort();
    dirs.dedup();
    assert_eq!(dirs.len(), 5);
    let mut waiting = waiting.into_iter();
    while let Some(next) = waiting.next() {
        kill_process(next.pid(), Signal::KILL).unwrap();
        next.wait_until_nothing_is_left();
        for other in waiting.as_slice() {
            assert!(other.dir.join("a file").exists() && other.pids.iter().all(|pid| !is_gone(*pid)));
        }
    }
}

fn a_forgotten_job_leaves_no_process() {
    with_node(Script::default(), async |node, _| {
        let seen = run(node, shell(3, "trap '' TERM; sleep 1000 & echo $!"), StdinSource::Empty).await;
        for seen in seen {
            let left: i32 = seen.text().parse().unwrap();
            until(|| is_gone(left));
        }
    });
}

fn a_node_that_fails_leaves_nothing() {
    let (inherited, session) = begin();
    let dir = session.dir().to_owned();
    let script = Script { fails_at_control: true, ..Script::default() };
    phalanx_node::block_on(async {
        let mut node = phalanx_node::Running::start(
            inherited,
            session,
            &phalanx_shell::reach::Reach::Node.door().expect("loopback"),
            |_| None,
            |_| script,
        )
        .unwrap();
        node.handle.submit(shell(2, "echo $$; exec sleep 1000"), StdinSource::Empty).await.unwrap();
        let mut pids: Vec<i32> = Vec::new();
        while pids.len() < 2 {
            if let Report::Output { data, .. } = node.reports.recv().await.unwrap() {
                pids.push(std::str::from_utf8(&data).unwrap().trim().parse().unwrap());
            }
        }
        let nspace = phalanx_wire::Nspace::new("job@1").unwrap();
        node.handle.control(&nspace, phalanx_dvm::Control::Kill).await.unwrap();
        while node.reports.recv().await.is_some() {}
        assert_eq!(node.handle.explain().await.unwrap_err(), phalanx_node::Gone);
        assert!(node.finish().await.is_err());
        until(|| pids.iter().all(|pid| is_gone(*pid)));
        until(|| !dir.exists());
    })
    .unwrap();
}

fn a_node_that_stops_early_leaves_nothing() {
    let (inherited, session) = begin();
    let lock = lock_of(session.dir());
    let pids = with_node_in(inherited, session, Script::default(), async |node, _| {
        let script = "setsid sleep 1000 & echo $!; echo $$; exec sleep 1000";
        node.handle.submit(shell(1, script), StdinSource::Empty).await.unwrap();
        let mut output = String::new();
        while output.lines().count() < 2 || !output.ends_with('\n') {
            if let Report::Output { data, .. } = node.reports.recv().await.unwrap() {
                output.push_str(std::str::from_utf8(&data).unwrap());
            }
        }
        output.lines().map(|line| line.parse().unwrap()).collect::<Vec<i32>>()
    });
    until(|| pids.iter().all(|pid| is_gone(*pid)));
    until(|| !lock.exists());
}
