//! Qualified values: a process may have several values of one key, distinguished by qualifiers.
//!
//! In puts, on the wire and in files such a value is an array under `pmix.qual.val`: the key with its value, then the
//! qualifiers. Clients and servers store it under a [`Name`], which is equal for equal qualifiers.

use phalanx_wire::codec::Writer;
use phalanx_wire::collected::FORMAT;
use phalanx_wire::{DataArray, Info, InfoFlags, Key, Kval, Value};

/// A key and its qualifiers, in a form that can be compared: neither their order nor other flags matter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(Vec<u8>);

impl Name {
    pub(crate) fn new(key: &Key, qualifiers: &[Info]) -> Name {
        let plain = |info: &Info| Info { flags: InfoFlags::empty(), ..info.clone() };
        let mut all: Vec<Info> = qualifiers.iter().map(plain).collect();
        all.sort_by(|one, other| one.key.cmp(&other.key));
        let mut writer = Writer::new(FORMAT);
        writer.put(&Kval { key: key.clone(), value: DataArray::of_infos(all).into() });
        Name(writer.into_bytes())
    }

    /// The name that a get asks for, if it has qualifiers.
    pub(crate) fn asked(key: &Key, directives: &[Info]) -> Option<Name> {
        let qualifiers = qualifiers(directives);
        (!qualifiers.is_empty()).then(|| Name::new(key, &qualifiers))
    }
}

/// The directives that are qualifiers.
pub(crate) fn qualifiers(directives: &[Info]) -> Vec<Info> {
    directives.iter().filter(|info| info.flags.contains(InfoFlags::QUALIFIER)).cloned().collect()
}

/// The parts of a value put under `pmix.qual.val`; none if it is not in that form.
pub fn opened(value: &Value) -> Option<(Key, Vec<Info>, Value)> {
    let mut infos = value.as_array()?.infos();
    let Info { key, value, .. } = infos.next()?;
    let rest: Vec<Info> = infos.cloned().collect();
    let qualifiers = qualifiers(&rest);
    (!qualifiers.is_empty()).then(|| (key.clone(), qualifiers, value.clone()))
}

/// The name of such a value.
pub(crate) fn name_of(value: &Value) -> Option<Name> {
    opened(value).map(|(key, qualifiers, _)| Name::new(&key, &qualifiers))
}
