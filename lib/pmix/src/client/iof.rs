//! Forwarded streams: what other processes write and read (RFC0025).

use phalanx_core::{ClientCall, HandlerId, UNASKED};
use phalanx_spec::IofChannel;
use phalanx_wire::{Blob, Info, ProcId};

use super::Client;
use crate::engine::Callback;
use crate::error::Error;
use crate::screen::Screen;
use crate::stdin::Collection;

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

    /// Shows what these processes write on this process's own standard output and standard error (`PMIx_IOF_pull` without a
    /// callback), in the form, and in the files, that the directives ask for.
    pub fn iof_show(
        &self,
        sources: &[ProcId],
        channels: IofChannel,
        directives: &[Info],
    ) -> Result<HandlerId, Error> {
        let mut directives = directives.to_vec();
        let screen = Screen::open(&mut directives)?;
        let id = self.iof_pull(sources, channels, &directives, screen.handler())?;
        self.screens().insert(id, screen);
        Ok(id)
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

    /// Calls `handler` with what a tool gets without a pull: the output of jobs that it spawns, from the first byte, and what
    /// its server itself has to say. To be called before the spawn.
    pub fn on_unasked_output(
        &self,
        handler: impl FnMut(&ProcId, IofChannel, &[u8], &[Info]) + Send + 'static,
    ) -> Result<(), Error> {
        self.check_pid()?;
        self.engine.keep(UNASKED, Callback::Output(Box::new(handler)))
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
        // What it was given before is written before this returns.
        let screen = self.screens().remove(&id);
        drop(screen);
        ended
    }

    /// Hands this process's standard input to these processes, each piece when they have taken the one before, and its end
    /// (`PMIX_IOF_PUSH_STDIN`). Returns then, or when nobody wants more, or when `collection` is stopped.
    pub fn iof_push_stdin(
        &self,
        targets: &[ProcId],
        directives: &[Info],
        collection: &Collection,
    ) -> Result<(), Error> {
        let pushed = collection.run(|data| match self.iof_push(targets, data, directives) {
            Ok(()) => Ok(()),
            Err(error) => Err(error.status()),
        });
        pushed.map_err(|status| Error::Failed { operation: "push of standard input".into(), status })
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
