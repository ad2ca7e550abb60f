//! Shared forms of results, returned by value or through a callback.

use phalanx_spec::Status;
use pmix::{ClientCall, ClientReturn, Error, Info};

use crate::guard::{Code, caught};
use crate::held::{hold, take};
use crate::instance::instance;
use crate::layout::pmix_info_t;
use crate::pointer::{Opaque, Ptr};
use crate::release::free_array;
use crate::to_c;

/// `pmix_op_cbfunc_t`
pub(crate) type OpCallback = Option<extern "C" fn(Code, Ptr<Opaque>)>;
/// `pmix_release_cbfunc_t`
pub(crate) type ReleaseCallback = Option<extern "C" fn(Ptr<Opaque>)>;
/// `pmix_info_cbfunc_t`
pub(crate) type InfoCallback = Option<TakesInfos>;
pub(crate) type TakesInfos =
    extern "C" fn(Code, Ptr<pmix_info_t>, usize, Ptr<Opaque>, ReleaseCallback, Ptr<Opaque>);
/// `pmix_hdlr_reg_cbfunc_t`
pub(super) type Registered = Option<extern "C" fn(Code, usize, Ptr<Opaque>)>;

/// Makes a call with a status as its result, and waits for it.
pub(super) fn done(call: ClientCall) -> Result<(), Status> {
    ended(instance()?.client.perform(call))
}

/// Makes a call with a status as its result and passes it to the program's callback, if there is one.
pub(super) fn done_then(call: ClientCall, callback: OpCallback, cbdata: Ptr<Opaque>) -> Result<(), Status> {
    submit(call, move |answer| {
        if let Some(callback) = callback {
            callback(ended(answer).err().unwrap_or(Status::SUCCESS).0, cbdata);
        }
    })
}

/// One or the other: without a callback the program waits.
pub(super) fn done_or_then(
    call: ClientCall,
    callback: OpCallback,
    cbdata: Ptr<Opaque>,
) -> Result<(), Status> {
    match callback {
        Some(_) => done_then(call, callback, cbdata),
        // Waiting is impossible inside a callback, and programs raise events there.
        None if instance()?.client.is_progress_thread() => submit(call, |_| {}),
        None => done(call),
    }
}

/// Makes a call with infos as its result, and returns them to the program as an array.
pub(super) fn infos(
    call: ClientCall,
    results: Ptr<Ptr<pmix_info_t>>,
    count: Ptr<usize>,
) -> Result<(), Status> {
    let (status, infos) = found(instance()?.client.perform(call));
    give(status, &infos, results, count)
}

/// Returns an array of infos to the program, which owns it.
pub(super) fn give(
    status: Status,
    infos: &[Info],
    results: Ptr<Ptr<pmix_info_t>>,
    count: Ptr<usize>,
) -> Result<(), Status> {
    results.write(Ptr::NULL);
    count.write(0);
    if !results.is_null() && !count.is_null() {
        results.write(to_c::infos(infos)?);
        count.write(infos.len());
    }
    if status.is_success() { Ok(()) } else { Err(status) }
}

/// Makes a call with infos as its result and passes them to the program's callback, which releases them. Open MPI 4 calls
/// PMIx_Job_control without a callback and does not wait.
pub(super) fn infos_then(
    call: ClientCall,
    callback: InfoCallback,
    cbdata: Ptr<Opaque>,
) -> Result<(), Status> {
    submit(call, move |answer| {
        let Some(callback) = callback else { return };
        let (status, infos) = found(answer);
        hand_over(callback, status, &infos, cbdata);
    })
}

/// Passes infos to the program's callback, which releases them.
pub(crate) fn hand_over(callback: TakesInfos, status: Status, infos: &[Info], cbdata: Ptr<Opaque>) {
    let mut status = status;
    let array = to_c::infos(infos).unwrap_or_else(|unfit| {
        status = unfit;
        Ptr::NULL
    });
    let count = if array.is_null() { 0 } else { infos.len() };
    callback(status.0, array, count, cbdata, Some(release_infos), hold((array, count)));
}

extern "C" fn release_infos(infos: Ptr<Opaque>) {
    caught(|| {
        if let Some(infos) = take::<(Ptr<pmix_info_t>, usize)>(infos) {
            free_array(infos.0, infos.1);
        }
    });
}

pub(super) fn submit(
    call: ClientCall,
    then: impl FnOnce(Result<ClientReturn, Error>) + Send + 'static,
) -> Result<(), Status> {
    instance()?.client.submit(call, then).map_err(|error| error.status())
}

pub(crate) fn ended(answer: Result<ClientReturn, Error>) -> Result<(), Status> {
    match answer.map_err(|error| error.status())? {
        ClientReturn::Done(status) if status.is_success() => Ok(()),
        ClientReturn::Done(status) => Err(status),
        _ => Err(Status::ERROR),
    }
}

pub(super) fn found(answer: Result<ClientReturn, Error>) -> (Status, Vec<Info>) {
    match answer {
        Ok(ClientReturn::Infos(status, infos)) => (status, infos),
        Ok(_) => (Status::ERROR, Vec::new()),
        Err(error) => (error.status(), Vec::new()),
    }
}
