//! Log: sends data to the logs of the host.

use std::time::{SystemTime, UNIX_EPOCH};

use phalanx_core::ClientCall;
use phalanx_spec::keys;
use phalanx_wire::cmd::log::Log;
use phalanx_wire::{Info, InfoList};

use super::Client;
use crate::error::Error;

impl Client {
    /// Sends data to the logs of the host (`PMIx_Log`): `data` names the channels, such as `pmix.log.stderr`.
    pub fn log(&self, data: &[Info], directives: &[Info]) -> Result<(), Error> {
        let timestamp = match directives.is_set(keys::LOG_GENERATE_TIMESTAMP) {
            true => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            false => 0,
        };
        let call = ClientCall::Log(Log { timestamp, data: data.to_vec(), directives: directives.to_vec() });
        self.done(call, || "log".into())
    }
}
