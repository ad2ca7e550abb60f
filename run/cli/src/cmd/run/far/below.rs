//! The jobs that a job elsewhere has started: a server of ours says which they are.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use phalanx_dvm::{Placed, Report, names};
use phalanx_wire::Nspace;
use pmix::{Tool, Value};

use super::{Shared, ending};
use crate::render::value;

/// When `top` has ended: waits for the end of all jobs that descend from it, and tells of each.
pub(super) fn follow(tool: &Tool, shared: &Shared, top: &Nspace) {
    let mut announced = BTreeSet::new();
    let mut ended = BTreeSet::new();
    loop {
        let mut living = 0;
        for about in ending::jobs(tool) {
            let run_by = value::find(&about, names::RUN_BY).and_then(Value::as_proc);
            let name = ending::name(&about).and_then(|name| Nspace::new(&name).ok());
            let (Some(nspace), true) = (name, run_by == Some(tool.proc())) else { continue };
            if nspace == *top || ended.contains(&nspace) {
                continue;
            }
            if announced.insert(nspace.clone()) {
                shared.push(Report::Spawned {
                    nspace: nspace.clone(),
                    placed: Arc::new(Placed::default()),
                    parent: Some(top.clone()),
                    info: Vec::new(),
                    elsewhere: false,
                });
            }
            match value::find(&about, names::STATE).and_then(Value::as_str) {
                Some("ended") => {
                    let end = ending::of(tool, &nspace, &[], None, None);
                    ended.insert(nspace);
                    shared.push(Report::Ended(Box::new(end)));
                }
                _ => living += 1,
            }
        }
        if living == 0 || !shared.wait_for_another_end(LOOK_AGAIN) {
            return;
        }
    }
}

/// Ends are told by events; this is for one that was missed.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
