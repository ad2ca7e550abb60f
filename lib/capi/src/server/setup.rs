//! What processes find in their environment, and what a host prepares for a job.

use phalanx_spec::Status;
use phalanx_wire::Nspace;

use super::init::serving;
use super::register::at_once;
use crate::argv;
use crate::client::calls::OpCallback;
use crate::from_c;
use crate::guard::{BAD, Code, exported};
use crate::instance;
use crate::layout::*;
use crate::names::fixed;
use crate::pointer::{Opaque, Ptr};

/// `pmix_setup_application_cbfunc_t`
type SetupCallback =
    Option<extern "C" fn(Code, Ptr<pmix_info_t>, usize, Ptr<Opaque>, OpCallback, Ptr<Opaque>)>;

exported! {
    /// Edits the array that it is given, and nothing else.
    fn PMIx_server_setup_fork(proc: Ptr<pmix_proc_t>, env: Ptr<argv::Argv>) -> Code {
        let setup = instance::fork_setup()?;
        let proc = from_c::proc(&proc.read().ok_or(BAD)?)?;
        if env.is_null() || proc.nspace.is_none() {
            return Err(BAD);
        }
        for (name, value) in setup.environment(&proc) {
            argv::set(env, name.as_bytes(), Some(value.as_bytes()), true)?;
        }
        Ok(())
    }

    /// There is nothing that all nodes of a job would have to be told before it starts.
    fn PMIx_server_setup_application(
        nspace: Ptr<u8>, info: Ptr<pmix_info_t>, count: usize, callback: SetupCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        job(nspace, info, count)?;
        let callback = callback.ok_or(BAD)?;
        callback(Status::SUCCESS.0, Ptr::NULL, 0, cbdata, None, Ptr::NULL);
        Ok(())
    }

    /// Nor is anything to be done with it.
    fn PMIx_server_setup_local_support(
        nspace: Ptr<u8>, info: Ptr<pmix_info_t>, count: usize, callback: OpCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        job(nspace, info, count)?;
        match callback {
            Some(callback) => {
                callback(Status::SUCCESS.0, cbdata);
                Ok(())
            }
            None => at_once(Ok(())),
        }
    }
}

fn job(nspace: Ptr<u8>, info: Ptr<pmix_info_t>, count: usize) -> Result<Nspace, Status> {
    serving()?;
    from_c::readable_infos(info, count)?;
    let nspace = from_c::nspace(&fixed::<256>(nspace))?;
    if nspace.is_none() { Err(BAD) } else { Ok(nspace) }
}
