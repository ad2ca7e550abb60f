//! Log: hands data to a log of the host.

use phalanx_wire::Info;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::log::Log;

use super::link::Cx;
use super::pending::{Awaited, list};
use crate::machine::CallId;

pub(super) fn on_log(cx: &mut Cx<'_>, id: CallId, timestamp: u64, data: Vec<Info>, directives: Vec<Info>) {
    let channels: Vec<_> = data.iter().map(|info| &info.key).collect();
    let awaited = Awaited::Status { operation: "log", subject: list(&channels) };
    let request = Request::Log(Log { timestamp, data, directives: directives.clone() });
    cx.ask(Some(id), &request, awaited, &directives);
}
