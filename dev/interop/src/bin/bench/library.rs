//! Our `libpmix.so.2` compared with Debian's 4.2, with ranks and server on each in turn.
//!
//! All columns run the same binaries; they differ in the library that the ranks load, and in the server: `px`, or
//! Debian's `mpirun` on its own library or on ours. A ratio is how many times less time the left one of two takes. The aims
//! are for the whole: our ranks and server compared with theirs.
//!
//! `init` and `finalize` are what a rank of a program sees. With more ranks than CPUs that is mostly other ranks that begin and
//! end, all at once with one launcher and one by one with another; `-together` excludes that.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use phalanx_interop::{Library, bench, debian_dir, debian_file, libpmix, new_directory};

use crate::Plan;
use crate::launcher::Launcher;
use crate::measure::{captured, median, metrics_of};

/// The library that a process loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Ours,
    Theirs,
}

/// The server of the ranks, and the library that it loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Server {
    Px,
    Mpirun(Side),
}

type Column = (Server, Side);

const COLUMNS: [Column; 6] = [
    (Server::Px, Side::Ours),
    (Server::Px, Side::Theirs),
    (Server::Mpirun(Side::Theirs), Side::Ours),
    (Server::Mpirun(Side::Theirs), Side::Theirs),
    (Server::Mpirun(Side::Ours), Side::Ours),
    (Server::Mpirun(Side::Ours), Side::Theirs),
];

/// Ratios: of the ranks' libraries under one server, then of the whole.
const RATIOS: [(&str, Column, Column); 4] = [
    ("on px", (Server::Px, Side::Ours), (Server::Px, Side::Theirs)),
    ("on mpirun", (Server::Mpirun(Side::Theirs), Side::Ours), (Server::Mpirun(Side::Theirs), Side::Theirs)),
    ("server", (Server::Mpirun(Side::Ours), Side::Theirs), (Server::Mpirun(Side::Theirs), Side::Theirs)),
    WHOLE,
];

const WHOLE: (&str, Column, Column) =
    ("whole", (Server::Px, Side::Ours), (Server::Mpirun(Side::Theirs), Side::Theirs));

struct Metric {
    name: &'static str,
    unit: &'static str,
    /// The aim: how many times less than theirs.
    aim: Option<f64>,
}

const METRICS: [Metric; 22] = [
    metric("init", "us", Some(5.0)),
    metric("init-together", "us", Some(5.0)),
    metric("init-cpu", "us", None),
    metric("finalize", "us", Some(5.0)),
    metric("finalize-together", "us", Some(5.0)),
    metric("finalize-cpu", "us", None),
    metric("get-own-first", "us", None),
    metric("get-own", "us", Some(50.0)),
    metric("get-job-first", "us", None),
    metric("get-job", "us", Some(50.0)),
    metric("get-peer-first", "us", None),
    metric("get-peer", "us", Some(50.0)),
    metric("put-commit", "us", None),
    metric("fence", "us", Some(2.0)),
    metric("fence-cpu", "us", None),
    metric("fence-1KiB", "us", Some(2.0)),
    metric("publish-lookup", "us", None),
    metric("event", "us", None),
    metric("private-init", "KiB", Some(4.0)),
    metric("private-fence", "KiB", Some(4.0)),
    metric("anonymous-init", "KiB", None),
    metric("anonymous-fence", "KiB", None),
];

const fn metric(name: &'static str, unit: &'static str, aim: Option<f64>) -> Metric {
    Metric { name, unit, aim }
}

pub(crate) fn run(plan: &Plan) {
    let programs = ["client_calls", "client_starts"].map(|name| bench(Library::Pmix4, name));
    sizes_of_files();
    for &ranks in plan.sizes.iter().filter(|&&ranks| ranks <= MOST_RANKS) {
        let mut samples: BTreeMap<(&str, Column), Vec<f64>> = BTreeMap::new();
        for round in 0..=plan.runs {
            for (column, program) in
                COLUMNS.iter().flat_map(|column| programs.iter().map(move |it| (*column, it)))
            {
                let run = captured(command(column, ranks, program));
                if run.code != Some(0) {
                    println!("n={ranks}, {}: {} ended with {:?}", title(column), program.display(), run.code);
                    continue;
                }
                for (name, values) in metrics_of(&run.stdout) {
                    // The first round does not count: it brings files into memory.
                    let metric = METRICS.iter().find(|metric| metric.name == name).filter(|_| round > 0);
                    if let (Some(metric), Some(value)) = (metric, median(values)) {
                        samples.entry((metric.name, column)).or_default().push(value);
                    }
                }
            }
        }
        print(ranks, &samples);
    }
}

fn print(ranks: u32, samples: &BTreeMap<(&str, Column), Vec<f64>>) {
    println!("\nn={ranks}: medians by server + ranks, and how many times less ours take");
    print!("{:<20}", "");
    COLUMNS.iter().for_each(|column| print!("{:>20}", title(*column)));
    RATIOS.iter().for_each(|(name, ..)| print!("{name:>11}"));
    println!("{:>6}  reached", "aim");
    for metric in &METRICS {
        let of = |column: Column| samples.get(&(metric.name, column)).cloned().and_then(median);
        let ratio = |(_, ours, theirs): (&str, Column, Column)| Some(of(theirs)? / of(ours)?);
        print!("{:<20}", format!("{} {}", metric.name, metric.unit));
        COLUMNS.iter().for_each(|column| print!("{:>20}", shown(of(*column))));
        RATIOS.iter().for_each(|&pair| print!("{:>11}", shown(ratio(pair))));
        match (metric.aim, ratio(WHOLE)) {
            (Some(aim), Some(reached)) => {
                println!("{aim:>6}  {}", if reached >= aim { "yes" } else { "no" });
            }
            _ => println!(),
        }
    }
}

/// Sizes without the sections that only debuggers and linkers read.
fn sizes_of_files() {
    let directory = new_directory();
    let size = |name: &str, library: PathBuf| {
        let stripped = directory.path().join(name);
        let mut strip = Command::new(debian_file("/usr/bin/strip", "binutils"));
        let done = strip.args(["--strip-unneeded", "-o"]).arg(&stripped).arg(&library).status();
        assert!(done.is_ok_and(|status| status.success()), "stripping {} failed", library.display());
        std::fs::metadata(stripped).expect("the stripped library").len() / 1024
    };
    let ours = size("ours", libpmix().join("libpmix.so.2"));
    let theirs = size("theirs", debian_dir("pmix2", "libpmix-dev").join("lib/libpmix.so.2"));
    println!("\nsize of the library, stripped: ours {ours} KiB, theirs {theirs} KiB");
}

fn command((server, ranks): Column, count: u32, program: &Path) -> Command {
    let library = format!("LD_LIBRARY_PATH={}", directory(ranks).display());
    let size = count.to_string();
    match server {
        Server::Px => {
            let mut command = Launcher::Px.command(count, program, &[size.as_ref()]);
            command.env("LD_LIBRARY_PATH", directory(ranks));
            command
        }
        Server::Mpirun(side) => {
            let env = debian_file("/usr/bin/env", "coreutils");
            let arguments = [library.as_ref(), program.as_os_str(), size.as_ref()];
            let mut command = Launcher::OpenMpi.command(count, env, &arguments);
            command.env("LD_LIBRARY_PATH", directory(side));
            command
        }
    }
}

fn directory(side: Side) -> PathBuf {
    match side {
        Side::Ours => libpmix().to_owned(),
        Side::Theirs => debian_dir("pmix2", "libpmix-dev").join("lib"),
    }
}

fn title((server, ranks): Column) -> String {
    let server = match server {
        Server::Px => "px",
        Server::Mpirun(Side::Theirs) => "mpirun",
        Server::Mpirun(Side::Ours) => "mpirun@ours",
    };
    format!("{server}+{}", if ranks == Side::Ours { "ours" } else { "theirs" })
}

/// Three significant digits.
fn shown(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value < 10.0 => format!("{value:.2}"),
        Some(value) if value < 100.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
}

/// With more ranks than this Debian's launcher usually hangs.
const MOST_RANKS: u32 = 64;
