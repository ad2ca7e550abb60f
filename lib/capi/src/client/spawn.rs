//! Spawn: start a job.

use phalanx_spec::Status;
use pmix::{ClientCall, ClientReturn, Error, Nspace};

use super::calls::submit;
use crate::guard::{BAD, Code, exported};
use crate::instance::instance;
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};
use crate::{from_c, to_c};

/// `pmix_spawn_cbfunc_t`
pub(crate) type SpawnCallback = Option<extern "C" fn(Code, Ptr<[u8; 256]>, Ptr<Opaque>)>;

exported! {
    /// `nspace` (may be NULL) is set to the name of the new job.
    fn PMIx_Spawn(
        info: Ptr<pmix_info_t>, count: usize, apps: Ptr<pmix_app_t>, napps: usize, nspace: Ptr<[u8; 256]>,
    ) -> Code {
        let instance = instance()?;
        let name = spawned(instance.client.perform(call(info, count, apps, napps)?))?;
        nspace.write(to_c::name(name.as_str()));
        Ok(())
    }

    fn PMIx_Spawn_nb(
        info: Ptr<pmix_info_t>, count: usize, apps: Ptr<pmix_app_t>, napps: usize, callback: SpawnCallback,
        cbdata: Ptr<Opaque>,
    ) -> Code {
        let callback = callback.ok_or(BAD)?;
        submit(call(info, count, apps, napps)?, move |answer| {
            let answer = spawned(answer);
            let mut name = answer.as_ref().map_or([0; 256], |name| to_c::name(name.as_str()));
            callback(answer.err().unwrap_or(Status::SUCCESS).0, Ptr::from_raw(&mut name), cbdata);
        })
    }
}

fn call(
    info: Ptr<pmix_info_t>,
    count: usize,
    apps: Ptr<pmix_app_t>,
    napps: usize,
) -> Result<ClientCall, Status> {
    instance()?;
    if apps.is_null() || napps == 0 {
        return Err(BAD);
    }
    let apps = apps.items(napps).map(|c| from_c::app(&c)).collect::<Result<Vec<_>, _>>()?;
    Ok(ClientCall::Spawn { job: from_c::infos(info, count)?, apps })
}

fn spawned(answer: Result<ClientReturn, Error>) -> Result<Nspace, Status> {
    match answer.map_err(|error| error.status())? {
        ClientReturn::Spawned(name) => name,
        _ => Err(Status::ERROR),
    }
}
