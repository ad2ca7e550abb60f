//! Connections of ssh that several sessions share: px must not end those that its own ssh has opened.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::io::Write as _;

use phalanx_interop::{Job, debian_file, eventually};
use rustix::process::Signal;

use crate::site::Site;

/// A user with shared ssh connections, configured by `master`.
fn sharing(master: &str) -> Site {
    let site = Site::new();
    let file = site.host(1).path("/etc/ssh/ssh_config");
    let mut file = fs::OpenOptions::new().append(true).open(file).expect("the configuration of ssh");
    write!(file, "ControlPath /tmp/master-%n\n{master}\n").expect("written");
    site
}

fn ssh(site: &Site, words: &[&str]) -> Job {
    Job::on(site.host(1), debian_file("/usr/bin/ssh", "openssh-client")).args(words)
}

/// The processes that hold the connections to n2 and n3, as reported by ssh.
fn masters(site: &Site) -> Vec<String> {
    ["n2", "n3"].map(|host| ssh(site, &["-O", "check", host]).run().expect_code(0).stderr).into()
}

const KEPT: &str = "ControlMaster auto\nControlPersist yes";

#[test]
fn a_users_session_over_the_ssh_of_px_goes_on() {
    let site = sharing(KEPT);
    let job = site.run(6).args(["sleep", "1000"]).start();
    eventually("all ranks run", || site.count("sleep") == [2, 2, 2]);
    let first = masters(&site);
    let script = "echo ready; until [ -e /tmp/go ]; do sleep 0.1; done; echo 'it has gone on'";
    let session = ssh(&site, &["n2", script]).start();
    session.until_said("ready");
    job.signal(Signal::INT);
    job.wait().expect_code(130);
    assert_eq!(masters(&site), first, "the connections are kept");
    site.run(6).arg("true").run().expect_code(0);
    assert_eq!(masters(&site), first, "the second job used them");
    fs::write(site.host(2).path("/tmp/go"), "").expect("a file");
    session.wait().expect_code(0).expect_lines(["ready", "it has gone on"].map(str::to_owned));
    site.expect_nothing_left();
    for host in ["n2", "n3"] {
        ssh(&site, &["-O", "exit", host]).run().expect_code(0);
    }
}

#[test]
fn shared_connections_outlive_a_launcher_that_is_killed() {
    let site = sharing(KEPT);
    let (dvm, _) = site.dvm("n1,n2,n3");
    let first = masters(&site);
    dvm.signal(Signal::KILL);
    let _ = dvm.wait();
    site.expect_nothing_left();
    assert_eq!(masters(&site), first, "the connections are kept");
    for host in ["n2", "n3"] {
        ssh(&site, &["-O", "exit", host]).run().expect_code(0);
    }
}
