//! The daemon shell: it does what a [`phalanx_dvm::Node`] decides.
//!
//! Sockets, processes, standard streams, signals and files live here; decisions never do. Everything runs on one thread: one task owns the node
//! ([`Running`] is its outside), the others pass it events through bounded channels and get their instructions as effects.
//!
//! How a program uses it, in this order:
//!
//! 1. [`Inherited::take`], before anything is opened: standard descriptors, limits, signal mask.
//! 2. [`Session::begin`], before any thread exists: the session directory, and the warden that outlives us.
//! 3. [`block_on`], and in it [`Running::root`], which returns a [`Handle`] for requests and the [`Reports`] to read.
//! 4. [`Signals`] reports what the user's terminal and batch system want; the program decides what that means.
//! 5. [`Running::finish`] when the last report was read.

mod announce;
mod backlog;
mod cleanup;
mod conn;
mod daemon;
mod drive;
mod elf;
mod far;
mod foreign;
mod handle;
mod hunt;
pub mod link;
mod listen;
mod logs;
mod machine;
mod member;
mod neighbours;
mod procs;
mod pulse;
mod reading;
mod root;
mod session;
mod signals;
mod sink;
mod spawn;
mod startup;
mod stdin;
mod stdio;
mod strays;
mod tmpdir;
mod trees;
mod usage;
mod warden;
mod watched;

pub use daemon::{Running, Site, block_on};
pub use drive::Decide;
pub use far::{Far, FarOptions, Lifeline, say_failed};
pub use foreign::{INTELS_VARIABLE, Linked, examine, finds_libpmix};
pub use handle::{Explanation, Gone, Handle, Reports};
pub use machine::{Machine, cpu_quota};
pub use root::RootOptions;
pub use session::{Session, SessionOptions};
pub use signals::{SignalEvent, Signals, stop_self};
pub use sink::Sink;
pub use startup::{Inherited, KeepalivePipe, heed_interrupts, terminated_by};
pub use stdin::StdinSource;
pub use tmpdir::TmpDir;
