//! Why a peer is not let in, or why it does not let us in.

use std::fmt;

use phalanx_dvm::NodeId;

use super::introduction::VERSION;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It speaks something else.
    NoDaemon { began: Vec<u8> },
    /// It speaks another version of our protocol.
    Version { theirs: u16 },
    /// It does not know our secret, or what it said was changed on the way.
    Secret,
    /// It sent something again that was said on another connection, or what it said was changed on the way.
    Stale,
    /// It belongs to another DVM.
    OtherDvm { theirs: String },
    /// It wants somebody else, or is not whom we called.
    OtherNode { wanted: NodeId, found: NodeId },
    /// A message is longer than any can be, or not what it should be.
    Malformed,
    /// It has let us know that our secret is not its own.
    OurSecret,
    /// It has let us know that it is not whom we look for.
    NotWanted,
    /// It has closed the connection.
    Closed,
    /// It has said too little for too long.
    Slow,
    /// Others came, and it was the one that had said too little for longest.
    Crowded,
}

impl Refusal {
    /// What the peer is told, if anything: one byte, which says nothing to those who do not know our protocol.
    pub(super) fn code(&self) -> u8 {
        match self {
            Refusal::Version { .. } => 1,
            Refusal::Secret => 2,
            Refusal::OtherDvm { .. } | Refusal::OtherNode { .. } => 3,
            _ => 4,
        }
    }

    /// What it means when a peer says so.
    pub(super) fn told(code: u8) -> Refusal {
        match code {
            2 => Refusal::OurSecret,
            3 => Refusal::NotWanted,
            _ => Refusal::Malformed,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoDaemon { began } => {
                write!(f, "no daemon of ours is there: it began with \"{}\"", began.escape_ascii())
            }
            Refusal::Version { theirs } => write!(
                f,
                "it speaks version {theirs} of the protocol between daemons, and this daemon version {VERSION}; \
                 hint: start all daemons from the same release"
            ),
            Refusal::Secret => f.write_str("it does not know the secret of this DVM"),
            Refusal::Stale => f.write_str(
                "it repeats what was said on another connection, or its bytes were changed on the way",
            ),
            Refusal::OtherDvm { theirs } => {
                write!(f, "it belongs to the DVM \"{}\"", theirs.escape_default())
            }
            Refusal::OtherNode { wanted, found } => {
                write!(f, "daemon {} was wanted, and daemon {} is there", wanted.0, found.0)
            }
            Refusal::Malformed => f.write_str("what it says is not a message of a daemon"),
            Refusal::OurSecret => f.write_str("it says that this daemon does not know the secret of its DVM"),
            Refusal::NotWanted => f.write_str("it says that it is another daemon, or one of another DVM"),
            Refusal::Closed => f.write_str("it closed the connection before both had introduced themselves"),
            Refusal::Slow => f.write_str("it did not introduce itself in time"),
            Refusal::Crowded => {
                f.write_str("too many others came, and it had not introduced itself for longest")
            }
        }
    }
}

impl std::error::Error for Refusal {}
