//! Limits on what a server keeps for peers, and for how long. Every table of the server is bounded by one of these.

use std::time::Duration;

/// A connection that has not introduced itself within this time is closed.
pub(super) const HELLO_WAIT: Duration = Duration::from_secs(30);
/// Maximum number of connections without identity; one more drops the oldest of them.
pub(super) const MAX_STRANGERS: usize = 1024;
/// Connections of one rank, including those that have finalized but are still open.
pub(super) const MAX_CLONES: usize = 128;
/// Unanswered requests of a tool, or of all connections of a rank. A rank that asks for every peer of a large job at once stays
/// below.
pub(super) const MAX_REQUESTS: usize = 262_144;
/// Requests of a connection with more unread bytes than this wait. Transports stop reading there, too.
pub(super) const FULL_QUEUE: usize = 1 << 20;
/// Unread bytes that one tool, or all connections of a rank, may have before the next message. Above it an answer is replaced by
/// a status; a connection with so many unread unsolicited bytes is closed.
pub(super) const MAX_QUEUED: usize = 64 << 20;
/// Bytes of the longest message that OpenPMIx 6 takes, unless its user sets another bound.
pub(super) const LONGEST_TO_RELEASE_6: usize = 32 << 20;
/// An answer as short as a status is sent in any case.
pub(super) const SHORT_ANSWER: usize = 512;
/// Processes for which a server remembers how much of their values a connection has received.
pub(super) const MAX_TOLD: usize = 1024;
/// Bytes of standard input from one connection that may wait for their readers; with more, its requests are read later.
pub(super) const FULL_PUSHES: usize = 1 << 20;
/// Bytes of incomplete messages, from a tool or from all connections of a rank.
pub(super) const MAX_INCOMPLETE: usize = 288 << 20;
/// Bytes that one rank may have committed.
pub(super) const MAX_COMMITTED: usize = 256 << 20;
/// Maximum ranks and bytes of values in one answer to a process that asks for one rank after the other.
pub(super) const MAX_RANKS_AHEAD: u32 = 256;
pub(super) const MAX_BYTES_AHEAD: usize = 512 << 10;
/// Bytes that a fence may write into a file, and those of all such files.
pub(super) const MAX_COLLECTED: u64 = 64 << 20;
pub(super) const MAX_ALL_COLLECTED: u64 = 256 << 20;
/// A file that has reached this size is removed; the next collection opens a new one.
pub(super) const FULL_COLLECTED: u64 = 8 << 20;
/// How long a get waits, by default, for a key of a local rank that has committed other keys.
pub(super) const KEY_WAIT: Duration = Duration::from_secs(2);
/// Collectives of one set of participants that have not ended.
pub(super) const MAX_COLLECTIVES: usize = 1024;
/// Event codes that a tool, or all connections of a rank, may be registered for.
pub(super) const MAX_REGISTRATIONS: usize = 4096;
/// Bytes that one event of a client may carry: it is sent to every process that wants it.
pub(super) const MAX_EVENT_BYTES: usize = 1 << 20;
/// Events kept for later registrations: their number, their age, and the bytes of them all.
pub(super) const MAX_CACHED_EVENTS: usize = 512;
pub(super) const EVENT_AGE: Duration = Duration::from_secs(120);
pub(super) const MAX_CACHED_EVENT_BYTES: usize = 4 << 20;
/// Groups that exist at once.
pub(super) const MAX_GROUPS: usize = 65_536;
/// Streams that a tool, or all connections of a rank, may have pulled.
pub(super) const MAX_PULLS: usize = 4096;
/// Pulls of one connection that may bring the same bytes: each costs a copy.
pub(super) const MAX_OVERLAPPING_PULLS: usize = 16;
/// Monitors of a tool, or of all connections of a rank.
pub(super) const MAX_MONITORS: usize = 128;
/// In jobs up to this size, every process gets all data of every rank. In larger ones it gets all data of the ranks of its
/// node and asks for the rest on demand, because each process of a node gets a copy.
pub(super) const MAX_RANKS_TOLD: usize = 4096;
/// In jobs up to this size, every process gets the location of each rank: clients do not ask for it. Some clients accept no
/// message above 32 MiB.
pub(super) const MAX_RANKS_PLACED: usize = 262_144;
/// Clients that a host registered before their job.
pub(super) const MAX_EARLY_CLIENTS: usize = 1 << 12;
