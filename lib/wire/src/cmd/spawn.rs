//! SPAWN: start another job. The reply contains its job data, which saves the parent another request.

use phalanx_spec::Status;

use super::Body;
use crate::cmd::job_data::{EncodedJob, JobData};
use crate::codec::{DecodeError, Dialect, Reader, Writer};
use crate::info::{Info, Kval};
use crate::value::App;

#[derive(Clone, Debug, PartialEq)]
pub struct Spawn {
    pub job: Vec<Info>,
    pub apps: Vec<App>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub status: Status,
    /// The new job; absent on failure.
    pub job: Option<JobData>,
}

impl Body for Spawn {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put_list(&self.job).put_list(&self.apps);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Spawn { job: from.get_list()?, apps: from.get_list()? })
    }
}

impl Body for Reply {
    fn write(&self, to: &mut Writer, dialect: Dialect) {
        to.put(&self.status);
        if let Some(job) = &self.job {
            job.write(to, dialect);
        }
    }
    fn read(from: &mut Reader<'_>, dialect: Dialect) -> Result<Self, DecodeError> {
        let status: Status = from.get()?;
        // A failure may be followed by an empty name.
        let job = if from.is_at_end() { None } else { Some(JobData::read(from, dialect)?) };
        Ok(Reply { status, job: job.filter(|_| status.is_success()) })
    }
}

/// A successful [`Reply`] around job data packed earlier, with one more value of the job.
pub fn encode_success(job: &EncodedJob, further: Option<&Kval>) -> Vec<u8> {
    let mut writer = Writer::new(job.format());
    writer.put(&Status::SUCCESS).put_items(&job.body());
    if let Some(further) = further {
        writer.put(further);
    }
    writer.into_bytes()
}
