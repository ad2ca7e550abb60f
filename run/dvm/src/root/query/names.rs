//! Our own attributes: what `px` needs and the standard has no key for. They are queried like any other.

/// All jobs, including those that ended lately: an array of `PMIX_JOB_INFO_ARRAY`.
pub const JOBS: &str = "phalanx.jobs";
/// The events of jobs, including those that ended lately, or of the one that `PMIX_NSPACE` names: [`NUMBER`], [`OMITTED`], and
/// a [`HAPPENING`] each, the oldest first. With [`STATE`] as a qualifier, only those of this kind.
pub const HAPPENINGS: &str = "phalanx.happenings";
/// One event of a job; [`STATE`] names it.
pub const HAPPENING: &str = "phalanx.happening";
/// The [`STATE`] of an event that is a text in the record of a job: `PMIX_PROCID` has logged `PMIX_LOG_MSG`; `PMIX_LOG_TIMESTAMP` is when, if
/// it stated a time.
pub const LOGGED: &str = "logged";
/// A channel of `PMIx_Log`: the absolute path of a file on the node of the process that logs, to which `PMIX_LOG_MSG` is appended.
pub const LOG_FILE: &str = "phalanx.log.file";
/// A qualifier: only events of the last so many milliseconds.
pub const SINCE: &str = "phalanx.since";
/// The sequence number of an event, also in the PMIx events that announce it; of an answer, the last number in it.
pub const NUMBER: &str = "phalanx.number";
/// How many events were left out.
pub const OMITTED: &str = "phalanx.omitted";
/// The code of the PMIx event that announces it.
pub const CODE: &str = "phalanx.code";
/// The ranks concerned, and their number.
pub const WHICH: &str = "phalanx.of_ranks";
pub const COUNT: &str = "phalanx.count";
/// The processes of the job that `PMIX_NSPACE` names: an array of `PMIX_PROC_INFO_ARRAY`.
pub const RANKS: &str = "phalanx.ranks";
/// Where the ranks of the job that `PMIX_NSPACE` names are, or those of a job with [`SPAWN_JOB`] and [`SPAWN_APPS`] would be:
/// bytes for a `px` of the same release (`Placed`), or a string that explains why there is no such map.
pub const MAP: &str = "phalanx.map";
/// How the job that `PMIX_NSPACE` names has ended: bytes for a `px` of the same release (`JobEnd`). The event of a job that ends with
/// its DVM contains it, because the DVM cannot be asked any more.
pub const END: &str = "phalanx.end";
/// Qualifiers: the arguments of `PMIx_Spawn`, an array of infos and one of programs.
pub const SPAWN_JOB: &str = "phalanx.spawn.job";
pub const SPAWN_APPS: &str = "phalanx.spawn.apps";
/// What the processes of a job were waiting for when its end was decided: [`WHICH`], [`OPERATION`], [`SUBJECT`] and [`AGE`].
pub const WAITED: &str = "phalanx.waited";
/// Everything that is waiting anywhere in the DVM: an array of [`WAIT`].
pub const WAITS: &str = "phalanx.waits";
/// Whether the server is a DVM that goes on without jobs until it is stopped.
pub const LASTS: &str = "phalanx.lasts";
/// One thing that is waiting.
pub const WAIT: &str = "phalanx.wait";

/// The nodes of the DVM, those that were lost included: an array of `PMIX_NODE_INFO_ARRAY` with `PMIX_HOSTNAME`, `PMIX_NODEID`,
/// [`STATE`] (`starting`, `up` or `lost`), `PMIX_MAX_PROCS` (slots) and [`IN_USE`] if it takes ranks, load, free memory and [`LINK`].
pub const NODES: &str = "phalanx.nodes";
/// Of a node: how many ranks are there that have not ended.
pub const IN_USE: &str = "phalanx.in_use";
/// Of a node: the link of its daemon to the one above it, as the address and port that have answered.
pub const LINK: &str = "phalanx.link";
/// The keys of the directives of a spawn that were ignored, separated by commas.
pub const IGNORED: &str = "phalanx.ignored";
/// The state of a job: `starting`, `running`, one of the words of [`STOPPED`], `ending` or `ended`.
pub const STATE: &str = "phalanx.state";
/// The tool that has started a job or its first ancestor.
pub const RUN_BY: &str = "phalanx.run_by";
/// Why a job ended as it did: `success`, `failed`, `aborted`, `not started`, `timed out`, `cancelled`, `killed`, `DVM stopped`, `parent ended`,
/// `without PMIx`, `node lost`.
pub const VERDICT: &str = "phalanx.verdict";
/// The process or tool that requested the end of a job or of its DVM.
pub const WANTED_BY: &str = "phalanx.wanted_by";
/// If a tool wanted that: its process, as an array of `PMIX_USERID` and, where they are known, `PMIX_PROC_PID` and `PMIX_CMD_LINE`.
pub const TOOL_PROCESS: &str = "phalanx.tool_process";
/// What is to be said beside the verdict: why it did not start or its node was lost (`PMIX_HOSTNAME` names
/// that), the message of the abort, the MPI library, the parent.
pub const REASON: &str = "phalanx.reason";
/// The MPI library that a process of the job was seen to have loaded before it called init.
pub const MPI: &str = "phalanx.mpi";
/// How long a job or process runs or has run, or how long something has waited, in milliseconds.
pub const AGE: &str = "phalanx.age";
/// When a job reached each phase, in microseconds since its submission. The phases are the keys of an array.
pub const PHASES: &str = "phalanx.phases";
/// Milliseconds since the end of a job.
pub const ENDED: &str = "phalanx.ended";
/// How often a process was started again, if it was.
pub const RESTARTS: &str = "phalanx.restarts";
/// How a process stands: `paused` by request, `suspended` with its launcher, or `paused, suspended`.
pub const STOPPED: &str = "phalanx.stopped";
/// The time limit at which a job was ended, in milliseconds.
pub const LIMIT: &str = "phalanx.limit";
/// A process has called init and ended without finalize.
pub const UNFINALIZED: &str = "phalanx.unfinalized";
/// The signal that a process died of.
pub const SIGNAL: &str = "phalanx.signal";
/// Bytes of memory: of one process, and the least and most of any process on a node.
pub const MEMORY: &str = "phalanx.memory";
pub const MEMORY_LEAST: &str = "phalanx.memory.least";
pub const MEMORY_MOST: &str = "phalanx.memory.most";

/// Of a wait: the operation, its subject, the requesters, the processes that are missing, and what would unblock it.
pub const OPERATION: &str = "phalanx.operation";
pub const SUBJECT: &str = "phalanx.subject";
pub const ASKED_BY: &str = "phalanx.asked_by";
pub const MISSING: &str = "phalanx.missing";
pub const UNBLOCKED_BY: &str = "phalanx.unblocked_by";

/// The stacks of the ranks of a job, as its daemons read them now: a [`STACK`] for equal ones, an [`UNREAD`] for ranks with the same reason.
/// `PMIX_NSPACE` names the job, and [`WHICH`] ranks of it; by default all.
pub const STACKS: &str = "phalanx.stacks";
/// Threads with the same stack: [`WHICH`], [`COUNT`] (of threads), `PMIX_CMD_LINE` (the name of their process) and [`FRAMES`].
pub const STACK: &str = "phalanx.stack";
/// The functions of a stack, the outermost first.
pub const FRAMES: &str = "phalanx.frames";
/// Ranks without stacks: [`WHICH`] and [`REASON`].
pub const UNREAD: &str = "phalanx.unread";

/// The result of job control for ranks of one job: `PMIX_NSPACE`, [`WHICH`] and [`STATUS`].
pub const RESULT: &str = "phalanx.result";
/// The status for these ranks; of a request, the status over all its targets.
pub const STATUS: &str = "phalanx.status";
/// The named requests of job control, including those of the last ten minutes, or the one that `PMIX_JOB_CTRL_ID` names: an
/// array of [`REQUEST`].
pub const REQUESTS: &str = "phalanx.requests";
/// `PMIX_JOB_CTRL_ID`, the requester (`PMIX_PROCID`), [`STATE`] (`under way` or `done`), [`AGE`], [`STATUS`] once it is done,
/// and a [`RESULT`] each.
pub const REQUEST: &str = "phalanx.request";
