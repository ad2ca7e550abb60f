//! Tests that have failed are run again, alone: whether a test fails always or now and then decides what becomes of the run.

use anyhow::Result;
use phalanx_cluster::NEEDS_ROOT;

use crate::report::{Report, Unsteady};
use crate::slowest::Slowest;
use crate::test::Binary;
use crate::test::run::{Failed, run};

/// How often a test is tried in all.
const TRIES: usize = 3;
/// Where so many have failed, chance is not the reason.
const MOST: usize = 20;

/// Decides on each of the tests that have failed.
pub(crate) fn judge(failed: &[(&Binary, Failed)], strict: bool, report: &mut Report) -> Result<()> {
    for (number, (binary, failed)) in failed.iter().enumerate() {
        let name = format!("{} {}", binary.name, failed.test);
        let missing = failed.said.lines().find_map(|line| line.split_once(NEEDS_ROOT));
        if let Some((_, why)) = missing.filter(|_| !crate::world::is_root().unwrap_or(true)) {
            report.left_out(&name, &format!("{NEEDS_ROOT}{why}"));
            continue;
        }
        let may_try = !strict && number < MOST;
        match if may_try { passes_at(binary, &failed.test)? } else { None } {
            Some(passed_at) => {
                let (command, said) = (binary.again(&failed.test), failed.said.clone());
                report.passed += 1;
                report.unsteady(Unsteady { test: name, passed_at, command, said });
            }
            None => report.failed(&name, binary.stage.name(), &binary.again(&failed.test)),
        }
    }
    Ok(())
}

/// The try at which a test that has failed once passes.
fn passes_at(binary: &Binary, test: &str) -> Result<Option<usize>> {
    for number in 2..=TRIES {
        let ran = run(binary, &["--exact", test], &mut Slowest::default())?;
        if ran.failed.is_empty() && ran.passed == 1 {
            return Ok(Some(number));
        }
    }
    Ok(None)
}
