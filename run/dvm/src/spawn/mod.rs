//! A job request as arguments of `PMIx_Spawn`, and back: one table of attributes, read in both directions.
//!
//! `px run` uses it to send the user's job to another DVM, and the root of a DVM to read the requests of processes and tools.
//! So a request means the same wherever it is carried out. What the standard has no attribute for has one of our own; those
//! that change the job essentially are marked as required, so that they are never dropped silently.

mod app;
mod job;
mod listed;
mod placement;

use phalanx_spec::keys;
use phalanx_wire::{App, Info, InfoList, ProcId, Text, Value};

use crate::job::JobRequest;
use crate::msg::environment;

pub use crate::msg::control::KILL_AFTER;
pub use app::HOSTS;
pub use job::{CHECKPOINT_COMMAND, KILL_ON_SIGNAL, MOST_RESTARTS, RESTART_COMMAND, WHOLE_ENV};
pub use placement::{RANKFILE, SEQUENCE};

/// One attribute: how it is read into a request, and written from one.
pub(crate) struct Attribute<T: 'static> {
    key: &'static str,
    /// The error describes what is wrong with the value.
    read: fn(&mut T, &Value) -> Result<(), String>,
    write: fn(&T) -> Option<Value>,
    /// A server that does not know it must refuse the spawn.
    required: bool,
}

/// The attributes of whole jobs.
pub(crate) const JOB: &[&str] = &keys_of(&job::TABLE);
/// The attributes of single programs. Given for the job, they are the defaults of every program.
pub(crate) const APP: &[&str] = &keys_of(&app::TABLE);
/// How ranks are placed: for the job, or for one program.
pub(crate) const PLACEMENT: &[&str] = &keys_of(&placement::TABLE);
/// The attributes of jobs that a request keeps unchanged for the code that carries them out.
pub(crate) const KEPT: &[&str] =
    &[keys::IOF_CACHE_SIZE, keys::IOF_DROP_NEWEST, keys::IOF_DROP_OLDEST, keys::NOHUP, keys::SPAWN_CHILD_SEP];

/// Whether a directive can be carried out for one program alone.
pub(crate) fn is_of_app(key: &str) -> bool {
    [APP, PLACEMENT, environment::ATTRIBUTES].iter().any(|keys| keys.contains(&key))
}

impl JobRequest {
    /// The arguments of `PMIx_Spawn`. Programs get the job's environment with their own.
    pub fn to_spawn(&self) -> (Vec<Info>, Vec<App>) {
        let mut job = write(&job::TABLE, self);
        job.extend(write(&placement::TABLE, &self.policy));
        job.extend_from_slice(&self.info);
        (job, self.apps.iter().map(|app| app::to_app(app, &self.env)).collect())
    }

    /// The request of a spawn. Its programs start with the environment `env`. The error is for the requester.
    pub(crate) fn of_spawn(
        from: &ProcId,
        env: Vec<Text>,
        job: &[Info],
        apps: &[App],
    ) -> Result<JobRequest, String> {
        let mut request = JobRequest { env, parent: Some(from.clone()), ..job::unsaid(job) };
        read(&job::TABLE, &mut request, job)?;
        request.policy = placement::policy(job)?;
        request.apps = apps.iter().map(|app| app::of_app(app, job)).collect::<Result<_, _>>()?;
        let is_read = |key: &str| JOB.contains(&key) || is_of_app(key);
        request.info = job.iter().filter(|info| !is_read(info.key.as_str())).cloned().collect();
        Ok(request)
    }
}

/// Reads attributes in the order of the table, whatever their order in the request.
fn read<T>(table: &[Attribute<T>], to: &mut T, said: &[Info]) -> Result<(), String> {
    for attribute in table {
        if let Some(value) = said.find(attribute.key) {
            (attribute.read)(to, value).map_err(|problem| format!("{}: {problem}", attribute.key))?;
        }
    }
    Ok(())
}

fn write<T>(table: &[Attribute<T>], of: &T) -> Vec<Info> {
    let said = table.iter().filter_map(|attribute| {
        let info = Info::new(attribute.key, (attribute.write)(of)?);
        Some(if attribute.required { info.required() } else { info })
    });
    said.collect()
}

const fn keys_of<T, const N: usize>(table: &[Attribute<T>; N]) -> [&'static str; N] {
    let mut keys = [""; N];
    let mut row = 0;
    while row < N {
        keys[row] = table[row].key;
        row += 1;
    }
    keys
}

fn set<T>(place: &mut T, value: T) -> Result<(), String> {
    *place = value;
    Ok(())
}

fn text(value: &Value) -> Result<&Text, String> {
    value.as_text().ok_or_else(|| "expected a string".to_owned())
}

fn words(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "expected a string".to_owned())
}

#[cfg(test)]
mod tests;
