//! Launches over hosts simulated on this machine, all by the same ssh: starts, ends, output, calls of clients; and the savings of a
//! running DVM.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use phalanx_cluster::{Cluster, Host, Ssh};
use phalanx_interop::{Library, bench, debian_file, mpi, px_binary};

use crate::Plan;
use crate::launcher::Launcher;
use crate::measure::{captured, median, metrics_of, milliseconds, silent};
use crate::table::{self, Row};

pub(crate) fn run(plan: &Plan) {
    println!("\nspawn loop: one ssh to each other host, side by side");
    for hosts in [2, 4, 8] {
        let site = Site::new(hosts);
        let yes = |_: Launcher| PathBuf::from("/bin/true");
        table(&format!("true over {hosts} hosts"), plan, &site, &[4, 8, 64], (&[], &yes));
        let hello = |launcher: Launcher| match launcher {
            Launcher::Hydra => mpi(Library::Mpich, "hello"),
            _ => mpi(Library::OpenMpi4, "hello"),
        };
        table(&format!("MPI hello over {hosts} hosts"), plan, &site, &[8], (&[], &hello));
        let lines = ((16 << 20) / LINE / plan.scale).to_string();
        let arguments = ["lines", lines.as_str(), "80"];
        let title = format!("each rank writes {lines} lines over {hosts} hosts");
        table(&title, plan, &site, &[16], (&arguments, &|_| bench(Library::Nothing, "stream")));
        ends(plan, &site);
        calls(plan, &site);
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

    /// All hosts, each with the same number of slots.
    fn list(&self, slots: &str) -> String {
        let names: Vec<String> =
            self.cluster.hosts().iter().map(|host| format!("{}{slots}", host.name())).collect();
        names.join(",")
    }

    fn command(&self, launcher: Launcher, ranks: u32, program: &Path, arguments: &[&str]) -> Command {
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
            // The lower limit for any launcher: one ssh to each other host, in parallel.
            Launcher::Bare => {
                let hosts = self.cluster.hosts().iter().skip(1);
                let logins: String = hosts.map(|host| format!("ssh {} true & ", host.name())).collect();
                let mut command = self.head().command("sh");
                command.args(["-c", &format!("{logins} wait")]);
                return command;
            }
            Launcher::Hydra => {
                let mut command = self.head().command(debian_file("/usr/bin/mpiexec.hydra", "mpich"));
                command.args(["-launcher", "ssh", "-hosts", &self.list(""), "-n", &ranks]);
                command
            }
        };
        command.arg(program).args(arguments);
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

/// The arguments of a program, and its path for each launcher.
type Program<'a> = (&'a [&'a str], &'a dyn Fn(Launcher) -> PathBuf);

/// The time of whole runs.
fn table(title: &str, plan: &Plan, site: &Site, sizes: &[u32], (arguments, program): Program<'_>) {
    let mut rows = Vec::new();
    for &ranks in sizes {
        let mut row = Row::new();
        rounds(plan, title, &Launcher::ALL, |launcher, counts| {
            let run = silent(site.command(launcher, ranks, &program(launcher), arguments));
            if counts && run.code == Some(0) {
                row.entry(launcher).or_default().push(milliseconds(run.took));
            }
            run.code
        });
        rows.push((format!("n={ranks}"), row));
    }
    table::print(title, "ms", &rows);
}

/// The first round does not count: it brings files into memory.
fn rounds(
    plan: &Plan,
    title: &str,
    launchers: &[Launcher],
    mut run: impl FnMut(Launcher, bool) -> Option<i32>,
) {
    for round in 0..=plan.runs {
        for launcher in launchers {
            let code = run(*launcher, round > 0);
            if code != Some(0) {
                println!("{title}: {} ended with {code:?}", launcher.name());
            }
        }
    }
}

/// From the last action of a rank to the end of its launcher.
fn ends(plan: &Plan, site: &Site) {
    let title =
        format!("from the end of 8 ranks over {} hosts to that of the launcher", site.cluster.hosts().len());
    let mut row = Row::new();
    rounds(plan, &title, &[Launcher::Px, Launcher::OpenMpi, Launcher::Hydra], |launcher, counts| {
        let program = bench(Library::Nothing, "stream");
        let run = captured(site.command(launcher, 8, &program, &["clock", "1", "0"]));
        let last =
            run.stdout.split_whitespace().filter_map(|word| word.parse::<f64>().ok()).max_by(f64::total_cmp);
        if let Some(last) = last.filter(|_| counts && run.code == Some(0)) {
            let ended = run.began / 1e3 + milliseconds(run.took);
            row.entry(launcher).or_default().push(ended - last / 1e6);
        }
        run.code
    });
    table::print(&title, "ms", &[("n=8".to_owned(), row)]);
}

/// Calls that involve the other hosts. Hydra has no PMIx.
fn calls(plan: &Plan, site: &Site) {
    let title = format!("client calls of 8 ranks over {} hosts", site.cluster.hosts().len());
    let mut rows = BTreeMap::<String, Row>::new();
    rounds(plan, &title, &[Launcher::Px, Launcher::OpenMpi], |launcher, counts| {
        let run = captured(site.command(launcher, 8, &bench(Library::Pmix4, "client_calls"), &["far"]));
        for (metric, samples) in metrics_of(&run.stdout) {
            if counts && FAR_CALLS.contains(&metric.as_str()) {
                rows.entry(metric).or_default().entry(launcher).or_default().extend(median(samples));
            }
        }
        run.code
    });
    table::print(&title, "us", &rows.into_iter().collect::<Vec<_>>());
}

/// A job in a DVM over all hosts, compared with the same in a DVM of one host.
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

/// A DVM that waits for jobs. Dropping this ends it.
struct Dvm {
    process: Child,
    name: String,
}

impl Dvm {
    fn start(site: &Site, hosts: &str) -> Dvm {
        let mut command = site.px(&["dvm", "start", "--host", hosts]);
        let process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("starting a DVM");
        let mut dvm = Dvm { process, name: String::new() };
        // It prints its name when its daemons are up, or ends.
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

const FAR_CALLS: [&str; 5] = ["fence", "fence-1KiB", "get-peer-first", "publish-lookup", "event"];
/// Bytes per line.
const LINE: u32 = 80;
