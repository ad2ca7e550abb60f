//! Forwarded streams: output of processes, for local readers.

use phalanx_core::ServerCall;
use phalanx_core::server::OutputTo;
use phalanx_spec::IofChannel;
use phalanx_wire::{Blob, Info, ProcId};

use super::Server;
use crate::error::Error;

impl Server {
    /// Passes output of a process to the local readers that pulled the stream (`PMIx_server_IOF_deliver`). No bytes: the
    /// stream has ended. `info` goes along. Ends when every reader that must not lose anything has taken the bytes; a host
    /// that waits for this before it sends more needs bounded memory. Fails as not found if there is no local reader.
    pub fn iof_deliver(
        &self,
        source: &ProcId,
        channel: IofChannel,
        data: Blob,
        info: &[Info],
    ) -> Result<(), Error> {
        self.done(output(source, channel, data, info), || format!("delivery of output of {source}"))
    }

    /// The same without waiting. `then` does not run if this call fails.
    pub fn iof_deliver_then(
        &self,
        source: &ProcId,
        channel: IofChannel,
        data: Blob,
        info: &[Info],
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let operation = format!("delivery of output of {source}");
        self.done_then(output(source, channel, data, info), || operation, then)
    }
}

fn output(source: &ProcId, channel: IofChannel, data: Blob, info: &[Info]) -> ServerCall {
    ServerCall::Output { to: OutputTo::All, source: source.clone(), channel, data, info: info.to_vec() }
}
