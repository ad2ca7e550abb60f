//! The last bytes of streams that a reader has received and holds: the beginning of a line, or what it collects.
//!
//! They hold up no writer, so that a process may write a line longer than its credit. They are kept until the reader has passed
//! them on, in case it dies before.

use std::collections::{BTreeMap, VecDeque};

use phalanx_spec::IofChannel;
use phalanx_wire::{Nspace, ProcId};

use crate::root::iof::piece::TapPiece;

#[derive(Debug, Default)]
pub(super) struct Retained {
    streams: BTreeMap<(ProcId, IofChannel), Tail>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Tail {
    bytes: VecDeque<u8>,
    pid: Option<u32>,
}

impl Retained {
    /// A piece has left, except for the last `held` bytes of its stream.
    pub(super) fn left(&mut self, piece: &TapPiece, held: usize) {
        let stream = (piece.proc.clone(), piece.channel);
        let mut tail = match self.streams.remove(&stream) {
            Some(tail) => tail,
            None if held == 0 => return,
            None => Tail { pid: piece.pid, ..Tail::default() },
        };
        self.bytes -= tail.bytes.len();
        // Bytes that the user already has need not be kept.
        if piece.instead && piece.number.is_some() {
            tail.bytes.extend(piece.data.iter());
        }
        let most = held.min(MOST.saturating_sub(self.bytes));
        if most < held {
            tracing::warn!(proc = %piece.proc, held, most, "a reader of output holds more than is kept for the user");
        }
        tail.bytes.drain(..tail.bytes.len().saturating_sub(most));
        if held > 0 {
            self.bytes += tail.bytes.len();
            self.streams.insert(stream, tail);
        }
    }

    pub(super) fn forget(&mut self, nspace: &Nspace) {
        self.streams.retain(|(proc, _), _| proc.nspace != *nspace);
        self.bytes = self.streams.values().map(|tail| tail.bytes.len()).sum();
    }

    pub(super) fn clear(&mut self) {
        *self = Retained::default();
    }

    /// The held bytes, for another reader.
    pub(super) fn into_pieces(self) -> impl Iterator<Item = TapPiece> {
        let tails = self.streams.into_iter().filter(|(_, tail)| !tail.bytes.is_empty());
        tails.map(|((proc, channel), Tail { bytes, pid })| TapPiece {
            proc,
            pid,
            channel,
            data: Vec::from(bytes).into(),
            lost: 0,
            number: None,
            instead: true,
        })
    }
}

/// More than readers hold: lines and collected bytes are bounded there.
const MOST: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use phalanx_spec::Rank;

    use super::*;

    fn piece(rank: u32, data: &[u8], number: Option<u64>) -> TapPiece {
        let proc = ProcId::new(&Nspace::new("job").unwrap(), Rank(rank));
        let data = Arc::from(data);
        TapPiece { proc, pid: None, channel: IofChannel::STDOUT, data, lost: 0, number, instead: true }
    }

    fn kept(retained: Retained) -> Vec<(u32, Vec<u8>)> {
        retained.into_pieces().map(|piece| (piece.proc.rank.0, piece.data.to_vec())).collect()
    }

    #[test]
    fn bytes_that_a_reader_holds_are_retained_and_no_more() {
        let mut all = Retained::default();
        all.left(&piece(0, b"one\ntw", Some(1)), 2);
        all.left(&piece(1, b"whole\n", Some(2)), 0);
        all.left(&piece(2, b"a beginning", Some(3)), 11);
        all.left(&piece(2, b" ends\nand", Some(4)), 3);
        all.left(&piece(0, b"o and mo", Some(5)), 10);
        assert_eq!(kept(all), [(0, b"two and mo".to_vec()), (2, b"and".to_vec())]);
    }

    #[test]
    fn bytes_already_delivered_are_not_retained() {
        let mut all = Retained::default();
        all.left(&piece(0, b"of the past", None), 11);
        all.left(&piece(0, b"new", Some(1)), 14);
        all.left(&piece(1, b"text", Some(2)), 4);
        all.left(&piece(1, b"\n", Some(3)), 0);
        assert_eq!(kept(all), [(0, b"new".to_vec())]);
    }

    #[test]
    fn the_memory_for_unread_output_is_bounded() {
        let mut all = Retained::default();
        let data = vec![0; 1 << 20];
        (0..10).for_each(|rank| all.left(&piece(rank % 3, &data, Some(1)), usize::MAX));
        assert_eq!(all.bytes, MOST);
        all.forget(&Nspace::new("job").unwrap());
        assert_eq!((all.bytes, kept(all)), (0, vec![]));
    }
}
