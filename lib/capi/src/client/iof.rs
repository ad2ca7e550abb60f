//! Forwarded streams: output and input of other processes (RFC0025).

use std::sync::{Arc, OnceLock};

use phalanx_spec::{IofChannel, Status, keys};
use phalanx_wire::cmd::iof::{self as wire, Push};
use pmix::screen::Part;
use pmix::{
    Blob, ClientCall, ClientReturn, Error, HandlerId, Info, InfoList, OutputDone, ProcId, Screen, Value,
};

use super::calls::{OpCallback, Registered, done_or_then, ended, submit};
use crate::guard::{BAD, exported};
use crate::instance::{Instance, instance};
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};
use crate::release::free_array;
use crate::{cmem, from_c, to_c};

/// `pmix_iof_cbfunc_t`
type Receiver = extern "C" fn(usize, u16, Ptr<pmix_proc_t>, Ptr<pmix_byte_object_t>, Ptr<pmix_info_t>, usize);

exported! {
    /// Without a receiver the streams go to this process's own. Without a callback for the registration, returns its number,
    /// or an error.
    fn PMIx_IOF_pull(
        procs: Ptr<pmix_proc_t>, nprocs: usize, directives: Ptr<pmix_info_t>, ndirs: usize, channels: u16,
        receiver: Option<Receiver>, callback: Registered, cbdata: Ptr<Opaque>,
    ) -> Code {
        let instance = instance()?;
        if procs.is_null() || nprocs == 0 || channels & IofChannel::STDIN.0 != 0 {
            return Err(BAD);
        }
        let sources = from_c::procs(procs, nprocs)?;
        let directives = from_c::infos(directives, ndirs)?;
        let parts = instance.client.parts_of(&sources, &directives, receiver.is_some());
        let parts = parts.map_err(|error| error.status())?;
        let pull = Pull::new(instance, sources, IofChannel(channels), parts, receiver)?;
        let Some(callback) = callback else {
            let reference = pull.run()?;
            return match i32::try_from(reference) {
                Ok(0) | Err(_) => Ok(()),
                // The way in which a positive number is returned.
                Ok(number) => Err(Status(number)),
            };
        };
        pull.begin(move |status, reference| callback(status.0, reference, cbdata))
    }

    /// When this returns, or calls back, all earlier output has arrived, and has been written where it is shown.
    fn PMIx_IOF_deregister(
        reference: usize, directives: Ptr<pmix_info_t>, ndirs: usize, callback: OpCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        let instance = instance()?;
        let directives = from_c::infos(directives, ndirs)?;
        let waits = callback.is_none() && !instance.client.is_progress_thread();
        if waits {
            return instance.end_pull(reference, &directives);
        }
        let id = HandlerId(reference as u64);
        let screens: Vec<HandlerId> = match instance.screens().get(&reference) {
            Some(screens) => screens.iter().map(|(screen, _)| *screen).filter(|screen| *screen != id).collect(),
            None => Vec::new(),
        };
        for screen in screens {
            submit(ClientCall::IofDeregister { handler: screen, directives: directives.clone() }, |_| {})?;
        }
        let call = ClientCall::IofDeregister { handler: id, directives };
        submit(call, move |answer| {
            // Screens go on until all output that they have is written, at the latest in finalize.
            let _ = instance.client.forget_output_handler(id);
            if let Some(callback) = callback {
                callback(ended(answer).err().unwrap_or(Status::SUCCESS).0, cbdata);
            }
        })
    }

    /// No data: the end of the input, or, with PMIX_IOF_PUSH_STDIN, all of this process's standard input.
    fn PMIx_IOF_push(
        targets: Ptr<pmix_proc_t>, ntargets: usize, data: Ptr<pmix_byte_object_t>, directives: Ptr<pmix_info_t>,
        ndirs: usize, callback: OpCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        instance()?;
        if targets.is_null() || ntargets == 0 {
            return Err(BAD);
        }
        let targets = from_c::procs(targets, ntargets)?;
        let mut directives = from_c::infos(directives, ndirs)?;
        if data.is_null() && let Some(more) = collects(&directives) {
            directives.retain(|info| info.key != *keys::IOF_PUSH_STDIN);
            collect_stdin(targets.into_iter().chain(more).collect(), directives)?;
            if let Some(callback) = callback {
                callback(Status::SUCCESS.0, cbdata);
            }
            return Ok(());
        }
        if directives.is_set(keys::IOF_COMPLETE) {
            instance()?.stop_collecting();
        }
        let data = data.read().map(from_c::blob).unwrap_or_default();
        let call = ClientCall::IofPush(Push { targets, data, directives });
        done_or_then(call, callback, cbdata)
    }
}

/// Whether standard input is to be collected; in the RFC the attribute's value is a target.
pub(super) fn collects(directives: &[Info]) -> Option<Option<ProcId>> {
    match directives.find(keys::IOF_PUSH_STDIN)? {
        Value::Proc(proc) => Some(Some(proc.clone())),
        value => value.is_true().then_some(None),
    }
}

/// Begins to forward this process's standard input.
pub(super) fn collect_stdin(targets: Vec<ProcId>, directives: Vec<Info>) -> Result<(), Status> {
    let instance = instance()?;
    let pushing = instance.clone();
    instance.collect(move |data| {
        let (targets, directives) = (targets.clone(), directives.clone());
        let call = ClientCall::IofPush(Push { targets, data: Blob::from(data), directives });
        match pushing.client.perform(call) {
            Ok(ClientReturn::Done(status)) if status.is_success() => Ok(()),
            Ok(ClientReturn::Done(status)) => Err(status),
            Ok(_) => Err(Status::ERROR),
            Err(error) => Err(error.status()),
        }
    })
}

/// One pull of the program, and the pulls that carry it out.
struct Pull {
    instance: Arc<Instance>,
    sources: Vec<ProcId>,
    channels: IofChannel,
    /// The parts that are not pulled yet, the first one last.
    parts: Vec<(HandlerId, Part)>,
    /// The number that the program knows.
    reference: usize,
    screens: Vec<(HandlerId, Screen)>,
}

impl Pull {
    fn new(
        instance: Arc<Instance>,
        sources: Vec<ProcId>,
        channels: IofChannel,
        parts: Vec<Part>,
        receiver: Option<Receiver>,
    ) -> Result<Pull, Status> {
        let mut pull =
            Pull { instance, sources, channels, parts: Vec::new(), reference: 0, screens: Vec::new() };
        for part in parts {
            let id = pull.keep_handler(&part, receiver)?;
            pull.reference = number(id);
            pull.parts.insert(0, (id, part));
        }
        Ok(pull)
    }

    fn keep_handler(&self, part: &Part, receiver: Option<Receiver>) -> Result<HandlerId, Status> {
        let client = &self.instance.client;
        let kept = match (&part.screen, receiver) {
            (None, Some(receiver)) => {
                // The number is known only afterwards, and output can arrive before.
                let known = Arc::new(OnceLock::new());
                let ours = known.clone();
                let handler = move |source: &ProcId,
                                    channel: IofChannel,
                                    data: &[u8],
                                    info: &[Info],
                                    done: OutputDone| {
                    deliver(receiver, ours.get().copied().unwrap_or(0), source, channel, data, info);
                    drop(done);
                };
                let kept = client.keep_output_handler(handler);
                if let Ok(id) = &kept {
                    let _ = known.set(number(*id));
                }
                kept
            }
            (Some(screen), _) => client.keep_output_handler(screen.handler()),
            (None, None) => return Err(BAD),
        };
        kept.map_err(|error| error.status())
    }

    fn next_call(&self) -> Option<ClientCall> {
        let (id, part) = self.parts.last()?;
        let (sources, directives) = (self.sources.clone(), part.directives.clone());
        let pull = wire::Pull { sources, directives, channels: self.channels, handle: 0 };
        Some(ClientCall::IofPull { handler: *id, pull })
    }

    /// Handles the server's answer to the last call.
    fn answered(&mut self, answer: Result<ClientReturn, Error>) -> Result<(), Status> {
        let defaults = match answer.map_err(|error| error.status())? {
            ClientReturn::Pulled(result) => result?,
            _ => return Err(Status::ERROR),
        };
        if let Some((id, Part { screen: Some(screen), .. })) = self.parts.pop() {
            screen.begin(defaults);
            self.screens.push((id, screen));
        }
        Ok(())
    }

    /// The program's pull is established.
    fn established(self) -> usize {
        if !self.screens.is_empty() {
            self.instance.screens().insert(self.reference, self.screens);
        }
        self.reference
    }

    /// One part was refused: ends all others.
    fn fail(self) {
        for (id, part) in self.parts {
            let _ = self.instance.client.forget_output_handler(id);
            part.screen.into_iter().for_each(Screen::leave);
        }
        for (id, screen) in self.screens {
            let call = ClientCall::IofDeregister { handler: id, directives: Vec::new() };
            let instance = self.instance.clone();
            let _ = submit(call, move |_| {
                let _ = instance.client.forget_output_handler(id);
            });
            screen.leave();
        }
    }

    fn run(mut self) -> Result<usize, Status> {
        while let Some(call) = self.next_call() {
            let answer = self.instance.client.perform(call);
            if let Err(status) = self.answered(answer) {
                self.fail();
                return Err(status);
            }
        }
        Ok(self.established())
    }

    fn begin(mut self, then: impl FnOnce(Status, usize) + Send + 'static) -> Result<(), Status> {
        let Some(call) = self.next_call() else {
            then(Status::SUCCESS, self.established());
            return Ok(());
        };
        submit(call, move |answer| match self.answered(answer) {
            Ok(()) => {
                if let Err(status) = self.begin(then) {
                    tracing::warn!(%status, "a pull ends with its library");
                }
            }
            Err(status) => {
                let reference = self.reference;
                self.fail();
                then(status, reference);
            }
        })
    }
}

fn number(id: HandlerId) -> usize {
    usize::try_from(id.0).unwrap_or(usize::MAX)
}

/// The receiver's arguments are freed when it returns. No bytes: the stream has ended.
fn deliver(
    receiver: Receiver,
    reference: usize,
    source: &ProcId,
    channel: IofChannel,
    data: &[u8],
    info: &[Info],
) {
    let source = cmem::one(to_c::proc(source));
    let payload = cmem::one(pmix_byte_object_t { bytes: cmem::bytes(data), size: data.len() });
    let infos = to_c::infos(info).map_or((Ptr::NULL, 0), |array| (array, info.len()));
    receiver(reference, channel.0, source, payload, infos.0, infos.1);
    cmem::free(source);
    free_array(payload, 1);
    free_array(infos.0, infos.1);
}
