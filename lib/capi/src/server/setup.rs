//! The environment of processes, and a host's preparation of a job.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use phalanx_spec::Status;
use phalanx_wire::{Info, Nspace};

use super::init::serving;
use super::register::{at_once, ending};
use crate::client::calls::OpCallback;
use crate::guard::{BAD, Code, caught, exported};
use crate::held::{hold, take};
use crate::instance::told;
use crate::layout::*;
use crate::names::fixed;
use crate::pointer::{Opaque, Ptr};
use crate::release::free_array;
use crate::{argv, from_c, instance, to_c};

/// `pmix_setup_application_cbfunc_t`
type SetupCallback =
    Option<extern "C" fn(Code, Ptr<pmix_info_t>, usize, Ptr<Opaque>, OpCallback, Ptr<Opaque>)>;

exported! {
    /// Edits the given array, and nothing else.
    fn PMIx_server_setup_fork(proc: Ptr<pmix_proc_t>, env: Ptr<argv::Argv>) -> Code {
        let setup = instance::fork_setup()?;
        let proc = from_c::proc(&proc.read().ok_or(BAD)?)?;
        if env.is_null() || proc.nspace.is_none() {
            return Err(BAD);
        }
        let inherited = |name: &OsStr| argv::get(env, name.as_bytes()).map(OsString::from_vec);
        for (name, value) in setup.environment(&proc, inherited) {
            argv::set(env, name.as_bytes(), value.as_deref().map(OsStr::as_bytes), true)?;
        }
        Ok(())
    }

    /// What all nodes of a job should get before it starts. The callback returns its arguments after it has copied them.
    fn PMIx_server_setup_application(
        nspace: Ptr<u8>, info: Ptr<pmix_info_t>, count: usize, callback: SetupCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        let serving = serving()?;
        let (nspace, info) = job(nspace, info, count)?;
        let callback = callback.ok_or(BAD)?;
        let ended = move |said: Result<Vec<Info>, _>| match said.map_err(told) {
            Ok(infos) if infos.is_empty() => callback(Status::SUCCESS.0, Ptr::NULL, 0, cbdata, None, Ptr::NULL),
            Ok(infos) => match to_c::infos(&infos) {
                Ok(array) => {
                    let (count, given) = (infos.len(), hold((array, infos.len())));
                    callback(Status::SUCCESS.0, array, count, cbdata, Some(given_back), given);
                }
                Err(unfit) => callback(unfit.0, Ptr::NULL, 0, cbdata, None, Ptr::NULL),
            },
            Err(status) => callback(status.0, Ptr::NULL, 0, cbdata, None, Ptr::NULL),
        };
        serving.server.setup_application_then(&nspace, &info, ended).map_err(told)
    }

    /// Changes of environments apply to children that are set up from now on, including those that are forked.
    fn PMIx_server_setup_local_support(
        nspace: Ptr<u8>, info: Ptr<pmix_info_t>, count: usize, callback: OpCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        let serving = serving()?;
        let (nspace, info) = job(nspace, info, count)?;
        let server = &serving.server;
        let ended = match callback {
            Some(callback) => {
                server.setup_local_support_then(&nspace, &info, ending(callback, cbdata)).map_err(told)
            }
            None => at_once(server.setup_local_support(&nspace, &info)),
        };
        instance::renew_fork_setup()?;
        ended
    }
}

extern "C" fn given_back(_: Code, given: Ptr<Opaque>) {
    caught(|| {
        if let Some(infos) = take::<(Ptr<pmix_info_t>, usize)>(given) {
            free_array(infos.0, infos.1);
        }
    });
}

fn job(nspace: Ptr<u8>, info: Ptr<pmix_info_t>, count: usize) -> Result<(Nspace, Vec<Info>), Status> {
    let info = from_c::readable_infos(info, count)?;
    let nspace = from_c::nspace(&fixed::<256>(nspace))?;
    if nspace.is_none() { Err(BAD) } else { Ok((nspace, info)) }
}
