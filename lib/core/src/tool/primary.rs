//! Set server: selects the server that requests go to, and waits for one that is not attached yet.

use std::time::Duration;

use phalanx_spec::Status;
use phalanx_wire::ProcId;

use super::{Out, Tool, ToolReturn};
use crate::explain::Waiting;
use crate::machine::{CallId, Output, Time};

/// A server that becomes the primary one as soon as the tool is connected to it.
#[derive(Debug)]
pub(super) struct Wish {
    call: CallId,
    server: ProcId,
    since: Time,
    pub(super) deadline: Option<Time>,
}

impl Tool {
    pub(super) fn on_set_server(
        &mut self,
        now: Time,
        id: CallId,
        server: ProcId,
        wait: bool,
        timeout: Option<Duration>,
        out: &mut Out,
    ) {
        if let Some(session) = self.session_of(&server) {
            self.primary = Some(session);
            return out.push(Output::Return { id, result: ToolReturn::Done(Status::SUCCESS) });
        }
        if !wait || self.wishes.len() >= MOST_WISHES {
            let status = if wait { Status::ERR_OUT_OF_RESOURCE } else { Status::ERR_UNREACH };
            return out.push(Output::Return { id, result: ToolReturn::Done(status) });
        }
        let deadline = timeout.map(|timeout| now.after(timeout));
        self.wishes.push(Wish { call: id, server, since: now, deadline });
    }

    /// A server has been attached.
    pub(super) fn grant_wishes(&mut self, out: &mut Out) {
        for wish in std::mem::take(&mut self.wishes) {
            match self.session_of(&wish.server) {
                Some(session) => {
                    self.primary = Some(session);
                    out.push(Output::Return { id: wish.call, result: ToolReturn::Done(Status::SUCCESS) });
                }
                None => self.wishes.push(wish),
            }
        }
    }

    pub(super) fn give_up_wishes(&mut self, now: Time, out: &mut Out) {
        let over = |wish: &mut Wish| wish.deadline.is_some_and(|deadline| deadline <= now);
        for wish in self.wishes.extract_if(.., over) {
            out.push(Output::Return { id: wish.call, result: ToolReturn::Done(Status::ERR_TIMEOUT) });
        }
    }

    pub(super) fn explain_wishes(&self) -> impl Iterator<Item = Waiting> + '_ {
        self.wishes.iter().map(|wish| Waiting {
            operation: "set server".into(),
            subject: wish.server.to_string(),
            asked_by: self.config.proc.iter().cloned().collect(),
            missing: vec![wish.server.clone()],
            since: wish.since,
            deadline: wish.deadline,
            unblocked_by: "the tool attaching to that server".into(),
        })
    }
}

const MOST_WISHES: usize = 1024;
