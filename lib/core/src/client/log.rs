//! Log: hands data to a log of the host.

use phalanx_wire::Info;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::log::Log;

use super::pending::{Awaited, list};
use super::{Client, Out};
use crate::machine::{CallId, Time};

impl Client {
    pub(super) fn on_log(
        &mut self,
        now: Time,
        id: CallId,
        timestamp: u64,
        data: Vec<Info>,
        directives: Vec<Info>,
        out: &mut Out,
    ) {
        let channels: Vec<_> = data.iter().map(|info| &info.key).collect();
        let awaited = Awaited::Status { operation: "log", subject: list(&channels) };
        let request = Request::Log(Log { timestamp, data, directives: directives.clone() });
        self.ask(now, Some(id), &request, awaited, &directives, out);
    }
}
