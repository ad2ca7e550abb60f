//! What an established link carries: records, none of which can be read by others, or changed, repeated, dropped or reordered unnoticed.
//!
//! A record is a length and that many bytes, at most 64 KiB. They contain, encrypted, a byte for the kind and the payload.

use std::fmt;
use std::rc::Rc;

use snow::StatelessTransportState;

/// The sending end.
#[derive(Debug)]
pub struct Sealer {
    keys: Rc<StatelessTransportState>,
    sent: u64,
    plain: Vec<u8>,
}

/// The receiving end.
#[derive(Debug)]
pub struct Opener {
    keys: Rc<StatelessTransportState>,
    opened: u64,
    input: Vec<u8>,
    /// How much of the input was decrypted.
    used: usize,
    plain: Vec<u8>,
}

/// Why the rest of the input is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Not sent by a holder of the key here and now.
    NotAuthentic,
    /// The peer has closed the link, for this reason.
    Ended(String),
    /// From a holder of the key, and yet not a valid record.
    Malformed,
}

pub(super) fn halves(keys: StatelessTransportState) -> (Sealer, Opener) {
    let keys = Rc::new(keys);
    let sealer = Sealer { keys: keys.clone(), sent: 0, plain: Vec::new() };
    (sealer, Opener { keys, opened: 0, input: Vec::new(), used: 0, plain: vec![0; MOST_CIPHER] })
}

impl Sealer {
    /// Appends records that contain all these bytes.
    pub fn seal(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for piece in bytes.chunks(MOST_PLAIN) {
            self.record(DATA, piece, out);
        }
    }

    /// Appends the record that ends the link, with the reason.
    pub fn seal_end(&mut self, why: &str, out: &mut Vec<u8>) {
        let most = why.floor_char_boundary(MOST_REASON);
        self.record(END, why.get(..most).unwrap_or_default().as_bytes(), out);
    }

    pub(super) fn seal_proof(&mut self, out: &mut Vec<u8>) {
        self.record(PROOF, &[], out);
    }

    fn record(&mut self, kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
        self.plain.clear();
        self.plain.push(kind);
        self.plain.extend_from_slice(bytes);
        let length = self.plain.len() + TAG;
        let begin = out.len();
        // A piece never exceeds the limit.
        out.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        out.resize(begin + 2 + length, 0);
        let place = out.get_mut(begin + 2..).unwrap_or_default();
        let written = self.keys.write_message(self.sent, &self.plain, place);
        debug_assert_eq!(written.ok(), Some(length));
        self.sent += 1;
    }
}

impl Opener {
    /// Takes received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.used == self.input.len() {
            self.input.clear();
            self.used = 0;
        } else if self.used > MOST_CIPHER {
            self.input.drain(..self.used);
            self.used = 0;
        }
        self.input.extend_from_slice(bytes);
    }

    /// Decrypts all complete records and appends their contents. On an error, `out` has the contents before it.
    pub fn open(&mut self, out: &mut Vec<u8>) -> Result<(), Broken> {
        while let Some(length) = self.next()? {
            match self.plain.get(..length).and_then(|plain| plain.split_first()) {
                Some((&DATA, bytes)) => out.extend_from_slice(bytes),
                Some((&END, why)) if why.len() <= MOST_REASON => {
                    return Err(Broken::Ended(String::from_utf8_lossy(why).into_owned()));
                }
                _ => return Err(Broken::Malformed),
            }
        }
        Ok(())
    }

    /// Whether the proof has arrived; an error if anything else has.
    pub(super) fn open_proof(&mut self) -> Result<bool, Broken> {
        // A longer record would have to be held before its sender is known.
        let begins =
            self.input.iter().zip(PROOF_LENGTH.to_be_bytes()).all(|(byte, expected)| *byte == expected);
        if !begins {
            return Err(Broken::NotAuthentic);
        }
        match self.next()? {
            None => Ok(false),
            Some(1) if self.plain.first() == Some(&PROOF) => Ok(true),
            Some(_) => Err(Broken::Malformed),
        }
    }

    /// Decrypts the next record into `plain` and returns its length.
    fn next(&mut self) -> Result<Option<usize>, Broken> {
        let rest = self.input.get(self.used..).unwrap_or_default();
        let Some((length, rest)) = rest.split_first_chunk() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes(*length));
        if length <= TAG {
            return Err(Broken::NotAuthentic);
        }
        let Some(sealed) = rest.get(..length) else { return Ok(None) };
        let opened = self.keys.read_message(self.opened, sealed, &mut self.plain);
        let plain = opened.map_err(|_| Broken::NotAuthentic)?;
        self.opened += 1;
        self.used += 2 + length;
        Ok(Some(plain))
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::NotAuthentic => f.write_str("its bytes were changed, repeated or lost on the way"),
            Broken::Ended(why) => write!(f, "it has closed the link: {}", why.escape_debug()),
            Broken::Malformed => f.write_str("what it says is not a record of a daemon"),
        }
    }
}

impl std::error::Error for Broken {}

const DATA: u8 = 0;
const END: u8 = 1;
const PROOF: u8 = 2;
const TAG: usize = 16;
const PROOF_LENGTH: u16 = 17;
const MOST_CIPHER: usize = u16::MAX as usize;
const MOST_PLAIN: usize = MOST_CIPHER - TAG - 1;
const MOST_REASON: usize = 1024;
