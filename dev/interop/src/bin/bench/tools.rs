//! The cost of a tool's calls: our library and Debian's, at `px run` and at the launcher of Open MPI 5, in all combinations.
//!
//! The same binary attaches by the server's pid, queries the jobs, spawns three programs, and leaves.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use phalanx_interop::{Job, Library, Running, bench, debian_dir, eventually, host, libpmix, px, wheel};
use rustix::process::Signal;

use crate::Plan;
use crate::measure::{captured, median, metrics_of};

const METRICS: [&str; 4] = ["attach", "query", "spawn", "leave"];
/// The tool's library, and the server.
const COLUMNS: [&str; 4] = ["ours at px", "theirs at px", "ours at prterun", "theirs at prterun"];

pub(crate) fn run(plan: &Plan) {
    let program = bench(Library::Pmix4, "tool_calls");
    let ours = px(["-n", "1", "sleep", "100000"]).deadline(100_000).start();
    let theirs = Job::new(wheel().root.join("bin/mpirun"))
        .args(["--allow-run-as-root", "-n", "1", "--map-by", ":OVERSUBSCRIBE", "sleep", "100000"])
        .with(Library::OpenMpi5)
        .deadline(100_000)
        .start();
    let libraries: [PathBuf; 2] = [libpmix().to_owned(), debian_dir("pmix2", "libpmix-dev").join("lib")];
    [&ours, &theirs].into_iter().for_each(wait_for);
    let mut samples: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for round in 0..=plan.runs {
        for (column, (server, library)) in COLUMNS.iter().zip(
            [&ours, &theirs]
                .into_iter()
                .flat_map(|server| libraries.iter().map(move |library| (server, library))),
        ) {
            let mut command = Command::new(&program);
            command.arg(server.pid().to_string());
            command.env("TMPDIR", server.tmpdir()).env("LD_LIBRARY_PATH", library);
            let run = captured(command);
            // PRRTE closes connections of tools that follow others closely.
            thread::sleep(BETWEEN);
            if run.code != Some(0) {
                println!("tools, {column}: ended with {:?}", run.code);
                continue;
            }
            let mut of_run = metrics_of(&run.stdout);
            for metric in METRICS {
                // The first round does not count: it brings files into memory.
                let values = of_run.remove(metric).filter(|_| round > 0).unwrap_or_default();
                samples.entry((metric, column)).or_default().extend(median(values));
            }
        }
    }
    print(&samples);
    for server in [ours, theirs] {
        server.signal(Signal::TERM);
        let _ = server.wait();
    }
}

fn wait_for(server: &Running) {
    let name = format!("pmix.{}.tool.{}", host(), server.pid());
    eventually("tools can find the server", || {
        let sessions = std::fs::read_dir(server.tmpdir()).into_iter().flatten().flatten();
        sessions.map(|session| session.path().join(&name)).any(|file| file.exists())
    });
}

fn print(samples: &BTreeMap<(&str, &str), Vec<f64>>) {
    println!("\ncalls of a tool, median us; how many times less ours at px take than theirs at prterun");
    print!("{:<10}", "");
    COLUMNS.iter().for_each(|column| print!("{column:>20}"));
    println!("{:>10}", "ratio");
    for metric in METRICS {
        let of = |column: &str| {
            let found = samples.iter().find(|((name, at), _)| *name == metric && *at == column);
            found.and_then(|(_, values)| median(values.clone()))
        };
        print!("{metric:<10}");
        COLUMNS.iter().for_each(|column| {
            print!("{:>20}", of(column).map_or("-".to_owned(), |value| format!("{value:.0}")));
        });
        let ratio = of(COLUMNS[0]).zip(of(COLUMNS[3])).map(|(ours, theirs)| theirs / ours);
        println!("{:>10}", ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.1}")));
    }
}

const BETWEEN: Duration = Duration::from_millis(300);
