//! What a user requests to be run, and the report at its end.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use phalanx_spec::{IofChannel, Rank, Status};
use phalanx_wire::{Info, Nspace, ProcId, Text};

use crate::encoding::encoded;
use crate::hosts::HostEntry;
use crate::map::Policy;
use crate::msg::{EnvChange, ExitStatus, FailurePolicy, ProcEnd, StdinTarget, Stuck};
use crate::ranges::Ranges;
use crate::report::sealed::{open, seal};
use crate::signals::SIGTERM;

/// One job: one or more app contexts, started together.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct JobRequest {
    pub apps: Vec<AppSpec>,
    /// The environment that every rank begins with, `NAME=VALUE`.
    pub env: Vec<Text>,
    /// Ranks get nothing else from the environment of the DVM that runs them.
    pub whole_env: bool,
    pub stdin: StdinTarget,
    /// What may be pulled and pushed while it runs; `None`: everything.
    pub forward: Option<IofChannel>,
    /// Its processes have a stream for diagnostics besides the standard ones.
    pub diag: bool,
    pub on_failure: FailurePolicy,
    /// Kill the job when it has run this long.
    pub timeout: Option<Duration>,
    /// From the polite signal to SIGKILL; `None`: the DVM's default.
    pub kill_after: Option<Duration>,
    /// Takes a checkpoint of one process, for programs that do not do it themselves.
    pub checkpoint_command: Option<Text>,
    /// Runs instead of the program of a process that restarts from a checkpoint.
    pub restart_command: Option<Text>,
    /// Give the job up if not all of its processes run after this long.
    pub start_timeout: Option<Duration>,
    /// How the ranks are placed, as far as the user has set it.
    pub policy: Policy,
    /// Further directives, as `PMIx_Spawn` takes them.
    pub info: Vec<Info>,
    /// The requesting process, if it was not the user.
    pub parent: Option<ProcId>,
}

/// One app context.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AppSpec {
    /// `argv[0]` is the program as the user named it.
    pub argv: Vec<Text>,
    pub procs: Option<u32>,
    /// Set on top of the job's environment, `NAME=VALUE`.
    pub env: Vec<Text>,
    /// Changes to that environment, in this order.
    pub changes: Vec<EnvChange>,
    /// Working directory; the launcher's own when absent.
    pub cwd: Option<Text>,
    /// Put in front of PATH and LD_LIBRARY_PATH as PREFIX/bin and PREFIX/lib.
    pub prefix: Option<Text>,
    /// Only on these nodes, with these slots; empty is everywhere.
    pub hosts: Vec<HostEntry>,
    /// The placement policy of this app context alone; otherwise the job's policy holds.
    pub policy: Option<Policy>,
}

/// Why the job ended as it did; determines the launcher's exit code.
#[derive(Clone, Debug, PartialEq)]
pub enum JobVerdict {
    Success,
    /// The first rank that failed.
    Failed {
        first: ProcEnd,
    },
    /// A rank called abort.
    Aborted {
        by: ProcId,
        status: Status,
        message: String,
    },
    /// A program could not be started.
    NotStarted {
        error: String,
    },
    TimedOut {
        limit: Duration,
    },
    /// The user ended it, with this signal.
    Cancelled {
        signal: i32,
    },
    /// A process or a tool has ended it, or some of its ranks, by job control.
    Killed {
        by: ProcId,
        signal: i32,
        /// If it was no order to end, but a signal: the rank that it has ended first, and whose end has ended the others.
        first: Option<Rank>,
    },
    /// The DVM was stopped, by this tool or process if it was one; or the launcher whose DVM it was has ended.
    DvmStopped {
        by: Option<ProcId>,
    },
    /// It was not to outlive the job that has started it.
    ParentEnded {
        parent: Nspace,
    },
    /// A rank has loaded an MPI library that has no PMIx client.
    WithoutPmix {
        by: ProcId,
        library: String,
    },
    /// The batch system has ended the allocation of the hosts.
    AllocationEnded {
        why: String,
    },
    /// A node was lost, with the reason.
    NodeLost {
        node: String,
        why: String,
    },
}

/// When a job reached each phase, counted from its submission. Phases that require all processes are missing if some have not
/// reached them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// Its processes have places.
    pub placed: Option<Duration>,
    /// All processes run: the last exec has succeeded.
    pub started: Option<Duration>,
    /// All have called init.
    pub connected: Option<Duration>,
    /// All have finalized.
    pub finalized: Option<Duration>,
    /// The last process has exited.
    pub exited: Option<Duration>,
    /// Its output is out, and nothing is left of it.
    pub ended: Option<Duration>,
}

impl Phases {
    /// The phases that were reached, with their names, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Duration)> {
        let Phases { placed, started, connected, finalized, exited, ended } = *self;
        let phases = [placed, started, connected, finalized, exited, ended];
        PHASES.into_iter().zip(phases).filter_map(|(name, time)| Some((name, time?)))
    }

    /// The inverse of [`iter`](Phases::iter).
    pub fn named(named: impl Fn(&str) -> Option<Duration>) -> Phases {
        let [placed, started, connected, finalized, exited, ended] = PHASES.map(named);
        Phases { placed, started, connected, finalized, exited, ended }
    }
}

const PHASES: [&str; 6] = ["placed", "started", "connected", "finalized", "exited", "ended"];

/// The process of a tool: its user, and where possible its pid, as the kernel reports them; the rest as the tool states it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolProcess {
    pub uid: u32,
    pub pid: Option<u32>,
    pub command: Option<String>,
}

/// `uid 1000, pid 4711, 'px ctl kill 3'`
impl Display for ToolProcess {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "uid {}", self.uid)?;
        if let Some(pid) = self.pid {
            write!(f, ", pid {pid}")?;
        }
        match &self.command {
            Some(command) => write!(f, ", '{command}'"),
            None => Ok(()),
        }
    }
}

/// The exit report.
#[derive(Clone, Debug, PartialEq)]
pub struct JobEnd {
    pub nspace: Nspace,
    pub verdict: JobVerdict,
    /// If a tool wanted the end: its process.
    pub tool: Option<ToolProcess>,
    /// Those that ended its ranks by job control, each with its ranks, if the verdict does not name them all.
    pub enders: Vec<Ender>,
    /// The exit code for the launcher: that of the first failure, also if the job has gone on then and ended for another reason.
    pub exit_code: i32,
    /// The process that failed first; for a job ended by job control, the first process that was ended.
    pub first: Option<ProcId>,
    pub procs: Vec<ProcEnd>,
    pub duration: Duration,
    /// Some rank has called init.
    pub connected: bool,
    /// The file of an MPI library that a rank was seen to have loaded before it connected.
    pub mpi: Option<String>,
    /// What its processes were waiting for when its end was decided.
    pub waited: Vec<Waited>,
    /// The ranks that were started again, and how often.
    pub restarts: Vec<(u32, u32)>,
    pub phases: Phases,
}

/// A process or tool that has ended ranks by job control.
#[derive(Clone, Debug, PartialEq)]
pub struct Ender {
    pub ranks: Ranges,
    pub by: ProcId,
    pub signal: i32,
    /// If it is a tool.
    pub tool: Option<ToolProcess>,
}

impl JobEnd {
    /// Encodes it for a `px` of this release.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        seal(self)
    }

    /// Decodes what a server has sent. The error states why it cannot be read.
    pub fn from_bytes(bytes: &[u8]) -> Result<JobEnd, String> {
        open(bytes)
    }
}

/// Processes that were waiting for the same thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Waited {
    /// As ranges: `0-1,3`.
    pub ranks: String,
    /// The operation in the standard's words: `fence`, `get` ...
    pub operation: String,
    /// What the operation was about.
    pub subject: String,
    /// How long the first of them had been waiting.
    pub longest: Duration,
}

impl Waited {
    pub(crate) fn of(stuck: &Stuck) -> Waited {
        Waited {
            ranks: stuck.ranks.to_string(),
            operation: stuck.operation.clone(),
            subject: stuck.subject.clone(),
            longest: stuck.longest,
        }
    }
}

impl JobVerdict {
    /// The answer to a query for the job's status.
    pub(crate) fn status(&self) -> Status {
        match self {
            JobVerdict::Success => Status::SUCCESS,
            JobVerdict::Aborted { .. } => Status::ERR_JOB_ABORTED,
            JobVerdict::NotStarted { .. } => Status::ERR_JOB_FAILED_TO_LAUNCH,
            JobVerdict::TimedOut { .. }
            | JobVerdict::Cancelled { .. }
            | JobVerdict::DvmStopped { .. }
            | JobVerdict::ParentEnded { .. }
            | JobVerdict::WithoutPmix { .. } => Status::ERR_JOB_CANCELED,
            JobVerdict::Killed { .. } => Status::ERR_JOB_KILLED_BY_CMD,
            JobVerdict::AllocationEnded { .. } | JobVerdict::NodeLost { .. } => {
                Status::ERR_JOB_ABORTED_BY_SYS_EVENT
            }
            JobVerdict::Failed { first } => match first.status {
                Some(ExitStatus::Code(0)) => Status::ERR_JOB_TERM_WO_SYNC,
                Some(ExitStatus::Signal { .. }) => Status::ERR_JOB_ABORTED_BY_SIG,
                _ => Status::ERR_JOB_NON_ZERO_TERM,
            },
        }
    }

    /// The process that is at fault.
    pub(crate) fn culprit(&self) -> Option<&ProcId> {
        match self {
            JobVerdict::Failed { first } => Some(&first.proc),
            JobVerdict::Aborted { by, .. } | JobVerdict::WithoutPmix { by, .. } => Some(by),
            _ => None,
        }
    }

    /// Whether a rank has ended it, or job control has, or the loss of a node. Then a failure that it has survived before counts
    /// more; not so if the user has ended it, for example.
    pub(crate) fn follows_a_failure(&self) -> bool {
        matches!(
            self,
            JobVerdict::Failed { .. }
                | JobVerdict::Aborted { .. }
                | JobVerdict::Killed { .. }
                | JobVerdict::NodeLost { .. }
        )
    }

    /// The requester of the end.
    pub(crate) fn wanted_by(&self) -> Option<&ProcId> {
        match self {
            JobVerdict::Killed { by, .. } => Some(by),
            JobVerdict::DvmStopped { by } => by.as_ref(),
            _ => None,
        }
    }

    /// Details of the verdict.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            JobVerdict::Aborted { message, .. } => Some(message),
            JobVerdict::NotStarted { error } => Some(error),
            JobVerdict::AllocationEnded { why } | JobVerdict::NodeLost { why, .. } => Some(why),
            JobVerdict::ParentEnded { parent } => Some(parent.as_str()),
            JobVerdict::WithoutPmix { library, .. } => Some(library),
            _ => None,
        }
    }

    /// The node that was lost.
    pub(crate) fn node(&self) -> Option<&str> {
        match self {
            JobVerdict::NodeLost { node, .. } => Some(node),
            _ => None,
        }
    }

    /// In one word, for tables.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            JobVerdict::Success => "success",
            JobVerdict::Failed { .. } => "failed",
            JobVerdict::Aborted { .. } => "aborted",
            JobVerdict::NotStarted { .. } => "not started",
            JobVerdict::TimedOut { .. } => "timed out",
            JobVerdict::Cancelled { .. } => "cancelled",
            JobVerdict::Killed { .. } => "killed",
            JobVerdict::DvmStopped { .. } => "DVM stopped",
            JobVerdict::ParentEnded { .. } => "parent ended",
            JobVerdict::WithoutPmix { .. } => "without PMIx",
            JobVerdict::AllocationEnded { .. } => "allocation ended",
            JobVerdict::NodeLost { .. } => "node lost",
        }
    }

    /// The exit code for the launcher.
    pub fn exit_code(&self) -> i32 {
        match self {
            JobVerdict::Success => 0,
            JobVerdict::Failed { first } => match first.status {
                Some(ExitStatus::Code(0)) | None => 1,
                Some(status) => status.shell_code(),
            },
            JobVerdict::Aborted { status, .. } => match status.0 & 0xff {
                0 => 1,
                code => code,
            },
            JobVerdict::NotStarted { .. } => 126,
            JobVerdict::TimedOut { .. } => 124,
            JobVerdict::Cancelled { signal } | JobVerdict::Killed { signal, .. } => 128 + signal,
            JobVerdict::DvmStopped { .. }
            | JobVerdict::ParentEnded { .. }
            | JobVerdict::AllocationEnded { .. } => 128 + SIGTERM,
            JobVerdict::NodeLost { .. } | JobVerdict::WithoutPmix { .. } => 1,
        }
    }
}

encoded!(struct JobEnd {
    nspace, verdict, tool, enders, exit_code, first, procs, duration, connected, mpi, waited, restarts, phases,
});
encoded!(enum JobVerdict {
    0 Success,
    1 Failed { first },
    2 Aborted { by, status, message },
    3 NotStarted { error },
    4 TimedOut { limit },
    5 Cancelled { signal },
    6 Killed { by, signal, first },
    7 DvmStopped { by },
    8 ParentEnded { parent },
    9 WithoutPmix { by, library },
    10 AllocationEnded { why },
    11 NodeLost { node, why },
});
encoded!(struct Ender { ranks, by, signal, tool });
encoded!(struct ToolProcess { uid, pid, command });
encoded!(struct Waited { ranks, operation, subject, longest });
encoded!(struct Phases { placed, started, connected, finalized, exited, ended });

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn end() -> JobEnd {
        let nspace = Nspace::new("dvm@1").unwrap();
        let proc = ProcEnd {
            proc: ProcId::new(&nspace, Rank(1)),
            node: "n1".to_owned(),
            pid: Some(4711),
            status: Some(ExitStatus::Signal { number: 11, core_dumped: true }),
            after: Duration::from_millis(1200),
            killed_by_us: false,
            lost_connection: true,
        };
        let tool = ToolProcess { uid: 1000, pid: Some(12), command: Some("px ctl kill".to_owned()) };
        JobEnd {
            verdict: JobVerdict::Failed { first: proc.clone() },
            tool: Some(tool.clone()),
            enders: vec![Ender {
                ranks: Ranges::first(2),
                by: ProcId::all(&nspace),
                signal: 9,
                tool: Some(tool),
            }],
            exit_code: 139,
            first: Some(ProcId::all(&nspace)),
            procs: vec![proc],
            duration: Duration::from_secs(3),
            connected: true,
            mpi: Some("libmpi.so".to_owned()),
            waited: vec![Waited {
                ranks: "0,2".to_owned(),
                operation: "fence".to_owned(),
                subject: String::new(),
                longest: Duration::from_secs(1),
            }],
            restarts: vec![(1, 2)],
            phases: Phases { placed: Some(Duration::from_micros(7)), ..Phases::default() },
            nspace,
        }
    }

    #[test]
    fn reports_survive_being_sent() {
        assert_eq!(JobEnd::from_bytes(&end().to_bytes()), Ok(end()));
    }

    #[test]
    fn an_order_has_not_ended_what_had_ended_before() {
        let died = ExitStatus::Signal { number: 9, core_dumped: false };
        let proc = |rank, killed_by_us| ProcEnd {
            proc: ProcId::new(&end().nspace, Rank(rank)),
            status: Some(died),
            killed_by_us,
            ..end().procs[0].clone()
        };
        let procs = vec![proc(0, false), proc(1, true), proc(2, true)];
        let lines = |first| {
            let verdict = JobVerdict::Killed { by: ProcId::all(&end().nspace), signal: 9, first };
            let (enders, waited) = (Vec::new(), Vec::new());
            JobEnd { verdict, procs: procs.clone(), tool: None, enders, waited, ..end() }.lines()
        };
        let by = ProcId::all(&end().nspace);
        assert_eq!(
            lines(None),
            [
                format!("ranks 1-2 were ended by {by}, by job control (SIGKILL)"),
                "rank 0 failed as well: it was killed by SIGKILL".to_owned()
            ]
        );
        assert_eq!(
            lines(Some(Rank(0))),
            [
                format!("rank 0 was ended by {by}, by job control (SIGKILL)"),
                "ranks 1-2 were ended by px as a consequence".to_owned()
            ]
        );
    }

    #[test]
    fn ranks_that_job_control_has_ended_are_no_consequences() {
        let died = ExitStatus::Signal { number: 9, core_dumped: false };
        let killed = |rank| ProcEnd {
            proc: ProcId::new(&end().nspace, Rank(rank)),
            status: Some(died),
            killed_by_us: true,
            ..end().procs[0].clone()
        };
        let by = ProcId::new(&Nspace::new("tool").unwrap(), Rank(0));
        let ender = Ender { ranks: Ranges::single(0), by: by.clone(), signal: 9, tool: None };
        let (procs, enders) = (vec![killed(0), end().procs[0].clone(), killed(2)], vec![ender]);
        let lines = JobEnd { procs, enders, waited: Vec::new(), ..end() }.lines();
        assert!(lines[0].starts_with("rank 1 was killed by SIGSEGV"), "{lines:?}");
        assert_eq!(
            lines[1..],
            [
                "rank 2 was ended by px as a consequence".to_owned(),
                format!("rank 0 was ended by {by}, by job control (SIGKILL)")
            ]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_report_or_a_reason(at in 0usize..1000, byte: u8, cut in 0usize..1000) {
            let mut bytes = end().to_bytes();
            let (at, cut) = (at % bytes.len(), cut % bytes.len());
            bytes[at] = byte;
            let _ = JobEnd::from_bytes(&bytes);
            let _ = JobEnd::from_bytes(&bytes[..cut]);
        }
    }
}
