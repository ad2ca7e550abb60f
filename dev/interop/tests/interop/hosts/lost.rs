//! Jobs over three hosts, one of which is lost: the message about it, and how tolerant jobs continue.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use phalanx_interop::{
    Library::{Pmix4, Pmix5},
    Outcome, Running, eventually, pmix,
};

use crate::site::Site;

/// Kills the daemon of the host n2.
fn kill_second(site: &Site) {
    site.host(2).run(&["pkill", "-KILL", "-x", "px"]).expect("pkill");
}

/// Checks the message: the lost host, the reason, and its ranks.
fn expect_said(outcome: Outcome, why: &str) -> Outcome {
    let line =
        outcome.stderr.lines().find(|line| line.contains("node n2 was lost, and with it ranks 1, 4: "));
    let line = line.unwrap_or_else(|| panic!("nothing is said of n2\n{outcome}"));
    assert!(line.contains(why), "{line}\n{outcome}");
    outcome
}

#[test]
fn the_end_of_a_job_says_which_host_was_lost_and_why() {
    let site = Site::new();
    let running = |job: Running| {
        eventually("all ranks run", || site.count("sleep") == [2, 2, 2]);
        job
    };
    let job = running(site.run(6).args(["sleep", "1000"]).start());
    kill_second(&site);
    let outcome = expect_said(job.wait().expect_code(1), "its daemon has ended");
    outcome.expect_stderr(&["ranks 0, 2-3, 5 were ended by px as a consequence"]);
    site.expect_nothing_left();

    let (dvm, name) = site.dvm("n1:2,n2:2,n3:2");
    let words = format!("run -q --nspace {name} --map-by node -n 6 sleep 1000");
    let job = running(site.px(3, &words).start());
    kill_second(&site);
    let outcome = expect_said(job.wait().expect_code(1), "its daemon has ended");
    outcome.expect_stderr(&["ranks 0, 2-3, 5 were ended by px as a consequence"]);
    site.px(1, "dvm stop").run().expect_code(0);
    dvm.wait().expect_code(0);
    site.expect_nothing_left();
}

/// The remaining ranks are notified, calls that waited for ranks of n2 end, and the others continue.
fn expect_survivors(outcome: Outcome, why: &str) {
    for rank in [0, 2, 3, 5] {
        outcome.assert_line(&format!("rank {rank} of 6: went on without the lost"));
    }
    expect_said(outcome, why).expect_stderr(&["rank 1 was lost with its node (on n2, "]);
}

#[test]
fn a_job_that_may_goes_on_without_a_lost_daemon() {
    let site = Site::new();
    let hosts = "--host n1:2,n2:2,n3:2 --map-by node -n 6";
    for library in [Pmix4, Pmix5] {
        let words = format!("run --kill-on-bad-exit none {hosts}");
        let job = site.px(1, &words).arg(pmix("survivor")).arg("1,4").with(library).outlived().start();
        (0..6).for_each(|rank| job.until_said(&format!("rank {rank} waits")));
        kill_second(&site);
        expect_survivors(job.wait().expect_code(1), "its daemon has ended");
        site.expect_nothing_left();
    }

    let (dvm, name) = site.dvm("n1:2,n2:2,n3:2");
    let words = format!("run --kill-on-bad-exit none --nspace {name} --map-by node -n 6");
    let job = site.px(1, &words).arg(pmix("survivor")).arg("1,4").with(Pmix4).outlived().start();
    (0..6).for_each(|rank| job.until_said(&format!("rank {rank} waits")));
    kill_second(&site);
    expect_survivors(job.wait().expect_code(1), "its daemon has ended");
    // The DVM continues, too.
    let words = format!("run -q --nspace {name} --map-by node -n 4 hostname");
    let outcome = site.px(1, &words).run().expect_code(0);
    outcome.expect_lines(["n1", "n1", "n3", "n3"].map(str::to_owned));
    let why = site.px(3, "why").run().expect_code(0);
    assert!(why.stdout.contains("nothing is waiting"), "{why}");
    let status = site.px(3, &format!("dvm status --nspace {name}")).run().expect_code(0);
    let nodes: Vec<Vec<&str>> = status.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let of = |host: &str| nodes.iter().find(|words| words.get(1) == Some(&host)).cloned().unwrap_or_default();
    assert_eq!(of("n1")[..5], ["0", "n1", "up", "0", "2"], "{status}");
    assert_eq!(of("n2")[..], ["1", "n2", "lost", "-", "-"], "{status}");
    assert_eq!(of("n3")[..5], ["2", "n3", "up", "0", "2"], "{status}");
    assert_eq!(of("n3").iter().rev().take(2).rev().copied().collect::<String>(), "(daemon0)", "{status}");
    site.px(1, "dvm stop").run().expect_code(0);
    dvm.wait().expect_code(0);
    site.expect_nothing_left();
}

#[test]
fn a_job_that_may_goes_on_without_a_host_that_was_cut_off() {
    let site = Site::new();
    let words = "run --host-timeout 6 --kill-on-bad-exit none --host n1:2,n2:2,n3:2 --map-by node -n 6";
    let job = site.px(1, words).arg(pmix("survivor")).arg("1,4").with(Pmix4).outlived().start();
    (0..6).for_each(|rank| job.until_said(&format!("rank {rank} waits")));
    site.host(2).cut().expect("cutting");
    expect_survivors(job.wait().expect_code(1), "it has said nothing for 6 s");
    eventually("ranks of the cut host end as well", || site.count("pmix_survivor") == [0; 3]);
    site.host(2).rejoin().expect("plugging in");
    site.expect_nothing_left();
}
