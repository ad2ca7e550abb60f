//! Spawn: starts another job. Its data come with the answer, so that the parent can use them without asking again.

use phalanx_spec::Status;
use phalanx_wire::cmd::iof::STYLE;
use phalanx_wire::cmd::spawn::{Reply, Spawn};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::DecodeError;

use super::call::{ClientReturn, NewJob};
use super::link::{Cx, Link};
use super::pending::{Awaited, deadline_of, list};
use crate::machine::CallId;

pub(super) fn on_spawn(cx: &mut Cx<'_>, id: CallId, request: Spawn) {
    let programs: Vec<_> = request.apps.iter().filter_map(|app| app.cmd.as_ref()).collect();
    let awaited = Awaited::Spawned { programs: list(&programs) };
    let deadline = deadline_of(cx.now, &request.job);
    cx.ask_until(Some(id), &Request::Spawn(request), awaited, deadline);
}

pub(super) fn spawned(link: &Link, payload: &[u8]) -> Result<ClientReturn, DecodeError> {
    let Reply { status, job } = Reply::decode(payload, link.config.dialect)?;
    let job = match job {
        Some(mut job) if status.is_success() => {
            let nspace = job.nspace.clone();
            let style = job.values.extract_if(.., |value| value.key == *STYLE).next();
            let style =
                style.and_then(|style| style.value.as_array().map(|style| style.infos().cloned().collect()));
            link.store.load_job(job);
            Ok(NewJob { nspace, style: style.unwrap_or_default() })
        }
        _ if status.is_success() => Err(Status::ERR_SERVER_FAILED_REQUEST),
        _ => Err(status),
    };
    Ok(ClientReturn::Spawned(job))
}
