//! Credentials of the host's security domain: get one, have one checked.

use phalanx_spec::Status;
use phalanx_wire::Blob;
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::credential::{GetCredential, Reply, ValidateCredential};

use super::host::{Then, as_failure};
use super::peer::Asker;
use super::turn::Cx;
use crate::host::{HostOp, HostReply};

pub(super) fn on_get_credential(cx: &mut Cx<'_>, from: Asker, request: GetCredential) {
    let mut info = request.info;
    info.extend(from.identity());
    let proc = from.proc.clone();
    let op = HostOp::GetCredential { from: proc.clone(), info };
    cx.ask(Some(&proc), op, Then::AnswerCredential(from));
}

pub(super) fn on_validate_credential(cx: &mut Cx<'_>, from: Asker, request: ValidateCredential) {
    let proc = from.proc.clone();
    let credential = request.credential;
    let op = HostOp::ValidateCredential { from: proc.clone(), credential, info: request.info };
    cx.ask(Some(&proc), op, Then::AnswerInfos(from));
}

pub(super) fn on_credential(cx: &mut Cx<'_>, to: &Asker, reply: HostReply) {
    let status = reply.status();
    let reply = match reply {
        HostReply::Credential(Ok((credential, info))) => Reply { status: Status::SUCCESS, credential, info },
        _ => Reply { status: as_failure(status), credential: Blob::default(), info: Vec::new() },
    };
    cx.reply(to, |dialect| reply.encode(dialect));
}
