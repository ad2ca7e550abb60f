//! Many gets outstanding at once, of keys not committed yet: the cost of one must not grow with their number.

use std::collections::BTreeMap;

use phalanx_interop::{Library, bench};

use crate::Plan;
use crate::launcher::Launcher;
use crate::measure::{captured, metrics_of};
use crate::table::{self, Row};

const COUNTS: [u32; 3] = [1_000, 4_000, 16_000];

pub(crate) fn run(plan: &Plan) {
    let program = bench(Library::Pmix4, "outstanding_gets");
    let mut metrics: BTreeMap<u32, Row> = BTreeMap::new();
    for _ in 0..plan.runs {
        for count in COUNTS {
            for launcher in [Launcher::Px, Launcher::OpenMpi] {
                let run = captured(launcher.command(2, &program, &[count.to_string().as_ref()]));
                let samples = metrics.entry(count).or_default().entry(launcher).or_default();
                match run.code {
                    Some(0) => samples.extend(metrics_of(&run.stdout).into_values().flatten()),
                    code => println!("{count} gets: {} ended with {code:?}", launcher.name()),
                }
            }
        }
    }
    let rows: Vec<(String, Row)> =
        metrics.into_iter().map(|(count, row)| (format!("{count} gets"), row)).collect();
    table::print("outstanding gets of libpmix 4.2", "us", &rows);
}
