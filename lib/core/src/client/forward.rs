//! Requests that only the host can answer: the server passes them on, and the host's answer back.

use phalanx_wire::cmd::{AnswerBody, HostRequest, Request};

use super::link::Cx;
use super::pending::{Awaited, deadline_of};
use crate::machine::CallId;

pub(super) fn on_host_request(cx: &mut Cx<'_>, id: CallId, request: HostRequest) {
    let (operation, subject) = (request.operation(), request.subject());
    let awaited = match request.answer() {
        AnswerBody::Nothing => Awaited::Status { operation, subject },
        AnswerBody::Infos => Awaited::Infos { operation, subject },
        AnswerBody::Credential => Awaited::Credential,
    };
    let deadline = deadline_of(cx.now, request.directives());
    cx.ask_until(Some(id), &Request::Host(request), awaited, deadline);
}
