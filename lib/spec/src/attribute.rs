//! The attributes: the key, the types of value it takes, the release that introduced it.
//!
//! A few keys have several names (renamings). [`attribute`] returns the current one, [`attribute_by_name`] the one that the
//! caller gave.

use crate::DataType;
use crate::r#gen::attributes::{ATTRIBUTES, BY_KEY};
use crate::packed::{Filling, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// `PMIX_JOB_SIZE`
    pub name: &'static str,
    /// `pmix.job.size`
    pub key: &'static str,
    /// The type to produce; [`DataType::UNDEF`] when several are legal.
    pub data_type: DataType,
    /// Further types that peers produce and that must be accepted.
    pub also: &'static [DataType],
    /// Subject of the attribute: `job`, `spawn`, `iof`, ...
    pub group: &'static str,
    pub status: Standing,
    /// One line.
    pub summary: &'static str,
    /// The first release line of OpenPMIx that has it; empty when none has.
    pub since: &'static str,
}

/// The position of a name in the standard.
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
pub fn attribute(key: &str) -> Option<Attribute> {
    let key_at = |index: &u16| TABLE.get(usize::from(*index)).map_or("", |row| row.key.of(&TEXTS));
    let found = BY_KEY.binary_search_by_key(&key, key_at).ok()?;
    TABLE.get(usize::from(*BY_KEY.get(found)?)).map(Row::attribute)
}

/// The attribute of a full name such as `PMIX_JOB_SIZE`.
pub fn attribute_by_name(name: &str) -> Option<Attribute> {
    let found = TABLE.binary_search_by_key(&name, |row| row.name.of(&TEXTS)).ok()?;
    TABLE.get(found).map(Row::attribute)
}

/// All attributes, sorted by name.
pub fn attributes() -> impl ExactSizeIterator<Item = Attribute> {
    TABLE.iter().map(Row::attribute)
}

/// An attribute without pointers, see `packed.rs`.
#[derive(Clone, Copy)]
struct Row {
    name: Span,
    key: Span,
    group: Span,
    summary: Span,
    since: Span,
    data_type: DataType,
    /// Index of the first further type, and their number.
    also: (u16, u16),
    status: Standing,
}

impl Row {
    const EMPTY: Row = Row {
        name: Span::EMPTY,
        key: Span::EMPTY,
        group: Span::EMPTY,
        summary: Span::EMPTY,
        since: Span::EMPTY,
        data_type: DataType::UNDEF,
        also: (0, 0),
        status: Standing::Stable,
    };

    fn attribute(&self) -> Attribute {
        let (at, count) = (usize::from(self.also.0), usize::from(self.also.1));
        Attribute {
            name: self.name.of(&TEXTS),
            key: self.key.of(&TEXTS),
            data_type: self.data_type,
            also: FURTHER_TYPES.get(at..at + count).unwrap_or_default(),
            group: self.group.of(&TEXTS),
            status: self.status,
            summary: self.summary.of(&TEXTS),
            since: self.since.of(&TEXTS),
        }
    }
}

struct Packed {
    texts: [u8; SIZES.0],
    further_types: [DataType; SIZES.1],
    rows: [Row; ATTRIBUTES.len()],
}

/// Total sizes of all texts and of all further types.
const SIZES: (usize, usize) = {
    let (mut texts, mut types, mut index) = (0, 0, 0);
    while index < ATTRIBUTES.len() {
        let a = &ATTRIBUTES[index];
        texts += a.name.len() + a.key.len() + a.group.len() + a.summary.len() + a.since.len();
        types += a.also.len();
        index += 1;
    }
    (texts, types)
};

const PACKED: Packed = {
    let mut texts = Filling::<{ SIZES.0 }>::new();
    let mut further_types = [DataType::UNDEF; SIZES.1];
    let mut rows = [Row::EMPTY; ATTRIBUTES.len()];
    let (mut types, mut index) = (0, 0);
    while index < ATTRIBUTES.len() {
        let a = &ATTRIBUTES[index];
        rows[index] = Row {
            name: texts.put(a.name),
            key: texts.put(a.key),
            group: texts.put(a.group),
            summary: texts.put(a.summary),
            since: texts.put(a.since),
            data_type: a.data_type,
            also: (types as u16, a.also.len() as u16),
            status: a.status,
        };
        let mut next = 0;
        while next < a.also.len() {
            further_types[types] = a.also[next];
            types += 1;
            next += 1;
        }
        index += 1;
    }
    Packed { texts: texts.block, further_types, rows }
};

static TEXTS: [u8; SIZES.0] = PACKED.texts;
static FURTHER_TYPES: [DataType; SIZES.1] = PACKED.further_types;
static TABLE: [Row; ATTRIBUTES.len()] = PACKED.rows;
