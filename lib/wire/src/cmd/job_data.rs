//! The answer to REQ: what a process must know about its job, in hash form.
//!
//! Arrays (`pmix.node.arr`, `pmix.app.arr`, `pmix.ssn.arr`) are values. The data of each rank travels as a `pmix.pblob`
//! byte object or as a `pmix.pdata` array; [`JobData`] holds either unpacked in `procs` and sends the former.

use phalanx_spec::{Rank, keys};

use super::Body;
use crate::codec::{DecodeError, Dialect, Format, Reader, Writer};
use crate::info::{DataArray, Kval};
use crate::name::Nspace;
use crate::text::Blob;
use crate::value::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct JobData {
    pub nspace: Nspace,
    /// Job-level values and the node, app and session arrays.
    pub values: Vec<Kval>,
    /// Values of single ranks.
    pub procs: Vec<(Rank, Vec<Kval>)>,
}

impl JobData {
    /// Sorts values that arrived in one message: those of single ranks go to `procs`.
    pub fn from_values(nspace: Nspace, all: Vec<Kval>, format: Format) -> Result<JobData, DecodeError> {
        let mut job = JobData { nspace, values: Vec::new(), procs: Vec::new() };
        for kval in all {
            match JobItem::of(kval, format)? {
                JobItem::OfJob(kval) => job.values.push(kval),
                JobItem::OfProc(rank, values) => job.procs.push((rank, values)),
            }
        }
        Ok(job)
    }

    /// Like decoding it, one item at a time.
    pub fn items(bytes: &[u8], dialect: Dialect) -> Result<(Nspace, JobItems<'_>), DecodeError> {
        let mut from = Reader::new(dialect.format, bytes);
        let nspace = from.get()?;
        Ok((nspace, JobItems { from }))
    }

    /// Packs the data once, to be sent many times.
    pub fn encoded(&self, format: Format) -> EncodedJob {
        let mut writer = Writer::new(format);
        self.write_values(&mut writer);
        EncodedJob { nspace: self.nspace.clone(), format, values: Blob::from(writer.into_bytes()) }
    }

    fn write_values(&self, to: &mut Writer) {
        for value in &self.values {
            to.put(value);
        }
        for (rank, values) in &self.procs {
            put_proc(to, *rank, values);
        }
    }
}

impl Body for JobData {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.nspace);
        self.write_values(to);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let nspace = from.get()?;
        JobData::from_values(nspace, from.get_rest()?, from.format())
    }
}

/// One item of job data.
#[derive(Clone, Debug, PartialEq)]
pub enum JobItem {
    OfJob(Kval),
    OfProc(Rank, Vec<Kval>),
}

impl JobItem {
    fn of(kval: Kval, format: Format) -> Result<JobItem, DecodeError> {
        Ok(match kval.value {
            Value::ByteObject(blob) if kval.key == keys::PROC_BLOB => {
                let mut reader = Reader::new(format, blob.as_bytes());
                JobItem::OfProc(reader.get()?, reader.get_rest()?)
            }
            Value::DataArray(array) if kval.key == keys::PROC_DATA => {
                let (rank, values) = proc_data(&array)?;
                JobItem::OfProc(rank, values)
            }
            value => JobItem::OfJob(Kval { key: kval.key, value }),
        })
    }
}

/// Job data, decoded on demand. The first error ends the iteration.
#[derive(Clone, Debug)]
pub struct JobItems<'a> {
    from: Reader<'a>,
}

impl Iterator for JobItems<'_> {
    type Item = Result<JobItem, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.from.is_at_end() {
            return None;
        }
        let format = self.from.format();
        let item = self.from.get().and_then(|kval| JobItem::of(kval, format));
        if item.is_err() {
            self.from = Reader::new(format, &[]);
        }
        Some(item)
    }
}

/// The job data of one namespace in one peer format. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct EncodedJob {
    nspace: Nspace,
    format: Format,
    values: Blob,
}

impl EncodedJob {
    /// The whole answer to REQ; also the content of the byte objects in connect and group answers.
    pub fn body(&self) -> Vec<u8> {
        let mut writer = Writer::new(self.format);
        writer.put(&self.nspace).put_items(self.values.as_bytes());
        writer.into_bytes()
    }

    /// The answer to REQ with further values of the job and of one rank.
    pub fn body_for(&self, of_job: &[Kval], rank: Rank, further: &[Kval]) -> Vec<u8> {
        let mut writer = Writer::new(self.format);
        writer.put(&self.nspace).put_items(self.values.as_bytes());
        for value in of_job {
            writer.put(value);
        }
        put_proc(&mut writer, rank, further);
        writer.into_bytes()
    }

    pub fn format(&self) -> Format {
        self.format
    }
}

fn put_proc(to: &mut Writer, rank: Rank, values: &[Kval]) {
    let mut blob = Writer::new(to.format());
    blob.put(&rank);
    for value in values {
        blob.put(value);
    }
    to.put(&Kval::new(keys::PROC_BLOB, Blob::from(blob.into_bytes())));
}

/// The array form of one rank's values: the first info is the rank.
fn proc_data(array: &DataArray) -> Result<(Rank, Vec<Kval>), DecodeError> {
    let mut infos = array.infos();
    let rank = infos.next().filter(|info| info.key == keys::RANK).and_then(|info| info.value.as_rank());
    let rank = rank.ok_or(DecodeError::Malformed { what: "the rank of a pmix.pdata array" })?;
    Ok((rank, infos.map(|info| Kval { key: info.key.clone(), value: info.value.clone() }).collect()))
}
