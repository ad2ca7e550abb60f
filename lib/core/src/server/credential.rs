//! Credentials of the host's security domain: get one, have one checked.

use phalanx_wire::cmd::credential::{GetCredential, ValidateCredential};

use super::host::Then;
use super::peer::Asker;
use super::{Cx, Server};
use crate::host::HostOp;

impl Server {
    pub(super) fn on_get_credential(&mut self, cx: &mut Cx<'_>, from: Asker, request: GetCredential) {
        let mut info = request.info;
        info.extend(from.identity());
        let proc = from.proc.clone();
        let op = HostOp::GetCredential { from: proc.clone(), info };
        self.call_host(cx, Some(&proc), op, Then::AnswerCredential(from));
    }

    pub(super) fn on_validate_credential(
        &mut self,
        cx: &mut Cx<'_>,
        from: Asker,
        request: ValidateCredential,
    ) {
        let proc = from.proc.clone();
        let credential = request.credential;
        let op = HostOp::ValidateCredential { from: proc.clone(), credential, info: request.info };
        self.call_host(cx, Some(&proc), op, Then::AnswerInfos(from));
    }
}
