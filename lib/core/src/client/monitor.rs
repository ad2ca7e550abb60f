//! Monitoring: has processes watched, and sends signs of life of this one (RFC0015).

use phalanx_spec::Status;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::monitor::Monitor;
use phalanx_wire::frame::TAG_HEARTBEAT;

use super::call::ClientReturn;
use super::link::Cx;
use super::pending::{Awaited, deadline_of};
use crate::machine::{CallId, Output};

pub(super) fn on_monitor(cx: &mut Cx<'_>, id: CallId, request: Monitor) {
    let awaited = Awaited::Infos { operation: "monitor", subject: request.what.key.to_string() };
    let deadline = deadline_of(cx.now, &request.directives);
    cx.ask_until(Some(id), &Request::Monitor(request), awaited, deadline);
}

/// Never answered by the server.
pub(super) fn on_heartbeat(cx: &mut Cx<'_>, id: CallId) {
    let status = match cx.can_ask(Some(id)) {
        Ok(()) => {
            cx.send(TAG_HEARTBEAT, &[]);
            Status::SUCCESS
        }
        Err(status) => status,
    };
    cx.out.push(Output::Return { id, result: ClientReturn::Done(status) });
}
