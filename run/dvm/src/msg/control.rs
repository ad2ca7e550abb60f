//! What is to be done to processes, and how job control asks for it.

use phalanx_spec::{Status, keys};
use phalanx_wire::Info;

use super::CleanupRequest;
use crate::signals::{SIGKILL, SIGTERM};

/// The directives that are read here; `cleanup.rs` has more.
pub(crate) const ATTRIBUTES: &[&str] = &[
    keys::JOB_CTRL_ID,
    keys::JOB_CTRL_KILL,
    keys::JOB_CTRL_PAUSE,
    keys::JOB_CTRL_RESUME,
    keys::JOB_CTRL_SIGNAL,
    keys::JOB_CTRL_TERMINATE,
];

/// What is done to a job, or to ranks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Control {
    /// Deliver to every rank.
    Signal(i32),
    /// Ask first (SIGTERM), then kill. `signal`: the one that is said to have ended it.
    Terminate {
        signal: i32,
    },
    Kill,
    /// Stop and continue the ranks' process groups.
    Suspend,
    Resume,
}

impl Control {
    /// The signal with which it ends processes.
    pub(crate) fn deadly(self) -> Option<i32> {
        match self {
            Control::Terminate { .. } => Some(SIGTERM),
            Control::Kill => Some(SIGKILL),
            Control::Signal(_) | Control::Suspend | Control::Resume => None,
        }
    }

    /// The signal that it sends, whatever becomes of it.
    pub(crate) fn sent(self) -> Option<i32> {
        match self {
            Control::Signal(signal) => Some(signal),
            Control::Terminate { .. } | Control::Kill | Control::Suspend | Control::Resume => None,
        }
    }
}

/// What the directives of one request ask for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ControlRequest {
    pub(crate) actions: Vec<Control>,
    pub(crate) cleanup: Option<CleanupRequest>,
}

impl ControlRequest {
    pub(crate) fn read(directives: &[Info]) -> Result<ControlRequest, Status> {
        let mut actions = Vec::new();
        for directive in directives {
            let on = directive.value.is_true();
            match (directive.key.as_str(), &directive.value) {
                (keys::JOB_CTRL_KILL, _) if on => actions.push(Control::Kill),
                (keys::JOB_CTRL_TERMINATE, _) if on => actions.push(Control::Terminate { signal: SIGTERM }),
                (keys::JOB_CTRL_PAUSE, _) if on => actions.push(Control::Suspend),
                (keys::JOB_CTRL_RESUME, _) if on => actions.push(Control::Resume),
                (keys::JOB_CTRL_SIGNAL, value) => match value.as_i64().and_then(|n| i32::try_from(n).ok()) {
                    Some(signal) if (1..=64).contains(&signal) => actions.push(Control::Signal(signal)),
                    _ => return Err(Status::ERR_BAD_PARAM),
                },
                // A name for the operation, which is over when it is answered.
                (keys::JOB_CTRL_ID, _) => {}
                _ => {}
            }
        }
        let cleanup = CleanupRequest::read(directives)?;
        match actions.is_empty() && cleanup.is_none() {
            true => Err(Status::ERR_NOT_SUPPORTED),
            false => Ok(ControlRequest { actions, cleanup }),
        }
    }

    /// Whether paths are left to the daemons, and nothing else is asked for.
    pub(crate) fn is_cleanup_alone(&self) -> bool {
        self.actions.is_empty()
    }

    /// The result for a target that has ended: there is nothing to end any more, and nobody to signal.
    pub(crate) fn result_of_gone(&self) -> Status {
        match self.actions.iter().all(|action| action.deadly().is_some()) {
            true => Status::SUCCESS,
            false => Status::ERR_NOT_FOUND,
        }
    }
}
