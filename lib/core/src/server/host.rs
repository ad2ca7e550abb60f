//! Requests to the host, and what their answers are for.
//!
//! Every upcall has a row with the request that waits for it; a second answer, or an unrequested one, finds no row and is ignored. `answers` handles
//! the answers. If the asker has gone meanwhile, the answer is still used (data is stored, registrations end).

use std::collections::BTreeMap;

use phalanx_spec::Status;
use phalanx_wire::{Info, InfoFlags, Key, Nspace, ProcId, Text};
use tracing::error;

use super::own::OWN;
use super::peer::Asker;
use crate::explain::Waiting;
use crate::host::HostOp;
use crate::machine::{ConnId, HostCall, Time};
use crate::right::Rights;
use crate::support::{self, Honoured};

#[derive(Debug)]
pub(super) struct Upcalls {
    functions: &'static [Honoured],
    /// By number.
    open: BTreeMap<u64, Open>,
    last: u64,
    rights: Rights<u64>,
}

#[derive(Debug)]
struct Open {
    operation: &'static str,
    subject: String,
    asked_by: Option<ProcId>,
    since: Time,
    then: Then,
}

/// What the answer is for.
#[derive(Debug)]
pub(super) enum Then {
    Nothing,
    /// A status.
    Answer(Asker),
    /// A status and infos.
    AnswerInfos(Asker),
    /// `unless_known`: the answer if the host does not support monitoring.
    AnswerCancel {
        to: Asker,
        unless_known: Status,
    },
    AnswerCredential(Asker),
    AnswerLookup(Asker),
    /// `wishes`: the directives for the form of the output.
    AnswerPull {
        to: Asker,
        handle: u64,
        wishes: Vec<Info>,
    },
    AnswerPush {
        to: Asker,
        bytes: usize,
    },
    AnswerStop {
        to: Asker,
        handle: u64,
    },
    /// `order`: the keys of the request.
    AnswerQuery {
        to: Asker,
        order: Vec<Text>,
        known: Vec<Info>,
        spare: Vec<Info>,
    },
    AnswerSpawn {
        to: Asker,
        dressed: bool,
    },
    AdmitClients(ProcId),
    AdmitTool(ConnId),
    /// `is_watched`: the members want to be notified when one of them ends.
    Assembled {
        to: Asker,
        id: String,
        is_watched: bool,
    },
    Collective(u64),
    DirectModex(ProcId, Option<Key>),
    Finalize(Asker),
    Lost(ProcId),
    /// Whether the host ends the collective that timed out.
    Overdue(u64),
    RegisterEvents(Asker),
}

impl Upcalls {
    /// `functions`: what this server honours itself; the host is informed which required directives need nothing more from
    /// it.
    pub(super) fn new(functions: &'static [Honoured]) -> Upcalls {
        Upcalls { functions, open: BTreeMap::new(), last: 0, rights: Rights::default() }
    }

    pub(super) fn open(
        &mut self,
        now: Time,
        asked_by: Option<&ProcId>,
        mut op: HostOp,
        then: Then,
    ) -> (HostCall, HostOp) {
        self.mark_honoured(&mut op);
        self.last += 1;
        let (operation, subject) = (op.operation(), op.subject());
        let asked_by = asked_by.cloned();
        self.open.insert(self.last, Open { operation, subject, asked_by, since: now, then });
        (HostCall::noticed_by(&self.rights, self.last), op)
    }

    /// The number of the upcall that a collective waits for.
    pub(super) fn of_collective(&self, id: u64) -> Option<u64> {
        let is_its = |open: &Open| matches!(open.then, Then::Collective(of) if of == id);
        self.open.iter().find(|(_, open)| is_its(open)).map(|(number, _)| *number)
    }

    /// The host answers; `None` if no request waits for that.
    pub(super) fn close(&mut self, call: HostCall) -> Option<Then> {
        self.open.remove(&call.use_up()).map(|open| open.then)
    }

    /// The next request that waits for an answer to which the host has dropped the right.
    pub(super) fn next_dropped(&mut self) -> Option<Then> {
        let open =
            std::iter::from_fn(|| self.rights.next_dropped()).find_map(|call| self.open.remove(&call))?;
        let Open { operation, subject, asked_by, then, .. } = open;
        debug_assert!(false, "the host did not answer {operation} of {asked_by:?}: {subject}");
        error!(operation, subject, ?asked_by, "the host has dropped a request, a defect: refused");
        Some(then)
    }

    /// A job is over: its processes do not wait for the host any more.
    pub(super) fn close_those_for(&mut self, nspace: &Nspace) -> Vec<Then> {
        let over = self.open.extract_if(.., |_, open| open.is_for_any_of(nspace));
        over.map(|(_, open)| open.then).collect()
    }

    fn mark_honoured(&self, op: &mut HostOp) {
        let Some(honoured) = op.function().and_then(|function| support::honoured(self.functions, function))
        else {
            return;
        };
        let honoured: Vec<&str> = honoured.collect();
        for directive in op.directives_mut() {
            if directive.is_required() && honoured.contains(&directive.key.as_str()) {
                directive.flags |= InfoFlags::REQUIRED_PROCESSED;
            }
        }
    }

    /// Requests that wait for the host; collectives and gets explain themselves.
    pub(super) fn explain(&self, waiting: &mut Vec<Waiting>) {
        for open in self.open.values() {
            if matches!(
                open.then,
                Then::Nothing
                    | Then::Lost(_)
                    | Then::Collective(_)
                    | Then::Overdue(_)
                    | Then::DirectModex(..)
            ) {
                continue;
            }
            waiting.push(Waiting {
                operation: open.operation.into(),
                subject: open.subject.clone(),
                asked_by: open.asked_by.iter().cloned().collect(),
                missing: Vec::new(),
                since: open.since,
                deadline: None,
                unblocked_by: Waiting::HOSTS_ANSWER.into(),
            });
        }
    }

    pub(super) fn wait_for_any_of(&self, nspace: &Nspace) -> bool {
        self.open.values().any(|open| open.is_for_any_of(nspace))
    }
}

impl Open {
    /// Whether the answer serves only a process of this job.
    fn is_for_any_of(&self, nspace: &Nspace) -> bool {
        match &self.then {
            Then::Answer(to)
            | Then::AnswerInfos(to)
            | Then::AnswerCredential(to)
            | Then::AnswerLookup(to)
            | Then::AnswerQuery { to, .. } => to.conn != OWN && to.proc.nspace == *nspace,
            _ => false,
        }
    }
}

#[cfg(test)]
impl Upcalls {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

/// The status for an answer of the wrong kind: success would promise data that is missing.
pub(super) fn as_failure(status: Status) -> Status {
    if status.is_success() { Status::ERR_SERVER_FAILED_REQUEST } else { status }
}
