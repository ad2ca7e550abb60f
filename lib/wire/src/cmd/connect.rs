//! CONNECT and DISCONNECT: bind processes of several jobs together (RFC0003).

use phalanx_spec::Status;

use super::Body;
use crate::cmd::job_data::{EncodedJob, JobData};
use crate::codec::{DecodeError, Dialect, Format, Reader, Writer};
use crate::info::Info;
use crate::name::ProcId;
use crate::text::Blob;

/// `endpoints` is what a 6.1 client adds: its put values per scope, as `pmix.pdata` infos.
#[derive(Clone, Debug, PartialEq)]
pub struct Connect {
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
    pub endpoints: Vec<Info>,
}

/// `jobs`: the job data of each participating namespace except the receiver's.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub status: Status,
    pub jobs: Vec<JobData>,
}

impl Body for Connect {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put_list(&self.procs).put_list(&self.info);
        self.endpoints.iter().for_each(|info| {
            to.put(info);
        });
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Connect { procs: from.get_list()?, info: from.get_list()?, endpoints: from.get_rest()? })
    }
}

impl Body for Reply {
    fn write(&self, to: &mut Writer, dialect: Dialect) {
        to.put(&self.status);
        for job in &self.jobs {
            to.put(&Blob::from(job.encode(dialect)));
        }
    }
    fn read(from: &mut Reader<'_>, dialect: Dialect) -> Result<Self, DecodeError> {
        let status = from.get()?;
        let mut jobs = Vec::new();
        while !from.is_at_end() {
            let job: Blob = from.get()?;
            jobs.push(JobData::decode(job.as_bytes(), dialect)?);
        }
        Ok(Reply { status, jobs })
    }
}

/// A successful [`Reply`] around job data already packed in this format.
pub fn encode_success<'a>(jobs: impl IntoIterator<Item = &'a EncodedJob>, format: Format) -> Vec<u8> {
    let mut writer = Writer::new(format);
    writer.put(&Status::SUCCESS);
    for job in jobs {
        writer.put(&Blob::from(job.body()));
    }
    writer.into_bytes()
}
