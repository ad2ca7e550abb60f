//! Our own attributes: what `px` wants to know and the standard has no key for. They are queried like any other.

/// All jobs, those that ended lately included: an array of `PMIX_JOB_INFO_ARRAY`.
pub const JOBS: &str = "phalanx.jobs";
/// What has happened to jobs, those that ended lately included, or to the one that `PMIX_NSPACE` names: [`NUMBER`], [`OMITTED`], and
/// a [`HAPPENING`] each, the oldest first.
pub const HAPPENINGS: &str = "phalanx.happenings";
/// One thing that has happened to a job; [`STATE`] says what.
pub const HAPPENING: &str = "phalanx.happening";
/// A qualifier: only of the last so many milliseconds.
pub const SINCE: &str = "phalanx.since";
/// The sequence number of what has happened, also in the events that tell it; of the answer, the last that is in it.
pub const NUMBER: &str = "phalanx.number";
/// How many more have happened that are not told.
pub const OMITTED: &str = "phalanx.omitted";
/// The code of the event that tells it.
pub const CODE: &str = "phalanx.code";
/// The ranks to which it has happened, and how many there are.
pub const WHICH: &str = "phalanx.of_ranks";
pub const COUNT: &str = "phalanx.count";
/// The processes of the job that `PMIX_NSPACE` names: an array of `PMIX_PROC_INFO_ARRAY`.
pub const RANKS: &str = "phalanx.ranks";
/// Where the ranks of the job that `PMIX_NSPACE` names are, or those of a job with [`SPAWN_JOB`] and [`SPAWN_APPS`] would be: bytes for
/// a `px` of the same release (`Placed`), or a string that says why there is no such map.
pub const MAP: &str = "phalanx.map";
/// Qualifiers: what `PMIx_Spawn` would be handed, an array of infos and one of programs.
pub const SPAWN_JOB: &str = "phalanx.spawn.job";
pub const SPAWN_APPS: &str = "phalanx.spawn.apps";
/// Of a job that was ended: what its processes were waiting for when that was decided; [`WHICH`], [`OPERATION`], [`SUBJECT`] and [`AGE`].
pub const WAITED: &str = "phalanx.waited";
/// What is waited for anywhere in the DVM: an array of [`WAIT`].
pub const WAITS: &str = "phalanx.waits";
/// Whether the server is a DVM that goes on without a job, until somebody stops it.
pub const LASTS: &str = "phalanx.lasts";
/// One thing that is waited for.
pub const WAIT: &str = "phalanx.wait";

/// Of a job that was spawned: the keys of the directives that were ignored, with commas between.
pub const IGNORED: &str = "phalanx.ignored";
/// Of a job: `starting`, `running`, `paused`, `ending` or `ended`.
pub const STATE: &str = "phalanx.state";
/// Of a job: the tool that has started it, or the job from which it descends.
pub const RUN_BY: &str = "phalanx.run_by";
/// Why a job ended as it did: `success`, `failed`, `aborted`, `not started`, `timed out`, `cancelled`, `killed`, `DVM stopped`, `parent ended`,
/// `without PMIx`, `node lost`.
pub const VERDICT: &str = "phalanx.verdict";
/// Of a job that was killed, or whose DVM was stopped: the process or tool that wanted it.
pub const WANTED_BY: &str = "phalanx.wanted_by";
/// If a tool wanted that: its process, as an array of `PMIX_USERID` and, where they are known, `PMIX_PROC_PID` and `PMIX_CMD_LINE`.
pub const TOOL_PROCESS: &str = "phalanx.tool_process";
/// What is to be said beside the verdict: why it did not start or its node was lost (`PMIX_HOSTNAME` names
/// that), the message of the abort, the MPI library, the parent.
pub const REASON: &str = "phalanx.reason";
/// Of a job that has ended: whether a process has called init.
pub const CONNECTED: &str = "phalanx.connected";
/// Of a job: the MPI library that a process was seen to have loaded before it had called init.
pub const MPI: &str = "phalanx.mpi";
/// Milliseconds that a job or a process runs, has run, or that something is waited for.
pub const AGE: &str = "phalanx.age";
/// Of a job: when it came how far, in microseconds since it was submitted. The phases are the keys of an array.
pub const PHASES: &str = "phalanx.phases";
/// Milliseconds since a job has ended.
pub const ENDED: &str = "phalanx.ended";
/// How often a process was started again, if it was.
pub const RESTARTS: &str = "phalanx.restarts";
/// A process was stopped on request.
pub const STOPPED: &str = "phalanx.stopped";
/// The time limit at which a job was ended, in milliseconds.
pub const LIMIT: &str = "phalanx.limit";
/// A process has called init and ended without finalize.
pub const UNFINALIZED: &str = "phalanx.unfinalized";
/// The signal that a process died of.
pub const SIGNAL: &str = "phalanx.signal";
/// Bytes of memory: of one process, and the least and most of a node's.
pub const MEMORY: &str = "phalanx.memory";
pub const MEMORY_LEAST: &str = "phalanx.memory.least";
pub const MEMORY_MOST: &str = "phalanx.memory.most";

/// Of a wait: what is going on, what it is about, who asked, who is waited for, what would end it.
pub const OPERATION: &str = "phalanx.operation";
pub const SUBJECT: &str = "phalanx.subject";
pub const ASKED_BY: &str = "phalanx.asked_by";
pub const MISSING: &str = "phalanx.missing";
pub const UNBLOCKED_BY: &str = "phalanx.unblocked_by";

/// What has become of ranks of one job that job control was asked for: `PMIX_NSPACE`, [`WHICH`] and [`STATUS`].
pub const RESULT: &str = "phalanx.result";
/// Why the request has failed for these ranks, or that it has not; of a request, what all of it comes to. A status.
pub const STATUS: &str = "phalanx.status";
/// The requests of job control that were given a name, those of the last ten minutes included, or the one that `PMIX_JOB_CTRL_ID` names:
/// an array of [`REQUEST`].
pub const REQUESTS: &str = "phalanx.requests";
/// `PMIX_JOB_CTRL_ID`, who has asked (`PMIX_PROCID`), [`STATE`] (`under way` or `done`), since when ([`AGE`]), [`STATUS`] when it is done, and
/// each [`RESULT`].
pub const REQUEST: &str = "phalanx.request";
