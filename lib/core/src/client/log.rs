//! Log: hands data to a log of the host.

use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::log::Log;

use super::link::Cx;
use super::pending::{Awaited, deadline_of, list};
use crate::machine::CallId;

pub(super) fn on_log(cx: &mut Cx<'_>, id: CallId, request: Log) {
    let channels: Vec<_> = request.data.iter().map(|info| &info.key).collect();
    let awaited = Awaited::Status { operation: "log", subject: list(&channels) };
    let deadline = deadline_of(cx.now, &request.directives);
    cx.ask_until(Some(id), &Request::Log(request), awaited, deadline);
}
