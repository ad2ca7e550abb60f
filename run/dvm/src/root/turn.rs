//! One turn of the root: its time, and the actions that it takes.

use std::collections::VecDeque;

use phalanx_core::Time;
use phalanx_wire::Nspace;

use crate::id::Landing;
use crate::msg::{Down, OpId};
use crate::ranges::Ranges;
use crate::report::Report;

/// An action to take; actions are carried out in order.
#[derive(Debug)]
pub(crate) enum FromRoot {
    Cast(Ranges, Down),
    /// Wait for the parts of these daemons, even if none is left to create the operation by sending its part.
    Await(OpId, Ranges),
    Taken(Landing),
    /// This output will be held for long: its link may be used for other output meanwhile.
    Lend(Landing),
    /// Report to the daemons what was taken, soon or at once.
    TellTaken {
        at_once: bool,
    },
    Report(Report),
    StdinCredit {
        nspace: Nspace,
        bytes: usize,
    },
    StdinRead {
        nspace: Nspace,
        bytes: usize,
    },
}

/// One turn: the current time and the outbox.
pub(super) struct Cx<'a> {
    pub(super) now: Time,
    pub(super) out: &'a mut VecDeque<FromRoot>,
}

impl Cx<'_> {
    /// Sends `body` to the daemons in `to`.
    pub(super) fn cast(&mut self, to: Ranges, body: Down) {
        self.out.push_back(FromRoot::Cast(to, body));
    }

    /// Asks the overlay to complete an operation once the parts of all living daemons in `among` are here.
    pub(super) fn wait_for(&mut self, op: OpId, among: Ranges) {
        self.out.push_back(FromRoot::Await(op, among));
    }

    pub(super) fn report(&mut self, report: Report) {
        self.out.push_back(FromRoot::Report(report));
    }
}

/// How many processes an explanation names: as many as a person reads.
pub(super) const ENOUGH: usize = 100;
