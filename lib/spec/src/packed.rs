//! Tables without pointers.
//!
//! The loader relocates each pointer in a table, which makes its page private to the process, in every rank of a node. So all
//! texts of a table are in one block, and the table holds offsets. The compiler makes both.

/// The position of a text in its block.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    at: u32,
    length: u16,
}

impl Span {
    pub(crate) const EMPTY: Span = Span { at: 0, length: 0 };

    pub(crate) fn of(self, block: &'static [u8]) -> &'static str {
        let at = self.at as usize;
        let bytes = block.get(at..at + usize::from(self.length)).unwrap_or_default();
        // Made of whole texts, so it never fails.
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

/// A block of fixed size while it is filled, at compile time.
pub(crate) struct Filling<const SIZE: usize> {
    pub(crate) block: [u8; SIZE],
    end: usize,
}

impl<const SIZE: usize> Filling<SIZE> {
    pub(crate) const fn new() -> Self {
        Filling { block: [0; SIZE], end: 0 }
    }

    pub(crate) const fn put(&mut self, text: &str) -> Span {
        let at = self.end;
        let (_, room) = self.block.split_at_mut(at);
        let (room, _) = room.split_at_mut(text.len());
        room.copy_from_slice(text.as_bytes());
        self.end += text.len();
        assert!(text.len() <= u16::MAX as usize && self.end <= u32::MAX as usize);
        Span { at: at as u32, length: text.len() as u16 }
    }
}
