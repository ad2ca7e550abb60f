//! PUBLISH, LOOKUP, UNPUBLISH. Data and directives share one list of infos.

use phalanx_spec::{Persistence, Range, Status, keys};

use super::Body;
use crate::codec::{DecodeError, Dialect, Reader, Size, Writer};
use crate::info::{Info, InfoList, Pdata};
use crate::name::Key;
use crate::value::Value;

/// `uid` is the client's claim. A server never trusts it; the host gets the uid that the kernel reports. Infos with reserved keys are
/// directives, the others are the published data.
#[derive(Clone, Debug, PartialEq)]
pub struct Publish {
    pub uid: u32,
    pub info: Vec<Info>,
}

impl Publish {
    /// The published data.
    pub fn data(&self) -> impl Iterator<Item = &Info> + Clone {
        self.info.iter().filter(|info| !info.key.is_reserved())
    }

    /// Which processes may find it.
    pub fn range(&self) -> Range {
        range(&self.info)
    }

    /// How long it stays published.
    pub fn persistence(&self) -> Persistence {
        match self.info.find(keys::PERSISTENCE) {
            Some(Value::Persistence(persistence)) => *persistence,
            _ => Persistence::APP,
        }
    }
}

/// Keys to look up or to withdraw; withdrawing without `keys` withdraws everything that the client has published.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    pub uid: u32,
    pub keys: Vec<Key>,
    pub info: Vec<Info>,
}

impl Published {
    /// The range in which to look.
    pub fn range(&self) -> Range {
        range(&self.info)
    }
}

/// The session is the default.
fn range(info: &[Info]) -> Range {
    match info.find(keys::RANGE) {
        Some(Value::Range(range)) => *range,
        _ => Range::SESSION,
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct LookupReply {
    pub status: Status,
    pub data: Vec<Pdata>,
}

impl Body for Publish {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.uid).put_list(&self.info);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Publish { uid: from.get()?, info: from.get_list()? })
    }
}

impl Body for Published {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.uid);
        put_keys(to, &self.keys);
        to.put_list(&self.info);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Published { uid: from.get()?, keys: get_keys(from)?, info: from.get_list()? })
    }
}

impl Body for LookupReply {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.status);
        if self.status.is_success() || !self.data.is_empty() {
            to.put_list(&self.data);
        }
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let status = from.get()?;
        let data = if from.is_at_end() { Vec::new() } else { from.get_list()? };
        Ok(LookupReply { status, data })
    }
}

/// One item per key, unlike everywhere else.
fn put_keys(to: &mut Writer, keys: &[Key]) {
    to.put(&Size(keys.len() as u64));
    keys.iter().for_each(|key| {
        to.put(key);
    });
}

fn get_keys(from: &mut Reader<'_>) -> Result<Vec<Key>, DecodeError> {
    let Size(n) = from.get()?;
    let mut keys = Vec::new();
    for _ in 0..n {
        keys.push(from.get()?);
    }
    Ok(keys)
}
