//! NOTIFY, REGEVENTS, DEREGEVENTS, and the notification that a server sends on tag 0.

use phalanx_spec::{Command, Range, Status};

use super::Body;
use crate::codec::{DecodeError, Dialect, Reader, Writer};
use crate::info::Info;
use crate::name::ProcId;

/// In a notification from a server of ours to its clients of ours: an array of restarted processes whose stored values are
/// outdated. No handler receives it.
pub const VALUES_GONE: &str = "phalanx.values_gone";

/// A client raises an event; the source is the sender.
#[derive(Clone, Debug, PartialEq)]
pub struct Notify {
    pub code: Status,
    pub range: Range,
    pub info: Vec<Info>,
}

/// Empty `codes` asks for every event (a default handler).
#[derive(Clone, Debug, PartialEq)]
pub struct RegisterEvents {
    pub codes: Vec<Status>,
    pub info: Vec<Info>,
}

/// Never answered.
#[derive(Clone, Debug, PartialEq)]
pub struct DeregisterEvents {
    pub codes: Vec<Status>,
}

/// The notification of a client or tool about an event. Cached events of older servers have no `range`.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    pub code: Status,
    pub source: ProcId,
    pub info: Vec<Info>,
    pub range: Option<Range>,
}

impl Body for Notify {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.code).put(&self.range).put_list(&self.info);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Notify { code: from.get()?, range: from.get()?, info: from.get_list()? })
    }
}

impl Body for RegisterEvents {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put_list(&self.codes).put_list(&self.info);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(RegisterEvents { codes: from.get_list()?, info: from.get_list()? })
    }
}

impl Body for DeregisterEvents {
    fn write(&self, to: &mut Writer, _: Dialect) {
        self.codes.iter().for_each(|code| {
            to.put(code);
        });
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(DeregisterEvents { codes: from.get_rest()? })
    }
}

impl Body for Notification {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&Command::NOTIFY).put(&self.code).put(&self.source).put_list(&self.info);
        if let Some(range) = &self.range {
            to.put(range);
        }
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let command = from.get::<Command>()?;
        if command != Command::NOTIFY {
            return Err(DecodeError::UnknownCommand { code: command.0 });
        }
        let (code, source, info) = (from.get()?, from.get()?, from.get_list()?);
        let range = if from.is_at_end() { None } else { Some(from.get()?) };
        Ok(Notification { code, source, info, range })
    }
}
