//! Jobs of `px` in Slurm allocations over several hosts: its daemons are one step, started by one `srun`.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use phalanx_cluster::{Cluster, Slurm, Trust};
use phalanx_interop::mpi_programs::expect_allreduce;
use phalanx_interop::{
    Job, Library::OpenMpi4, debian_file, eventually, mpi, new_shared_directory, px_binary,
};

struct Site {
    cluster: Cluster,
    _slurm: Slurm,
}

impl Site {
    fn new() -> Site {
        let cluster = Cluster::start(4).expect("a cluster");
        let slurm = Slurm::start(&cluster, Trust::Munge).expect("Slurm");
        Site { cluster, _slurm: slurm }
    }

    /// px in an allocation.
    fn salloc(&self, allocation: &str, words: &str) -> Job {
        let salloc = debian_file("/usr/bin/salloc", "slurm-client");
        let job = Job::on(self.cluster.host(1), salloc).args(["--quiet"]).args(allocation.split_whitespace());
        job.arg(px_binary()).args(words.split_whitespace())
    }

    fn count(&self, name: &str) -> usize {
        let pids = self.cluster.hosts().iter().flat_map(|host| host.processes());
        let known = pids.filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).ok());
        known.filter(|known| known.trim_end() == name).count()
    }

    fn expect_nothing_left(&self) {
        eventually("nothing of px is left", || self.count("px") + self.count("sleep") == 0);
    }
}

#[test]
fn an_allocation_needs_no_options() {
    let site = Site::new();
    let outcome = site.salloc("-N 4 --ntasks-per-node=2", "run -q hostname").run().expect_code(0);
    let hosts = ["n1", "n2", "n3", "n4"].map(str::to_owned);
    outcome.expect_lines(hosts.iter().chain(&hosts));
    site.expect_nothing_left();
}

#[test]
fn mpi_runs_over_an_allocation() {
    let site = Site::new();
    let job = site.salloc("-N 3 --ntasks-per-node=2", "run -q --map-by node").arg(mpi(OpenMpi4, "allreduce"));
    let job = job.env("OMPI_MCA_pml", "ob1").env("OMPI_MCA_btl", "self,vader,tcp");
    expect_allreduce(job.env("OMPI_MCA_btl_vader_backing_directory", "/dev/shm").run(), 6);
    site.expect_nothing_left();
}

/// A single other host is one task of srun.
#[test]
fn an_allocation_may_have_one_other_host() {
    let site = Site::new();
    let outcome = site.salloc("-N 2 --ntasks-per-node=1", "run -q hostname").run().expect_code(0);
    outcome.expect_lines(["n1", "n2"]);
    let outcome = site.salloc("-N 3", "run -q --host n1,n3 hostname").run().expect_code(0);
    outcome.expect_lines(["n1", "n3"]);
    site.expect_nothing_left();
}

#[test]
fn hosts_outside_an_allocation_are_refused() {
    let site = Site::new();
    let outcome = site.salloc("-N 2", "run --host n1,n4 -n 1 true").run().expect_code(2);
    outcome
        .expect_stderr(&["host 'n4' (--host) is not in the allocation", "SLURM_JOB_NODELIST names n1, n2"]);
}

/// Whether the step is just being created, or its daemons are starting.
#[test]
fn a_start_that_is_killed_leaves_no_step() {
    let site = Site::new();
    let dir = new_shared_directory();
    let (px, begun) = (dir.path().join("px"), dir.path().join("begun"));
    let wrapped = format!("#!/bin/sh\n: >'{}'\nexec '{}' \"$@\"\n", begun.display(), px_binary().display());
    fs::write(&px, wrapped).expect("a script");
    fs::set_permissions(&px, fs::Permissions::from_mode(0o755)).expect("permissions");
    let text = "for moment in 'pgrep -x srun' 'squeue --noheader --steps | grep -q px' '[ -e \"$2\" ]'; do\n\
                \t\"$0\" run -q --px-path \"$1\" sleep 1000 & px=$!\n\
                \tuntil eval \"$moment\" >/dev/null 2>&1; do :; done\n\
                \tkill -KILL $px; wait $px; left=300\n\
                \twhile squeue --noheader --steps | grep -q px; do\n\
                \t\tleft=$((left-1)); [ $left -gt 0 ] || { squeue --steps; exit 9; }; sleep 0.1\n\
                \tdone\n\
                done\n";
    let salloc = Job::on(site.cluster.host(1), debian_file("/usr/bin/salloc", "slurm-client"));
    let salloc = salloc.args(["--quiet", "-N", "4", "sh", "-c"]).arg(text).args([px_binary(), &px, &begun]);
    salloc.run().expect_code(0);
    site.expect_nothing_left();
}

#[test]
fn the_way_slurm_ended_a_daemon_is_reported() {
    let site = Site::new();
    let running = || {
        let job = site.salloc("-N 4 --ntasks-per-node=2", "run -q --map-by node sleep 1000").start();
        eventually("all ranks run", || site.count("sleep") == 8);
        job
    };
    let job = running();
    site.cluster.host(3).run(&["pkill", "-KILL", "-x", "px"]).expect("pkill");
    let why = "node n3 was lost, and with it ranks 2, 6: its daemon has ended: it was killed by signal 9";
    let outcome = job.wait().expect_code(1).expect_stderr(&[why]);
    assert!(!outcome.stderr.contains("srun:"), "{outcome}");
    site.expect_nothing_left();

    // srun itself notices this late, and the daemon at once.
    let job = running();
    site.cluster.host(3).run(&["pkill", "-KILL", "-f", "^slurmstepd: "]).expect("pkill");
    let why = "its daemon was told to end, or the command that runs it there has ended";
    let why = format!("node n3 was lost, and with it ranks 2, 6: {why}");
    job.wait().expect_code(1).expect_stderr(&[&why]);
    site.expect_nothing_left();

    let job = running();
    let cancel = "scancel $(squeue --noheader --steps --format='%i %j' | awk '$2 == \"px\" { print $1 }')";
    site.cluster.host(1).run(&["sh", "-c", cancel]).expect("scancel");
    // Slurm kills ranks and daemons at once; px reports whichever it notices first.
    let outcome = job.wait().expect_failure();
    let of_daemon = outcome.stderr.contains("its daemon has ended: STEP ");
    let of_step = of_daemon && outcome.stderr.contains(" CANCELLED AT ");
    assert!(of_step || outcome.stderr.contains(" was killed by "), "{outcome}");
    site.expect_nothing_left();

    let outcome = site.salloc("-N 3", "run --px-path /nowhere/px -n 1 true").run().expect_code(1);
    outcome.expect_stderr(&[
        "n2: starting the daemon: ",
        "/nowhere/px: No such file",
        "'--px-path' names it",
    ]);
    site.expect_nothing_left();
}

/// A script for sbatch or salloc.
fn script(dir: &std::path::Path, text: &str) -> String {
    let job = dir.join("job.sh");
    let text =
        text.replace("PX", &px_binary().display().to_string()).replace("DIR", &dir.display().to_string());
    fs::write(&job, format!("#!/bin/sh\n{text}")).expect("a script");
    fs::set_permissions(&job, fs::Permissions::from_mode(0o755)).expect("permissions");
    job.display().to_string()
}

#[test]
fn a_dvm_ends_with_its_allocation_and_names_it() {
    let site = Site::new();
    let dir = new_shared_directory();
    let text = "PX dvm start --daemonize >DIR/name\n\
                PX run -q --nspace $(cut -d' ' -f1 DIR/name) --map-by node -n 8 sleep 1000 2>DIR/errors &\n\
                wait; echo $? >DIR/code\n";
    let words = ["--quiet", "-N", "4", "--ntasks-per-node=2"];
    let salloc = Job::on(site.cluster.host(1), debian_file("/usr/bin/salloc", "slurm-client")).args(words);
    let job = salloc.arg(script(dir.path(), text)).start();
    eventually("all ranks run", || site.count("sleep") == 8);
    // Slurm knows the ranks of the head's host as its own, too.
    let pids = site.cluster.host(1).run(&["scontrol", "listpids"]).expect("scontrol");
    let parents = site.cluster.host(1).run(&["pgrep", "-x", "sleep"]).expect("pgrep");
    let is_listed = |pid: &str| pids.lines().any(|line| line.split_whitespace().next() == Some(pid));
    assert!(parents.split_whitespace().all(is_listed), "{parents}\n{pids}");
    site.cluster.host(1).run(&["scancel", "--user", "root"]).expect("scancel");
    site.expect_nothing_left();
    drop(job.wait());
    let errors = fs::read_to_string(dir.path().join("errors")).expect("errors");
    let why = errors.lines().find(|line| line.contains("the Slurm allocation "));
    assert!(why.is_some_and(|why| why.contains(" has ended: it was cancelled")), "{errors}");
}

#[test]
fn detached_jobs_end_with_their_allocation() {
    let site = Site::new();
    let dir = new_shared_directory();
    let text = "PX run --detach --map-by node -n 8 sleep 1000 >DIR/name\n\
                until [ -e DIR/go ]; do sleep 0.1; done\n";
    let words = ["--quiet", "-N", "4", "--ntasks-per-node=2"];
    let salloc = Job::on(site.cluster.host(1), debian_file("/usr/bin/salloc", "slurm-client")).args(words);
    let job = salloc.arg(script(dir.path(), text)).start();
    let ranks = || {
        site.cluster.hosts().iter().filter(|host| host.run(&["pgrep", "-fx", "sleep 1000"]).is_ok()).count()
    };
    eventually("ranks run on all hosts", || ranks() == 4);
    fs::write(dir.path().join("go"), "").expect("a file");
    drop(job.wait());
    site.expect_nothing_left();
    let name = fs::read_to_string(dir.path().join("name")).expect("a name");
    let attached = Job::on(site.cluster.host(1), px_binary()).args(["attach", name.trim()]).run();
    attached.expect_code(143).expect_stderr(&["the Slurm allocation ", " has ended, and the job with it"]);
}

/// Its slurmd takes no orders. The daemons of the others have come, and do not suffer.
#[test]
fn one_frozen_slurmd_makes_no_other_host_bad() {
    let site = Site::new();
    let frozen = site.cluster.host(4);
    frozen.run(&["pkill", "-STOP", "-x", "slurmd"]).expect("pkill");
    let words = "run --skip-bad-hosts --start-timeout 20 --map-by node hostname";
    let outcome = site.salloc("-N 4", words).run().expect_code(0);
    outcome.expect_stderr(&["n4 is left out: starting the daemon: "]).expect_lines(["n1", "n2", "n3"]);
    frozen.run(&["pkill", "-CONT", "-x", "slurmd"]).expect("pkill");
}

#[test]
fn everything_ends_with_the_allocation() {
    let site = Site::new();
    let dir = new_shared_directory();
    let job = dir.path().join("job.sh");
    let script = format!("#!/bin/sh\nexec '{}' run -q sleep 1000\n", px_binary().display());
    fs::write(&job, script).expect("a script");
    let run = |words: &[&str]| site.cluster.host(1).run(words).expect("a command of Slurm");
    let output = dir.path().join("output");
    run(&["sbatch", "-N4", "--ntasks-per-node=2", "-o", &output.to_string_lossy(), &job.to_string_lossy()]);
    eventually("all ranks run", || site.count("sleep") == 8);
    run(&["scancel", "--user", "root"]);
    site.expect_nothing_left();
}
