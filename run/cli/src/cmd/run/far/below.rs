//! The descendants of a job in another process's DVM, as listed by a server of ours.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use phalanx_dvm::{JobEnd, Report, names};
use phalanx_wire::Nspace;
use pmix::{Info, Tool, Value, keys};

use super::{Shared, ending, map};
use crate::render::value;

/// Called when the job has ended: reports that, waits for the end of all its descendants, and reports each end.
pub(super) fn follow(tool: &Tool, shared: &Shared, top: JobEnd) {
    let top_name = top.nspace.clone();
    let mut top = Some(top);
    let mut announced = BTreeSet::new();
    let mut ended = BTreeSet::new();
    loop {
        let family = family(tool, &top_name);
        // Announces all descendants before any of their ends: the command ends with the last that it knows.
        for (nspace, _, nohup) in &family {
            if announced.insert(nspace.clone()) {
                shared.push(Report::Spawned {
                    nspace: nspace.clone(),
                    placed: Arc::new(map::of_job(tool, nspace).unwrap_or_default()),
                    parent: Some(top_name.clone()),
                    info: vec![Info::new(keys::NOHUP, *nohup)],
                    elsewhere: false,
                });
            }
        }
        if let Some(top) = top.take() {
            shared.push(Report::Ended(Box::new(top)));
        }
        for (nspace, ..) in family.iter().filter(|(_, is_over, _)| *is_over) {
            if ended.insert(nspace.clone()) {
                let end = ending::of(tool, nspace, &[], None, shared.asked_to_end());
                shared.push(Report::Ended(Box::new(end)));
            }
        }
        let lives = family.iter().any(|(_, is_over, _)| !is_over);
        if !lives || !shared.wait_for_another_end(LOOK_AGAIN) {
            return shared.told_all();
        }
    }
}

/// The descendants of a job, whether each has ended, and whether it outlives its terminal.
fn family(tool: &Tool, top: &Nspace) -> Vec<(Nspace, bool, bool)> {
    let jobs = ending::jobs(tool).into_iter().filter_map(|about| {
        let run_by = value::find(&about, names::RUN_BY).and_then(Value::as_proc);
        let name = ending::name(&about).and_then(|name| Nspace::new(&name).ok());
        let nspace = name.filter(|nspace| nspace != top && run_by == Some(tool.proc()))?;
        let is_over = value::find(&about, names::STATE).and_then(Value::as_str) == Some("ended");
        let nohup = value::find(&about, keys::NOHUP).is_some_and(Value::is_true);
        Some((nspace, is_over, nohup))
    });
    jobs.collect()
}

/// Ends are reported by events; this is for an event that was missed.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
