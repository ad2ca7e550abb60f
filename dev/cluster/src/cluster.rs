//! A cluster as seen by the process that starts it: it has hosts, and is gone when dropped.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::Host;
use crate::built::{built, workspace};
use crate::debian::debian_file;
use crate::roles::WORLD;

/// The properties of a cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of hosts: `n1`, `n2` ...
    pub hosts: usize,
    /// Number of networks that connect them, each with an interface of its own: `eth0`, `eth1` ...
    pub networks: usize,
    /// The program that plays the roles ([`crate::run_role`]); without one, cargo builds it.
    pub program: Option<PathBuf>,
    /// Directories that the hosts see even below `/tmp`, `/run` or `/dev/shm`, of which each host has its own.
    pub shared: Vec<PathBuf>,
}

impl Options {
    pub fn new(hosts: usize) -> Options {
        let workspace = workspace().to_owned();
        let target = std::env::var_os("CARGO_TARGET_DIR").map(|target| workspace.join(target));
        let current = std::env::current_dir().ok();
        let shared = [Some(workspace), target, current].into_iter().flatten().filter(|dir| dir.is_dir());
        Options { hosts, networks: 1, program: None, shared: shared.collect() }
    }
}

/// Hosts connected by a switch. Dropping it ends everything that runs on them.
#[derive(Debug)]
pub struct Cluster {
    /// The cluster lives as long as the standard input of this process is open.
    process: Child,
    hosts: Vec<Host>,
}

impl Cluster {
    pub fn start(hosts: usize) -> Result<Cluster> {
        Cluster::start_with(&Options::new(hosts))
    }

    pub fn start_with(options: &Options) -> Result<Cluster> {
        ensure!((1..=MOST_HOSTS).contains(&options.hosts), "a cluster has 1 to {MOST_HOSTS} hosts");
        ensure!(
            (1..=MOST_NETWORKS).contains(&options.networks),
            "a cluster has 1 to {MOST_NETWORKS} networks"
        );
        ensure!(
            rustix::process::geteuid().is_root(),
            "{NEEDS_ROOT}the hosts of a cluster are made of namespaces\nhint: try sudo"
        );
        debian_file("/usr/sbin/ip", "iproute2")?;
        let program = match &options.program {
            Some(program) => program.clone(),
            None => built()?.join("cluster"),
        };
        let mut process = in_new_namespaces()?
            .arg(&program)
            .args([WORLD, &options.hosts.to_string(), &options.networks.to_string()])
            .args(&options.shared)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start the cluster")?;
        let said = process.stdout.take().context("no pipe from the cluster")?;
        let mut cluster = Cluster { process, hosts: Vec::new() };
        for line in BufReader::new(said).lines() {
            let line = line.context("cannot read what the cluster says")?;
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["host", name, pid, switch] => {
                    let numbers = (pid.parse(), switch.parse());
                    let (Ok(pid), Ok(switch)) = numbers else { bail!("the cluster says {line:?}") };
                    let number = cluster.hosts.len() + 1;
                    cluster.hosts.push(Host::new(name, number, options.networks, [pid, switch], &program));
                }
                ["ready"] => return Ok(cluster),
                _ => bail!("the cluster says {line:?}"),
            }
        }
        let mut why = String::new();
        if let Some(mut pipe) = cluster.process.stderr.take() {
            let _ = pipe.read_to_string(&mut why);
        }
        bail!("cannot make a cluster of {} hosts: {}", options.hosts, why.trim())
    }

    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The host `n1`, `n2` ...
    ///
    /// # Panics
    ///
    /// If there is no such host.
    #[track_caller]
    pub fn host(&self, number: usize) -> &Host {
        &self.hosts[number - 1]
    }
}

impl Drop for Cluster {
    /// Returns when the last process on the hosts has ended.
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// `unshare`, ready for a command that becomes process 1 of a new set of namespaces and dies with `unshare`.
pub(crate) fn in_new_namespaces() -> Result<Command> {
    let mut command = Command::new(debian_file("/usr/bin/unshare", "util-linux")?);
    command.args(["--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child=KILL", "--"]);
    Ok(command)
}

/// Prefix of errors about actions that only root can perform.
pub const NEEDS_ROOT: &str = "needs root: ";
/// The last number of an address is that of the host.
const MOST_HOSTS: usize = 64;
const MOST_NETWORKS: usize = 4;
