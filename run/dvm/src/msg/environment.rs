//! Changes of the environment that a spawn requests.

use crate::encoding::encoded;
use phalanx_spec::keys;
use phalanx_wire::{Envar, Info, Text, Value};

/// One change of the environment. Changes are made in the order in which they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvChange {
    pub(crate) name: Text,
    pub(crate) how: Change,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Set(Text),
    Unset,
    /// Unless it has a value.
    Add(Text),
    Prepend(Text, u8),
    Append(Text, u8),
    /// In front, and nowhere else.
    First(Text, u8),
}

impl EnvChange {
    /// The change that a directive requests; `None` if it is about something else. The error states what is wrong.
    pub(crate) fn of(info: &Info) -> Option<Result<EnvChange, &'static str>> {
        let key = info.key.as_str();
        ATTRIBUTES.contains(&key).then(|| EnvChange::read(key, &info.value))
    }

    /// The directive that requests it.
    pub(crate) fn to_info(&self) -> Info {
        let (key, value, separator) = match &self.how {
            Change::Set(value) => (keys::SET_ENVAR, Some(value), b':'),
            Change::Unset => (keys::UNSET_ENVAR, None, b':'),
            Change::Add(value) => (keys::ADD_ENVAR, Some(value), b':'),
            Change::Prepend(value, separator) => (keys::PREPEND_ENVAR, Some(value), *separator),
            Change::Append(value, separator) => (keys::APPEND_ENVAR, Some(value), *separator),
            Change::First(value, separator) => (keys::FIRST_ENVAR, Some(value), *separator),
        };
        let envar = Envar { name: Some(self.name.clone()), value: value.cloned(), separator };
        Info::new(key, Value::Envar(Box::new(envar)))
    }

    fn read(key: &str, value: &Value) -> Result<EnvChange, &'static str> {
        let (name, value, separator) = match value {
            Value::Envar(envar) => (envar.name.clone(), envar.value.clone(), envar.separator),
            value => match value.as_text() {
                Some(name) if key == keys::UNSET_ENVAR => (Some(name.clone()), None, 0),
                Some(entry) if key == keys::SET_ENVAR => match split(entry) {
                    Some((name, value)) => (Some(Text::from_bytes(name)), Some(Text::from_bytes(value)), 0),
                    None => return Err("expected NAME=VALUE"),
                },
                _ => return Err("expected the name of a variable and a value"),
            },
        };
        let name = name.unwrap_or_else(|| Text::from_bytes(b""));
        if name.as_bytes().is_empty() || name.as_bytes().contains(&b'=') {
            return Err("no variable can have this name");
        }
        let value = value.unwrap_or_else(|| Text::from_bytes(b""));
        let separator = if separator == 0 { b':' } else { separator };
        let how = match key {
            keys::UNSET_ENVAR => Change::Unset,
            keys::ADD_ENVAR => Change::Add(value),
            keys::PREPEND_ENVAR => Change::Prepend(value, separator),
            keys::APPEND_ENVAR => Change::Append(value, separator),
            keys::FIRST_ENVAR => Change::First(value, separator),
            _ => Change::Set(value),
        };
        Ok(EnvChange { name, how })
    }
}

/// The directives of a spawn that change the environment.
pub(crate) const ATTRIBUTES: &[&str] = &[
    keys::SET_ENVAR,
    keys::UNSET_ENVAR,
    keys::ADD_ENVAR,
    keys::PREPEND_ENVAR,
    keys::APPEND_ENVAR,
    keys::FIRST_ENVAR,
];

fn split(entry: &Text) -> Option<(&[u8], &[u8])> {
    let at = entry.as_bytes().iter().position(|byte| *byte == b'=')?;
    Some((&entry.as_bytes()[..at], &entry.as_bytes()[at + 1..]))
}

encoded!(struct EnvChange { name, how });
encoded!(enum Change {
    0 Set(value),
    1 Unset,
    2 Add(value),
    3 Prepend(value, separator),
    4 Append(value, separator),
    5 First(value, separator),
});
