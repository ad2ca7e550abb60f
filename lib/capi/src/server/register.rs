//! Registration of jobs and of the local processes that may connect.

use phalanx_spec::{Rank, Status};
use phalanx_wire::ProcId;
use pmix::Error;

use super::init::serving;
use crate::client::calls::OpCallback;
use crate::from_c;
use crate::guard::{BAD, exported};
use crate::instance::told;
use crate::layout::*;
use crate::names::fixed;
use crate::pointer::{Opaque, Ptr};

exported! {
    /// Registers a job, or adds to one that was registered before. Without a callback the call waits, and returns that the
    /// operation is complete.
    fn PMIx_server_register_nspace(
        nspace: Ptr<u8>, nlocal: i32, info: Ptr<pmix_info_t>, count: usize, callback: OpCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        let serving = serving()?;
        let nspace = from_c::nspace(&fixed::<256>(nspace))?;
        if nspace.is_none() {
            return Err(BAD);
        }
        let info = from_c::readable_infos(info, count)?;
        // Negative: unknown to the host.
        let local = u32::try_from(nlocal).ok();
        let server = &serving.server;
        match callback {
            Some(callback) => {
                server.register_nspace_then(&nspace, local, &info, ending(callback, cbdata)).map_err(told)
            }
            None => at_once(server.register_nspace(&nspace, local, &info)),
        }
    }

    /// `object` is passed to the host with that client's requests.
    fn PMIx_server_register_client(
        proc: Ptr<pmix_proc_t>, uid: u32, gid: u32, object: Ptr<Opaque>, callback: OpCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        let serving = serving()?;
        let proc = from_c::proc(&proc.read().ok_or(BAD)?)?;
        if proc.nspace.is_none() || !proc.rank.is_process() {
            return Err(BAD);
        }
        serving.objects.set(proc.clone(), object);
        let server = &serving.server;
        match callback {
            Some(callback) => {
                server.register_client_then(&proc, uid, gid, ending(callback, cbdata)).map_err(told)
            }
            None => at_once(server.register_client(&proc, uid, gid)),
        }
    }

    /// With rank WILDCARD all clients of the job. Without a callback the call waits; an unknown client counts as
    /// deregistered.
    fn PMIx_server_deregister_client(proc: Ptr<pmix_proc_t>, callback: OpCallback, cbdata: Ptr<Opaque>) {
        ended(deregister_client(proc, callback, cbdata), callback, cbdata);
    }

    fn PMIx_server_deregister_nspace(nspace: Ptr<u8>, callback: OpCallback, cbdata: Ptr<Opaque>) {
        ended(deregister_nspace(nspace, callback, cbdata), callback, cbdata);
    }
}

fn deregister_client(
    proc: Ptr<pmix_proc_t>,
    callback: OpCallback,
    cbdata: Ptr<Opaque>,
) -> Result<(), Status> {
    let serving = serving()?;
    let proc = from_c::proc(&proc.read().ok_or(BAD)?)?;
    let meant = |one: &ProcId| one.nspace == proc.nspace && [one.rank, Rank::WILDCARD].contains(&proc.rank);
    serving.objects.forget(meant);
    let server = &serving.server;
    match callback {
        Some(callback) => server.deregister_client_then(&proc, gone(callback, cbdata)).map_err(told),
        None if server.is_progress_thread() => server.deregister_client_then(&proc, |_| {}).map_err(told),
        None => server.deregister_client(&proc).map_err(|error| error.status()),
    }
}

fn deregister_nspace(nspace: Ptr<u8>, callback: OpCallback, cbdata: Ptr<Opaque>) -> Result<(), Status> {
    let serving = serving()?;
    let nspace = from_c::nspace(&fixed::<256>(nspace))?;
    serving.objects.forget(|proc| proc.nspace == nspace);
    let server = &serving.server;
    match callback {
        Some(callback) => server.deregister_nspace_then(&nspace, gone(callback, cbdata)).map_err(told),
        None if server.is_progress_thread() => server.deregister_nspace_then(&nspace, |_| {}).map_err(told),
        None => server.deregister_nspace(&nspace).map_err(|error| error.status()),
    }
}

type Callback = extern "C" fn(i32, Ptr<Opaque>);

/// Reports the outcome to the host's callback.
pub(crate) fn ending(
    callback: Callback,
    cbdata: Ptr<Opaque>,
) -> impl FnOnce(Result<(), Error>) + Send + 'static {
    move |ended| callback(ended.err().map_or(Status::SUCCESS, told).0, cbdata)
}

/// The same where an unknown object counts as success.
fn gone(callback: Callback, cbdata: Ptr<Opaque>) -> impl FnOnce(Result<(), Error>) + Send + 'static {
    move |ended| {
        let status = ended.err().map_or(Status::SUCCESS, |error| error.status());
        let status = if status == Status::ERR_NOT_FOUND { Status::SUCCESS } else { status };
        callback(status.0, cbdata);
    }
}

/// The result of a call that has waited.
pub(super) fn at_once(ended: Result<(), Error>) -> Result<(), Status> {
    Err(ended.err().map_or(Status::OPERATION_SUCCEEDED, told))
}

/// For functions that return nothing: errors before the start are reported to the callback.
fn ended(begun: Result<(), Status>, callback: OpCallback, cbdata: Ptr<Opaque>) {
    if let (Err(status), Some(callback)) = (begun, callback) {
        callback(status.0, cbdata);
    }
}
