//! GET and REFRESH_CACHE: values of another process, or of a job.

use phalanx_spec::{Rank, Status};

use super::Body;
use crate::codec::{DecodeError, Dialect, Format, Reader, Writer};
use crate::info::{Info, Kval};
use crate::name::{Key, Nspace, ProcId};
use crate::text::Blob;

/// Without a key: all values of the rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Get {
    pub nspace: Nspace,
    pub rank: Rank,
    pub info: Vec<Info>,
    pub key: Option<Key>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RefreshCache {
    pub nspace: Nspace,
    pub rank: Rank,
}

/// The values of one owner. Rank WILDCARD owns job-level data; rank UNDEF stands for the receiver itself.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnerData {
    pub owner: ProcId,
    pub values: Vec<Kval>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub status: Status,
    pub data: Vec<OwnerData>,
}

/// The answer to REFRESH_CACHE. 5.0.11 sends garbage as its status.
#[derive(Clone, Debug, PartialEq)]
pub struct RefreshReply {
    pub status: Status,
    pub values: Vec<Kval>,
}

impl Body for Get {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.nspace).put(&self.rank).put_list(&self.info);
        if let Some(key) = &self.key {
            to.put(key);
        }
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let (nspace, rank, info) = (from.get()?, from.get()?, from.get_list()?);
        let key = if from.is_at_end() { None } else { Some(from.get()?) };
        Ok(Get { nspace, rank, info, key })
    }
}

impl Body for RefreshCache {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.nspace).put(&self.rank);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(RefreshCache { nspace: from.get()?, rank: from.get()? })
    }
}

impl OwnerData {
    /// The content of the byte object.
    pub fn encode(&self, format: Format) -> Vec<u8> {
        let mut writer = Writer::new(format);
        writer.put(&self.owner);
        self.values.iter().for_each(|value| {
            writer.put(value);
        });
        writer.into_bytes()
    }

    pub fn decode(bytes: &[u8], format: Format) -> Result<OwnerData, DecodeError> {
        let mut reader = Reader::new(format, bytes);
        Ok(OwnerData { owner: reader.get()?, values: reader.get_rest()? })
    }
}

impl Body for Reply {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.status);
        let format = to.format();
        for owner in &self.data {
            to.put(&Blob::from(owner.encode(format)));
        }
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let status = from.get()?;
        let mut data = Vec::new();
        while !from.is_at_end() {
            let owner: Blob = from.get()?;
            data.push(OwnerData::decode(owner.as_bytes(), from.format())?);
        }
        Ok(Reply { status, data })
    }
}

impl Body for RefreshReply {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.status);
        self.values.iter().for_each(|value| {
            to.put(value);
        });
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(RefreshReply { status: from.get()?, values: from.get_rest()? })
    }
}

/// A successful [`Reply`] made of blobs packed earlier in this format by [`OwnerData::encode`].
pub fn encode_success<'a>(owners: impl IntoIterator<Item = &'a Blob>, format: Format) -> Vec<u8> {
    let mut writer = Writer::new(format);
    writer.put(&Status::SUCCESS);
    for owner in owners {
        writer.put(owner);
    }
    writer.into_bytes()
}

/// Ours only, in a get for which several gets of the client wait. The server may answer as soon as the target process has committed
/// anything new; if the key is not included, the status is `PMIX_ERR_PARTIAL_SUCCESS`. The value: 0, or for how many milliseconds
/// the client has waited since the first such answer.
pub const PARTIAL: &str = "phalanx.get.partial";
