//! Session control: actions on the whole session. A DVM is one session; its number is 0.

use phalanx_core::HostReply;
use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::session::SessionControl;
use phalanx_wire::{Info, ProcId};

use crate::msg::{Control, ControlRequest, Members};
use crate::root::answer::{Answer, Asker};
use crate::root::consequence::Consequence;
use crate::root::dvm::Dvm;
use crate::root::lifecycle::SESSION;
use crate::root::permission;
use crate::root::turn::Cx;
use crate::signals::SIGTERM;

pub(crate) const ATTRIBUTES: &[&str] =
    &[keys::SESSION_PAUSE, keys::SESSION_RESUME, keys::SESSION_SIGNAL, keys::SESSION_TERMINATE];

/// An action on every job of the session. Answered when all daemons have carried it out.
pub(super) fn control(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    answer: Answer,
    from: &ProcId,
    request: &SessionControl,
) -> Vec<Consequence> {
    if ![SESSION, ALL].contains(&request.session) {
        answer.done(cx, Status::ERR_NOT_FOUND);
        return Vec::new();
    }
    let actions = match actions(&request.directives) {
        Ok(actions) => actions,
        Err(status) => {
            answer.done(cx, status);
            return Vec::new();
        }
    };
    if !permission::may_steer_all(dvm, from) {
        answer.done(cx, Status::ERR_NO_PERMISSIONS);
        return Vec::new();
    }
    if actions.iter().any(|action| matches!(action, Control::Terminate { .. })) {
        answer.give(cx, HostReply::Infos(Status::SUCCESS, Vec::new()));
        return vec![Consequence::Shutdown { by: from.clone() }];
    }
    let jobs = dvm.jobs.values().map(|job| &job.desc);
    let members: Vec<Members> =
        jobs.map(|desc| Members { nspace: desc.nspace.clone(), ranks: desc.ranks() }).collect();
    let asker = Asker { by: from.clone(), id: None, answer };
    let request = ControlRequest::of(actions);
    vec![Consequence::Control { asker, members, request }]
}

/// The actions, in the order in which they were given.
fn actions(directives: &[Info]) -> Result<Vec<Control>, Status> {
    let mut actions = Vec::new();
    for Info { key, value, .. } in directives {
        match key.as_str() {
            keys::SESSION_PAUSE if value.is_true() => actions.push(Control::Suspend),
            keys::SESSION_RESUME if value.is_true() => actions.push(Control::Resume),
            keys::SESSION_TERMINATE if value.is_true() => {
                actions.push(Control::Terminate { signal: SIGTERM })
            }
            keys::SESSION_SIGNAL => actions.push(Control::signal(value)?),
            _ => {}
        }
    }
    if actions.is_empty() { Err(Status::ERR_NOT_SUPPORTED) } else { Ok(actions) }
}

/// Every session of the caller.
const ALL: u32 = u32::MAX;
