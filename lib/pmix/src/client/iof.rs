//! Forwarded streams: what other processes write and read (RFC0025).

use phalanx_core::{ClientCall, HandlerId};
use phalanx_spec::IofChannel;
use phalanx_wire::{Blob, Info, ProcId};

use super::Client;
use crate::engine::Callback;
use crate::error::Error;

impl Client {
    /// Calls `handler` on the progress thread with what these processes write (`PMIx_IOF_pull`): who, on which channel,
    /// which bytes, and infos. No bytes: it will write no more. Pieces come as they were read, not as lines.
    pub fn iof_pull(
        &self,
        sources: &[ProcId],
        channels: IofChannel,
        directives: &[Info],
        handler: impl FnMut(&ProcId, IofChannel, &[u8], &[Info]) + Send + 'static,
    ) -> Result<HandlerId, Error> {
        let id = self.keep_output_handler(handler)?;
        let call = ClientCall::IofPull {
            handler: id,
            sources: sources.to_vec(),
            channels,
            directives: directives.to_vec(),
        };
        let pulled = self.done(call, || "pull of output".into());
        if pulled.is_err() {
            self.engine.forget(id)?;
        }
        pulled.map(|()| id)
    }

    /// Keeps a handler for a pull by [`submit`](Client::submit).
    pub fn keep_output_handler(
        &self,
        handler: impl FnMut(&ProcId, IofChannel, &[u8], &[Info]) + Send + 'static,
    ) -> Result<HandlerId, Error> {
        self.check_pid()?;
        let id = self.next_handler();
        self.engine.keep(id, Callback::Output(Box::new(handler)))?;
        Ok(id)
    }

    /// Drops a handler that was kept.
    pub fn forget_output_handler(&self, id: HandlerId) -> Result<(), Error> {
        self.engine.forget(id)
    }

    /// The handler is not called any more when this returns (`PMIx_IOF_deregister`).
    pub fn iof_deregister(&self, id: HandlerId, directives: &[Info]) -> Result<(), Error> {
        let call = ClientCall::IofDeregister { handler: id, directives: directives.to_vec() };
        let ended = self.done(call, || "end of a pull".into());
        self.engine.forget(id)?;
        ended
    }

    /// Writes to the standard input of these processes (`PMIx_IOF_push`). No data: its end.
    pub fn iof_push(&self, targets: &[ProcId], data: &[u8], directives: &[Info]) -> Result<(), Error> {
        let call = ClientCall::IofPush {
            targets: targets.to_vec(),
            data: Blob::from(data),
            directives: directives.to_vec(),
        };
        self.done(call, || "push of input".into())
    }
}
