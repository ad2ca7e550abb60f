//! Monitoring: has processes watched, and gives signs of life where this one is (RFC0015).

use phalanx_spec::Status;
use phalanx_wire::Info;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::monitor::Monitor;
use phalanx_wire::frame::TAG_HEARTBEAT;

use super::pending::Awaited;
use super::{Client, ClientReturn, Out};
use crate::machine::{CallId, Output, Time};

impl Client {
    pub(super) fn on_monitor(
        &mut self,
        now: Time,
        id: CallId,
        what: Info,
        error: Status,
        directives: Vec<Info>,
        out: &mut Out,
    ) {
        let awaited = Awaited::Infos { operation: "monitor", subject: what.key.to_string() };
        let request = Request::Monitor(Monitor { what, error, directives: directives.clone() });
        self.ask(now, Some(id), &request, awaited, &directives, out);
    }

    /// Never answered by the server.
    pub(super) fn on_heartbeat(&mut self, id: CallId, out: &mut Out) {
        let status = match self.can_ask(Some(id)) {
            Ok(()) => {
                self.send(TAG_HEARTBEAT, &[], out);
                Status::SUCCESS
            }
            Err(status) => status,
        };
        out.push(Output::Return { id, result: ClientReturn::Done(status) });
    }
}
