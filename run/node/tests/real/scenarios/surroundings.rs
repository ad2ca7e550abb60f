//! Starting a launcher in unusual surroundings.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use phalanx_node::{SessionOptions, SignalEvent, Signals, StdinSource, stop_self};
use rustix::process::{Signal, getpid, kill_process};

use super::Scenario;
use crate::launcher::{Script, begin, connect_and_wait_for, job, run, shell, with_node, with_node_in};

pub(super) const ALL: &[Scenario] = &[
    ("closed_standard_streams", || works("for fd in 0 1 2; do eval \"exec $fd>&-\"; done; exec \"$PART\"")),
    ("a_long_tmpdir", a_long_tmpdir),
    ("a_tmpdir_that_is_none", a_tmpdir_that_is_none),
    ("an_umask_that_takes_everything", || works("umask 0777; exec \"$PART\"")),
    ("no_home_no_terminal", || works("unset HOME; exec setsid \"$PART\"")),
    ("children_ignored_by_the_parent", || works("trap '' CHLD; exec \"$PART\"")),
    ("signals_come_as_values", signals_come_as_values),
    ("a_stop_and_what_takes_it_back_come_in_their_order", a_stop_and_what_takes_it_back_come_in_their_order),
    ("nohup_is_honoured", nohup_is_honoured),
    ("ranks_get_the_limits_back", ranks_get_the_limits_back),
];

pub(super) const PARTS: &[Scenario] = &[("small_job", small_job), ("ignores_hangup", ignores_hangup)];

/// A job that needs everything that a launcher has.
fn small_job() {
    let (inherited, session) = begin();
    let scratch = session.dir().join("job").to_str().unwrap().to_owned();
    let script = Script { scratch: Some(scratch.clone()), ..Script::default() };
    with_node_in(inherited, session, script, async |node, address| {
        // Ranks get their directories when they are let in, which is not at the same time.
        let all = format!("until [ $(ls \"{scratch}\" | wc -l) = 3 ]; do :; done; echo all; exit $RANK");
        let script = format!("{}; {all}", connect_and_wait_for(address, &scratch));
        let seen = run(node, shell(3, &script), StdinSource::Inherited).await;
        for (rank, seen) in seen.iter().enumerate() {
            assert_eq!((seen.code(), seen.text()), (rank as i32, "all"), "{seen:?}");
        }
    });
}

/// Runs the small job from a shell script.
fn works(script: &str) {
    let part = crate::part("small_job");
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).env("PART", part.get_program());
    for (name, value) in part.get_envs() {
        shell.env(name, value.unwrap());
    }
    let status = shell.stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "{script}: {status}");
}

fn a_long_tmpdir() {
    let tmp = tempfile::tempdir().unwrap();
    let mut long = tmp.path().to_owned();
    for _ in 0..12 {
        long.push("a".repeat(200));
    }
    std::fs::create_dir_all(&long).unwrap();
    let status = crate::part("small_job").env("TMPDIR", &long).status().unwrap();
    assert!(status.success());
    assert_eq!(std::fs::read_dir(&long).unwrap().count(), 0);
}

fn a_tmpdir_that_is_none() {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("file");
    std::fs::write(&file, "x").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    // Named by the environment: falls back to another place, with a note for the user.
    // SAFETY: this scenario has one thread.
    unsafe { std::env::set_var("TMPDIR", &file) };
    let session = phalanx_node::Session::begin(&SessionOptions::default()).unwrap();
    assert!(session.dir().starts_with("/tmp"));
    assert!(session.note().unwrap().contains(file.to_str().unwrap()), "{:?}", session.note());
    session.end();
    // Named by the user: an error.
    let error =
        phalanx_node::Session::begin(&SessionOptions { tmpdir: Some(file.clone()), ..Default::default() })
            .unwrap_err();
    assert!(format!("{error:#}").contains(file.to_str().unwrap()), "{error:#}");
}

fn signals_come_as_values() {
    with_node(Script::default(), async |_, _| {
        let mut signals = Signals::new().unwrap();
        for (signal, event) in [
            (Signal::INT, SignalEvent::Interrupt),
            (Signal::TERM, SignalEvent::Terminate),
            (Signal::HUP, SignalEvent::Hangup),
            (Signal::TSTP, SignalEvent::Suspend),
            (Signal::CONT, SignalEvent::Resume),
            (Signal::USR1, SignalEvent::Forward(libc::SIGUSR1)),
        ] {
            kill_process(getpid(), signal).unwrap();
            assert_eq!(signals.next().await, event);
        }
    });
}

fn a_stop_and_what_takes_it_back_come_in_their_order() {
    with_node(Script::default(), async |_, _| {
        let mut signals = Signals::new().unwrap();
        let (stop, go_on) = ((Signal::TSTP, SignalEvent::Suspend), (Signal::CONT, SignalEvent::Resume));
        for _ in 0..3 {
            for (first, last) in [(stop, go_on), (go_on, stop)] {
                kill_process(getpid(), first.0).unwrap();
                kill_process(getpid(), last.0).unwrap();
                assert_eq!(signals.next().await, last.1);
            }
        }
        // It was told to go on: it must not stop, or nobody would wake this test.
        kill_process(getpid(), Signal::TSTP).unwrap();
        kill_process(getpid(), Signal::CONT).unwrap();
        stop_self().unwrap();
    });
}

fn ignores_hangup() {
    with_node(Script::default(), async |node, _| {
        let mut signals = Signals::new().unwrap();
        kill_process(getpid(), Signal::HUP).unwrap();
        kill_process(getpid(), Signal::USR2).unwrap();
        assert_eq!(signals.next().await, SignalEvent::Forward(libc::SIGUSR2));
        // The ranks of a launcher under nohup are under nohup, too.
        let seen = run(node, shell(1, "kill -HUP $$; exit 6"), StdinSource::Empty).await;
        assert_eq!(seen[0].code(), 6);
    });
}

fn nohup_is_honoured() {
    let part = crate::part("ignores_hangup");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$PART\""]).env("PART", part.get_program());
    for (name, value) in part.get_envs() {
        shell.env(name, value.unwrap());
    }
    assert!(shell.status().unwrap().success());
}

fn ranks_get_the_limits_back() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let hard = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(300), maximum: hard }).unwrap();
    with_node(Script::default(), async |node, _| {
        assert_ne!(getrlimit(Resource::Nofile).current, Some(300));
        let seen = run(node, job(1, &["sh", "-c", "ulimit -n"]), StdinSource::Empty).await;
        assert_eq!(seen[0].text(), "300");
    });
}
