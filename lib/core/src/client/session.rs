//! Session control: directives for a whole session. Servers before 6.0 have no command for it.

use phalanx_wire::Info;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::session::SessionControl;

use super::link::Cx;
use super::pending::Awaited;
use crate::machine::CallId;

pub(super) fn on_session_control(cx: &mut Cx<'_>, id: CallId, session: u32, directives: Vec<Info>) {
    let awaited = Awaited::Infos { operation: "session control", subject: session.to_string() };
    let request = Request::SessionControl(SessionControl { session, directives: directives.clone() });
    cx.ask(Some(id), &request, awaited, &directives);
}
