//! The control for all tests over several hosts: Debian's mpirun, with daemons started by ssh, over simulated hosts.

use phalanx_cluster::{Cluster, Ssh};
use phalanx_interop::mpi_programs::{expect_allreduce, expect_hello_on, expect_ring};
use phalanx_interop::{Job, Library::OpenMpi4, debian_file, eventually, mpi};

fn mpirun(cluster: &Cluster) -> Job {
    let mpirun = debian_file("/usr/bin/mpirun.openmpi", "openmpi-bin");
    let job = Job::on(cluster.host(1), mpirun).args(["--allow-run-as-root", "--host", "n1:2,n2:2,n3:2"]);
    job.env("OMPI_MCA_pml", "ob1").env("OMPI_MCA_btl", "self,vader,tcp").args(["-n", "6"])
}

#[test]
fn mpirun_over_three_hosts() {
    let cluster = Cluster::start(3).expect("a cluster");
    let _ssh = Ssh::start(&cluster).expect("sshds");
    let run = |program, words: &[&str]| mpirun(&cluster).arg(mpi(OpenMpi4, program)).args(words).run();
    expect_hello_on(run("hello", &["6"]), 6, &["n1", "n2", "n3"]);
    expect_ring(run("ring", &[]), 6);
    expect_allreduce(run("allreduce", &[]), 6);
    let failed = run("exit3", &[]).expect_code(3);
    assert!(failed.stderr.contains("exit code"), "{failed}");
}

/// Signals reach mpirun on its host, and mpirun forwards them to its daemons.
#[test]
fn ranks_end_on_all_hosts_when_mpirun_is_terminated() {
    let cluster = Cluster::start(3).expect("a cluster");
    let _ssh = Ssh::start(&cluster).expect("sshds");
    // Process 1 and sshd.
    let rest = || cluster.hosts().iter().all(|host| host.processes().len() == 2);
    eventually("nothing happens yet", rest);
    let running =
        mpirun(&cluster).args(["sh", "-c", "touch /tmp/$OMPI_COMM_WORLD_RANK; exec sleep 1000"]).start();
    let ranks =
        || (0..6).filter(|rank| cluster.hosts().iter().any(|h| h.path(&format!("/tmp/{rank}")).exists()));
    eventually("all ranks run", || ranks().count() == 6);
    running.signal(rustix::process::Signal::TERM);
    let _ = running.wait().expect_failure();
    eventually("nothing of it lives on any host", rest);
}
