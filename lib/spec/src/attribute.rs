//! The attributes: what a key is called, which type of value it takes, since when.
//!
//! A few keys have several names (renamings). [`attribute`] answers with the current one, [`attribute_by_name`] with the
//! one asked for.

use crate::DataType;
use crate::r#gen::attributes::{ATTRIBUTES, BY_KEY};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// `PMIX_JOB_SIZE`
    pub name: &'static str,
    /// `pmix.job.size`
    pub key: &'static str,
    /// The type to produce; [`DataType::UNDEF`] when several are legal.
    pub data_type: DataType,
    /// Further types that peers produce and that are to be accepted.
    pub also: &'static [DataType],
    /// What the attribute is about: `job`, `spawn`, `iof`, ...
    pub group: &'static str,
    pub status: Standing,
    /// One line.
    pub summary: &'static str,
    /// The first release line of OpenPMIx that has it; empty when none has.
    pub since: &'static str,
}

/// What the standard says about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    Stable,
    Provisional,
    /// In the headers of OpenPMIx, not in the standard.
    OpenpmixExtension,
    /// In a proposal only.
    RfcOnly,
    Deprecated,
    /// No longer in the standard; older programs use it.
    Removed,
}

impl Attribute {
    /// Whether a value of this type is legal.
    pub fn accepts(&self, data_type: DataType) -> bool {
        self.data_type == DataType::UNDEF || self.data_type == data_type || self.also.contains(&data_type)
    }
}

/// The attribute of a key.
pub fn attribute(key: &str) -> Option<&'static Attribute> {
    let found = BY_KEY.binary_search_by_key(&key, |entry| entry.0).ok()?;
    ATTRIBUTES.get(usize::from(BY_KEY.get(found)?.1))
}

/// The attribute of a full name such as `PMIX_JOB_SIZE`.
pub fn attribute_by_name(name: &str) -> Option<&'static Attribute> {
    let found = ATTRIBUTES.binary_search_by_key(&name, |attribute| attribute.name).ok()?;
    ATTRIBUTES.get(found)
}

/// All attributes, sorted by name.
pub fn attributes() -> &'static [Attribute] {
    ATTRIBUTES
}
