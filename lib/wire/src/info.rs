//! Keyed values: the elements of puts, job data, directives and answers.

use phalanx_spec::DataType;

use crate::name::{Key, ProcId};
use crate::value::Value;

bitflags::bitflags! {
    /// Directives of one [`Info`] (standard: `pmix_info_directives_t`). Unknown bits are kept.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct InfoFlags: u32 {
        const REQUIRED = 0x0001;
        const ARRAY_END = 0x0002;
        const REQUIRED_PROCESSED = 0x0004;
        const QUALIFIER = 0x0008;
        const PERSISTENT = 0x0010;
        const _ = !0;
    }
}

/// A key with its value and directives (standard: `pmix_info_t`).
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    pub key: Key,
    pub flags: InfoFlags,
    pub value: Value,
}

/// A key with its value, as puts and job data carry it (wire type KVAL).
#[derive(Clone, Debug, PartialEq)]
pub struct Kval {
    pub key: Key,
    pub value: Value,
}

/// A published key with its publisher (standard: `pmix_pdata_t`).
#[derive(Clone, Debug, PartialEq)]
pub struct Pdata {
    pub proc: ProcId,
    pub key: Key,
    pub value: Value,
}

/// An array of elements of one type (standard: `pmix_data_array_t`). Every item is of type `of`.
#[derive(Clone, Debug, PartialEq)]
pub struct DataArray {
    pub of: DataType,
    pub items: Vec<Value>,
}

impl Info {
    /// An optional directive or a datum with one of the standard's keys.
    pub fn new(key: &'static str, value: impl Into<Value>) -> Info {
        Info { key: Key::of(key), flags: InfoFlags::empty(), value: value.into() }
    }

    pub fn required(mut self) -> Info {
        self.flags |= InfoFlags::REQUIRED;
        self
    }

    /// Whether the directive is required and not yet processed.
    pub fn is_required(&self) -> bool {
        self.flags.contains(InfoFlags::REQUIRED) && !self.flags.contains(InfoFlags::REQUIRED_PROCESSED)
    }
}

impl Kval {
    pub fn new(key: &'static str, value: impl Into<Value>) -> Kval {
        Kval { key: Key::of(key), value: value.into() }
    }
}

impl DataArray {
    pub fn of_infos(infos: impl IntoIterator<Item = Info>) -> DataArray {
        DataArray { of: DataType::INFO, items: infos.into_iter().map(|i| Value::Info(Box::new(i))).collect() }
    }

    /// The infos of an array of infos; nothing for any other array.
    pub fn infos(&self) -> impl Iterator<Item = &Info> {
        self.items.iter().filter_map(|v| match v {
            Value::Info(info) => Some(&**info),
            _ => None,
        })
    }
}

/// Looks up directives by key. The last one wins, as a caller that appends to defaults expects.
pub trait InfoList {
    fn find(&self, key: &str) -> Option<&Value>;

    /// A boolean directive: present without a value, or true.
    fn is_set(&self, key: &str) -> bool {
        self.find(key).is_some_and(Value::is_true)
    }
}

impl InfoList for [Info] {
    fn find(&self, key: &str) -> Option<&Value> {
        self.iter().rev().find(|i| i.key == key).map(|i| &i.value)
    }
}
