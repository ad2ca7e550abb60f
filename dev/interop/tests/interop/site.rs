//! Hosts simulated on this machine, with ssh between them, for the tests of `px` over several hosts.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;

use phalanx_cluster::{Cluster, Host, Options, Ssh};
use phalanx_interop::{
    Job,
    Library::{self, OpenMpi4},
    Running, eventually, px_binary,
};

/// Three hosts on which nothing else runs.
pub(crate) struct Site {
    pub(crate) cluster: Cluster,
    _ssh: Ssh,
}

impl Site {
    pub(crate) fn new() -> Site {
        Site::in_networks(1)
    }

    pub(crate) fn in_networks(networks: usize) -> Site {
        let cluster = Cluster::start_with(&Options { networks, ..Options::new(3) }).expect("a cluster");
        let ssh = Ssh::start(&cluster).expect("sshds");
        Site { cluster, _ssh: ssh }
    }

    pub(crate) fn host(&self, number: usize) -> &Host {
        self.cluster.host(number)
    }

    /// A px command on a host.
    pub(crate) fn px(&self, host: usize, words: &str) -> Job {
        Job::on(self.host(host), px_binary()).args(words.split_whitespace())
    }

    /// A job with this many ranks, mapped by node.
    pub(crate) fn run(&self, ranks: u32) -> Job {
        self.px(1, &format!("run -q --host n1:2,n2:2,n3:2 --map-by node -n {ranks}"))
    }

    /// A DVM over these hosts, ready for jobs, and its name.
    pub(crate) fn dvm(&self, hosts: &str) -> (Running, String) {
        let dvm = self.px(1, &format!("dvm start --host {hosts}")).start();
        dvm.until_said("is ready");
        let name = dvm.said().split_whitespace().next().unwrap_or_default().to_owned();
        (dvm, name)
    }

    /// How many processes of this name run on each host.
    pub(crate) fn count(&self, name: &str) -> Vec<usize> {
        let is_named = |pid: &u32| {
            let known = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            known.trim_end() == name
        };
        let on = |host: &Host| host.processes().iter().filter(|pid| is_named(pid)).count();
        self.cluster.hosts().iter().map(on).collect()
    }

    /// Nothing of px and its jobs is left on any host, neither processes nor files.
    pub(crate) fn expect_nothing_left(&self) {
        let nothing =
            || self.count("px") == [0; 3] && self.count("sleep") == [0; 3] && self.files().is_empty();
        eventually("nothing of px is left", nothing);
    }

    fn files(&self) -> Vec<String> {
        let of = |host: &Host| {
            let entries = fs::read_dir(host.path("/tmp")).expect("/tmp").flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let all = self.cluster.hosts().iter().flat_map(of);
        all.filter(|name| name.starts_with("px.")).collect()
    }
}

/// TCP between hosts, and on each host shared memory of its own.
pub(crate) fn over_tcp(job: Job, library: Library) -> Job {
    let job = job.with(library);
    match library {
        OpenMpi4 => {
            job.env("OMPI_MCA_btl", "self,vader,tcp").env("OMPI_MCA_btl_vader_backing_directory", "/dev/shm")
        }
        _ => job.env("OMPI_MCA_btl", "self,sm,tcp").env("OMPI_MCA_btl_sm_backing_directory", "/dev/shm"),
    }
}
