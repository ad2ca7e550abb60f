//! Events: handlers of programs, and events that programs raise.
//!
//! A handler completes by calling a function of ours, at once or later, on any thread. It identifies itself by the number of
//! an entry in a table: a second call, or one after the end, finds no entry and has no effect.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use phalanx_spec::{DataType, Range, Status, keys};
use pmix::{ClientCall, ClientReturn, Event, EventDone, HandlerId, Info, Verdict};

use super::calls::{OpCallback, Registered, done_or_then, submit};
use crate::guard::{BAD, Code, caught, exported};
use crate::instance::{instance, told};
use crate::layout::*;
use crate::native::Native;
use crate::pointer::{Opaque, Ptr};
use crate::release::free_array;
use crate::server::register::ending;
use crate::value::pointer;
use crate::{cmem, from_c, to_c};

/// `pmix_event_notification_cbfunc_fn_t`
type Completion = extern "C" fn(Code, Ptr<pmix_info_t>, usize, OpCallback, Ptr<Opaque>, Ptr<Opaque>);
/// `pmix_notification_fn_t`
type Handler = extern "C" fn(
    usize,
    Code,
    Ptr<pmix_proc_t>,
    Ptr<pmix_info_t>,
    usize,
    Ptr<pmix_info_t>,
    usize,
    Completion,
    Ptr<Opaque>,
);
type Notification = Option<Handler>;

exported! {
    /// Without a callback, returns the number of the handler, or an error.
    fn PMIx_Register_event_handler(
        codes: Ptr<i32>, ncodes: usize, info: Ptr<pmix_info_t>, ninfo: usize, handler: Notification,
        callback: Registered, cbdata: Ptr<Opaque>,
    ) -> Code {
        let instance = instance()?;
        let handler = handler.ok_or(BAD)?;
        let codes: Vec<_> = codes.items(ncodes).map(Status).collect();
        let object = returned(info, ninfo);
        let info = from_c::infos(info, ninfo)?;
        // The number is known only afterwards, and an event can arrive before.
        let number = std::sync::Arc::new(std::sync::OnceLock::new());
        let known = number.clone();
        let id = instance
            .client
            .keep_event_handler(move |event: &Event, results: &[Info], done: EventDone| {
                deliver(handler, known.get().copied().unwrap_or(0), event, results, object, done);
            })
            .map_err(|error| error.status())?;
        let reference = usize::try_from(id.0).unwrap_or(usize::MAX);
        let _ = number.set(reference);
        let call = ClientCall::RegisterEvents { handler: id, codes, info };
        if let Some(callback) = callback {
            let client = instance.clone();
            return submit(call, move |answer| {
                let status = match answer {
                    Ok(ClientReturn::Done(status)) => status,
                    Ok(_) => Status::ERROR,
                    Err(error) => error.status(),
                };
                if !status.is_success() {
                    let _ = client.client.forget_event_handler(id);
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
                let _ = instance.client.forget_event_handler(id);
                Err(status)
            }
            _ => Err(Status::ERROR),
        }
    }

    fn PMIx_Deregister_event_handler(reference: usize, callback: OpCallback, cbdata: Ptr<Opaque>) -> Code {
        let instance = instance()?;
        let id = HandlerId(reference as u64);
        done_or_then(ClientCall::DeregisterEvents { handler: id }, callback, cbdata)?;
        // Queued behind the call: when this runs, the handler is not called any more.
        instance.client.forget_event_handler(id).map_err(|error| error.status())
    }

    /// Only servers may name another source: in other processes the source is always this process. An event that a server
    /// raises goes to local processes, and not back to its host.
    fn PMIx_Notify_event(
        code: i32, source: Ptr<pmix_proc_t>, range: u8, info: Ptr<pmix_info_t>, ninfo: usize, callback: OpCallback,
        cbdata: Ptr<Opaque>,
    ) -> Code {
        let instance = instance()?;
        let info = from_c::infos(info, ninfo)?;
        if let Native::Server(serving) = &instance.client {
            let source = match source.read().map(|c| from_c::proc(&c)).transpose()? {
                Some(source) if !source.nspace.is_none() => source,
                _ => instance.client.proc().clone(),
            };
            let event = Event { code: Status(code), source, range: Range(range), info };
            return match callback {
                Some(callback) => serving.server.notify_then(event, ending(callback, cbdata)).map_err(told),
                None => serving.server.notify(event).map_err(told),
            };
        }
        done_or_then(ClientCall::Notify { code: Status(code), range: Range(range), info }, callback, cbdata)
    }
}

/// The arguments of a handler that has not completed yet.
struct Delivery {
    done: EventDone,
    source: Ptr<pmix_proc_t>,
    infos: (Ptr<pmix_info_t>, usize),
    results: (Ptr<pmix_info_t>, usize),
}

#[derive(Default)]
struct Deliveries {
    last: usize,
    open: BTreeMap<usize, Delivery>,
}

static DELIVERIES: Mutex<Deliveries> = Mutex::new(Deliveries { last: 0, open: BTreeMap::new() });

fn deliveries() -> MutexGuard<'static, Deliveries> {
    DELIVERIES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn deliver(
    handler: Handler,
    reference: usize,
    event: &Event,
    results: &[Info],
    object: Option<Ptr<Opaque>>,
    done: EventDone,
) {
    let infos = to_c::infos(&event.info).map_or((Ptr::NULL, 0), |array| (array, event.info.len()));
    let results = to_c::infos(results).map_or((Ptr::NULL, 0), |array| (array, results.len()));
    if let Some(object) = object {
        give_back(infos, object);
    }
    let source = cmem::one(to_c::proc(&event.source));
    let number = {
        let mut all = deliveries();
        all.last = all.last.wrapping_add(1).max(1);
        let number = all.last;
        all.open.insert(number, Delivery { done, source, infos, results });
        number
    };
    let token = Ptr::token(number);
    handler(reference, event.code.0, source, infos.0, infos.1, results.0, results.1, completed, token);
}

extern "C" fn completed(
    status: Code,
    results: Ptr<pmix_info_t>,
    nresults: usize,
    callback: OpCallback,
    cbdata: Ptr<Opaque>,
    token: Ptr<Opaque>,
) {
    caught(|| {
        let delivery = deliveries().open.remove(&token.number());
        if let Some(delivery) = delivery {
            let results = from_c::infos(results, nresults).unwrap_or_default();
            delivery.done.complete(Verdict { status: Status(status), results });
            cmem::free(delivery.source);
            free_array(delivery.infos.0, delivery.infos.1);
            free_array(delivery.results.0, delivery.results.1);
        } else {
            tracing::warn!("an event handler has completed an event that is not open");
        }
        if let Some(callback) = callback {
            callback(Status::SUCCESS.0, cbdata);
        }
    });
}

/// The pointer that a handler wants to be passed with each event.
fn returned(info: Ptr<pmix_info_t>, count: usize) -> Option<Ptr<Opaque>> {
    info.items(count).find(is_object).map(|c| c.value.data.pointer())
}

/// Puts the handler's pointer into the event's placeholder for it.
fn give_back(infos: (Ptr<pmix_info_t>, usize), object: Ptr<Opaque>) {
    for place in infos.0.places(infos.1) {
        if let Some(mut c) = place.read().filter(is_object) {
            c.value = pointer(object);
            place.write(c);
        }
    }
}

fn is_object(c: &pmix_info_t) -> bool {
    c.value.type_.data_type() == DataType::POINTER
        && from_c::info(c).is_ok_and(|info| info.key == keys::EVENT_RETURN_OBJECT)
}
