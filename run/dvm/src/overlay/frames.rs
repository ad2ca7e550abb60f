//! Messages on a link: each preceded by its length in four bytes, the highest first.

use std::borrow::Cow;
use std::fmt;

/// Received bytes that are no whole message yet.
#[derive(Debug, Default)]
pub(super) struct Frames {
    begun: Vec<u8>,
}

/// A length that no daemon would send.
#[derive(Debug)]
pub(super) struct TooLong(usize);

/// The bytes of a message as they go over a link.
pub(super) fn framed(body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEAD + body.len());
    frame.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
    frame.extend_from_slice(body);
    frame
}

impl Frames {
    /// The first whole message of the bytes kept before and of `bytes`, which is advanced. `None`: the rest is kept for later.
    pub(super) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Cow<'a, [u8]>>, TooLong> {
        if let Some(whole) = self.whole(bytes) {
            return Ok(Some(Cow::Borrowed(whole)));
        }
        self.fill(HEAD, bytes);
        let Some(head) = self.begun.first_chunk::<HEAD>() else { return Ok(None) };
        let length = u32::from_be_bytes(*head) as usize;
        if length > LONGEST {
            return Err(TooLong(length));
        }
        self.fill(HEAD + length, bytes);
        if self.begun.len() < HEAD + length {
            return Ok(None);
        }
        let mut frame = std::mem::take(&mut self.begun);
        frame.drain(..HEAD);
        Ok(Some(Cow::Owned(frame)))
    }

    /// A message that has come in one piece and need not be copied.
    fn whole<'a>(&self, bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
        let head = bytes.first_chunk::<HEAD>().filter(|_| self.begun.is_empty())?;
        let length = Some(u32::from_be_bytes(*head) as usize).filter(|length| *length <= LONGEST)?;
        let (frame, rest) = bytes.split_at_checked(HEAD + length)?;
        *bytes = rest;
        frame.get(HEAD..)
    }

    fn fill(&mut self, upto: usize, bytes: &mut &[u8]) {
        let wanted = upto.saturating_sub(self.begun.len()).min(bytes.len());
        let (now, later) = bytes.split_at(wanted);
        self.begun.extend_from_slice(now);
        *bytes = later;
    }
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it announces a message of {} bytes, at most {LONGEST} are taken", self.0)
    }
}

const HEAD: usize = 4;
/// Room for what all ranks of a subtree have put. Memory is only used for what has arrived.
const LONGEST: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_come_whole_however_they_were_split(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            cuts in prop::collection::vec(1usize..30, 0..200),
        ) {
            let stream: Vec<u8> = messages.iter().flat_map(|message| framed(message)).collect();
            let (mut frames, mut got, mut rest) = (Frames::default(), Vec::new(), &stream[..]);
            let mut cuts = cuts.into_iter();
            while !rest.is_empty() {
                let (mut piece, later) = rest.split_at(cuts.next().unwrap_or(rest.len()).min(rest.len()));
                rest = later;
                while let Some(message) = frames.next(&mut piece).expect("no length is too long") {
                    got.push(message.into_owned());
                }
                prop_assert!(piece.is_empty());
            }
            prop_assert_eq!(got, messages);
        }
    }

    #[test]
    fn a_length_beyond_the_bound_is_refused_at_once() {
        let mut bytes = &[0xff; 4][..];
        assert!(Frames::default().next(&mut bytes).is_err());
    }
}
