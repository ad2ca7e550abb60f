//! Why a peer is not let in, or why it does not let us in.

use std::fmt;

use phalanx_dvm::NodeId;

use super::introduction::VERSION;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It speaks another protocol.
    NoDaemon { began: Vec<u8> },
    /// It speaks another version of our protocol.
    Version { theirs: u16 },
    /// It does not know our secret, or its message was changed in transit.
    Secret,
    /// It repeated a message of another connection, or its message was changed in transit.
    Stale,
    /// It belongs to another DVM.
    OtherDvm { theirs: String },
    /// It wants another daemon, or is not the one that we called.
    OtherNode { wanted: NodeId, found: NodeId },
    /// A message is too long or malformed.
    Malformed,
    /// It has answered that our secret differs from its own.
    OurSecret,
    /// It has answered that it is not the daemon that we want.
    NotWanted,
    /// It has closed the connection.
    Closed,
    /// It has taken too long to introduce itself.
    Slow,
    /// It was the oldest stranger when too many had come.
    Crowded,
}

impl Refusal {
    /// The byte that the peer is sent. It reveals nothing to peers that do not know our protocol.
    pub(super) fn code(&self) -> u8 {
        match self {
            Refusal::Version { .. } => 1,
            Refusal::Secret => 2,
            Refusal::OtherDvm { .. } | Refusal::OtherNode { .. } => 3,
            _ => 4,
        }
    }

    /// The meaning of a byte that a peer has sent.
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
