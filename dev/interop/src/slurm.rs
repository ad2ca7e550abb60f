//! Slurm on hosts of a cluster on this machine, for the duration of a test.
//!
//! Slurm's plugin opens libpmix by an absolute path, so a host gets ours by a bind mount, visible only there.

use std::fs;
use std::path::{Path, PathBuf};

use phalanx_cluster::{Cluster, Host, Trust};

use crate::install::debian_dir;
use crate::job::Job;
use crate::{Library, libpmix};

/// The libpmix that a node's slurmstepd uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    Debians,
    Ours,
}

/// A running Slurm with nodes `n1`, `n2` ...
pub struct Slurm {
    daemons: phalanx_cluster::Slurm,
    cluster: Cluster,
}

impl Slurm {
    /// Starts one node per entry, and waits until they are ready for work.
    #[track_caller]
    pub fn start(nodes: &[Whose]) -> Slurm {
        Slurm::start_with(nodes, Trust::Blind)
    }

    /// The same, with munge, by which Slurm's processes and PMIx libraries authenticate.
    #[track_caller]
    pub fn start_with_munge(nodes: &[Whose]) -> Slurm {
        Slurm::start_with(nodes, Trust::Munge)
    }

    #[track_caller]
    fn start_with(nodes: &[Whose], trust: Trust) -> Slurm {
        let cluster = Cluster::start(nodes.len()).expect("a cluster");
        for (host, _) in cluster.hosts().iter().zip(nodes).filter(|(_, whose)| **whose == Whose::Ours) {
            let ours = fs::canonicalize(libpmix().join("libpmix.so.2")).expect("finding our libpmix");
            let debians = debian_libpmix();
            let _ =
                host.run(&["mount", "--bind", utf8(&ours), utf8(&debians)]).expect("mounting our libpmix");
        }
        let daemons = phalanx_cluster::Slurm::start(&cluster, trust).expect("a Slurm");
        Slurm { daemons, cluster }
    }

    pub fn hosts(&self) -> &[Host] {
        self.cluster.hosts()
    }

    /// A job of this Slurm: `srun --mpi=pmix` with these arguments, on the first node.
    pub fn srun(&self, arguments: &[&str]) -> Job {
        let job = Job::on(self.cluster.host(1), "srun").arg("--mpi=pmix").args(arguments);
        let backing =
            [("OMPI_MCA_btl", "self,vader,tcp"), ("OMPI_MCA_btl_vader_backing_directory", "/dev/shm")];
        let job = job.with(Library::OpenMpi4);
        backing.into_iter().fold(job, |job, (name, value)| job.env(name, value))
    }

    /// The daemons' logs, for a test that has failed.
    pub fn logs(&self) -> String {
        self.daemons.logs()
    }
}

/// Debian's libpmix, with links resolved.
fn debian_libpmix() -> PathBuf {
    let link = debian_dir("pmix2", "libpmix2").join("lib/libpmix.so.2");
    fs::canonicalize(link).expect("finding Debian's libpmix")
}

/// A directory with Debian's libpmix, for ranks on nodes where ours replaces it.
pub fn debians_libpmix_copied(to: &Path) -> &Path {
    fs::copy(debian_libpmix(), to.join("libpmix.so.2")).expect("copying Debian's libpmix");
    to
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
