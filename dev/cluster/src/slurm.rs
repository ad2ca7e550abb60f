//! Slurm on the hosts of a cluster: munged and slurmd on each, slurmctld on the first.
//!
//! No accounting and no cgroups. Its files are in the hosts' own `/etc/slurm` and `/run`, where Slurm's commands look for
//! them, so `srun` works unchanged on every host.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::debian::{debian_dir, debian_file};
use crate::ssh::write;
use crate::wait::until;
use crate::{Cluster, Host};

/// The daemons of Slurm. They end with the cluster, or when this is dropped.
#[derive(Debug)]
pub struct Slurm {
    daemons: Vec<Child>,
    /// Paths outside of the hosts, valid while the cluster exists.
    logs: Vec<std::path::PathBuf>,
}

/// How Slurm's processes and PMIx libraries authenticate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// With munge tokens.
    Munge,
    /// Not at all: messages are trusted.
    Blind,
}

impl Slurm {
    /// Starts Slurm, and waits until all nodes are ready for work.
    pub fn start(cluster: &Cluster, trust: Trust) -> Result<Slurm> {
        let configuration = configuration(cluster, trust)?;
        let mut slurm = Slurm { daemons: Vec::new(), logs: Vec::new() };
        let mut key = [0; 128];
        let mut random = File::open("/dev/urandom").context("opening /dev/urandom")?;
        random.read_exact(&mut key).context("reading /dev/urandom")?;
        for host in cluster.hosts() {
            ensure!(
                host.path("/etc/slurm").is_dir(),
                "/etc/slurm is missing: install the Debian package slurm-client"
            );
            write(&host.path("/etc/slurm/slurm.conf"), &configuration, 0o644)?;
            for directory in ["state", "spool", "log"] {
                let path = host.path("/run/slurm").join(directory);
                fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
            }
            if trust == Trust::Munge {
                slurm.start_munged(host, &key)?;
            }
        }
        let first = cluster.hosts().first().context("there are no hosts")?;
        slurm.daemon(first, first.command(debian_file("/usr/sbin/slurmctld", "slurmctld")?).arg("-D"))?;
        for host in cluster.hosts() {
            let slurmd = debian_file("/usr/sbin/slurmd", "slurmd")?;
            slurm.daemon(host, host.command(slurmd).args(["-D", "-N", host.name()]))?;
        }
        slurm.until_idle(first, cluster.hosts().len())?;
        Ok(slurm)
    }

    /// The ends of the daemons' logs.
    pub fn logs(&self) -> String {
        let tail = |path: &std::path::PathBuf| {
            let text = String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
            let lines: Vec<&str> = text.lines().collect();
            format!("--- {}\n{}\n", path.display(), lines[lines.len().saturating_sub(60)..].join("\n"))
        };
        self.logs.iter().map(tail).collect()
    }

    /// All hosts have the same key.
    fn start_munged(&mut self, host: &Host, key: &[u8]) -> Result<()> {
        let munged = debian_file("/usr/sbin/munged", "munge")?;
        let file = host.path("/run/munge/key");
        fs::write(&file, key).context("writing munge's key")?;
        fs::set_permissions(&file, PermissionsExt::from_mode(0o600))
            .context("closing munge's key to others")?;
        let mut command = host.command(munged);
        command.args(["--foreground", "--key-file=/run/munge/key", "--socket=/run/munge/munge.socket.2"]);
        command.args([
            "--pid-file=/run/munge/pid",
            "--log-file=/run/munge/log",
            "--seed-file=/run/munge/seed",
        ]);
        self.daemon(host, &mut command)?;
        let socket = host.path("/run/munge/munge.socket.2");
        until("munged accepts connections", || UnixStream::connect(&socket).is_ok())
            .with_context(|| self.logs())
    }

    fn daemon(&mut self, host: &Host, command: &mut Command) -> Result<()> {
        let name = format!("/run/{}-{}.log", host.name(), self.daemons.len());
        let log = host.path(&name);
        let output = File::create(&log).context("making a log file")?;
        let errors = output.try_clone().context("making a log file")?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        self.daemons.push(command.spawn().with_context(|| format!("starting {command:?}"))?);
        self.logs.push(log);
        Ok(())
    }

    fn until_idle(&mut self, on: &Host, nodes: usize) -> Result<()> {
        let sinfo = debian_file("/usr/bin/sinfo", "slurm-client")?.display().to_string();
        let mut answer = String::new();
        until("all nodes of Slurm are idle", || {
            let asked = on.run(&[&sinfo, "--noheader", "--format=%T %D"]);
            answer = asked.unwrap_or_else(|error| format!("{error:#}"));
            answer.trim() == format!("idle {nodes}")
        })
        .with_context(|| format!("Slurm does not get ready: {answer}\n{}", self.logs()))
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn configuration(cluster: &Cluster, trust: Trust) -> Result<String> {
    let plugins = debian_dir("slurm-wlm", "slurm-wlm-basic-plugins")?;
    let plugins = plugins.display();
    let first = cluster.hosts().first().context("there are no hosts")?;
    let controller = format!("{}({})", first.name(), first.ipv4());
    let security = match trust {
        Trust::Munge => "munge",
        Trust::Blind => "none",
    };
    // With fewer nodes than the tree is wide, no node waits for others in fences without data: the plugin treats each
    // node as a root without children.
    let mut text = format!(
        "ClusterName=phalanx\n\
         SlurmctldHost={controller}\n\
         SlurmUser=root\n\
         SlurmdUser=root\n\
         AuthType=auth/{security}\n\
         CredType=cred/{security}\n\
         ProctrackType=proctrack/linuxproc\n\
         TaskPlugin=task/none\n\
         SwitchType=switch/none\n\
         MpiDefault=none\n\
         SelectType=select/cons_tres\n\
         SelectTypeParameters=CR_CPU\n\
         SchedulerType=sched/builtin\n\
         JobAcctGatherType=jobacct_gather/none\n\
         AccountingStorageType=accounting_storage/none\n\
         ReturnToService=2\n\
         InactiveLimit=0\n\
         SlurmdTimeout=300\n\
         TreeWidth=2\n\
         MessageTimeout=100\n\
         TCPTimeout=100\n\
         SlurmdParameters=config_overrides\n\
         SlurmdDebug=debug\n\
         PluginDir={plugins}\n\
         StateSaveLocation=/run/slurm/state\n\
         SlurmdSpoolDir=/run/slurm/spool\n\
         SlurmctldPidFile=/run/slurm/slurmctld.pid\n\
         SlurmdPidFile=/run/slurm/slurmd.pid\n\
         SlurmctldLogFile=/run/slurm/log/slurmctld\n\
         SlurmdLogFile=/run/slurm/log/slurmd\n"
    );
    for host in cluster.hosts() {
        let (name, address) = (host.name(), host.ipv4());
        text.push_str(&format!("NodeName={name} NodeAddr={address} CPUs=16 RealMemory=100 State=UNKNOWN\n"));
    }
    text.push_str("PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES\n");
    Ok(text)
}
