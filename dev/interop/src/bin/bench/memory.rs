//! The largest resident size of the launchers while ranks run: the launcher and its helpers, without the ranks.

use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use phalanx_interop::{Library, bench, children_of, rss_kib};

use crate::Plan;
use crate::launcher::Launcher;
use crate::table::{self, Row};

pub(crate) fn run(plan: &Plan) {
    let program = bench(Library::Pmix4, "client_calls");
    let mut rows = Vec::new();
    for &ranks in &plan.sizes {
        let mut row = Row::new();
        for _ in 0..plan.runs.min(3) {
            for launcher in [Launcher::Px, Launcher::OpenMpi] {
                row.entry(launcher).or_default().push(peak(launcher, ranks, &program));
            }
            row.entry(Launcher::Hydra).or_default().push(peak(
                Launcher::Hydra,
                ranks,
                Path::new("/bin/true"),
            ));
        }
        rows.push((format!("n={ranks}"), row));
    }
    table::print("peak memory of the launcher (hydra: without any PMI client)", "KiB", &rows);
}

fn peak(launcher: Launcher, ranks: u32, program: &Path) -> f64 {
    let mut command = launcher.command(ranks, program, &[]);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("starting {command:?}: {error}"));
    let mut peak = 0;
    while child.try_wait().expect("waiting for the launcher").is_none() {
        let own = rss_kib(child.id()).map_or(0, |(_, largest)| largest);
        let helpers: u64 = children_of(child.id())
            .into_iter()
            .filter(|&pid| is_helper(pid))
            .filter_map(|pid| rss_kib(pid).map(|(_, largest)| largest))
            .sum();
        peak = peak.max(own + helpers);
        thread::sleep(Duration::from_millis(2));
    }
    peak as f64
}

/// The current size of a launcher and its helpers, in KiB.
pub(crate) fn resident(launcher: u32) -> u64 {
    let helpers = children_of(launcher).into_iter().filter(|&pid| is_helper(pid));
    helpers.chain([launcher]).filter_map(|pid| rss_kib(pid).map(|(now, _)| now)).sum()
}

/// A process that belongs to the launcher and is not a rank.
fn is_helper(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("hydra_"))
}
