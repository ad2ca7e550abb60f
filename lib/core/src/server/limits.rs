//! How much a server keeps for others, and how long. Every table of the server is bounded by one of these.

use std::time::Duration;

/// A connection that has not introduced itself within this time is closed.
pub(super) const HELLO_WAIT: Duration = Duration::from_secs(30);
/// So many connections may be without identity at once; one more drops the oldest of them.
pub(super) const MAX_STRANGERS: usize = 1024;
/// Connections of one rank, those among them that have finalized but are still open.
pub(super) const MAX_CLONES: usize = 128;
/// Requests of a tool, or of all connections of a rank, that have not been answered. A rank that asks for every peer of a large
/// job at once stays below.
pub(super) const MAX_REQUESTS: usize = 262_144;
/// With so many bytes that wait for a connection to read them, its requests are not looked at. Transports stop reading there, too.
pub(super) const FULL_QUEUE: usize = 1 << 20;
/// Bytes that may wait for one tool, or for all connections of a rank, to read them before the next message. More, and an answer
/// is replaced by a status; a connection that does not read so many bytes of what it did not ask for is given up.
pub(super) const MAX_QUEUED: usize = 64 << 20;
/// Bytes of the longest message that OpenPMIx 6 takes, unless its user sets another bound.
pub(super) const LONGEST_TO_RELEASE_6: usize = 32 << 20;
/// An answer as short as a status is sent in any case.
pub(super) const SHORT_ANSWER: usize = 512;
/// Processes for which a server remembers how much of their values a connection has been told.
pub(super) const MAX_TOLD: usize = 1024;
/// Bytes of standard input from one connection that may wait for their readers; with more, its requests are read later.
pub(super) const FULL_PUSHES: usize = 1 << 20;
/// Bytes of messages that have not arrived whole, from a tool or from all connections of a rank.
pub(super) const MAX_INCOMPLETE: usize = 288 << 20;
/// Bytes that one rank may have committed.
pub(super) const MAX_COMMITTED: usize = 256 << 20;
/// So many ranks, with so many bytes of values, are told in one answer to a process that asks for one after the other.
pub(super) const MAX_RANKS_AHEAD: u32 = 256;
pub(super) const MAX_BYTES_AHEAD: usize = 512 << 10;
/// Bytes that a fence may have collected to be written into a file, and those of all such files.
pub(super) const MAX_COLLECTED: u64 = 64 << 20;
pub(super) const MAX_ALL_COLLECTED: u64 = 256 << 20;
/// Such a file that has so many is followed by another.
pub(super) const FULL_COLLECTED: u64 = 8 << 20;
/// How long a get waits for a key that a local rank has not committed although it has committed others, unless told.
pub(super) const KEY_WAIT: Duration = Duration::from_secs(2);
/// Collectives of one participant that have not ended.
pub(super) const MAX_COLLECTIVES: usize = 1024;
/// Event codes that a tool, or all connections of a rank, may be registered for.
pub(super) const MAX_REGISTRATIONS: usize = 4096;
/// Bytes that one event of a client may carry: it is sent to every process that wants it.
pub(super) const MAX_EVENT_BYTES: usize = 1 << 20;
/// Events kept for those who register later, for so long, and the bytes of them all.
pub(super) const MAX_CACHED_EVENTS: usize = 512;
pub(super) const EVENT_AGE: Duration = Duration::from_secs(120);
pub(super) const MAX_CACHED_EVENT_BYTES: usize = 4 << 20;
/// Groups that exist at once.
pub(super) const MAX_GROUPS: usize = 65_536;
/// Streams that a tool, or all connections of a rank, may have pulled.
pub(super) const MAX_PULLS: usize = 4096;
/// Pulls of one connection that may bring the same bytes: each costs a copy.
pub(super) const MAX_OVERLAPPING_PULLS: usize = 16;
/// Times that a tool may be watched, or a rank on all its connections.
pub(super) const MAX_MONITORS: usize = 128;
/// In jobs up to this size, every process is told everything of every rank. In larger ones it is told everything of the ranks
/// of its node and asks for the rest when it needs it: a node's processes all get a copy.
pub(super) const MAX_RANKS_TOLD: usize = 4096;
/// In jobs up to this size, every process is told where each rank is: clients do not ask for that, they find it or not. Some
/// clients accept no message above 32 MiB.
pub(super) const MAX_RANKS_PLACED: usize = 262_144;
/// Clients that a host has named before their job.
pub(super) const MAX_EARLY_CLIENTS: usize = 1 << 12;
