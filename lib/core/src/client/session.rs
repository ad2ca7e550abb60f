//! Session control: directives for a whole session. Servers before 6.0 have no command for it.

use phalanx_wire::Info;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::session::SessionControl;

use super::pending::Awaited;
use super::{Client, Out};
use crate::machine::{CallId, Time};

impl Client {
    pub(super) fn on_session_control(
        &mut self,
        now: Time,
        id: CallId,
        session: u32,
        directives: Vec<Info>,
        out: &mut Out,
    ) {
        let awaited = Awaited::Infos { operation: "session control", subject: session.to_string() };
        let request = Request::SessionControl(SessionControl { session, directives: directives.clone() });
        self.ask(now, Some(id), &request, awaited, &directives, out);
    }
}
