//! How two daemons begin: with the name and the version of the protocol, and then, encrypted, their identities.

use phalanx_dvm::NodeId;

use super::refusal::Refusal;

/// The version of everything in this folder. Daemons of one DVM come from one release, so a difference is a mistake in how they were started.
pub const VERSION: u16 = 1;

/// The first bytes on every link, both ways; the version follows.
pub const GREETING: [u8; 6] = *b"PXLINK";

/// The sender and the daemon that it wants to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// The name of the DVM, of at most 255 bytes.
    pub dvm: String,
    pub from: NodeId,
    pub to: NodeId,
}

impl Introduction {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + self.dvm.len());
        bytes.extend(self.from.0.to_be_bytes());
        bytes.extend(self.to.0.to_be_bytes());
        bytes.extend(self.dvm.as_bytes().iter().take(MOST_NAME));
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Introduction> {
        let (from, rest) = bytes.split_first_chunk()?;
        let (to, name) = rest.split_first_chunk()?;
        if name.len() > MOST_NAME {
            return None;
        }
        Some(Introduction {
            from: NodeId(u32::from_be_bytes(*from)),
            to: NodeId(u32::from_be_bytes(*to)),
            dvm: std::str::from_utf8(name).ok()?.to_owned(),
        })
    }
}

/// Greeting and version, as they are sent.
pub(super) const fn greeting(version: u16) -> [u8; 8] {
    let [a, b, c, d, e, f] = GREETING;
    let [high, low] = version.to_be_bytes();
    [a, b, c, d, e, f, high, low]
}

/// Checks the beginning of what a peer has sent. None: no fault so far. The first wrong byte is a fault.
pub(super) fn fault(bytes: &[u8]) -> Option<Refusal> {
    let begins = bytes.iter().zip(GREETING).all(|(byte, expected)| *byte == expected);
    if !begins {
        let shown = bytes.iter().take(SHOWN).copied().collect();
        return Some(Refusal::NoDaemon { began: shown });
    }
    let version = bytes.get(GREETING.len()..)?.first_chunk()?;
    let theirs = u16::from_be_bytes(*version);
    (theirs != VERSION).then_some(Refusal::Version { theirs })
}

const MOST_NAME: usize = 255;
/// How much of an unknown protocol an error shows.
const SHOWN: usize = 16;
