//! The attributes of whole jobs: their streams, and how they end.

use std::time::Duration;

use phalanx_spec::{IofChannel, Rank, keys};
use phalanx_wire::{Info, InfoList, Value};

use super::{Attribute, set, text, words};
use crate::job::JobRequest;
use crate::msg::control::KILL_AFTER;
use crate::msg::{FailurePolicy, StdinTarget};

pub(super) const TABLE: [Attribute<JobRequest>; 17] = [
    Attribute {
        key: WHOLE_ENV,
        read: |job, value| {
            job.whole_env = value.is_true();
            if job.whole_env {
                job.env.clear();
            }
            Ok(())
        },
        write: |job| job.whole_env.then(|| true.into()),
        required: true,
    },
    Attribute {
        key: keys::FWD_STDOUT,
        read: |job, value| forward(job, IofChannel::STDOUT, value.is_true()),
        write: |job| Some(is_forwarded(job, IofChannel::STDOUT).into()),
        required: false,
    },
    Attribute {
        key: keys::FWD_STDERR,
        read: |job, value| forward(job, IofChannel::STDERR, value.is_true()),
        write: |job| Some(is_forwarded(job, IofChannel::STDERR).into()),
        required: false,
    },
    Attribute {
        key: keys::FWD_STDDIAG,
        read: |job, value| {
            job.diag = value.is_true();
            forward(job, IofChannel::STDDIAG, job.diag)
        },
        write: |job| job.diag.then(|| true.into()),
        required: false,
    },
    // Alone it means that input is forwarded, too.
    Attribute {
        key: keys::STDIN_TGT,
        read: |job, value| {
            job.stdin = match value.as_rank() {
                Some(rank) => readers(rank),
                None => target(words(value)?)?,
            };
            forward(job, IofChannel::STDIN, true)
        },
        write: |job| is_forwarded(job, IofChannel::STDIN).then(|| target_name(job.stdin).into()),
        required: false,
    },
    // A rank, or a flag.
    Attribute {
        key: keys::FWD_STDIN,
        read: |job, value| {
            let is_said = is_forwarded(job, IofChannel::STDIN);
            job.stdin = match value {
                Value::Rank(rank) => readers(*rank),
                Value::Proc(proc) => readers(proc.rank),
                value if !value.is_true() => StdinTarget::None,
                _ if is_said => job.stdin,
                _ => StdinTarget::default(),
            };
            let is_wanted = matches!(value, Value::Rank(_) | Value::Proc(_)) || value.is_true();
            forward(job, IofChannel::STDIN, is_wanted)
        },
        write: |job| Some(is_forwarded(job, IofChannel::STDIN).into()),
        required: false,
    },
    Attribute {
        key: keys::JOB_CONTINUOUS,
        read: |job, value| {
            job.on_failure = if value.is_true() { FailurePolicy::Continue } else { FailurePolicy::default() };
            Ok(())
        },
        write: |job| (job.on_failure == FailurePolicy::Continue).then(|| true.into()),
        required: false,
    },
    Attribute {
        key: KILL_ON_SIGNAL,
        read: |job, value| {
            if value.is_true() {
                job.on_failure = FailurePolicy::KillOnSignal;
            }
            Ok(())
        },
        write: |job| (job.on_failure == FailurePolicy::KillOnSignal).then(|| true.into()),
        required: true,
    },
    // The next attribute states how often.
    Attribute {
        key: keys::JOB_RECOVERABLE,
        read: |job, value| {
            if value.is_true() {
                job.on_failure = FailurePolicy::Restart { most: MOST_RESTARTS };
            }
            Ok(())
        },
        write: |_| None,
        required: false,
    },
    Attribute {
        key: keys::MAX_RESTARTS,
        read: |job, value| {
            let most = value.as_u32().ok_or("expected a number")?;
            if most > 0 || matches!(job.on_failure, FailurePolicy::Restart { .. }) {
                job.on_failure = FailurePolicy::Restart { most };
            }
            Ok(())
        },
        write: |job| match job.on_failure {
            FailurePolicy::Restart { most } => Some(most.into()),
            _ => None,
        },
        required: true,
    },
    Attribute {
        key: keys::JOB_TIMEOUT,
        read: |job, value| set(&mut job.timeout, seconds(value)?),
        write: |job| job.timeout.map(whole_seconds),
        required: false,
    },
    // Other implementations use the rounded one, and end the job up to a second later.
    Attribute {
        key: JOB_TIMEOUT,
        read: |job, value| {
            let micros = value.as_u64().ok_or("expected microseconds")?;
            job.timeout = Some(Duration::from_micros(micros));
            Ok(())
        },
        write: |job| job.timeout.filter(|limit| limit.subsec_nanos() > 0).map(micros),
        required: false,
    },
    Attribute {
        key: KILL_AFTER,
        read: |job, value| {
            let micros = value.as_u64().ok_or("expected microseconds")?;
            job.kill_after = Some(Duration::from_micros(micros));
            Ok(())
        },
        write: |job| Some(micros(job.kill_after?)),
        required: true,
    },
    Attribute {
        key: CHECKPOINT_COMMAND,
        read: |job, value| set(&mut job.checkpoint_command, Some(text(value)?.clone())),
        write: |job| Some(job.checkpoint_command.clone()?.into()),
        required: true,
    },
    Attribute {
        key: RESTART_COMMAND,
        read: |job, value| set(&mut job.restart_command, Some(text(value)?.clone())),
        write: |job| Some(job.restart_command.clone()?.into()),
        required: true,
    },
    Attribute {
        key: keys::TIMEOUT,
        read: |job, value| set(&mut job.start_timeout, seconds(value)?),
        // The next attribute covers it.
        write: |_| None,
        required: false,
    },
    Attribute {
        key: keys::SPAWN_TIMEOUT,
        read: |job, value| {
            job.start_timeout = seconds(value)?.or(job.start_timeout);
            Ok(())
        },
        write: |job| job.start_timeout.map(whole_seconds),
        required: false,
    },
];

/// Shell commands: one takes a checkpoint of a process, the other runs instead of the program of a process that restarts from
/// one.
pub const CHECKPOINT_COMMAND: &str = "phalanx.checkpoint_command";
pub const RESTART_COMMAND: &str = "phalanx.restart_command";
/// How often a failed rank of a recoverable job is started again, unless its spawn sets it.
pub const MOST_RESTARTS: u32 = 3;
/// A non-zero exit of a rank is tolerated; a signal or an abort ends the job.
pub const KILL_ON_SIGNAL: &str = "phalanx.kill_on_signal";
/// The limit of `PMIX_JOB_TIMEOUT` in microseconds, if it is not in whole seconds.
const JOB_TIMEOUT: &str = "phalanx.job_timeout";
/// Whether its programs get only the environment that the spawn lists.
pub const WHOLE_ENV: &str = "phalanx.whole_env";

/// The defaults of a spawn. A tool gets output unless it declines. PRRTE's `prun` pushes input to rank 0 without a directive;
/// it is recognised by the personality that every launcher sends.
pub(super) fn unsaid(job: &[Info]) -> JobRequest {
    let is_tool = job.is_set(keys::REQUESTOR_IS_TOOL);
    let is_launcher = is_tool && job.find(keys::PERSONALITY).is_some();
    let output = if is_tool { IofChannel::STDOUT.0 | IofChannel::STDERR.0 } else { 0 };
    let input = if is_launcher { IofChannel::STDIN.0 } else { 0 };
    JobRequest {
        forward: Some(IofChannel(output | input)),
        stdin: if is_launcher { StdinTarget::default() } else { StdinTarget::None },
        ..JobRequest::default()
    }
}

fn forward(job: &mut JobRequest, channel: IofChannel, is_wanted: bool) -> Result<(), String> {
    let channels = &mut job.forward.get_or_insert(IofChannel::NONE).0;
    *channels = if is_wanted { *channels | channel.0 } else { *channels & !channel.0 };
    Ok(())
}

fn is_forwarded(job: &JobRequest, channel: IofChannel) -> bool {
    job.forward.is_none_or(|channels| channels.intersects(channel))
}

fn readers(rank: Rank) -> StdinTarget {
    if rank == Rank::WILDCARD { StdinTarget::All } else { StdinTarget::Rank(rank) }
}

fn target(words: &str) -> Result<StdinTarget, String> {
    match words {
        "all" => Ok(StdinTarget::All),
        "none" => Ok(StdinTarget::None),
        rank => match rank.parse() {
            Ok(rank) => Ok(StdinTarget::Rank(Rank(rank))),
            Err(_) => Err("expected a rank, all or none".to_owned()),
        },
    }
}

fn target_name(target: StdinTarget) -> String {
    match target {
        StdinTarget::Rank(rank) => rank.0.to_string(),
        StdinTarget::All => "all".to_owned(),
        StdinTarget::None => "none".to_owned(),
    }
}

/// A value of 0 or less means no limit.
fn seconds(value: &Value) -> Result<Option<Duration>, String> {
    let seconds = value.as_i64().ok_or("expected a number of seconds")?;
    Ok(u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs))
}

fn micros(time: Duration) -> Value {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).into()
}

fn whole_seconds(limit: Duration) -> Value {
    u32::try_from(limit.as_millis().div_ceil(1000)).unwrap_or(u32::MAX).into()
}
