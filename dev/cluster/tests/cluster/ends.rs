//! However the creator of a cluster ends, nothing of the cluster remains on the machine.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use phalanx_cluster::until;
use rustix::process::{Pid, Signal, kill_process};

use crate::needs_root;

/// Processes with this variable in their environment.
fn marked(mark: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
        })
        .map(|entry| fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default())
        .collect()
}

/// The state of this machine: network interfaces, and the mounts of this process.
fn machine() -> [String; 2] {
    let links = Command::new("/usr/sbin/ip").args(["-brief", "link"]).output().expect("running ip");
    [
        String::from_utf8_lossy(&links.stdout).into_owned(),
        fs::read_to_string("/proc/self/mounts").expect("mounts"),
    ]
}

fn with_command(name: &str, options: &[&str], script: &str) -> (Command, String) {
    needs_root();
    let value = format!("{name}-{}", std::process::id());
    let mut command = Command::new(env!("CARGO_BIN_EXE_cluster"));
    command.args(options).args(["--", "sh", "-c", script]).env("CLUSTER_TEST", &value);
    (command, format!("CLUSTER_TEST={value}"))
}

#[test]
fn command_over_hosts_ends_with_its_code_and_leaves_nothing() {
    let before = machine();
    let (mut command, mark) =
        with_command("ends", &["-n", "3"], "ssh n2 hostname; ssh n3 'sleep 1000 >&- 2>&- &'; exit 3");
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "n2\n", "{errors}");
    until("nothing of it lives", || marked(&mark).is_empty()).expect("nothing does");
    assert!(before == machine());
}

#[test]
fn nothing_is_left_when_the_maker_is_killed() {
    let before = machine();
    // Like a daemon: in a session of its own.
    let script =
        "ssh n2 'setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo ready'; setsid sleep 1000 & wait";
    let (mut command, mark) = with_command("killed", &["-n", "2"], script);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
    said.read_line(&mut line).expect("reading");
    assert_eq!(line, "ready\n");
    assert!(marked(&mark).len() >= 4);
    kill_process(Pid::from_child(&child), Signal::KILL).expect("killing it");
    let _ = child.wait();
    until("nothing of it lives", || marked(&mark).is_empty()).expect("nothing does");
    assert!(before == machine());
}

/// As in a terminal, the command decides what a signal means.
#[test]
fn signals_reach_the_command() {
    for (signal, name) in [(Signal::INT, "INT"), (Signal::TERM, "TERM"), (Signal::HUP, "HUP")] {
        let script = format!("trap 'echo caught; exit 9' {name}; echo ready; while :; do sleep 0.05; done");
        let (mut command, mark) = with_command(name, &["-n", "1"], &script);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it runs");
        let mut said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        assert_eq!(said.next().expect("a line").expect("reading"), "ready");
        kill_process(Pid::from_child(&child), signal).expect("a signal");
        assert_eq!(said.next().expect("a line").expect("reading"), "caught");
        assert_eq!(child.wait().expect("it ends").code(), Some(9));
        assert!(marked(&mark).is_empty(), "it ends last");
    }
}

#[test]
fn slurm_over_hosts_ends_with_the_command() {
    let script = "srun -N 3 --ntasks-per-node=2 hostname | sort";
    let (mut command, mark) = with_command("slurm", &["-n", "3", "--slurm"], script);
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "n1\nn1\nn2\nn2\nn3\nn3\n", "{errors}");
    until("nothing of it lives", || marked(&mark).is_empty()).expect("nothing does");
}

#[test]
fn wrong_words_are_refused_with_the_usage() {
    for words in [
        &["-n", "many"][..],
        &["--host"],
        &["-n"],
        &["-n", "0", "--", "true"],
        &["-n", "65", "true"],
        &["--networks", "5", "true"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_cluster")).args(words).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            errors.starts_with("cluster: ")
                && (errors.contains("usage:") || errors.contains("a cluster has 1 to")),
            "{errors}"
        );
    }
}
