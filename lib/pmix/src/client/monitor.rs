//! Monitoring: has processes watched, and sends signs of life (RFC0015).

use phalanx_core::ClientCall;
use phalanx_spec::Status;
use phalanx_wire::Info;

use super::Client;
use crate::error::Error;
use phalanx_wire::cmd::monitor::Monitor;

impl Client {
    /// Has processes watched (`PMIx_Process_monitor`): `what` selects the method (`pmix.monitor.mbeat`: by their
    /// heartbeats), `error` is the event to raise when signs of life stop.
    pub fn monitor(&self, what: Info, error: Status, directives: &[Info]) -> Result<Vec<Info>, Error> {
        let operation = format!("monitoring by {}", what.key);
        let call = ClientCall::Monitor(Monitor { what, error, directives: directives.to_vec() });
        self.infos(call, || operation)
    }

    /// Sends a sign of life to the monitors of this process (`PMIx_Heartbeat`).
    pub fn heartbeat(&self) -> Result<(), Error> {
        self.done(ClientCall::Heartbeat, || "heartbeat".into())
    }
}
