//! Credentials of the host's security domain, passed on from the host.

use phalanx_spec::Status;
use phalanx_wire::Blob;
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::credential::Reply;

use super::host::as_failure;
use super::peer::Asker;
use super::turn::Cx;
use crate::host::HostReply;

pub(super) fn on_credential(cx: &mut Cx<'_>, to: Asker, reply: HostReply) {
    let status = reply.status();
    let reply = match reply {
        HostReply::Credential(Ok((credential, info))) => Reply { status: Status::SUCCESS, credential, info },
        _ => Reply { status: as_failure(status), credential: Blob::default(), info: Vec::new() },
    };
    cx.reply(to, |dialect| reply.encode(dialect));
}
