//! Monitoring: has processes watched, and gives signs of life where this one is (RFC0015).

use phalanx_spec::Status;
use phalanx_wire::Info;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::monitor::Monitor;
use phalanx_wire::frame::TAG_HEARTBEAT;

use super::call::ClientReturn;
use super::link::Cx;
use super::pending::Awaited;
use crate::machine::{CallId, Output};

pub(super) fn on_monitor(cx: &mut Cx<'_>, id: CallId, what: Info, error: Status, directives: Vec<Info>) {
    let awaited = Awaited::Infos { operation: "monitor", subject: what.key.to_string() };
    let request = Request::Monitor(Monitor { what, error, directives: directives.clone() });
    cx.ask(Some(id), &request, awaited, &directives);
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
