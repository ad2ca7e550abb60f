//! Launches over hosts that are made on this machine, all by the same ssh; and what a DVM that stands already saves.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use phalanx_cluster::{Cluster, Host, Ssh};
use phalanx_interop::{Library, debian_file, mpi, px_binary};

use crate::Plan;
use crate::launcher::Launcher;
use crate::measure::{median, milliseconds, silent};
use crate::table::{self, Row};

pub(crate) fn run(plan: &Plan) {
    for hosts in [2, 4, 8] {
        let site = Site::new(hosts);
        let yes = |_| PathBuf::from("/bin/true");
        table(&format!("true over {hosts} hosts"), plan, &site, &[4, 8, 64], yes);
        let hello = |launcher| match launcher {
            Launcher::Hydra => mpi(Library::Mpich, "hello"),
            _ => mpi(Library::OpenMpi4, "hello"),
        };
        table(&format!("MPI hello over {hosts} hosts"), plan, &site, &[8], hello);
        standing(plan, &site);
    }
}

struct Site {
    cluster: Cluster,
    _ssh: Ssh,
}

impl Site {
    fn new(hosts: usize) -> Site {
        let cluster = Cluster::start(hosts).expect("a cluster");
        let ssh = Ssh::start(&cluster).expect("sshds");
        Site { cluster, _ssh: ssh }
    }

    fn head(&self) -> &Host {
        self.cluster.host(1)
    }

    /// All hosts with so many slots.
    fn list(&self, slots: &str) -> String {
        let names: Vec<String> =
            self.cluster.hosts().iter().map(|host| format!("{}{slots}", host.name())).collect();
        names.join(",")
    }

    fn command(&self, launcher: Launcher, ranks: u32, program: &Path) -> Command {
        let ranks = ranks.to_string();
        let mut command = match launcher {
            Launcher::Px => {
                let list = self.list(":64");
                self.px(&["run", "--quiet", "--host", &list, "--map-by", "node", "-n", &ranks])
            }
            Launcher::OpenMpi => {
                let mut command = self.head().command(debian_file("/usr/bin/mpirun.openmpi", "openmpi-bin"));
                let list = self.list(":64");
                command.args(["--host", &list, "--map-by", "node", "--bind-to", "none", "-n", &ranks]);
                command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
                command
            }
            Launcher::Hydra | Launcher::Bare => {
                let mut command = self.head().command(debian_file("/usr/bin/mpiexec.hydra", "mpich"));
                command.args(["-launcher", "ssh", "-hosts", &self.list(""), "-n", &ranks]);
                command
            }
        };
        command.arg(program);
        command.envs([
            ("OMPI_MCA_pml", "ob1"),
            ("OMPI_MCA_btl", "self,vader,tcp"),
            ("OMPI_MCA_btl_vader_backing_directory", "/dev/shm"),
        ]);
        command
    }

    fn px(&self, words: &[&str]) -> Command {
        let mut command = self.head().command(px_binary());
        command.args(words);
        command
    }
}

fn table(title: &str, plan: &Plan, site: &Site, sizes: &[u32], program: impl Fn(Launcher) -> PathBuf) {
    let launchers = [Launcher::Px, Launcher::OpenMpi, Launcher::Hydra];
    let mut rows = Vec::new();
    for &ranks in sizes {
        let mut row: Row = launchers.iter().map(|launcher| (*launcher, Vec::new())).collect();
        // One round before those that count: files come into memory.
        for round in 0..=plan.runs {
            for launcher in launchers {
                let run = silent(site.command(launcher, ranks, &program(launcher)));
                if run.code == Some(0) && round > 0 {
                    row.entry(launcher).or_default().push(milliseconds(run.took));
                } else if run.code != Some(0) {
                    println!("{title}, n={ranks}: {} ended with {:?}", launcher.name(), run.code);
                }
            }
        }
        rows.push((format!("n={ranks}"), row));
    }
    table::print(title, "ms", &rows);
}

/// A job in a DVM over all hosts beside the same in a DVM of one host.
fn standing(plan: &Plan, site: &Site) {
    let (many, one) = (Dvm::start(site, &site.list(":64")), Dvm::start(site, "n1:64"));
    let mut took = [Vec::new(), Vec::new()];
    for round in 0..=plan.runs {
        for (dvm, samples) in [&many, &one].into_iter().zip(&mut took) {
            let words = ["run", "--quiet", "--nspace", &dvm.name, "--map-by", "node", "-n", "8", "/bin/true"];
            let run = silent(site.px(&words));
            if run.code == Some(0) && round > 0 {
                samples.push(milliseconds(run.took));
            }
        }
    }
    let [many, one] = took.map(|samples| median(samples).unwrap_or(f64::NAN));
    println!(
        "\ntrue with 8 ranks in a standing DVM over {} hosts: {many:.1} ms, of one host: {one:.1} ms, ratio {:.2}",
        site.cluster.hosts().len(),
        many / one
    );
}

/// A DVM that waits for jobs. It is ended when this is dropped.
struct Dvm {
    process: Child,
    name: String,
}

impl Dvm {
    fn start(site: &Site, hosts: &str) -> Dvm {
        let mut command = site.px(&["dvm", "start", "--host", hosts]);
        let process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("starting a DVM");
        let mut dvm = Dvm { process, name: String::new() };
        // It says its name when its daemons are there, or ends.
        let mut line = String::new();
        let pipe = dvm.process.stdout.take().expect("a pipe");
        BufReader::new(pipe).read_line(&mut line).expect("reading what it says");
        dvm.name = line.split_whitespace().next().expect("the DVM is ready").to_owned();
        dvm
    }
}

impl Drop for Dvm {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
