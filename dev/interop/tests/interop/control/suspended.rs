//! Ctrl-Z for a job over several hosts: the launcher stops, no daemon takes it for lost, and it takes no daemon for lost.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use phalanx_interop::{Running, eventually};

use crate::site::Site;

/// How many processes of this name are stopped on each host.
fn stopped(site: &Site, name: &str) -> Vec<usize> {
    let is_stopped = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains(&format!("({name}) T "))
    };
    site.cluster
        .hosts()
        .iter()
        .map(|host| host.processes().iter().filter(|pid| is_stopped(pid)).count())
        .collect()
}

#[test]
fn a_suspended_job_outlasts_the_host_timeout() {
    let site = Site::new();
    let script =
        "echo rank $PMIX_RANK runs; until [ -e /tmp/go ]; do sleep 0.1; done; echo rank $PMIX_RANK ends";
    let words = "run -q --host-timeout 3 --host n1,n2,n3 --map-by node -n 3 sh -c";
    let job = site.px(1, words).arg(script).start();
    (0..3).for_each(|rank| job.until_said(&format!("rank {rank} runs")));
    // The oldest is the launcher itself.
    let signal = |signal: &str| drop(site.host(1).run(&["pkill", signal, "-o", "-x", "px"]).expect("pkill"));
    for _ in 0..2 {
        signal("-TSTP");
        eventually("px and all ranks stand still", || {
            (stopped(&site, "px"), stopped(&site, "sh")) == (vec![1, 0, 0], vec![1, 1, 1])
        });
        // Only the passing of this time matters.
        std::thread::sleep(Duration::from_secs(7));
        assert_eq!((stopped(&site, "sh"), site.count("px")[0] > 0), (vec![1, 1, 1], true));
        signal("-CONT");
        eventually("they go on", || (stopped(&site, "px"), stopped(&site, "sh")) == (vec![0; 3], vec![0; 3]));
    }
    for number in 1..=3 {
        fs::write(site.host(number).path("/tmp/go"), "").expect("a file");
    }
    let outcome = job.wait().expect_code(0);
    (0..3).for_each(|rank| outcome.assert_line(&format!("rank {rank} ends")));
    site.expect_nothing_left();
}

#[test]
fn a_job_outlasts_a_launcher_that_is_stopped_unasked() {
    let site = Site::new();
    let script =
        "echo rank $PMIX_RANK runs; until [ -e /tmp/go ]; do sleep 0.1; done; echo rank $PMIX_RANK ends";
    let words = "run -q --host-timeout 3 --host n1,n2,n3 --map-by node -n 3 sh -c";
    let job = site.px(1, words).arg(script).start();
    (0..3).for_each(|rank| job.until_said(&format!("rank {rank} runs")));
    let signal = |signal: &str| drop(site.host(1).run(&["pkill", signal, "-o", "-x", "px"]).expect("pkill"));
    // This signal can be neither caught nor announced.
    signal("-STOP");
    eventually("px stands still", || stands(&site));
    // Only the passing of this time matters.
    std::thread::sleep(Duration::from_secs(10));
    assert_eq!((site.count("sh"), stopped(&site, "sh")), (vec![1; 3], vec![0; 3]));
    signal("-CONT");
    for number in 1..=3 {
        fs::write(site.host(number).path("/tmp/go"), "").expect("a file");
    }
    let outcome = job.wait().expect_code(0);
    (0..3).for_each(|rank| outcome.assert_line(&format!("rank {rank} ends")));
    site.expect_nothing_left();
}

/// Whether the oldest px of the first host stands still.
fn stands(site: &Site) -> bool {
    stopped(site, "px")[0] == 1
}

fn signal_launcher(site: &Site, signal: &str) {
    site.host(1).run(&["pkill", signal, "-o", "-x", "px"]).expect("pkill");
}

/// An agent that starts the daemon of `n2` at once, and that of `n3` when this file exists.
fn slow_agent(site: &Site) -> PathBuf {
    let script = "until [ $1 != n3 ] || [ -e /tmp/go ]; do sleep 0.05; done\n\
                  host=$1; shift; exec ssh -x -T -o BatchMode=yes -- $host exec \"$@\"\n";
    fs::write(site.host(1).path("/tmp/agent"), script).expect("an agent");
    site.host(1).path("/tmp/go")
}

/// Stops the launcher while its daemons are started, once, and lets it go on after longer than anybody would wait for it.
fn stop_during_start(site: &Site) {
    eventually("n3 alone is waited for", || {
        let pid = site.host(1).run(&["pgrep", "-o", "-x", "px"]).unwrap_or_default();
        let why = site.px(1, &format!("why --pid {}", pid.trim())).run().stdout;
        why.contains("the daemon of n3 (starting the daemon)") && !why.contains("of n2")
    });
    signal_launcher(site, "-TSTP");
    eventually("px stands still", || stands(site));
    let go = site.host(1).path("/tmp/go");
    fs::write(go, "").expect("a file");
    // What matters is that this time passes: daemons that hear nothing end after 10 s, and a host may take 12 s to start.
    std::thread::sleep(Duration::from_secs(14));
    assert!(stands(site));
    signal_launcher(site, "-CONT");
}

#[test]
fn launcher_stopped_during_a_start_stops_once() {
    let site = Site::new();
    slow_agent(&site);
    let words =
        "run -q --host-timeout 3 --start-timeout 12 --host n1,n2,n3 --map-by node -n 3 --launch-agent";
    let job: Running = site.px(1, words).args(["sh /tmp/agent", "hostname"]).start();
    stop_during_start(&site);
    let outcome = job.wait().expect_code(0);
    outcome.expect_lines(["n1", "n2", "n3"].map(str::to_owned));
    site.expect_nothing_left();
}

#[test]
fn a_stop_that_is_taken_back_at_once_stops_nobody() {
    let site = Site::new();
    let go = slow_agent(&site);
    let words = "run -q --host n1,n2,n3 --map-by node -n 3 --launch-agent";
    let job = site.px(1, words).args(["sh /tmp/agent", "hostname"]).start();
    eventually("px starts daemons", || site.count("px")[1] > 0);
    for _ in 0..20 {
        site.host(1).run(&["sh", "-c", "pkill -TSTP -o -x px; pkill -CONT -o -x px"]).expect("pkill");
    }
    fs::write(go, "").expect("a file");
    job.wait().expect_code(0).expect_lines(["n1", "n2", "n3"].map(str::to_owned));
    site.expect_nothing_left();
}

#[test]
fn a_dvm_in_the_foreground_is_stopped_with_its_jobs() {
    let site = Site::new();
    slow_agent(&site);
    let words = "dvm start --host-timeout 3 --start-timeout 12 --host n1,n2,n3 --launch-agent";
    let dvm = site.px(1, words).arg("sh /tmp/agent").start();
    stop_during_start(&site);
    dvm.until_said("is ready");
    let name = dvm.said().split_whitespace().next().unwrap_or_default().to_owned();
    let script = "echo rank $PMIX_RANK runs; until [ -e /tmp/end ]; do sleep 0.1; done";
    let words = format!("run -q --nspace {name} --map-by node -n 3 sh -c");
    let job = site.px(1, &words).arg(script).start();
    (0..3).for_each(|rank| job.until_said(&format!("rank {rank} runs")));
    signal_launcher(&site, "-TSTP");
    eventually("the DVM and all ranks stand still", || stands(&site) && stopped(&site, "sh") == [1, 1, 1]);
    signal_launcher(&site, "-CONT");
    eventually("they go on", || stopped(&site, "sh") == [0; 3] && !stands(&site));
    (1..=3).for_each(|number| fs::write(site.host(number).path("/tmp/end"), "").expect("a file"));
    job.wait().expect_code(0);
    site.px(1, &format!("dvm stop --nspace {name}")).run().expect_code(0);
    dvm.wait().expect_code(0);
    site.expect_nothing_left();
}
