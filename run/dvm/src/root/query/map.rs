//! Where the ranks of a job are, or would be.

use phalanx_wire::{App, DataArray, Info, InfoList, Value};

use super::inquiry::{Inquiry, nspace};
use super::names;
use super::view::view;
use crate::report::Placed;
use crate::root::dvm::Dvm;
use crate::root::placing;
use crate::root::spawn;
use crate::root::spawn::STILL_STARTING;

/// The map of a running or ended job, or of one that is not started. An error is for the user; `None`: there is no such
/// job.
pub(super) fn map(dvm: &Dvm, asked: &Inquiry<'_>, qualifiers: &[Info]) -> Option<Result<Placed, String>> {
    if let Some(apps) = qualifiers.find(names::SPAWN_APPS) {
        return Some(map_of_wish(dvm, asked, qualifiers, apps));
    }
    let nspace = nspace(qualifiers).unwrap_or_else(|| asked.from.nspace.clone());
    let premises = view(dvm, &nspace, None)?.journal().premises()?;
    Some(placing::place_again(dvm, premises))
}

fn map_of_wish(dvm: &Dvm, asked: &Inquiry<'_>, qualifiers: &[Info], apps: &Value) -> Result<Placed, String> {
    if !dvm.nodes.are_up() {
        return Err(STILL_STARTING.to_owned());
    }
    let job = qualifiers.find(names::SPAWN_JOB).and_then(Value::as_array);
    let job: Vec<Info> = job.into_iter().flat_map(DataArray::infos).cloned().collect();
    let programs = apps.as_array().into_iter().flat_map(|array| &array.items);
    let programs = programs.filter_map(|item| match item {
        Value::App(app) => Some(App::clone(app)),
        _ => None,
    });
    let apps: Vec<App> = programs.collect();
    let request = spawn::to_request(dvm, asked.from, &job, &apps).map_err(|unfit| unfit.why)?;
    placing::place(dvm, &request).map(|(placed, _)| placed)
}
