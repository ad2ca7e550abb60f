//! Processes that represent one on a host.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use phalanx_cluster::{Host, until};
use rustix::process::{Pid, Signal, kill_process};

use crate::cluster;

fn shell(host: &Host, script: &str) -> Command {
    let mut command = host.command("sh");
    command.args(["-c", script]);
    command
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("sending a signal");
}

#[test]
fn commands_end_as_they_ended_on_the_host() {
    let cluster = cluster(1);
    let host = cluster.host(1);
    assert_eq!(shell(host, "exit 7").status().expect("it runs").code(), Some(7));
    assert_eq!(shell(host, "kill -TERM $$").status().expect("it runs").signal(), Some(15));
    assert_eq!(shell(host, "kill -SEGV $$").status().expect("it runs").signal(), Some(11));
    let missing = host.run(&["no-such-program"]).expect_err("there is none");
    assert!(format!("{missing:#}").contains("cannot run no-such-program"), "{missing:#}");
}

#[test]
fn commands_get_directory_environment_and_signals() {
    let cluster = cluster(1);
    let host = cluster.host(1);
    let said = shell(host, "pwd; echo $GIVEN").env("GIVEN", "yes").current_dir("/usr/lib").output();
    assert_eq!(String::from_utf8_lossy(&said.expect("it runs").stdout), "/usr/lib\nyes\n");
    for (signal, name) in [(Signal::INT, "INT"), (Signal::TERM, "TERM"), (Signal::USR1, "USR1")] {
        let ready = host.path("/tmp/ready");
        let script = format!("trap 'exit 9' {name}; touch /tmp/ready; while :; do sleep 0.05; done");
        let mut child = shell(host, &script).spawn().expect("it runs");
        until("it is ready", || ready.exists()).expect("it is");
        send(&child, signal);
        assert_eq!(child.wait().expect("it ends").code(), Some(9), "{name}");
        std::fs::remove_file(ready).expect("removing a file");
    }
}

#[test]
fn killing_a_command_kills_it_on_the_host() {
    let cluster = cluster(1);
    let host = cluster.host(1);
    let alone = host.processes().len();
    let mut child = host.command("sleep").arg("1000").spawn().expect("it runs");
    until("it runs on the host", || host.processes().len() > alone).expect("it does");
    send(&child, Signal::KILL);
    let _ = child.wait();
    until("it is gone", || host.processes().len() == alone).expect("it is");
}

/// The kernel reaps orphans: no zombies accumulate.
#[test]
fn orphans_are_removed_when_they_end() {
    let cluster = cluster(1);
    let host = cluster.host(1);
    let script = "for i in 1 2 3 4 5; do (sleep 0.01 &) ; done; touch /tmp/over; exec sleep 1000";
    let mut child = shell(host, script).stdin(Stdio::null()).spawn().expect("it runs");
    until("they were started", || host.path("/tmp/over").exists()).expect("they were");
    let all = || host.run(&["ps", "-eo", "stat,args"]).expect("ps");
    until("they are gone", || !all().contains("sleep 0.01") && !all().contains("defunct")).expect("they are");
    let _ = child.kill();
    let _ = child.wait();
}
