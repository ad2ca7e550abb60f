//! Features that work on one host, with ranks and tools on three: the native library, job control, tools, files of output.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;

use phalanx_interop::{
    Job,
    Library::{Pmix4, Pmix5},
    Outcome, eventually, libpmix, pmix, px_binary, rust_tool,
};

use crate::site::Site;

#[test]
fn ranks_on_the_native_library_meet_over_hosts() {
    let site = Site::new();
    let outcome = site.run(6).arg(rust_tool("ring")).run().expect_code(0);
    for rank in 0..6 {
        let (me, neighbour) = (format!(":{rank} of 6: heard 6, "), (rank + 1) % 6);
        let said = format!("my neighbour says \"greetings of {neighbour}\"");
        let line = outcome.stdout.lines().find(|line| line.contains(&me));
        assert!(line.is_some_and(|line| line.ends_with(&said)), "rank {rank}\n{outcome}");
    }
    site.expect_nothing_left();
}

#[test]
fn spawns_and_values_are_right_over_hosts() {
    let site = Site::new();
    for library in [Pmix4, Pmix5] {
        let outcome = site.run(6).arg(pmix("exchange")).with(library).run().expect_code(0);
        for rank in 0..6 {
            outcome.assert_line(&format!("rank {rank} of 6: everybody's values are right"));
        }
        let outcome = site.run(3).arg(pmix("family")).with(library).run().expect_code(0);
        let parents = (0..3).map(|rank| format!("rank {rank} of 3: has none"));
        let children = (0..2).map(|rank| format!("rank {rank} of 2: has a parent"));
        outcome.expect_lines(parents.chain(children));
    }
    site.expect_nothing_left();
}

#[test]
fn a_rank_steers_ranks_of_another_host() {
    let site = Site::new();
    let outcome = site.run(2).arg(pmix("control")).with(Pmix4).env("LD_LIBRARY_PATH", libpmix()).run();
    let outcome = outcome.expect_code(0);
    outcome.assert_line("rank 0: was told that rank 1 has ended");
    site.expect_nothing_left();
}

const HEARS: &str =
    "trap 'echo $PMIX_RANK heard it; exit 0' USR1; echo $PMIX_RANK begins; while :; do sleep 0.05; done";

#[test]
fn tools_of_each_host_steer_and_read_ranks_of_others() {
    let site = Site::new();
    let (dvm, name) = site.dvm("n1:2,n2:2,n3:2");
    let words = format!("run --nspace {name} --map-by node -n 6 -v sh -c");
    let job = site.px(2, &words).arg(HEARS).start();
    (0..6).for_each(|rank| job.until_said(&format!("{rank} begins")));
    let nspace = nspace_of(&site);
    let read = site.px(3, &format!("attach --since-start {nspace}:1")).start();
    read.until_said("1 begins");
    // Ranks 1 and 4 are on n2, 0 and 3 on n1.
    for (host, rank) in [(1, 1), (3, 4), (2, 3), (3, 0)] {
        let signal = site.px(host, &format!("ctl signal -s USR1 {nspace}:{rank}")).run().expect_code(0);
        assert!(signal.stdout.contains(&format!("rank {rank}: ")), "{signal}");
        job.until_said(&format!("{rank} heard it"));
    }
    read.wait().expect_code(0).assert_line("1 heard it");
    let _ = site.px(1, &format!("ctl signal -s USR1 {nspace}:2,5")).run().expect_code(0);
    job.wait().expect_code(0);

    let _ = site.px(1, "publish --persist indefinite over.hosts=found").run().expect_code(0);
    for host in 1..=3 {
        let found = site.px(host, "lookup over.hosts").run().expect_code(0);
        assert!(found.stdout.contains("found"), "{found}");
    }
    site.px(3, "dvm stop").run().expect_code(0);
    dvm.wait().expect_code(0);
    site.expect_nothing_left();
}

/// The only running job.
fn nspace_of(site: &Site) -> String {
    let mut found = None;
    eventually("the job is seen", || {
        let ps = site.px(1, "ps").run().stdout;
        found = ps.split_whitespace().find(|word| word.contains('@')).map(str::to_owned);
        found.is_some()
    });
    found.unwrap_or_default()
}

#[test]
fn input_that_no_rank_of_another_host_reads_stays() {
    let site = Site::new();
    let (dvm, name) = site.dvm("n1,n2,n3");
    for server in [String::new(), format!("--nspace {name}")] {
        let px = format!("'{}' run -q {server} --host n2 -n 1", px_binary().display());
        let script = format!("printf 'a\\nb\\n' | ({px} true; {px} sh -c 'read line; echo [$line]'; cat)");
        let outcome = Job::on(site.host(1), "/bin/sh").args(["-c", &script]).run().expect_code(0);
        outcome.expect_lines(["[a]", "b"].map(str::to_owned));
    }
    site.px(1, "dvm stop").run().expect_code(0);
    dvm.wait().expect_code(0);
    site.expect_nothing_left();
}

#[test]
fn output_of_each_rank_of_all_hosts_goes_to_files_of_its_own() {
    let site = Site::new();
    let script = "seq 200000 | sed \"s/^/$PMIX_RANK /\"; echo $PMIX_RANK on $(hostname) >&2";
    let job = site.run(6).args(["--output", "file-only,file=/tmp/of", "sh", "-c", script]);
    let outcome = job.run().expect_code(0);
    assert!(outcome.stdout.is_empty(), "{} bytes", outcome.stdout.len());
    let read = |name: String| fs::read_to_string(site.host(1).path(&name)).expect("a file");
    for rank in 0..6 {
        let expected: String = (1..=200_000).map(|line| format!("{rank} {line}\n")).collect();
        assert!(read(format!("/tmp/of.{rank}.out")) == expected, "rank {rank}");
        assert_eq!(read(format!("/tmp/of.{rank}.err")), format!("{rank} on n{}\n", rank % 3 + 1));
    }
    site.expect_nothing_left();
}

/// Allocations of other batch systems, and their commands for starting processes.
#[test]
fn allocations_of_other_systems_are_used_by_their_own_means() {
    let site = Site::new();
    let write = |name: &str, text: &str| fs::write(site.host(1).path(name), text).expect("a file");
    write("/tmp/nodes", "n1\nn2\nn2\nn3\n");
    write("/tmp/pe", "n1 1 all.q UNDEFINED\nn2 2 all.q UNDEFINED\nn3 1 all.q UNDEFINED\n");
    let expect = |outcome: Outcome| {
        drop(outcome.expect_code(0).expect_lines(["n1", "n2", "n2", "n3"].map(str::to_owned)))
    };
    expect(site.px(1, "run -q hostname").env("PBS_NODEFILE", "/tmp/nodes").run());
    expect(site.px(1, "run -q hostname").env("PE_HOSTFILE", "/tmp/pe").run());
    // Without blaunch, ssh is used.
    let lsf =
        |path: &str| site.px(1, "run -q hostname").env("LSB_MCPU_HOSTS", "n1 1 n2 2 n3 1").env("PATH", path);
    let path = std::env::var("PATH").expect("a path");
    expect(lsf(&path).run());
    let stand_in = "#!/bin/sh\necho \"$1\" >>/tmp/blaunched; host=$1; shift; exec ssh -x -T -o BatchMode=yes $host \"$@\"\n";
    let _ = site.host(1).run(&["mkdir", "-p", "/tmp/lsf"]).expect("a directory");
    write("/tmp/lsf/blaunch", stand_in);
    let _ = site.host(1).run(&["chmod", "+x", "/tmp/lsf/blaunch"]).expect("permissions");
    expect(lsf(&format!("/tmp/lsf:{path}")).run());
    let started = fs::read_to_string(site.host(1).path("/tmp/blaunched")).expect("what it has started");
    let mut started: Vec<&str> = started.lines().collect();
    started.sort_unstable();
    assert_eq!(started, ["n2", "n3"]);
    let refused =
        site.px(1, "run --host n1,n9 hostname").env("PBS_NODEFILE", "/tmp/nodes").run().expect_code(2);
    refused.expect_stderr(&["host 'n9' (--host) is not in the allocation", "PBS_NODEFILE names n1, n2, n3"]);
    site.expect_nothing_left();
}
