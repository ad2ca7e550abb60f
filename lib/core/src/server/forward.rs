//! Requests that only the host can answer: the host gets the request and the asker's identity, and its answer goes to the
//! client.

use phalanx_spec::Status;
use phalanx_wire::cmd::{AnswerBody, HostRequest};

use super::host::Then;
use super::peer::Asker;
use super::turn::Cx;
use crate::host::{Asked, HostOp};

pub(super) fn on_host_request(cx: &mut Cx<'_>, from: Asker, mut request: HostRequest) {
    if !request.is_complete() {
        return cx.answer(from, Status::ERR_BAD_PARAM);
    }
    if let Some(directives) = request.directives_mut() {
        directives.extend(from.identity());
    }
    let proc = from.proc.clone();
    let then = match request.answer() {
        AnswerBody::Nothing => Then::Answer(from),
        AnswerBody::Infos => Then::AnswerInfos(from),
        AnswerBody::Credential => Then::AnswerCredential(from),
    };
    cx.ask(Some(&proc), HostOp::Asked(Asked { from: proc.clone(), request }), then);
}
