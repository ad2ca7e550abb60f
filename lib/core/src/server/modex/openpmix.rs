//! The form in which servers of OpenPMIx 4.2 and 5.0 exchange the committed values of their processes.
//!
//! Our servers use it under hosts that may have servers of either kind. A fence's blob names ranks by their position in the
//! list of all participants; the answer to a direct modex is only key and value pairs. The form of 6.1 is read as well.

use phalanx_spec::Rank;
use phalanx_wire::codec::{DecodeError, Dialect, Reader, Release, Writer};
use phalanx_wire::collected::FORMAT;
use phalanx_wire::modex::{Contribution, Owner};
use phalanx_wire::{Blob, Kval, Nspace, ProcId};

use crate::server::values::Values;

/// Where each namespace begins in the list of participants.
#[derive(Debug, Default)]
pub(super) struct Positions {
    /// In the order of the list, with their sizes.
    spans: Vec<(Nspace, u32)>,
}

impl Positions {
    pub(super) fn new(participants: &[ProcId], size: impl Fn(&Nspace) -> Option<u32>) -> Positions {
        let mut spans: Vec<(Nspace, u32)> = Vec::new();
        for proc in participants {
            if !spans.iter().any(|(nspace, _)| *nspace == proc.nspace) {
                spans.push((proc.nspace.clone(), size(&proc.nspace).unwrap_or(0)));
            }
        }
        Positions { spans }
    }

    fn of(&self, proc: &ProcId) -> Option<u32> {
        let mut first = 0_u32;
        for (nspace, size) in &self.spans {
            if *nspace == proc.nspace {
                return first.checked_add(proc.rank.0);
            }
            first = first.checked_add(*size)?;
        }
        None
    }

    fn at(&self, position: u32) -> Option<ProcId> {
        let mut rank = position;
        for (nspace, size) in &self.spans {
            if rank < *size {
                return Some(ProcId::new(nspace, Rank(rank)));
            }
            rank -= size;
        }
        None
    }
}

pub(super) fn encode_fence<'a>(
    positions: &Positions,
    committed: impl Iterator<Item = (&'a ProcId, &'a Values)>,
) -> Blob {
    let ranks = committed.filter_map(|(proc, values)| {
        let owner = Owner::Position(positions.of(proc)?);
        Some((owner, values.kvals().collect()))
    });
    Contribution { collect: true, ranks: ranks.collect() }.encode(FORMAT).into()
}

pub(super) fn decode_fence(
    positions: &Positions,
    blob: &Blob,
) -> Result<Vec<(ProcId, Vec<Kval>)>, DecodeError> {
    let read = |major| {
        let dialect = Dialect { format: FORMAT, release: Release::new(major, 0, 0) };
        Contribution::decode_all(blob.as_bytes(), dialect, LONGEST)
    };
    // Read in the wrong form, a contribution of 6.1 is garbage, or has values although nothing was to be collected.
    let is_odd = |one: &Contribution| !one.collect && !one.ranks.is_empty();
    let all = match read(5) {
        Ok(all) if !all.iter().any(is_odd) => all,
        other => match read(6) {
            Ok(all) => all,
            Err(_) => other?,
        },
    };
    let owners = all.into_iter().flat_map(|one| one.ranks).map(|(owner, values)| match owner {
        Owner::Proc(proc) => Ok((proc, values)),
        Owner::Position(position) => {
            let what = "the position of a rank among the participants";
            Ok((positions.at(position).ok_or(DecodeError::Malformed { what })?, values))
        }
    });
    owners.collect()
}

pub(super) fn encode_one(values: &Values) -> Blob {
    let mut writer = Writer::new(FORMAT);
    for kval in values.kvals() {
        writer.put(&kval);
    }
    writer.into_bytes().into()
}

pub(super) fn decode_one(blob: &Blob) -> Result<Vec<Kval>, DecodeError> {
    Reader::new(FORMAT, blob.as_bytes()).get_rest()
}

/// Maximum length of a decompressed contribution, in bytes.
const LONGEST: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use phalanx_wire::{Key, Value};

    use super::*;

    fn nspace(name: &str) -> Nspace {
        Nspace::new(name).unwrap()
    }

    fn positions() -> Positions {
        let participants = [ProcId::all(&nspace("a")), ProcId::all(&nspace("b"))];
        Positions::new(&participants, |nspace| Some(if *nspace == "a" { 3 } else { 2 }))
    }

    #[test]
    fn contributions_find_their_owners_again() {
        let values = Values::from([(Key::new("k").unwrap(), Value::from("v"))]);
        let owners = [ProcId::new(&nspace("a"), Rank(2)), ProcId::new(&nspace("b"), Rank(1))];
        let blob = encode_fence(&positions(), owners.iter().map(|owner| (owner, &values)));
        let twice = Blob::from([blob.as_bytes(), blob.as_bytes()].concat());
        let read = decode_fence(&positions(), &twice).unwrap();
        let names: Vec<_> = read.iter().map(|(owner, _)| owner.clone()).collect();
        assert_eq!(names, [owners.clone(), owners].concat());
        assert!(read.iter().all(|(_, values)| values[0].key == *"k"));
    }

    #[test]
    fn a_position_that_nobody_has_is_refused() {
        let one = ProcId::new(&nspace("a"), Rank(2));
        let blob = encode_fence(&positions(), std::iter::once((&one, &Values::default())));
        let fewer = Positions::new(&[ProcId::all(&nspace("a"))], |_| Some(2));
        assert!(decode_fence(&fewer, &blob).is_err());
        assert_eq!(decode_fence(&fewer, &Blob::default()).unwrap(), []);
    }

    #[test]
    fn the_form_of_6_1_is_distinguished_from_that_of_5_0() {
        let owner = ProcId::new(&nspace("a"), Rank(1));
        let mut rank = Writer::new(FORMAT);
        rank.put(&owner).put(&Kval { key: Key::new("k").unwrap(), value: "v".into() });
        let mut inner = Writer::new(FORMAT);
        inner.put(&1_u8).put(&Blob::from(rank.into_bytes()));
        let mut middle = Writer::new(FORMAT);
        middle.put(&false).put(&Blob::from(inner.into_bytes()));
        let mut outer = Writer::new(FORMAT);
        outer.put(&Blob::from(middle.into_bytes()));
        let read = decode_fence(&positions(), &outer.into_bytes().into()).unwrap();
        assert_eq!(read[0].0, owner);
    }
}
