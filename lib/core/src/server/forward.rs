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
        return cx.answer(&from, Status::ERR_BAD_PARAM);
    }
    if let Some(directives) = request.directives_mut() {
        directives.extend(from.identity());
    }
    let then = match request.answer() {
        AnswerBody::Nothing => Then::Answer(from.clone()),
        AnswerBody::Infos => Then::AnswerInfos(from.clone()),
        AnswerBody::Credential => Then::AnswerCredential(from.clone()),
    };
    cx.ask(Some(&from.proc), HostOp::Asked(Asked { from: from.proc.clone(), request }), then);
}
