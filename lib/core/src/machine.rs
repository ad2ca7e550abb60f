//! The shape that all machines share: inputs in the past tense, outputs in the imperative, time as a number.
//!
//! Each role has its own calls, returns and deliveries as associated types: roles share the shape, not one giant enum.

use std::collections::VecDeque;
use std::time::Duration;

use crate::host::{HostOp, HostReply};
use crate::right::{Right, Rights};

/// Nanoseconds since a moment that the shell chose. Only differences mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

impl Time {
    pub fn after(self, wait: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
    }

    pub fn before(self, ago: Duration) -> Time {
        Time(self.0.saturating_sub(u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How long ago `earlier` was; zero if it is in the future.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);
    )+};
}
ids! {
    /// One connection, as the shell numbers them. Numbers are not reused.
    ConnId
    /// One call of the local API or of the owning daemon.
    CallId
    /// One run of a user's callback.
    DeliveryId
    /// One registered callback.
    HandlerId
}

/// The right to answer one upcall: it cannot be copied, and giving the answer uses it up. The server notices at the end of its
/// next turn if its host has dropped one unused.
#[must_use = "a client waits for the answer"]
#[derive(Debug)]
pub struct HostCall(Right<u64>);

impl HostCall {
    /// For stand-ins of servers, which do not notice if it is dropped.
    pub const fn new(number: u64) -> HostCall {
        HostCall(Right::unobserved(number))
    }

    /// A server notices by these `rights` if it is dropped.
    pub fn noticed_by(rights: &Rights<u64>, number: u64) -> HostCall {
        HostCall(rights.make(number))
    }

    pub const fn number(&self) -> u64 {
        self.0.to()
    }

    /// Uses it up: the answer is given, or the server ends.
    pub fn use_up(self) -> u64 {
        self.0.use_up()
    }
}

/// The identity of the peer, as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCred {
    pub uid: u32,
    pub gid: u32,
    /// Unknown for peers on other machines.
    pub pid: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer closed its end.
    Eof,
    /// The transport failed.
    Error,
    /// We asked for it.
    Local,
    /// The server at the other end belongs to a user that is not trusted; nothing was sent.
    Foreign,
}

/// A file's metadata. Only changes mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLook {
    /// Device and inode: another file may have taken its name.
    pub identity: (u64, u64),
    pub size: u64,
    /// Seconds and nanoseconds.
    pub accessed: (i64, i64),
    pub modified: (i64, i64),
}

/// What happened. `C`: the role's calls.
#[derive(Debug)]
pub enum Input<'a, C> {
    /// A connection exists: accepted (server) or made after [`Output::Connect`]. `None`: the kernel could not identify the
    /// peer.
    Opened {
        conn: ConnId,
        peer: Option<PeerCred>,
    },
    Bytes {
        conn: ConnId,
        data: &'a [u8],
    },
    /// The transport's queue of this connection now holds `queued` bytes.
    Writable {
        conn: ConnId,
        queued: usize,
    },
    Closed {
        conn: ConnId,
        reason: CloseReason,
    },
    /// A call of the local API.
    Call {
        id: CallId,
        call: C,
    },
    /// The answer to [`Output::LookAt`]. `None`: there is no such file, or it cannot be seen.
    Looked {
        look: u64,
        file: Option<FileLook>,
    },
    /// The host's answer to [`Output::CallHost`].
    Host {
        call: HostCall,
        reply: HostReply,
    },
    Tick,
}

/// What to do. `R`: the role's results, `D`: its deliveries to user callbacks.
#[derive(Debug)]
pub enum Output<R, D> {
    Connect {
        conn: ConnId,
        address: String,
    },
    /// Complete bytes: header and payload belong together and must not be split by another send.
    Send {
        conn: ConnId,
        frame: Vec<u8>,
    },
    /// Close after everything sent before has left.
    Close {
        conn: ConnId,
    },
    /// Write to a file that only its owner can read, before the following outputs, which announce it to peers. If writing
    /// fails, peers manage without. At 0 the file is new, otherwise the bytes are appended.
    WriteFile {
        path: String,
        at: u64,
        bytes: Vec<u8>,
    },
    /// Get a file's metadata, without opening it. `reads`: its time of access must show when it is read next. This may take any time, and nothing else may wait for it. Answered once,
    /// by [`Input::Looked`].
    LookAt {
        look: u64,
        path: String,
        reads: bool,
    },
    RemoveFile {
        path: String,
    },
    Return {
        id: CallId,
        result: R,
    },
    CallHost {
        call: HostCall,
        op: HostOp,
    },
    Deliver {
        id: DeliveryId,
        to: HandlerId,
        what: D,
    },
}

/// Outputs in the order in which they must be carried out.
#[derive(Debug)]
pub struct Outbox<R, D>(VecDeque<Output<R, D>>);

impl<R, D> Default for Outbox<R, D> {
    fn default() -> Self {
        Outbox(VecDeque::new())
    }
}

impl<R, D> Outbox<R, D> {
    pub fn push(&mut self, output: Output<R, D>) {
        self.0.push_back(output);
    }

    pub fn pop(&mut self) -> Option<Output<R, D>> {
        self.0.pop_front()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A role of the protocol.
pub trait Machine {
    type Call;
    type Return;
    type Delivery;

    fn handle(
        &mut self,
        now: Time,
        input: Input<'_, Self::Call>,
        out: &mut Outbox<Self::Return, Self::Delivery>,
    );

    /// When the machine next wants a [`Input::Tick`], if nothing else happens before.
    fn deadline(&self) -> Option<Time>;

    /// Whether this connection is not to be read: its input has to wait. Asked again after each input.
    fn is_full(&self, _conn: ConnId) -> bool {
        false
    }
}
