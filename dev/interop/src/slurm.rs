//! A Slurm of a few nodes on this one machine: its controller and one slurmd per node, for as long as the test runs.
//!
//! No accounting, no cgroups, and no authentication unless a test is about that: nobody but this test talks to it. Slurm's plugin
//! opens libpmix by an absolute path, so a node gets ours by a bind mount in a mount namespace of its own; munge's socket is found
//! in the same way. Everything is below one temporary directory.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::install::{debian_dir, debian_file};
use crate::job::{Job, new_directory};
use crate::watch::{PATIENCE, host, survivors};
use crate::{Library, libpmix};

/// Whose libpmix the slurmstepd of a node uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    Debians,
    Ours,
}

/// A running Slurm with nodes `n1`, `n2` ...
pub struct Slurm {
    dir: TempDir,
    daemons: Vec<Child>,
    mark: String,
    munge: bool,
    ports: Vec<Port>,
}

impl Slurm {
    /// Starts one node per entry, and waits until they are ready for work.
    #[track_caller]
    pub fn start(nodes: &[Whose]) -> Slurm {
        Slurm::start_with(nodes, false)
    }

    /// The same, with a munged of its own, by which Slurm's processes and PMIx libraries tell who they are.
    #[track_caller]
    pub fn start_with_munge(nodes: &[Whose]) -> Slurm {
        Slurm::start_with(nodes, true)
    }

    #[track_caller]
    fn start_with(nodes: &[Whose], munge: bool) -> Slurm {
        assert!(rustix::process::geteuid().is_root(), "slurmd and mount namespaces need root");
        let dir = new_directory();
        let mark = format!("PHALANX_TEST_SLURM={}", dir.path().display());
        let mut slurm = Slurm { dir, daemons: Vec::new(), mark, munge, ports: Vec::new() };
        slurm.configure(nodes.len());
        if munge {
            slurm.start_munged();
        }
        let controller = debian_file("/usr/sbin/slurmctld", "slurmctld");
        slurm.daemon("slurmctld", slurm.inside(None, [controller.into(), "-D".into()]));
        for (number, whose) in (1..).zip(nodes) {
            let name = format!("n{number}");
            let slurmd = debian_file("/usr/sbin/slurmd", "slurmd");
            let command = [slurmd.into(), "-D".into(), "-N".into(), name.clone().into()];
            slurm.daemon(&name, slurm.inside(Some(*whose), command));
        }
        slurm.until_idle(nodes.len());
        slurm
    }

    /// A job of this Slurm: `srun --mpi=pmix` with these arguments.
    pub fn srun(&self, arguments: &[&str]) -> Job {
        let command = self.inside(None, [debian_file("/usr/bin/srun", "slurm-client").into()]);
        let (program, rest) = command.split_first().expect("a command");
        let job = Job::new(program).args(rest).env("SLURM_CONF", self.configuration());
        let job = job.arg("--mpi=pmix").args(arguments);
        // Open MPI names shared memory by the machine, on which these nodes are all one, and crashes: no shared memory. It
        // leaves the loopback interface out unless it is told.
        job.with(Library::OpenMpi4).env("OMPI_MCA_btl", "self,tcp").env("OMPI_MCA_btl_tcp_if_include", "lo")
    }

    /// What the daemons have to say, for a test that has failed.
    pub fn logs(&self) -> String {
        let mut all = String::new();
        for entry in fs::read_dir(self.dir.path().join("log")).into_iter().flatten().flatten() {
            let text = fs::read(entry.path()).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let tail: Vec<&str> = text.lines().rev().take(60).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            all.push_str(&format!("--- {}\n{}\n", entry.path().display(), tail.join("\n")));
        }
        all
    }

    /// The command in a mount namespace that has our library where Debian's is, or this test's munged where munge's clients
    /// look for one; as it is if there is neither.
    fn inside(&self, whose: Option<Whose>, command: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
        let mut mounts: Vec<(PathBuf, PathBuf)> = Vec::new();
        if whose == Some(Whose::Ours) {
            let ours = fs::canonicalize(libpmix().join("libpmix.so.2")).expect("finding our libpmix");
            mounts.push((ours, debian_libpmix()));
        }
        if self.munge {
            mounts.push((self.dir.path().join("run"), "/run".into()));
        }
        let unshare = debian_file("/usr/bin/unshare", "util-linux");
        let mut words: Vec<OsString> = vec![unshare.into()];
        words.extend(["--mount", "--propagation", "private", "/bin/sh", "-c"].map(OsString::from));
        words.extend([MOUNT_AND_RUN, "sh"].map(OsString::from));
        if mounts.is_empty() {
            words.clear();
        } else {
            words.push(mounts.len().to_string().into());
            words.extend(mounts.into_iter().flat_map(|(from, to)| [from.into(), to.into()]));
        }
        words.extend(command);
        words
    }

    /// Its key is made for this test, its socket is below `run`.
    #[track_caller]
    fn start_munged(&mut self) {
        let (run, key) = (self.dir.path().join("run/munge"), self.dir.path().join("munge.key"));
        fs::create_dir(&run).expect("making a directory for munge");
        let mut secret = [0; 128];
        let mut random = File::open("/dev/urandom").expect("opening /dev/urandom");
        random.read_exact(&mut secret).expect("reading /dev/urandom");
        let mut file = fs::OpenOptions::new();
        let file = file.write(true).create_new(true).mode(0o600).open(&key);
        file.and_then(|mut file| file.write_all(&secret)).expect("writing munge's key");
        let socket = run.join("munge.socket.2");
        // Forced: it would want a directory that every user can enter.
        let mut command: Vec<OsString> = vec![debian_file("/usr/sbin/munged", "munge").into()];
        command.extend(["--foreground", "--force"].map(OsString::from));
        let file = |option: &str, path: &Path| OsString::from(format!("--{option}={}", path.display()));
        command.push(file("key-file", &key));
        command.push(file("socket", &socket));
        command.push(file("pid-file", &run.join("munged.pid")));
        command.push(file("log-file", &self.dir.path().join("log/munged.log")));
        command.push(file("seed-file", &run.join("munged.seed")));
        self.daemon("munged", command);
        let began = Instant::now();
        while UnixStream::connect(&socket).is_err() {
            assert!(began.elapsed() < PATIENCE, "munged does not start\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn configuration(&self) -> PathBuf {
        self.dir.path().join("slurm.conf")
    }

    fn configure(&mut self, nodes: usize) {
        let root = self.dir.path();
        for directory in ["state", "spool", "log", "run"] {
            fs::create_dir(root.join(directory)).expect("making a directory for Slurm");
        }
        let plugins = debian_dir("slurm-wlm", "slurm-wlm-basic-plugins");
        self.ports = Port::some(nodes + 1);
        let ports: Vec<u16> = self.ports.iter().map(|port| port.number).collect();
        let (host, dir, plugins) = (host(), root.display(), plugins.display());
        let security = if self.munge { "munge" } else { "none" };
        let controller_port = ports[0];
        // Without `%n` in them, the directories of two nodes would be one. In steps of fewer nodes than the tree is wide,
        // nobody waits for other nodes in fences without data: the plugin takes each node for a root without children.
        let mut text = format!(
            "ClusterName=phalanx\n\
             SlurmctldHost={host}(127.0.0.1)\n\
             SlurmctldPort={controller_port}\n\
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
             StateSaveLocation={dir}/state\n\
             SlurmdSpoolDir={dir}/spool/%n\n\
             TmpFS={dir}/tmp-%n\n\
             SlurmctldPidFile={dir}/run/slurmctld.pid\n\
             SlurmdPidFile={dir}/run/slurmd.%n.pid\n\
             SlurmctldLogFile={dir}/log/slurmctld.log\n\
             SlurmdLogFile={dir}/log/slurmd.%n.log\n"
        );
        for (number, port) in (1..).zip(&ports[1..]) {
            fs::create_dir(root.join(format!("tmp-n{number}"))).expect("making a directory for a node");
            text.push_str(&format!(
                "NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=16 RealMemory=100 \
                 State=UNKNOWN\n"
            ));
        }
        text.push_str(
            "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES\n",
        );
        fs::write(self.configuration(), text).expect("writing slurm.conf");
    }

    /// Starts one of Slurm's processes. It does not outlive this thread, should that be killed.
    fn daemon(&mut self, name: &str, arguments: Vec<OsString>) {
        let mut command = Command::new(debian_file("/usr/bin/setpriv", "util-linux"));
        command.args(["--pdeathsig", "KILL"]).args(arguments);
        let output =
            File::create(self.dir.path().join(format!("log/{name}.out"))).expect("making a log file");
        let errors = output.try_clone().expect("making a log file");
        let (variable, value) = self.mark.split_once('=').unwrap_or_default();
        command
            .env("SLURM_CONF", self.configuration())
            .env(variable, value)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0);
        self.daemons.push(command.spawn().unwrap_or_else(|error| panic!("starting {command:?}: {error}")));
    }

    #[track_caller]
    fn until_idle(&self, nodes: usize) {
        let sinfo = debian_file("/usr/bin/sinfo", "slurm-client");
        let began = Instant::now();
        loop {
            let command = self.inside(None, [sinfo.into()]);
            let (program, rest) = command.split_first().expect("a command");
            let answer = Command::new(program)
                .args(rest)
                .env("SLURM_CONF", self.configuration())
                .args(["--noheader", "--format=%T %D"])
                .output()
                .expect("running sinfo");
            if String::from_utf8_lossy(&answer.stdout).trim() == format!("idle {nodes}") {
                return;
            }
            let late = began.elapsed() > PATIENCE;
            assert!(!late, "Slurm does not get ready: {answer:?}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Slurm {
    /// Nothing is left of it, whatever became of its jobs.
    fn drop(&mut self) {
        for daemon in self.daemons.iter().rev() {
            let _ = kill_process(Pid::from_child(daemon), Signal::TERM);
        }
        let began = Instant::now();
        for daemon in &mut self.daemons {
            while matches!(daemon.try_wait(), Ok(None)) && began.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        // A slurmstepd outlives its slurmd, and a daemon that hangs is not asked twice.
        for (pid, _) in survivors(&self.mark) {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        for daemon in &mut self.daemons {
            let _ = daemon.wait();
        }
    }
}

/// Arguments: a number of mounts, from where to where each, and the command.
const MOUNT_AND_RUN: &str = "n=$1; shift; \
    while [ \"$n\" -gt 0 ]; do mount --bind \"$1\" \"$2\" || exit 1; shift 2; n=$((n - 1)); done; exec \"$@\"";

/// The file that Debian's libpmix is, behind its links.
fn debian_libpmix() -> PathBuf {
    let link = debian_dir("pmix2", "libpmix2").join("lib/libpmix.so.2");
    fs::canonicalize(link).expect("finding Debian's libpmix")
}

/// A directory with Debian's libpmix, for ranks on nodes where ours stands in its place. It must be asked for outside of
/// such a namespace.
pub fn debians_libpmix_copied(to: &Path) -> &Path {
    fs::copy(debian_libpmix(), to.join("libpmix.so.2")).expect("copying Debian's libpmix");
    to
}

/// A port that is free for somebody who binds to it by its number, for as long as this lives.
#[derive(Debug)]
struct Port {
    number: u16,
    /// By this name the tests keep it from each other.
    _claim: UnixListener,
}

impl Port {
    fn some(count: usize) -> Vec<Port> {
        // Below those that the kernel gives to connections, and to who does not care.
        let ports: Vec<Port> = (20_000..32_000).filter_map(Port::claim).take(count).collect();
        assert_eq!(ports.len(), count, "there are not enough free ports");
        ports
    }

    fn claim(number: u16) -> Option<Port> {
        let name = SocketAddr::from_abstract_name(format!("phalanx-interop-port-{number}")).ok()?;
        let claim = UnixListener::bind_addr(&name).ok()?;
        TcpListener::bind(("0.0.0.0", number)).ok()?;
        Some(Port { number, _claim: claim })
    }
}
