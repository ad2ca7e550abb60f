//! Forwarded streams: what other processes write, and what they are to read (RFC0025).

use phalanx_spec::{IofChannel, Status, keys};
use pmix::{Blob, ClientCall, ClientReturn, HandlerId, Info, InfoList, ProcId, Screen, Value};

use super::calls::{OpCallback, Registered, done_or_then, submit};
use crate::guard::{BAD, exported};
use crate::instance::instance;
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};
use crate::release::free_array;
use crate::{cmem, from_c, to_c};

/// `pmix_iof_cbfunc_t`
type Receiver = extern "C" fn(usize, u16, Ptr<pmix_proc_t>, Ptr<pmix_byte_object_t>, Ptr<pmix_info_t>, usize);

exported! {
    /// Without a receiver the streams go to this process's own. Without a callback for the registration its number, or an
    /// error, is returned.
    fn PMIx_IOF_pull(
        procs: Ptr<pmix_proc_t>, nprocs: usize, directives: Ptr<pmix_info_t>, ndirs: usize, channels: u16,
        receiver: Option<Receiver>, callback: Registered, cbdata: Ptr<Opaque>,
    ) -> Code {
        let instance = instance()?;
        if procs.is_null() || nprocs == 0 || channels & IofChannel::STDIN.0 != 0 {
            return Err(BAD);
        }
        let sources = from_c::procs(procs, nprocs)?;
        let mut directives = from_c::infos(directives, ndirs)?;
        let screen = match receiver {
            Some(_) => None,
            None => Some(Screen::open(&mut directives).map_err(|error| error.status())?),
        };
        let mut show = screen.as_ref().map(Screen::handler);
        // The number is known only afterwards, and output can be there before.
        let number = std::sync::Arc::new(std::sync::OnceLock::new());
        let known = number.clone();
        let id = instance
            .client
            .keep_output_handler(move |source: &ProcId, channel: IofChannel, data: &[u8], info: &[Info]| {
                if let Some(receiver) = receiver {
                    deliver(receiver, known.get().copied().unwrap_or(0), source, channel, data, info);
                }
                if let Some(show) = &mut show {
                    show(source, channel, data, info);
                }
            })
            .map_err(|error| error.status())?;
        let reference = usize::try_from(id.0).unwrap_or(usize::MAX);
        let _ = number.set(reference);
        instance.screens().extend(screen.map(|screen| (reference, screen)));
        let call = ClientCall::IofPull { handler: id, sources, channels: IofChannel(channels), directives };
        if let Some(callback) = callback {
            let client = instance.clone();
            return submit(call, move |answer| {
                let status = match answer {
                    Ok(ClientReturn::Done(status)) => status,
                    Ok(_) => Status::ERROR,
                    Err(error) => error.status(),
                };
                if !status.is_success() {
                    let _ = client.client.forget_output_handler(id);
                    if let Some(screen) = client.screens().remove(&reference) {
                        screen.leave();
                    }
                }
                callback(status.0, reference, cbdata);
            });
        }
        match instance.client.perform(call).map_err(|error| error.status())? {
            ClientReturn::Done(status) if status.is_success() => match i32::try_from(reference) {
                Ok(0) | Err(_) => Ok(()),
                // The way in which a positive number is returned.
                Ok(number) => Err(Status(number)),
            },
            ClientReturn::Done(status) => {
                let _ = instance.client.forget_output_handler(id);
                if let Some(screen) = instance.screens().remove(&reference) {
                    screen.leave();
                }
                Err(status)
            }
            _ => Err(Status::ERROR),
        }
    }

    fn PMIx_IOF_deregister(
        reference: usize, directives: Ptr<pmix_info_t>, ndirs: usize, callback: OpCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        let instance = instance()?;
        let id = HandlerId(reference as u64);
        let call = ClientCall::IofDeregister { handler: id, directives: from_c::infos(directives, ndirs)? };
        done_or_then(call, callback, cbdata)?;
        // Without a callback everything has come by now, and is written before this returns; with one, what comes still is
        // shown until the handler is gone.
        if callback.is_none() {
            let screen = instance.screens().remove(&reference);
            drop(screen);
        }
        // Behind the call in the queue: it is not run any more when this happens.
        instance.client.forget_output_handler(id).map_err(|error| error.status())
    }

    /// No data: the end of the input, or, with PMIX_IOF_PUSH_STDIN, all that this process's standard input holds.
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
        let call = ClientCall::IofPush { targets, data, directives };
        done_or_then(call, callback, cbdata)
    }
}

/// Whether standard input is to be collected; the RFC names a target in the attribute.
pub(super) fn collects(directives: &[Info]) -> Option<Option<ProcId>> {
    match directives.find(keys::IOF_PUSH_STDIN)? {
        Value::Proc(proc) => Some(Some(proc.clone())),
        value => value.is_true().then_some(None),
    }
}

/// Begins to hand this process's standard input to others.
pub(super) fn collect_stdin(targets: Vec<ProcId>, directives: Vec<Info>) -> Result<(), Status> {
    let instance = instance()?;
    let pushing = instance.clone();
    instance.collect(move |data| {
        let (targets, directives) = (targets.clone(), directives.clone());
        let call = ClientCall::IofPush { targets, data: Blob::from(data), directives };
        match pushing.client.perform(call) {
            Ok(ClientReturn::Done(status)) if status.is_success() => Ok(()),
            Ok(ClientReturn::Done(status)) => Err(status),
            Ok(_) => Err(Status::ERROR),
            Err(error) => Err(error.status()),
        }
    })
}

/// What the receiver is given is gone when it returns. No bytes: the stream has ended.
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
