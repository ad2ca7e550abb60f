//! Repeats failed tests, alone: whether a test fails always or sometimes decides the result of the run.

use phalanx_cluster::NEEDS_ROOT;

use crate::report::{Report, Unsteady};
use crate::slowest::Slowest;
use crate::test::Binary;
use crate::test::run::{Failed, run};

/// How often a test is tried in total.
const TRIES: usize = 3;
/// With more failures than this, chance is not the reason.
const MOST: usize = 20;

/// Decides about each of the failed tests.
pub(crate) fn judge(failed: &[(&Binary, Failed)], strict: bool, report: &mut Report) {
    let mut tried = 0;
    for (binary, failed) in failed {
        let name = format!("{} {}", binary.name, failed.test);
        let missing = failed.said.lines().find_map(|line| line.split_once(NEEDS_ROOT));
        if let Some((_, why)) = missing.filter(|_| !crate::world::is_root().unwrap_or(true)) {
            report.left_out(&name, &format!("{NEEDS_ROOT}{why}"));
            continue;
        }
        let may_try = !strict && tried < MOST;
        tried += 1;
        match if may_try { passes_at(binary, &failed.test) } else { None } {
            Some(passed_at) => {
                let (command, said) = (binary.again(&failed.test), failed.said.clone());
                report.passed += 1;
                report.unsteady(Unsteady { test: name, passed_at, command, said });
            }
            None => report.failed(&name, binary.stage.name(), &binary.again(&failed.test)),
        }
    }
}

/// The try at which a failed test passes.
fn passes_at(binary: &Binary, test: &str) -> Option<usize> {
    (2..=TRIES).find(|_| match run(binary, &["--exact", test], &mut Slowest::default()) {
        Ok(ran) => ran.failed.is_empty() && ran.passed == 1,
        Err(error) => {
            eprintln!("{error:#}");
            false
        }
    })
}
