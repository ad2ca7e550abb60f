//! Reports to the user.

mod placed;
pub(crate) mod sealed;

use std::sync::Arc;

use phalanx_spec::IofChannel;
use phalanx_wire::{Info, Nspace, ProcId};

use crate::job::JobEnd;

pub use placed::Placed;

/// A report to the user.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// How many of the other daemons are up, or given up.
    Starting {
        done: u32,
        of: u32,
    },
    /// All daemons know each other: jobs can run.
    Ready,
    /// The DVM will not come up, and jobs that wait for it are refused; or this daemon has lost the others. `error` states why.
    NotReady {
        error: String,
    },
    /// The request was refused; `error` states what, why and a hint.
    Refused {
        request: u64,
        error: String,
    },
    /// The job has a name and a map.
    Accepted {
        request: u64,
        nspace: Nspace,
        placed: Arc<Placed>,
    },
    /// The progress of a phase: `starting`, 12 of 16.
    Progress {
        nspace: Nspace,
        phase: &'static str,
        done: u32,
        of: u32,
    },
    /// A process has started a job.
    Spawned {
        nspace: Nspace,
        placed: Arc<Placed>,
        /// The job, or the namespace of the tool, that has started it.
        parent: Option<Nspace>,
        /// The directives of the request.
        info: Vec<Info>,
        /// A tool that runs it shows its output.
        elsewhere: bool,
    },
    Output {
        proc: ProcId,
        pid: Option<u32>,
        channel: IofChannel,
        data: Arc<[u8]>,
    },
    /// A stream has ended: nothing more of it comes.
    OutputEnd {
        proc: ProcId,
        channel: IofChannel,
    },
    /// Text that a process logs, to be shown where its output is shown: whole lines, by request instead of by writing.
    Logged {
        proc: ProcId,
        channel: IofChannel,
        text: Vec<u8>,
    },
    /// A line for the user, about the job or the DVM.
    Note {
        nspace: Option<Nspace>,
        text: String,
    },
    /// The job is being ended, or its processes have ended by themselves; what follows is the rest of its output. Shells
    /// deliver this report ahead of output that waits for the user.
    Ending {
        nspace: Nspace,
    },
    /// Comes after the last byte of output.
    Ended(Box<JobEnd>),
}
