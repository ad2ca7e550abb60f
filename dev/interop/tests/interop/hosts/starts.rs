//! Daemons that start slowly, commands that outlive them, and hosts with two names.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;

use phalanx_interop::eventually;
use rustix::process::Signal;

use crate::site::Site;

/// Installs a launch agent on the first host; `$host` is the target, `$@` the command to run there.
fn agent(site: &Site, script: &str) {
    // A shell there splits the words again.
    let ssh = "host=$1; shift\n\
               there() {\n\
               for word; do shift; set -- \"$@\" \"'$word'\"; done\n\
               ssh -x -T -o BatchMode=yes -- $host exec \"$@\"\n\
               }\n";
    fs::write(site.host(1).path("/tmp/agent"), format!("{ssh}{script}\n")).expect("an agent");
}

#[test]
fn jobs_wait_for_a_starting_dvm_and_why_names_its_hosts() {
    let site = Site::new();
    agent(&site, "until [ $host != n3 ] || [ -e /tmp/go ]; do sleep 0.05; done; there \"$@\"");
    let start = site.px(1, "dvm start --system-server --host n1,n2,n3 --launch-agent").arg("sh /tmp/agent");
    let dvm = start.start();
    let why = || site.px(1, "why --system").run().stdout;
    eventually("n3 alone is waited for", || {
        let why = why();
        why.contains("start of the daemon of n3 (starting the daemon) on n1 has waited")
            && !why.contains("n2")
    });
    let job = site.px(1, "run -q --system -n 3 --map-by node hostname").start();
    eventually("the job waits for the daemons", || {
        let why = why();
        why.contains("spawn of hostname") && why.contains("the daemons of the DVM being up")
    });
    fs::write(site.host(1).path("/tmp/go"), "").expect("a file");
    job.wait().expect_code(0).expect_lines(["n1", "n2", "n3"].map(str::to_owned));
    site.px(1, "dvm stop").run().expect_code(0);
    dvm.wait().expect_code(0);
    site.expect_nothing_left();
}

#[test]
fn a_job_that_waits_for_a_start_is_refused_when_that_fails() {
    let site = Site::new();
    agent(
        &site,
        "until [ $host != n3 ] || [ -e /tmp/go ]; do sleep 0.05; done; [ $host = n3 ] || there \"$@\"",
    );
    let start = site.px(1, "dvm start --system-server --host n1,n2,n3 --launch-agent").arg("sh /tmp/agent");
    let dvm = start.start();
    let why = || site.px(1, "why --system").run().stdout;
    eventually("the start is seen", || why().contains("the daemon of n3 (starting the daemon)"));
    let job = site.px(1, "run -q --system -n 3 --map-by node hostname").start();
    eventually("the job waits for the daemons", || why().contains("spawn of hostname"));
    fs::write(site.host(1).path("/tmp/go"), "").expect("a file");
    job.wait().expect_failure().expect_stderr(&["cannot start the daemons", "n3: "]);
    dvm.wait().expect_failure().expect_stderr(&["cannot start the daemons", "n3: "]);
    site.expect_nothing_left();
}

const STUCK: &str = "[ $host = n3 ] && exec sleep 1000; there \"$@\"";

#[test]
fn an_interrupted_start_names_late_hosts_and_their_stages() {
    let site = Site::new();
    agent(&site, STUCK);
    let job = site.run(6).args(["--launch-agent", "sh /tmp/agent", "true"]).start();
    eventually("n3 alone is waited for", || {
        let why = site.px(1, &format!("why --pid {}", job_pid(&site))).run().stdout;
        why.contains("the daemon of n3 (starting the daemon)") && !why.contains("of n2")
    });
    job.signal(Signal::INT);
    job.wait().expect_code(130).expect_stderr(&["the job was not started: n3: starting the daemon for "]);
    site.expect_nothing_left();
}

/// The launcher's pid on the first host.
fn job_pid(site: &Site) -> String {
    let pid = site.host(1).run(&["sh", "-c", "pgrep -o -x px || true"]).expect("pgrep");
    pid.trim().to_owned()
}

#[test]
fn a_host_that_takes_too_long_is_given_up_and_named_once() {
    let site = Site::new();
    agent(&site, STUCK);
    let words = ["--launch-agent", "sh /tmp/agent", "--start-timeout", "3"];
    let why = "n3: starting the daemon: nothing has come of it for 3 s";
    site.run(6).args(words).arg("true").run().expect_code(1).expect_stderr(&[why]);
    let left =
        site.px(1, "run --skip-bad-hosts --host n1,n2,n3").args(words).arg("hostname").run().expect_code(0);
    let said = left.stderr.lines().filter(|line| line.contains("n3")).collect::<Vec<_>>();
    assert!(said == ["px: n3 is left out: starting the daemon: nothing has come of it for 3 s"], "{left}");
    left.expect_lines(["n1", "n2"].map(str::to_owned));
    site.expect_nothing_left();
}

#[test]
fn commands_that_outlive_their_daemons_are_ended() {
    let site = Site::new();
    agent(&site, "there \"$@\"; exec sleep 1000");
    let job = site.run(6).args(["--launch-agent", "sh /tmp/agent", "sleep", "1000"]).start();
    eventually("all ranks run", || site.count("sleep") == [2, 2, 2]);
    let asked = std::time::Instant::now();
    job.signal(Signal::INT);
    job.wait().expect_code(130);
    println!("px has ended after {:?}", asked.elapsed());
    site.expect_nothing_left();
}

#[test]
fn two_names_of_one_host_are_recognized() {
    let site = Site::new();
    let address = site.host(2).ipv4();
    let outcome = site.px(1, &format!("run --host n2,{address},n3 -n 3 hostname")).run().expect_code(1);
    outcome.expect_stderr(&["it is the same host as ", "call it by one name", "--skip-bad-hosts"]);
    site.expect_nothing_left();
    let words = format!("run --skip-bad-hosts --host n2,{address},n3 --map-by node -n 2 hostname");
    let outcome = site.px(1, &words).run().expect_code(0);
    outcome
        .expect_lines(["n2", "n3"].map(str::to_owned))
        .expect_stderr(&["is left out: it is the same host as "]);
    site.expect_nothing_left();
}

#[test]
fn daemons_that_cannot_link_name_each_address_and_port() {
    let site = Site::in_networks(2);
    // ssh goes over the first network.
    let root = format!("{}/32", site.host(1).ipv4_in(1));
    site.host(2).run(&["ip", "route", "add", "unreachable", &root]).expect("a route");
    let refused = site.px(1, "run --host n1,n2,n3 --network 10.77.1.0/24 -n 3 true").run().expect_code(1);
    let tried = format!(
        "n2: linking the daemon to the others: no ancestor can be reached (daemon 0: {}:",
        site.host(1).ipv4_in(1)
    );
    let refused = refused.expect_stderr(&[
        &tried,
        "No route to host",
        "hint: daemons link to each other at ports",
        "'--skip-bad-hosts'",
    ]);
    assert!(!refused.stderr.contains("n3: "), "{refused}");
    site.expect_nothing_left();
}

#[test]
fn the_links_of_daemons_are_shown_with_their_ports() {
    let site = Site::in_networks(2);
    let dvm = site.px(1, "dvm start --host n1,n2,n3 --network 10.77.1.0/24").start();
    dvm.until_said("is ready");
    let shown = site.px(1, "query QUERY_NODE_RESOURCE_USAGE --json").run().expect_code(0);
    let link = format!("\"{}:", site.host(1).ipv4_in(1));
    assert_eq!(shown.stdout.matches(&link).count(), 2, "{shown}");
    assert_eq!(shown.stdout.matches("(daemon 0)").count(), 2, "{shown}");
    site.px(1, "dvm stop").run().expect_code(0);
    dvm.wait().expect_code(0);
    site.expect_nothing_left();
}
