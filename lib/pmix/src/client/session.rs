//! Session control: directives for a whole session.

use phalanx_core::ClientCall;
use phalanx_wire::Info;

use super::Client;
use crate::error::Error;

impl Client {
    /// Directs a session (`PMIx_Session_control`).
    pub fn session_control(&self, session: u32, directives: &[Info]) -> Result<Vec<Info>, Error> {
        let call = ClientCall::SessionControl { session, directives: directives.to_vec() };
        self.infos(call, || format!("control of session {session}"))
    }
}
