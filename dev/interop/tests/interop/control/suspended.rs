//! Ctrl-Z for a job over several hosts: the launcher stops, and no daemon takes it for lost.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::time::Duration;

use phalanx_interop::eventually;

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
