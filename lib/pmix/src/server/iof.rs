//! Forwarded streams: what processes have written, for those here who asked for it.

use phalanx_core::ServerCall;
use phalanx_spec::IofChannel;
use phalanx_wire::{Blob, ProcId};

use super::Server;
use crate::error::Error;

impl Server {
    /// Hands bytes of a process to those here who pulled that stream (`PMIx_server_IOF_deliver`). No bytes: the stream has
    /// ended. Not found: nobody here wants it.
    pub fn iof_deliver(&self, source: &ProcId, channel: IofChannel, data: Blob) -> Result<(), Error> {
        let call = ServerCall::Output { source: source.clone(), channel, data };
        self.done(call, || format!("delivery of output of {source}"))
    }

    /// The same without waiting. `then` is not run if this fails.
    pub fn iof_deliver_then(
        &self,
        source: &ProcId,
        channel: IofChannel,
        data: Blob,
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let operation = format!("delivery of output of {source}");
        self.done_then(ServerCall::Output { source: source.clone(), channel, data }, || operation, then)
    }
}
