//! An input read as a sequence of events: small numbers and pieces of bytes, until it is used up.

/// Most events of one run; more find nothing new and take long.
pub(crate) const MOST_STEPS: usize = 400;

pub(crate) struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Script<'a> {
        Script(input)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte().unwrap_or(0)) % n
    }

    /// A piece preceded by its length in two bytes; the last one may be shorter.
    pub(crate) fn piece(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte().unwrap_or(0)) << 8 | usize::from(self.byte().unwrap_or(0));
        let (piece, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        piece
    }
}
