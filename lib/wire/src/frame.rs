//! Messages after the handshake: a header of 16 bytes, then one buffer.
//!
//! Header and payload must be sent in one piece: OpenPMIx drops a header that arrives incomplete, and
//! the connection is lost. [`encode_frame`] therefore makes one block of bytes. There is no checksum and no fragmentation.

use std::fmt;

/// Server to client or tool: an event, as an [`event::Notification`](crate::cmd::event::Notification).
pub const TAG_EVENT: u32 = 0;
/// Client to server: only a sign of life.
pub const TAG_HEARTBEAT: u32 = 1;
/// Server to client or tool: forwarded output, as an [`iof::Output`](crate::cmd::iof::Output). Empty: the stream has ended.
/// In the other direction, from our own readers: an [`iof::Taken`](crate::cmd::iof::Taken).
pub const TAG_IOF: u32 = 2;
/// The first tag that a request may use. A reply carries the tag of its request.
pub const FIRST_REQUEST_TAG: u32 = 100;

pub const HEADER_LEN: usize = 16;
/// The default limit of a reader. OpenPMIx 6.1 accepts 32 MiB, older releases any length.
pub const DEFAULT_LIMIT: usize = 256 << 20;

/// One message as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// From a client: the number that the server assigned to it. Meaningless from a server.
    pub index: u32,
    pub tag: u32,
    pub payload: Vec<u8>,
}

/// One message, ready to send.
pub fn encode_frame(index: u32, tag: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(HEADER_LEN + payload.len());
    for word in [index, tag, length, 0] {
        frame.extend_from_slice(&word.to_be_bytes());
    }
    frame.extend_from_slice(payload);
    frame
}

/// The stream cannot be read further: the connection has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTooLong {
    pub claimed: u32,
    pub limit: usize,
}

/// Splits a stream into messages. Holds only what has arrived, never what a header merely claims.
#[derive(Debug)]
pub struct FrameReader {
    limit: usize,
    bytes: Vec<u8>,
    start: usize,
}

impl FrameReader {
    /// `limit`: the longest payload that is accepted, in bytes.
    pub fn new(limit: usize) -> FrameReader {
        FrameReader { limit, bytes: Vec::new(), start: 0 }
    }

    /// Adds received bytes; [`next_frame`](FrameReader::next_frame) returns the complete messages.
    pub fn feed(&mut self, data: &[u8]) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
            self.start = 0;
        } else if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(data);
    }

    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameTooLong> {
        let Some((header, rest)) = self.bytes[self.start..].split_first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        // The last word is padding that 64-bit senders do not initialise.
        let [i0, i1, i2, i3, t0, t1, t2, t3, l0, l1, l2, l3, ..] = *header;
        let claimed = u32::from_be_bytes([l0, l1, l2, l3]);
        let length = claimed as usize;
        if length > self.limit {
            return Err(FrameTooLong { claimed, limit: self.limit });
        }
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = Frame {
            index: u32::from_be_bytes([i0, i1, i2, i3]),
            tag: u32::from_be_bytes([t0, t1, t2, t3]),
            payload: payload.to_vec(),
        };
        self.start += HEADER_LEN + length;
        Ok(Some(frame))
    }

    /// How many bytes belong to an incomplete message.
    pub fn waiting(&self) -> usize {
        self.bytes.len() - self.start
    }
}

impl Default for FrameReader {
    fn default() -> FrameReader {
        FrameReader::new(DEFAULT_LIMIT)
    }
}

impl fmt::Display for FrameTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a message of {} bytes where at most {} are accepted", self.claimed, self.limit)
    }
}

impl std::error::Error for FrameTooLong {}

/// Capacity that an idle reader keeps.
const KEPT: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_whole_however_they_arrive() {
        let stream = [
            encode_frame(7, 101, b"abc"),
            encode_frame(7, TAG_HEARTBEAT, b""),
            encode_frame(7, 102, &[9; 100]),
        ]
        .concat();
        for step in 1..stream.len() {
            let mut reader = FrameReader::default();
            let mut frames = Vec::new();
            for piece in stream.chunks(step) {
                reader.feed(piece);
                while let Some(frame) = reader.next_frame().unwrap() {
                    frames.push(frame);
                }
            }
            assert_eq!(
                frames.iter().map(|f| (f.tag, f.payload.len())).collect::<Vec<_>>(),
                [(101, 3), (1, 0), (102, 100)]
            );
            assert_eq!(reader.waiting(), 0);
        }
    }

    #[test]
    fn the_padding_is_not_looked_at() {
        let mut bytes = encode_frame(0, 100, b"x");
        bytes[12..16].copy_from_slice(&[0xde, 0xad, 0xbe, 0xef]);
        let mut reader = FrameReader::default();
        reader.feed(&bytes);
        assert_eq!(reader.next_frame().unwrap().unwrap().payload, b"x");
    }

    #[test]
    fn a_claim_beyond_the_limit_is_refused_without_room_being_made() {
        let mut reader = FrameReader::new(10);
        reader.feed(&encode_frame(0, 100, &[0; 11])[..HEADER_LEN]);
        assert_eq!(reader.next_frame(), Err(FrameTooLong { claimed: 11, limit: 10 }));
        let mut reader = FrameReader::default();
        reader.feed(&[0, 0, 0, 0, 0, 0, 0, 100, 0x03, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
        assert_eq!(reader.next_frame(), Ok(None));
        assert!(reader.bytes.capacity() < 1000);
    }
}
