//! The contribution of one server to a fence that collects data. Hosts carry it from server to server as opaque bytes.
//!
//! Written in the form of 4.2 and 5.0 without key map, which all of them read; also read with key map, and in the form of
//! 6.1. A host gives every server the concatenated contributions of all servers.

use phalanx_spec::Rank;

use crate::codec::{DecodeError, Dialect, Format, Reader, Writer};
use crate::compress::inflate;
use crate::info::Kval;
use crate::name::{Key, ProcId};
use crate::text::Blob;
use crate::value::Value;

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Contribution {
    /// Whether the server was asked to collect. All participants must agree.
    pub collect: bool,
    pub ranks: Vec<(Owner, Vec<Kval>)>,
}

/// The process that the values belong to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// Position in the list of all participants: the ranks of the first namespace, then those of the second, and so on.
    Position(u32),
    /// By name (6.1).
    Proc(ProcId),
}

impl Contribution {
    /// Owners given by name are omitted: this form has no place for them.
    pub fn encode(&self, format: Format) -> Vec<u8> {
        let mut inner = Writer::new(format);
        inner.put(&if self.collect { COLLECT } else { 0 });
        for (owner, values) in &self.ranks {
            let Owner::Position(position) = owner else { continue };
            let mut rank = Writer::new(format);
            rank.put(&Rank(*position));
            values.iter().for_each(|value| {
                rank.put(value);
            });
            inner.put(&Blob::from(rank.into_bytes()));
        }
        let mut outer = Writer::new(format);
        outer.put(&Blob::from(inner.into_bytes()));
        outer.into_bytes()
    }

    /// All contributions in `bytes`, each in the form of the release that wrote it.
    ///
    /// `limit`: the maximum expanded length of a compressed contribution (6.1), in bytes.
    pub fn decode_all(
        bytes: &[u8],
        dialect: Dialect,
        limit: usize,
    ) -> Result<Vec<Contribution>, DecodeError> {
        let mut reader = Reader::new(dialect.format, bytes);
        let mut all = Vec::new();
        while !reader.is_at_end() {
            let one: Blob = reader.get()?;
            let inner = Reader::new(dialect.format, one.as_bytes());
            all.push(if dialect.release.major >= 6 {
                read_named(inner, limit)?
            } else {
                read_positions(inner)?
            });
        }
        Ok(all)
    }
}

/// 4.2 and 5.0: `BYTE flags; [UINT32 n, n keys]; per rank BYTE_OBJECT { PROC_RANK; values }`.
fn read_positions(mut from: Reader<'_>) -> Result<Contribution, DecodeError> {
    let format = from.format();
    if from.is_at_end() {
        return Ok(Contribution::default());
    }
    let flags: u8 = from.get()?;
    let keys: Option<Vec<Key>> = if flags & KEY_MAP == 0 {
        None
    } else {
        let n: u32 = from.get()?;
        Some(from.get_n(u64::from(n))?)
    };
    let mut ranks = Vec::new();
    while !from.is_at_end() {
        let blob: Blob = from.get()?;
        let mut reader = Reader::new(format, blob.as_bytes());
        let Rank(position) = reader.get()?;
        let values = match &keys {
            None => reader.get_rest()?,
            Some(keys) => mapped_values(&mut reader, keys)?,
        };
        ranks.push((Owner::Position(position), values));
    }
    Ok(Contribution { collect: flags & COLLECT != 0, ranks })
}

fn mapped_values(from: &mut Reader<'_>, keys: &[Key]) -> Result<Vec<Kval>, DecodeError> {
    let mut values = Vec::new();
    while !from.is_at_end() {
        let index: u32 = from.get()?;
        let key =
            keys.get(index as usize).ok_or(DecodeError::Malformed { what: "an index of the key map" })?;
        values.push(Kval { key: key.clone(), value: from.get::<Value>()? });
    }
    Ok(values)
}

/// 6.1: `BOOL compressed; BYTE_OBJECT { BYTE collect; per rank BYTE_OBJECT { PROC; values } }`.
fn read_named(mut from: Reader<'_>, limit: usize) -> Result<Contribution, DecodeError> {
    let format = from.format();
    if from.is_at_end() {
        return Ok(Contribution::default());
    }
    let compressed: bool = from.get()?;
    let content: Blob = from.get()?;
    let plain;
    let content = if compressed {
        let what = "a compressed contribution";
        plain = inflate(content.as_bytes(), limit).map_err(|_| DecodeError::Malformed { what })?;
        &plain
    } else {
        content.as_bytes()
    };
    let mut from = Reader::new(format, content);
    let flags: u8 = from.get()?;
    let mut ranks = Vec::new();
    while !from.is_at_end() {
        let blob: Blob = from.get()?;
        let mut reader = Reader::new(format, blob.as_bytes());
        ranks.push((Owner::Proc(reader.get()?), reader.get_rest()?));
    }
    Ok(Contribution { collect: flags & COLLECT != 0, ranks })
}

const COLLECT: u8 = 1;
const KEY_MAP: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Generation, Release};
    use crate::compress::deflate;
    use crate::name::Nspace;

    const FORMAT: Format = Format { generation: Generation::V41, described: false };

    fn dialect(major: u16) -> Dialect {
        Dialect { format: FORMAT, release: Release::new(major, 0, 0) }
    }

    fn value(text: &str) -> Kval {
        Kval { key: Key::new("proof.0").unwrap(), value: text.into() }
    }

    #[test]
    fn data_that_slurm_carried_between_nodes_decodes() {
        let captured = b"\x02\x1d\x02\x01\x02\x19\x02\x00\x02\x10proof.0\x00\x03\x16value of 0\x00";
        let ours =
            Contribution { collect: true, ranks: vec![(Owner::Position(0), vec![value("value of 0")])] };
        assert_eq!(ours.encode(FORMAT), captured);
        let twice = [&captured[..], captured].concat();
        assert_eq!(Contribution::decode_all(&twice, dialect(4), 0), Ok(vec![ours.clone(), ours]));
        assert_eq!(Contribution::decode_all(b"", dialect(4), 0), Ok(vec![]));
    }

    #[test]
    fn a_key_map_is_read() {
        let mut rank = Writer::new(FORMAT);
        rank.put(&Rank(3)).put(&1_u32).put(&Value::from("x")).put(&0_u32).put(&Value::from("y"));
        let mut inner = Writer::new(FORMAT);
        inner.put(&(COLLECT | KEY_MAP)).put(&2_u32);
        inner.put_all(&[Key::new("a").unwrap(), Key::new("b").unwrap()]).put(&Blob::from(rank.into_bytes()));
        let mut outer = Writer::new(FORMAT);
        outer.put(&Blob::from(inner.into_bytes()));
        let all = Contribution::decode_all(&outer.into_bytes(), dialect(5), 0).unwrap();
        let values: Vec<_> = all[0].ranks[0].1.iter().map(|v| (v.key.as_str(), v.value.clone())).collect();
        assert_eq!(all[0].ranks[0].0, Owner::Position(3));
        assert_eq!(values, [("b", "x".into()), ("a", "y".into())]);
    }

    #[test]
    fn the_form_of_6_1_is_read() {
        let owner = ProcId::new(&Nspace::new("job").unwrap(), Rank(3));
        for compressed in [false, true] {
            let mut rank = Writer::new(FORMAT);
            rank.put(&owner).put(&value("x"));
            let mut inner = Writer::new(FORMAT);
            inner.put(&COLLECT).put(&Blob::from(rank.into_bytes()));
            let inner = inner.into_bytes();
            let mut middle = Writer::new(FORMAT);
            middle.put(&compressed).put(&Blob::from(if compressed { deflate(&inner) } else { inner }));
            let mut outer = Writer::new(FORMAT);
            outer.put(&Blob::from(middle.into_bytes()));
            let bytes = outer.into_bytes();
            let all = Contribution::decode_all(&bytes, dialect(6), 1000).unwrap();
            let ranks = vec![(Owner::Proc(owner.clone()), vec![value("x")])];
            assert_eq!(all, [Contribution { collect: true, ranks }]);
            assert_eq!(Contribution::decode_all(&bytes, dialect(6), 3).is_err(), compressed);
        }
    }
}
