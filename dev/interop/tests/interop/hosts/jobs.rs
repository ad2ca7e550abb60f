//! Jobs of `px` over three hosts simulated on this machine, with ssh between them.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fmt::Write as _;
use std::fs;

use phalanx_interop::mpi_programs::{expect_allreduce, expect_hello_on, expect_ring};
use phalanx_interop::{
    Library::{self, OpenMpi4, OpenMpi5, Pmix4, Pmix5},
    Outcome, eventually, mpi, pmix, px_binary,
};
use rustix::process::Signal;

use crate::site::{Site, over_tcp};

#[test]
fn ranks_of_three_hosts_meet() {
    let site = Site::new();
    let outcome = site.run(6).args([px_binary().as_os_str(), "hello".as_ref()]).run().expect_code(0);
    for (rank, host) in ["n1", "n2", "n3", "n1", "n2", "n3"].iter().enumerate() {
        let line =
            outcome.stdout.lines().find(|line| line.starts_with(&format!("hello from rank {rank} of 6")));
        let line = line.unwrap_or_else(|| panic!("rank {rank} is missing\n{outcome}"));
        assert!(line.contains(&format!(" on {host}, ")), "{line}");
    }
    site.expect_nothing_left();
}

#[test]
fn pmix_programs_are_right_over_three_hosts() {
    let site = Site::new();
    let programs = [
        ("values", "all values came back"),
        ("modex", "direct modex is right"),
        ("names", "publish, lookup and unpublish are right"),
        ("events", "events are right"),
        ("groups", "groups and connections are right"),
        ("requests", "requests are right"),
        ("inquiry", "query, log and resolve are right"),
        ("ranges", "all ranges are right"),
    ];
    for library in [Pmix4, Pmix5] {
        for (program, verdict) in programs {
            let outcome = site.run(6).arg(pmix(program)).with(library).run().expect_code(0);
            for rank in 0..6 {
                outcome.assert_line(&format!("rank {rank} of 6: {verdict}"));
            }
        }
    }
    site.expect_nothing_left();
}

#[test]
fn open_mpi_4_runs_over_three_hosts() {
    mpi_jobs(OpenMpi4);
}

#[test]
fn open_mpi_5_runs_over_three_hosts() {
    mpi_jobs(OpenMpi5);
}

fn mpi_jobs(library: Library) {
    let site = Site::new();
    let run = |ranks, program| over_tcp(site.run(ranks).arg(mpi(library, program)), library);
    let hosts = ["n1", "n2", "n3"];
    expect_hello_on(run(6, "hello").arg("6").run(), 6, &hosts);
    expect_ring(run(6, "ring").run(), 6);
    expect_allreduce(run(6, "allreduce").run(), 6);
    expect_family(&run(2, "spawn").run().expect_code(0), 2);
    let failed = run(6, "exit3").run().expect_code(3);
    assert!(failed.stderr.contains("exited with code 3"), "{failed}");
    site.expect_nothing_left();
}

#[test]
fn workers_are_replaced_in_the_slots_of_three_hosts() {
    let site = Site::new();
    for library in [OpenMpi4, OpenMpi5] {
        let job = site.px(1, "run -q --host n1:1,n2:1,n3:1 -n 1").arg(mpi(library, "pool")).args(["2", "50"]);
        let _ = over_tcp(job, library).run().expect_code(0).expect_lines(["50 rounds of 2 workers"]);
    }
    site.expect_nothing_left();
}

/// Parents and their spawned children.
fn expect_family(outcome: &Outcome, parents: usize) {
    let lines = |who: &str| outcome.stdout.lines().filter(|line| line.starts_with(who)).count();
    assert!(lines("parent") == parents && lines("child") > 0, "{outcome}");
}

#[test]
fn output_of_far_ranks_is_whole_and_in_order() {
    let site = Site::new();
    let script =
        "i=0; while [ $i -lt 2000 ]; do echo $PMIX_RANK out $i; echo $PMIX_RANK err $i >&2; i=$((i+1)); done";
    let outcome = site.run(6).args(["sh", "-c", script]).run().expect_code(0);
    for (text, stream) in [(&outcome.stdout, "out"), (&outcome.stderr, "err")] {
        for rank in 0..6 {
            let begin = format!("{rank} {stream} ");
            let seen: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(&*begin)).collect();
            let expected: Vec<String> = (0..2000).map(|i| i.to_string()).collect();
            assert!(seen == expected, "{stream} of rank {rank}: {} lines", seen.len());
        }
    }
    site.expect_nothing_left();
}

#[test]
fn input_reaches_a_rank_of_another_host() {
    let site = Site::new();
    let text = (0..200_000).fold(String::new(), |mut text, i| {
        let _ = writeln!(text, "line {i}");
        text
    });
    let job = site.px(1, "run -q --host n1,n2,n3 -n 3 --stdin 2").input(text.as_bytes());
    let outcome = job.args(["sh", "-c", "[ $PMIX_RANK = 2 ] && exec cat; exit 0"]).run().expect_code(0);
    assert!(outcome.stdout == text, "{} of {} bytes", outcome.stdout.len(), text.len());
    site.expect_nothing_left();
}

#[test]
fn hosts_of_a_file_are_taken_as_the_command_line_says() {
    let site = Site::new();
    fs::write(site.host(1).path("/tmp/hosts"), "n1 slots=1\nn2 slots=2\nn3 slots=4\n").expect("a file");
    let job = |words: &str| {
        let outcome =
            site.px(1, &format!("run -q --output rank --hostfile /tmp/hosts {words} hostname")).run();
        let mut lines: Vec<String> = outcome.expect_code(0).stdout.lines().map(str::to_owned).collect();
        lines.sort();
        lines.iter().filter_map(|line| line.split_whitespace().last()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(job("--host n3:2,n2"), "n3 n3 n2");
    assert_eq!(job("--host n2,n3 --map-by node -n 5"), "n2 n3 n2 n3 n3");
    assert_eq!(job("-n 8 --map-by node:oversubscribe --bind-to none"), "n1 n2 n3 n1 n2 n3 n1 n2");
    site.expect_nothing_left();
}

#[test]
fn the_environment_that_is_exported_reaches_other_hosts() {
    let site = Site::new();
    let (dvm, name) = site.dvm("n1,n2");
    for way in ["--host n2".to_owned(), format!("--nspace {name} --host n2")] {
        let env = |export: &str| {
            let job =
                site.px(1, &format!("run -q {way} {export} -x OWN=1 -n 1 /usr/bin/env")).env("OF_PX", "2");
            job.run().expect_code(0)
        };
        let has = |outcome: &Outcome, entry: &str| outcome.stdout.lines().any(|line| line.starts_with(entry));
        let all = env("--export ALL,NEW=3");
        assert!(["OWN=1", "OF_PX=2", "NEW=3", "PATH="].iter().all(|entry| has(&all, entry)), "{all}");
        let some = env("--export OF_PX,NEW=3");
        assert!(
            ["OWN=1", "OF_PX=2", "NEW=3"].iter().all(|entry| has(&some, entry)) && !has(&some, "PATH="),
            "{some}"
        );
        let none = env("--export NONE");
        assert!(
            has(&none, "OWN=1") && !["OF_PX", "NEW", "PATH"].iter().any(|name| has(&none, name)),
            "{none}"
        );
    }
    site.px(1, "dvm stop").run().expect_code(0);
    dvm.wait().expect_code(0);
    site.expect_nothing_left();
}

#[test]
fn tools_find_a_dvm_on_each_of_its_hosts() {
    let site = Site::new();
    let (dvm, name) = site.dvm("n1,n2,n3");
    eventually("tools find the DVM on every host", || {
        (1..=3).all(|host| site.px(host, "ps").run().stdout.contains("no job"))
    });
    let job = site.px(3, &format!("run -q --nspace {name} -n 3 --map-by node sleep 1000")).start();
    for host in 1..=3 {
        eventually("the job is seen", || {
            let ps = site.px(host, "ps --ranks").run().stdout;
            ["n1", "n2", "n3"].iter().all(|host| ps.contains(host))
        });
    }
    let why = site.px(2, "why").run().expect_code(0);
    assert!(why.stdout.contains("nothing is waiting"), "{why}");
    site.px(2, "dvm stop").run().expect_code(0);
    job.wait().expect_failure();
    dvm.wait().expect_code(0);
    site.expect_nothing_left();
}

#[test]
fn two_mpi_jobs_share_a_dvm_over_hosts() {
    let site = Site::new();
    let (dvm, name) = site.dvm("n1:8,n2:8,n3:8");
    let job = |host, library, program| {
        let options = format!("run -q --nspace {name} --wait-server 60 -n 6 --map-by node");
        over_tcp(site.px(host, &options).arg(mpi(library, program)), library).start()
    };
    let jobs = [job(1, OpenMpi4, "ring"), job(2, OpenMpi5, "ring"), job(3, OpenMpi4, "ring")];
    for job in jobs {
        expect_ring(job.wait(), 6);
    }
    site.px(3, "dvm stop").run().expect_code(0);
    dvm.wait().expect_code(0);
    site.expect_nothing_left();
}

#[test]
fn hosts_that_fail_are_named_or_left_out() {
    let site = Site::new();
    let outcome = site.px(1, "run --host n1,n2,n9,nosuch -n 2 true").run().expect_code(1);
    outcome.expect_stderr(&["cannot start the daemons", "n9: ", "nosuch: ", "--skip-bad-hosts"]);
    site.expect_nothing_left();
    let outcome = site.px(1, "run --skip-bad-hosts --host n1,n9,n2 -n 2 hostname").run().expect_code(0);
    outcome.expect_lines(["n1", "n2"].map(str::to_owned)).expect_stderr(&["n9 is left out"]);
    let outcome = site.px(1, "run --host n2 --px-path /nowhere/px -n 1 true").run().expect_code(1);
    outcome.expect_stderr(&["n2: ", "/nowhere/px", "--px-path"]);
    site.expect_nothing_left();
}

/// When px or a daemon is killed, the ranks on all hosts end with it.
#[test]
fn nothing_is_left_when_px_or_a_daemon_is_killed() {
    let site = Site::new();
    let running = || {
        let job = site.run(6).args(["sleep", "1000"]).start();
        eventually("all ranks run", || site.count("sleep") == [2, 2, 2]);
        job
    };
    let job = running();
    job.signal(Signal::KILL);
    drop(job.wait());
    site.expect_nothing_left();

    let job = running();
    site.host(2).run(&["pkill", "-KILL", "-x", "px"]).expect("pkill");
    job.wait().expect_failure().expect_stderr(&["n2"]);
    site.expect_nothing_left();

    let job = running();
    site.host(3).run(&["sh", "-c", "kill -KILL $(ps -o ppid= -p $(pgrep -o -x px))"]).expect("kill");
    job.wait().expect_failure().expect_stderr(&["n3"]);
    site.expect_nothing_left();

    let job = running();
    job.signal(Signal::INT);
    job.wait().expect_code(130);
    site.expect_nothing_left();
}

#[test]
fn a_host_that_is_cut_off_is_noticed_and_ends_its_ranks() {
    let site = Site::new();
    let job = site.run(6).args(["--host-timeout", "10", "sleep", "1000"]).outlived().start();
    eventually("all ranks run", || site.count("sleep") == [2, 2, 2]);
    site.host(2).cut().expect("cutting");
    job.wait().expect_failure().expect_stderr(&["node n2"]);
    eventually("ranks of the cut host end as well", || site.count("sleep") == [0; 3]);
    site.host(2).rejoin().expect("plugging in");
    site.expect_nothing_left();
}

#[test]
fn ranks_end_when_the_head_is_cut_off() {
    let site = Site::new();
    let job = site.run(6).args(["--host-timeout", "6", "sleep", "1000"]).outlived().start();
    eventually("all ranks run", || site.count("sleep") == [2, 2, 2]);
    site.host(1).cut().expect("cutting");
    job.wait().expect_failure();
    eventually("ranks of the other hosts end as well", || site.count("sleep") == [0; 3]);
    site.host(1).rejoin().expect("plugging in");
    site.expect_nothing_left();
}

#[test]
fn a_host_that_freezes_is_noticed_and_does_no_harm_later() {
    let site = Site::new();
    let job = site.run(6).args(["--host-timeout", "10", "sleep", "1000"]).outlived().start();
    eventually("all ranks run", || site.count("sleep") == [2, 2, 2]);
    site.host(3).freeze().expect("freezing");
    job.wait().expect_failure().expect_stderr(&["node n3"]);
    site.host(3).thaw().expect("thawing");
    site.expect_nothing_left();
}

#[test]
fn a_daemon_that_stands_still_alone_is_ended_with_its_ranks() {
    let site = Site::new();
    let job = site.run(6).args(["--host-timeout", "6", "sleep", "1000"]).outlived().start();
    eventually("all ranks run", || site.count("sleep") == [2, 2, 2]);
    site.host(3).run(&["pkill", "-STOP", "-x", "px"]).expect("pkill");
    job.wait().expect_failure().expect_stderr(&["node n3"]);
    eventually("ranks of the frozen daemon end as well", || site.count("sleep") == [0; 3]);
    site.expect_nothing_left();
}
