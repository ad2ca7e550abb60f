//! Spawn: start a job.

use phalanx_spec::Status;
use phalanx_wire::cmd::spawn::Spawn;
use pmix::{ClientCall, ClientReturn, Error, NewJob, ProcId, Rank, Showing, begin_here};

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
        let (call, beginning) = call(info, count, apps, napps)?;
        let answer = spawned(instance.client.perform(call));
        instance.client.settle_shown();
        let job = answer?;
        beginning.run(&job);
        nspace.write(to_c::name(job.nspace.as_str()));
        Ok(())
    }

    fn PMIx_Spawn_nb(
        info: Ptr<pmix_info_t>, count: usize, apps: Ptr<pmix_app_t>, napps: usize, callback: SpawnCallback,
        cbdata: Ptr<Opaque>,
    ) -> Code {
        let callback = callback.ok_or(BAD)?;
        let (call, beginning) = call(info, count, apps, napps)?;
        submit(call, move |answer| {
            let answer = spawned(answer);
            if let Ok(job) = &answer {
                beginning.run(job);
            }
            let mut name = answer.as_ref().map_or([0; 256], |job| to_c::name(job.nspace.as_str()));
            // SAFETY: it lives until the callback has returned.
            let at = unsafe { Ptr::from_raw(&mut name) };
            callback(answer.err().unwrap_or(Status::SUCCESS).0, at, cbdata);
        })
    }
}

fn call(
    info: Ptr<pmix_info_t>,
    count: usize,
    apps: Ptr<pmix_app_t>,
    napps: usize,
) -> Result<(ClientCall, Beginning), Status> {
    let instance = instance()?;
    if apps.is_null() || napps == 0 {
        return Err(BAD);
    }
    let mut apps = apps.items(napps).map(|c| from_c::app(&c)).collect::<Result<Vec<_>, _>>()?;
    begin_here(&mut apps);
    let mut job = from_c::infos(info, count)?;
    let showing = instance.client.show_spawned(&mut job).map_err(|error| error.status())?;
    let reader = collects(&job).map(|proc| proc.map_or(Rank::WILDCARD, |proc| proc.rank));
    Ok((ClientCall::Spawn(Spawn { job, apps }), Beginning { showing, reader }))
}

/// What to do when the job has been started.
struct Beginning {
    /// Set if its output is shown here.
    showing: Option<Showing>,
    /// The process that reads this process's standard input.
    reader: Option<Rank>,
}

impl Beginning {
    fn run(self, job: &NewJob) {
        if let Some(showing) = self.showing {
            showing.begin(job);
        }
        let name = &job.nspace;
        if let Some(rank) = self.reader
            && let Err(status) = collect_stdin(vec![ProcId::new(name, rank)], Vec::new())
        {
            tracing::warn!(%name, %status, "standard input is not collected");
        }
    }
}

fn spawned(answer: Result<ClientReturn, Error>) -> Result<NewJob, Status> {
    match answer.map_err(|error| error.status())? {
        ClientReturn::Spawned(result) => result,
        _ => Err(Status::ERROR),
    }
}
