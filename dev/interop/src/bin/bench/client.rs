//! The cost of an unmodified libpmix 4.2 client's calls under each PMIx server.
//!
//! With more ranks than CPUs, the time of one call depends on how many others run at the same moment, so on how
//! early a launcher has started them all. `init-all` does not: it is the time from the start of the launcher until the last rank has left
//! PMIx_Init. No server can go below the processor time of a rank (`-cpu`), times ranks, divided by CPUs.

use std::collections::BTreeMap;

use phalanx_interop::{Library, bench};

use crate::Plan;
use crate::launcher::Launcher;
use crate::measure::{captured, median, metrics_of};
use crate::table::{self, Row};

pub(crate) fn run(plan: &Plan) {
    let program = bench(Library::Pmix4, "client_calls");
    for &ranks in &plan.sizes {
        let mut metrics: BTreeMap<String, Row> = BTreeMap::new();
        for round in 0..=plan.runs {
            for launcher in [Launcher::Px, Launcher::OpenMpi] {
                let run = captured(launcher.command(ranks, &program, &[]));
                if run.code != Some(0) {
                    println!("client, n={ranks}: {} ended with {:?}", launcher.name(), run.code);
                    continue;
                }
                let mut of_ranks = metrics_of(&run.stdout);
                let last =
                    of_ranks.remove("init-left").unwrap_or_default().into_iter().max_by(f64::total_cmp);
                of_ranks.insert("init-all".to_owned(), last.map(|at| at - run.began).into_iter().collect());
                for (metric, samples) in of_ranks {
                    let row = metrics.entry(metric).or_default();
                    if round > 0 {
                        row.entry(launcher).or_default().extend(median(samples));
                    }
                }
            }
        }
        table::print(&format!("client calls, n={ranks}"), "us", &metrics.into_iter().collect::<Vec<_>>());
    }
}
