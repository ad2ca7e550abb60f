//! Forwarded streams: output and input of other processes (RFC0025).

use phalanx_core::{ClientCall, ClientReturn, HandlerId, UNASKED};
use phalanx_spec::{IofChannel, Status};
use phalanx_wire::cmd::iof::{Pull, Push};
use phalanx_wire::{Blob, Info, ProcId};

use super::{Client, unexpected};
use crate::engine::{Callback, OutputDone};
use crate::error::Error;
use crate::screen::{Part, Screen, Shot};
use phalanx_shell::stdin::Collection;

impl Client {
    /// Calls `handler` on the progress thread with the output of these processes (`PMIx_IOF_pull`): source, channel, bytes,
    /// and infos. No bytes: the stream has ended. Pieces come as they were read, not as lines. With `pmix.iof.file` or
    /// `pmix.iof.dir` the output is written into files as well; with `pmix.iof.fonly` into these alone.
    pub fn iof_pull(
        &self,
        sources: &[ProcId],
        channels: IofChannel,
        directives: &[Info],
        mut handler: impl FnMut(&ProcId, IofChannel, &[u8], &[Info]) + Send + 'static,
    ) -> Result<HandlerId, Error> {
        // Output counts as taken when the handler returns.
        let handler = move |from: &ProcId, channel, data: &[u8], info: &[Info], done: OutputDone| {
            handler(from, channel, data, info);
            drop(done);
        };
        self.pull_parts(sources, channels, self.parts_of(sources, directives, true)?, Some(handler))
    }

    /// The pulls by which a pull of the program is carried out.
    pub fn parts_of(
        &self,
        sources: &[ProcId],
        directives: &[Info],
        has_callback: bool,
    ) -> Result<Vec<Part>, Error> {
        let is_shown = !has_callback && self.shown.show_all_of(sources);
        if is_shown {
            self.shown.dress(sources, directives)?;
        }
        Part::of(directives, has_callback, is_shown)
    }

    /// The last part is the one that the program knows; the screens of the other parts end with it.
    fn pull_parts(
        &self,
        sources: &[ProcId],
        channels: IofChannel,
        parts: Vec<Part>,
        mut handler: Option<impl FnMut(&ProcId, IofChannel, &[u8], &[Info], OutputDone) + Send + 'static>,
    ) -> Result<HandlerId, Error> {
        let mut screens = Vec::new();
        let mut last = None;
        for Part { directives, screen } in parts {
            let kept = match (&screen, handler.take_if(|_| screen.is_none())) {
                (Some(screen), _) => self.keep_output_handler(screen.handler()),
                (None, Some(handler)) => self.keep_output_handler(handler),
                (None, None) => continue,
            };
            let pulled = kept.and_then(|id| Ok((id, self.pull(id, sources, channels, &directives)?)));
            match pulled {
                Ok((id, defaults)) => {
                    last = Some(id);
                    screens.extend(screen.map(|screen| {
                        screen.begin(defaults);
                        (id, screen)
                    }));
                }
                Err(error) => {
                    screens.into_iter().for_each(|(id, screen)| self.end_screen(id, screen, &[]));
                    return Err(error);
                }
            }
        }
        let id = last.ok_or_else(|| failed("pull of output", Status::ERR_BAD_PARAM))?;
        if !screens.is_empty() {
            self.screens().insert(id, screens);
        }
        Ok(id)
    }

    fn end_screen(&self, id: HandlerId, screen: Screen, directives: &[Info]) {
        let call = ClientCall::IofDeregister { handler: id, directives: directives.to_vec() };
        // A pull that has ended already shows nothing more.
        let _ = self.call(call);
        let _ = self.engine.forget(id);
        drop(screen);
    }

    fn pull(
        &self,
        id: HandlerId,
        sources: &[ProcId],
        channels: IofChannel,
        directives: &[Info],
    ) -> Result<Vec<Info>, Error> {
        let (sources, directives) = (sources.to_vec(), directives.to_vec());
        let call =
            ClientCall::IofPull { handler: id, pull: Pull { sources, directives, channels, handle: 0 } };
        let operation = "pull of output";
        let pulled = match self.call(call) {
            Ok(ClientReturn::Pulled(result)) => result.map_err(|status| failed(operation, status)),
            Ok(other) => Err(unexpected(operation, &other)),
            Err(error) => Err(error),
        };
        if pulled.is_err() {
            self.engine.forget(id)?;
        }
        pulled
    }

    /// Shows the output of these processes on this process's own standard output and standard error (`PMIx_IOF_pull` without
    /// a callback), in the form, and in the files, that the directives request. Output that a tool shows anyway is not shown twice.
    pub fn iof_show(
        &self,
        sources: &[ProcId],
        channels: IofChannel,
        directives: &[Info],
    ) -> Result<HandlerId, Error> {
        let nobody = None::<fn(&ProcId, IofChannel, &[u8], &[Info], OutputDone)>;
        self.pull_parts(sources, channels, self.parts_of(sources, directives, false)?, nobody)
    }

    /// Stores a handler for a pull by [`submit`](Client::submit).
    pub fn keep_output_handler(
        &self,
        handler: impl FnMut(&ProcId, IofChannel, &[u8], &[Info], OutputDone) + Send + 'static,
    ) -> Result<HandlerId, Error> {
        self.check_pid()?;
        self.engine.keep(Callback::Output(Box::new(handler)))
    }

    /// Calls `handler` with what a tool gets without a pull: the output of jobs that it spawns, from the first byte, and the
    /// output of its server. None of it is shown here any more. Must be called before the spawn.
    pub fn on_unasked_output(
        &self,
        mut handler: impl FnMut(&ProcId, IofChannel, &[u8], &[Info]) + Send + 'static,
    ) -> Result<(), Error> {
        self.keep_unasked(move |from, channel, data, info, done| {
            handler(from, channel, data, info);
            drop(done);
        })
    }

    /// As `shown` says of it.
    pub(crate) fn show_unasked(&self) -> Result<(), Error> {
        let shown = self.shown.clone();
        self.keep_unasked(move |source, channel, data, info, done| {
            shown.take(Shot::new(source, channel, data, info, done));
        })
    }

    fn keep_unasked(
        &self,
        handler: impl FnMut(&ProcId, IofChannel, &[u8], &[Info], OutputDone) + Send + 'static,
    ) -> Result<(), Error> {
        self.check_pid()?;
        self.engine.keep_for(UNASKED, Callback::Output(Box::new(handler)))
    }

    /// Drops a stored handler.
    pub fn forget_output_handler(&self, id: HandlerId) -> Result<(), Error> {
        self.engine.forget(id)
    }

    /// Ends a pull; its handler is not called any more when this returns (`PMIx_IOF_deregister`).
    pub fn iof_deregister(&self, id: HandlerId, directives: &[Info]) -> Result<(), Error> {
        let call = ClientCall::IofDeregister { handler: id, directives: directives.to_vec() };
        let ended = self.done(call, || "end of a pull".into());
        self.engine.forget(id)?;
        // What the screens were given before is written before this returns.
        let screens = self.screens().remove(&id).unwrap_or_default();
        screens.into_iter().for_each(|(id, screen)| self.end_screen(id, screen, directives));
        ended
    }

    /// Forwards this process's standard input to these processes, each piece after the one before was taken, and its end
    /// (`PMIX_IOF_PUSH_STDIN`). Returns then, or when no target wants more, or when `collection` is stopped.
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

    /// Writes to the standard input of these processes (`PMIx_IOF_push`). No data: its end. Returns when they have room for it, so
    /// that a caller that pushes more than they read is slowed down.
    ///
    /// Pushes that are not waited for (`PMIx_IOF_push` with a callback) are refused with `PMIX_ERR_OUT_OF_RESOURCE` when 16 MiB of
    /// a job's input wait, and from then on with `PMIX_ERR_IOF_FAILURE`: accepted data arrives, and nothing after a gap.
    pub fn iof_push(&self, targets: &[ProcId], data: &[u8], directives: &[Info]) -> Result<(), Error> {
        let call = ClientCall::IofPush(Push {
            targets: targets.to_vec(),
            data: Blob::from(data),
            directives: directives.to_vec(),
        });
        self.done(call, || "push of input".into())
    }
}

fn failed(operation: &str, status: Status) -> Error {
    Error::Failed { operation: operation.into(), status }
}
