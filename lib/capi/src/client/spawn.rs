//! Spawn: start a job.

use phalanx_spec::Status;
use phalanx_wire::cmd::spawn::Spawn;
use pmix::{ClientCall, ClientReturn, Error, NewJob, ProcId, Rank, Showing};

use super::calls::submit;
use super::iof::{collect_stdin, collects};
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
        let Prepared { spawn, showing, reader } = prepare(info, count, apps, napps)?;
        let job = spawned(instance.client.perform_spawn(spawn, showing))?;
        read_stdin(&job, reader);
        nspace.write(to_c::name(job.nspace.as_str()));
        Ok(())
    }

    fn PMIx_Spawn_nb(
        info: Ptr<pmix_info_t>, count: usize, apps: Ptr<pmix_app_t>, napps: usize, callback: SpawnCallback,
        cbdata: Ptr<Opaque>,
    ) -> Code {
        let callback = callback.ok_or(BAD)?;
        let Prepared { spawn, showing, reader } = prepare(info, count, apps, napps)?;
        submit(ClientCall::Spawn(spawn), move |answer| {
            let answer = spawned(answer);
            if let Ok(job) = &answer {
                showing.into_iter().for_each(|showing| showing.begin(job));
                read_stdin(job, reader);
            }
            let mut name = answer.as_ref().map_or([0; 256], |job| to_c::name(job.nspace.as_str()));
            // SAFETY: it lives until the callback has returned.
            let at = unsafe { Ptr::from_raw(&mut name) };
            callback(answer.err().unwrap_or(Status::SUCCESS).0, at, cbdata);
        })
    }
}

struct Prepared {
    spawn: Spawn,
    /// Set if the job's output is shown here.
    showing: Option<Showing>,
    /// The process that reads this process's standard input.
    reader: Option<Rank>,
}

fn prepare(
    info: Ptr<pmix_info_t>,
    count: usize,
    apps: Ptr<pmix_app_t>,
    napps: usize,
) -> Result<Prepared, Status> {
    let instance = instance()?;
    if apps.is_null() || napps == 0 {
        return Err(BAD);
    }
    let apps = apps.items(napps).map(|c| from_c::app(&c)).collect::<Result<Vec<_>, _>>()?;
    let mut spawn = Spawn { job: from_c::infos(info, count)?, apps };
    let showing = instance.client.prepare_spawn(&mut spawn).map_err(|error| error.status())?;
    let reader = collects(&spawn.job).map(|proc| proc.map_or(Rank::WILDCARD, |proc| proc.rank));
    Ok(Prepared { spawn, showing, reader })
}

fn read_stdin(job: &NewJob, reader: Option<Rank>) {
    let name = &job.nspace;
    if let Some(rank) = reader
        && let Err(status) = collect_stdin(vec![ProcId::new(name, rank)], Vec::new())
    {
        tracing::warn!(%name, %status, "standard input is not collected");
    }
}

fn spawned(answer: Result<ClientReturn, Error>) -> Result<NewJob, Status> {
    match answer.map_err(|error| error.status())? {
        ClientReturn::Spawned(result) => result,
        _ => Err(Status::ERROR),
    }
}
