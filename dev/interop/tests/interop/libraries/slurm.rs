//! Ranks under Slurm 22.05, with Debian's libpmix, with ours, and with both in one job.
//!
//! Slurm's own processes load the library as well: each slurmstepd is the PMIx server of its node.

use phalanx_cluster::Host;
use phalanx_interop::mpi_programs::{expect_allreduce, expect_hello_on, expect_ring};
use phalanx_interop::{
    Job, Library::OpenMpi4, Library::OpenMpi5, Outcome, Slurm, Whose, debians_libpmix_copied, libpmix, mpi,
    new_shared_directory, pmix,
};

const OURS: &str = concat!("Phalanx ", env!("CARGO_PKG_VERSION"));
const THEIRS: &str = "OpenPMIx 4.2";

#[test]
fn ours_in_every_slurmstepd_and_in_the_ranks() {
    let slurm = Slurm::start(&[Whose::Ours; 4]);
    everything(&slurm, "", &[OURS; 8]);
}

#[test]
fn ours_in_every_slurmstepd_and_debians_in_the_ranks() {
    let slurm = Slurm::start(&[Whose::Ours; 4]);
    let directory = new_shared_directory();
    let path = debians_libpmix_copied(directory.path()).display().to_string();
    everything(&slurm, &path, &[THEIRS; 8]);
}

#[test]
fn debians_in_every_slurmstepd_and_ours_in_the_ranks() {
    let slurm = Slurm::start(&[Whose::Debians; 4]);
    everything(&slurm, &libpmix().display().to_string(), &[OURS; 8]);
}

/// Values committed by the ranks of one node reach those of the others, whichever library their servers use.
#[test]
fn both_in_one_job() {
    let slurm = Slurm::start(&[Whose::Ours, Whose::Debians, Whose::Ours, Whose::Debians]);
    // Two ranks on each node, in order.
    let spread = ["-N", "4", "-n", "8", "--ntasks-per-node=2"];
    let whose = [OURS, OURS, THEIRS, THEIRS, OURS, OURS, THEIRS, THEIRS];
    versions(&slurm, &slurm.srun(&spread).arg(pmix("version")).run(), &whose);
    programs(&slurm, &spread, "", 8);
}

/// Programs of the Python wheel, with its OpenPMIx 5.0 and with ours.
#[test]
fn ranks_of_open_mpi_5() {
    let slurm = Slurm::start(&[Whose::Ours, Whose::Ours]);
    for library in ["", &libpmix().display().to_string()] {
        for (arguments, ranks, hosts) in [
            (&["-N", "1", "-n", "4", "-w", "n1"][..], 4, &["n1"][..]),
            (&["-N", "2", "-n", "4"], 4, &["n1", "n2"]),
        ] {
            let run = |program: &str, more: &[&str]| {
                let job = slurm.srun(arguments).with(OpenMpi5).env("OMPI_MCA_btl", "self,sm,tcp");
                let job = job.env("OMPI_MCA_btl_sm_backing_directory", "/dev/shm");
                checked(&slurm, on(job, library).arg(mpi(OpenMpi5, program)).args(more).run())
            };
            expect_hello_on(run("hello", &[&ranks.to_string()]), ranks, hosts);
            expect_ring(run("ring", &[]), ranks);
        }
    }
}

/// Slurm's messages carry munge tokens, and PMIx libraries that support munge find it as well.
#[test]
fn jobs_that_munge_vouches_for() {
    let slurm = Slurm::start_with_munge(&[Whose::Ours, Whose::Debians]);
    let spread = ["-N", "2", "-n", "4", "--ntasks-per-node=2"];
    versions(&slurm, &slurm.srun(&spread).arg(pmix("version")).run(), &[OURS, OURS, THEIRS, THEIRS]);
    programs(&slurm, &spread, "", 4);
    let directory = new_shared_directory();
    let path = debians_libpmix_copied(directory.path()).display().to_string();
    programs(&slurm, &spread, &path, 4);
    programs(&slurm, &spread, &libpmix().display().to_string(), 4);
}

fn everything(slurm: &Slurm, library: &str, whose: &[&str; 8]) {
    for (arguments, ranks) in [(&["-N", "1", "-n", "4", "-w", "n1"][..], 4), (&["-N", "4", "-n", "8"], 8)] {
        let outcome = on(slurm.srun(arguments), library).arg(pmix("version")).run();
        versions(slurm, &outcome, &whose[..ranks as usize]);
        programs(slurm, arguments, library, ranks);
    }
}

/// The arguments of `srun` begin with the number of hosts.
fn programs(slurm: &Slurm, arguments: &[&str], library: &str, ranks: u32) {
    let used = slurm.hosts().iter().map(Host::name).take(arguments[1].parse().unwrap_or_default());
    let hosts: Vec<&str> = used.collect();
    let hosts = &hosts[..];
    let run = |program: &str, more: &[&str]| {
        let job = on(slurm.srun(arguments), library).arg(mpi(OpenMpi4, program)).args(more);
        checked(slurm, job.run())
    };
    expect_hello_on(run("hello", &[&ranks.to_string()]), ranks, hosts);
    expect_ring(run("ring", &[]), ranks);
    expect_allreduce(run("allreduce", &[]), ranks);
    let exchange = on(slurm.srun(arguments), library).arg(pmix("exchange")).run();
    let line = |rank| format!("rank {rank} of {ranks}: everybody's values are right");
    checked(slurm, exchange).expect_lines((0..ranks).map(line));
}

/// `library`: what the ranks load, if not the library in Debian's place on their node.
fn on(job: Job, library: &str) -> Job {
    if library.is_empty() { job } else { job.env("LD_LIBRARY_PATH", library) }
}

fn versions(slurm: &Slurm, outcome: &Outcome, whose: &[&str]) {
    let outcome = checked(slurm, outcome.clone());
    let ranks = whose.len();
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), ranks, "{outcome}");
    for (rank, (line, whose)) in lines.iter().zip(whose).enumerate() {
        assert!(line.starts_with(&format!("rank {rank} of {ranks}: {whose}")), "{outcome}");
    }
}

fn checked(slurm: &Slurm, outcome: Outcome) -> Outcome {
    let ended_well = outcome.ended == phalanx_interop::Ended::Code(0);
    assert!(ended_well, "{outcome}\n{}", slurm.logs());
    outcome
}

/// Slurm knows only ranks, not the programs of a shell that form one. (With Debian's library in slurmstepd, values put by the second program
/// do not reach other nodes, and one that leaves without finalize ends the job.)
#[test]
fn ranks_that_are_several_programs() {
    let slurm = Slurm::start(&[Whose::Ours; 2]);
    let run = |script: &str| {
        let meeting = new_shared_directory();
        let job = slurm.srun(&["-N", "2", "-n", "2"]).env("INTEROP_MEETING", meeting.path());
        checked(&slurm, job.args(["sh", "-c", script]).arg(pmix("clone")).run())
    };
    let line = |rank, name| format!("rank {rank} of 2: {name} was this rank");
    let both = (0..2).flat_map(|rank| ["a", "b"].map(|name| line(rank, name)));
    run("\"$0\" a b finalize & \"$0\" b a finalize; wait").expect_lines(both);
    let script = "\"$0\" a b leave & a=$!; \"$0\" b a go-finalize & b=$!; \
                  wait $a; touch \"$INTEROP_MEETING/$PMIX_RANK.go\"; wait $b; exit 0";
    run(script).expect_lines((0..2).map(|rank| line(rank, "b")));
}

/// Failures, and requests that Slurm's plugin does not support.
#[test]
fn failures_are_those_that_slurm_reports() {
    let slurm = Slurm::start(&[Whose::Ours; 2]);
    let run = |program: &str| {
        let job = slurm.srun(&["-N", "2", "-n", "4", "--kill-on-bad-exit=1"]);
        job.arg(mpi(OpenMpi4, program)).run()
    };
    // srun returns the largest code, which may be that of a rank that it has killed because of this one.
    let exit = run("exit3").expect_failure();
    assert!(exit.stderr.contains("task 3: Exited with exit code 3"), "{exit}");
    let abort = run("abort").expect_failure().expect_lines(["rank 3 aborts"]);
    // Slurm kills the whole step, often before the rank has exited by itself.
    let ends = ["task 3: Exited with exit code 7", "task 3: Killed"];
    assert!(abort.stderr.contains("with errorcode 7."), "{abort}");
    assert!(ends.iter().any(|end| abort.stderr.contains(end)), "{abort}");
    let crash = run("segv").expect_failure();
    assert!(crash.stderr.contains("task 3: Segmentation fault"), "{crash}");
    let publish = run("publish").expect_failure();
    assert!(publish.stderr.contains("does not support name publishing"), "{publish}");
    let spawn = run("spawn").expect_failure();
    assert!(spawn.stderr.contains("MPI_ERR_SPAWN: could not spawn processes"), "{spawn}");
}
