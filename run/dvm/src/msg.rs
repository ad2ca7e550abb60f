//! What daemons say to each other. Versioned, ours alone, carried by any transport in order.
//!
//! Four ways through the tree, each with its own rule for surviving the loss of an inner daemon:
//! [`Cast`] (root to many, `cast.rs`), [`Gather`] (many to root, merged on the way, `gather.rs`), [`Post`] and
//! [`Chunk`] (one to root, `post.rs` and `iof.rs`), [`Routed`] (one to one, `dmodex.rs`).

use std::sync::Arc;

use phalanx_core::{Event, HostOp, HostReply};
use phalanx_spec::{IofChannel, Rank, Status};
use phalanx_wire::{Blob, Key, Nspace, ProcId};
use serde::{Deserialize, Serialize};

use crate::boot::{NodeReport, NodeTable};
use crate::cleanup::CleanupRequest;
use crate::control::Action;
use crate::desc::JobDesc;
use crate::effect::SpawnFailure;
use crate::gather::{Collective, OpId, Outcome, Part};
use crate::iof::TapName;
use crate::job::ProcEnd;
use crate::ranges::Ranges;
use crate::survey::Survey;
use crate::survivors::Share;

/// The version of this protocol. Daemons of one DVM all come from one binary, so a difference is a mistake of whoever
/// started them, and the link is refused.
pub(crate) const VERSION: u16 = 1;

/// A daemon's number in its DVM. The root is 0; the tree follows from the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u32);

impl NodeId {
    pub const ROOT: NodeId = NodeId(0);
}

#[derive(Clone, Debug)]
pub enum Msg {
    /// The first message on every link, both ways. From a parent it also accepts the child.
    Hello(Hello),
    Heartbeat,
    /// Who has come up in the sender's subtree: sent up while booting.
    Report(Vec<NodeReport>),
    Cast(Arc<Cast>),
    /// The sender's whole subtree has all casts up to this one.
    CastAck {
        upto: u64,
    },
    Gather(Gather),
    Post(Post),
    Chunk(Chunk),
    /// The sender has passed on this many bytes of the receiver's chunks.
    ChunkCredit {
        bytes: usize,
    },
    Routed(Routed),
    /// The way to the root has changed: everybody below sends again what was not acknowledged.
    Resend,
}

#[derive(Clone, Debug)]
pub struct Hello {
    pub version: u16,
    pub node: NodeId,
    /// The last cast that the sender has.
    pub have: u64,
    /// Where the sender, its parent, its parent's parent ... are reached.
    pub lineage: Vec<(NodeId, Arc<str>)>,
}

/// From the root to some daemons; every daemon on the way sees it too. All daemons see casts in one order.
#[derive(Clone, Debug)]
pub struct Cast {
    pub seq: u64,
    pub to: Ranges,
    pub body: Down,
}

#[derive(Clone, Debug)]
pub enum Down {
    /// The DVM stands.
    Table(Arc<NodeTable>),
    /// Send your topology.
    SendTopology,
    Start(Arc<JobDesc>),
    /// A collective operation has ended.
    Done {
        op: Arc<OpId>,
        outcome: Outcome,
    },
    Control {
        nspace: Nspace,
        ranks: Option<Ranges>,
        action: Action,
    },
    /// Paths that processes on the addressed daemons leave to them. Each contributes to the operation whether it could
    /// enter them.
    Cleanup {
        op: Collective,
        request: Arc<CleanupRequest>,
    },
    /// Tell what you know.
    Survey(Survey),
    /// Processes that have failed while their job goes on: nobody waits for them any more.
    Dead {
        nspace: Nspace,
        ranks: Ranges,
    },
    /// Somebody waits for these processes of the addressed daemons to do something: say when they have ended.
    Watch {
        nspace: Nspace,
        ranks: Ranges,
    },
    Forget {
        nspace: Nspace,
    },
    /// The root's answer to a request of the addressed daemon.
    Reply {
        request: u64,
        reply: HostReply,
    },
    PostAcks(Vec<(NodeId, u64)>),
    ChunkAcks(Vec<ChunkAck>),
    /// Output for those who pulled it at the addressed daemon.
    Output(Forward),
    /// For a tool at the addressed daemon, on what it reads of the server without asking.
    Say {
        to: ProcId,
        text: String,
    },
    Stdin {
        nspace: Nspace,
        ranks: Ranges,
        data: Arc<[u8]>,
    },
    StdinEnd {
        nspace: Nspace,
        ranks: Ranges,
    },
    /// `except`: the daemon whose server has told its own clients already.
    Event {
        event: Arc<Event>,
        except: Option<NodeId>,
    },
    Lost {
        node: NodeId,
    },
    Stop,
}

/// What the sender's whole subtree contributes to a collective operation.
#[derive(Clone, Debug)]
pub struct Gather {
    pub op: Arc<OpId>,
    pub from: NodeId,
    /// Participants below `from` that were lost before they contributed.
    pub missing: Ranges,
    pub part: Part,
}

/// From one daemon to the root, in order, exactly once.
#[derive(Clone, Debug)]
pub struct Post {
    pub origin: NodeId,
    pub seq: u64,
    pub body: Arc<Up>,
}

#[derive(Clone, Debug)]
pub enum Up {
    Topology {
        signature: String,
        encoded: Vec<u8>,
    },
    StartFailed {
        proc: ProcId,
        failure: SpawnFailure,
    },
    /// The first of a daemon's processes whose end may end the job; under `Continue` each that failed.
    Failed(ProcEnd),
    Abort {
        from: ProcId,
        status: Status,
        message: String,
        procs: Vec<ProcId>,
    },
    /// Processes that have called init, so far.
    Connected {
        nspace: Nspace,
        count: u32,
    },
    /// What a daemon's members bring to an operation that may lack members.
    Share(Box<Share>),
    /// Of the processes that are watched these have ended, or finalized.
    Over {
        nspace: Nspace,
        ranks: Ranges,
    },
    /// An upcall that the root answers. `uid`/`gid`: the jobs' user.
    Host {
        request: u64,
        op: HostOp,
    },
    /// A tool has finalized, or its connection has ended.
    ToolLeft {
        proc: ProcId,
    },
    StdinTaken {
        nspace: Nspace,
        rank: Rank,
        bytes: usize,
    },
    StdinRefused {
        nspace: Nspace,
        rank: Rank,
    },
    /// These pieces of [`Down::Output`] have left our server, in this order; of each, how many of the last bytes of its stream are
    /// held all the same. `gone`: it has nobody for them any more.
    OutputLeft {
        to: TapName,
        pieces: Vec<(u64, usize)>,
        gone: bool,
    },
    NodeLost {
        node: NodeId,
        why: String,
    },
    Note {
        nspace: Option<Nspace>,
        text: String,
    },
}

/// A piece of a process's output on its way to the root, in order, exactly once.
#[derive(Clone, Debug)]
pub struct Chunk {
    pub origin: NodeId,
    pub seq: u64,
    pub proc: ProcId,
    pub pid: Option<u32>,
    pub channel: IofChannel,
    /// Empty: the stream has ended.
    pub data: Arc<[u8]>,
}

/// Everybody has taken these chunks of `origin`.
#[derive(Clone, Copy, Debug)]
pub struct ChunkAck {
    pub origin: NodeId,
    pub first: u64,
    pub last: u64,
}

/// Output on its way from the root to one reader.
#[derive(Clone, Debug)]
pub struct Forward {
    pub to: TapName,
    /// The reader's own count.
    pub piece: u64,
    pub proc: ProcId,
    pub pid: Option<u32>,
    /// The reader wants to know where the process is.
    pub names_place: bool,
    pub channel: IofChannel,
    /// Empty: the stream has ended.
    pub data: Arc<[u8]>,
    /// Bytes that were dropped right before.
    pub lost: u64,
}

#[derive(Clone, Debug)]
pub struct Routed {
    pub from: NodeId,
    pub to: NodeId,
    pub body: Side,
}

#[derive(Clone, Debug)]
pub enum Side {
    /// Repeated until it is answered.
    Modex {
        id: u64,
        proc: ProcId,
        key: Option<Key>,
    },
    ModexIs {
        id: u64,
        result: Result<Blob, Status>,
    },
}
