//! GROUP_CONSTRUCT, GROUP_DESTRUCT, GROUP_LEAVE. Join and invite are events.
//!
//! The layout changed with each family; the peer's release decides.

use phalanx_spec::Status;

use super::Body;
use crate::cmd::job_data::JobData;
use crate::codec::{DecodeError, Dialect, Reader, Size, Writer};
use crate::info::Info;
use crate::name::ProcId;
use crate::text::Blob;
use crate::text::Text;

#[derive(Clone, Debug, PartialEq)]
pub struct Construct {
    pub id: Text,
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
}

/// 4.2 clients do not send the members.
#[derive(Clone, Debug, PartialEq)]
pub struct Destruct {
    pub id: Text,
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Leave {
    pub id: Text,
    pub info: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ConstructReply {
    pub status: Status,
    pub members: Vec<ProcId>,
    /// `None` when no context id was requested.
    pub context_id: Option<u64>,
    /// Infos that members contributed (6.1).
    pub info: Vec<Info>,
    /// The job data of the members' other namespaces (5.0).
    pub jobs: Vec<JobData>,
}

/// The same between libraries of ours, with all fields.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeReply(pub ConstructReply);

impl Body for Construct {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.id).put_list(&self.procs).put_list(&self.info);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Construct { id: from.get()?, procs: from.get_list()?, info: from.get_list()? })
    }
}

impl Body for Destruct {
    fn write(&self, to: &mut Writer, dialect: Dialect) {
        to.put(&self.id);
        if dialect.release.major >= 5 {
            to.put_list(&self.procs);
        }
        to.put_list(&self.info);
    }
    fn read(from: &mut Reader<'_>, dialect: Dialect) -> Result<Self, DecodeError> {
        let id = from.get()?;
        let procs = if dialect.release.major >= 5 { from.get_list()? } else { Vec::new() };
        Ok(Destruct { id, procs, info: from.get_list()? })
    }
}

impl Body for Leave {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.id).put_list(&self.info);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Leave { id: from.get()?, info: from.get_list()? })
    }
}

impl Body for ConstructReply {
    fn write(&self, to: &mut Writer, dialect: Dialect) {
        to.put(&self.status);
        if !self.status.is_success() {
            return;
        }
        let context_id = Size(self.context_id.unwrap_or(NO_CONTEXT));
        match dialect.release.major {
            ..5 => {
                to.put(&context_id);
            }
            5 => {
                to.put_list(&self.members).put(&context_id);
                self.jobs.iter().for_each(|job| {
                    to.put(&Blob::from(job.encode(dialect)));
                });
            }
            6.. => {
                to.put_list(&self.members).put(&self.context_id.is_some());
                self.context_id.iter().for_each(|id| {
                    to.put(&Size(*id));
                });
                to.put(&Size(self.info.len() as u64));
                self.info.iter().for_each(|info| {
                    to.put(info);
                });
            }
        }
    }
    fn read(from: &mut Reader<'_>, dialect: Dialect) -> Result<Self, DecodeError> {
        let mut reply = ConstructReply {
            status: from.get()?,
            members: Vec::new(),
            context_id: None,
            info: Vec::new(),
            jobs: Vec::new(),
        };
        if from.is_at_end() {
            return Ok(reply);
        }
        match dialect.release.major {
            ..5 => reply.context_id = context_id(from.get()?),
            5 => {
                reply.members = from.get_list()?;
                reply.context_id = context_id(from.get()?);
                while !from.is_at_end() {
                    let job: Blob = from.get()?;
                    reply.jobs.push(JobData::decode(job.as_bytes(), dialect)?);
                }
            }
            6.. => {
                reply.members = from.get_list()?;
                if from.get()? {
                    let Size(id) = from.get()?;
                    reply.context_id = Some(id);
                }
                let Size(n) = from.get()?;
                for _ in 0..n {
                    reply.info.push(from.get()?);
                }
            }
        }
        // The layouts resemble each other: trailing bytes show that the wrong one was used.
        from.expect_end()?;
        Ok(reply)
    }
}

impl Body for WholeReply {
    fn write(&self, to: &mut Writer, dialect: Dialect) {
        let WholeReply(reply) = self;
        to.put(&reply.status);
        if !reply.status.is_success() {
            return;
        }
        to.put_list(&reply.members).put(&Size(reply.context_id.unwrap_or(NO_CONTEXT))).put_list(&reply.info);
        reply.jobs.iter().for_each(|job| {
            to.put(&Blob::from(job.encode(dialect)));
        });
    }
    fn read(from: &mut Reader<'_>, dialect: Dialect) -> Result<Self, DecodeError> {
        let status = from.get()?;
        let (members, info, jobs) = (Vec::new(), Vec::new(), Vec::new());
        let mut reply = ConstructReply { status, members, context_id: None, info, jobs };
        if from.is_at_end() {
            return Ok(WholeReply(reply));
        }
        reply.members = from.get_list()?;
        reply.context_id = context_id(from.get()?);
        reply.info = from.get_list()?;
        while !from.is_at_end() {
            let job: Blob = from.get()?;
            reply.jobs.push(JobData::decode(job.as_bytes(), dialect)?);
        }
        Ok(WholeReply(reply))
    }
}

/// Stands for a missing context id before 6.1.
const NO_CONTEXT: u64 = u64::MAX;

fn context_id(Size(id): Size) -> Option<u64> {
    Some(id).filter(|id| *id != NO_CONTEXT)
}
