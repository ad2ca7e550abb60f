//! Actions on processes, and the directives of job control that request them.

use std::time::Duration;

use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, InfoList, ProcId, Text, Value};

use super::CleanupRequest;
use super::checkpoint::{self, CheckpointCall, Registration};
use crate::encoding::encoded;
use crate::signals::{SIGKILL, SIGTERM};

/// The directives that are read here; `cleanup.rs` has more.
pub(crate) const ATTRIBUTES: &[&str] = &[
    keys::JOB_CTRL_CANCEL,
    keys::JOB_CTRL_ID,
    keys::JOB_CTRL_KILL,
    keys::JOB_CTRL_PAUSE,
    keys::JOB_CTRL_PROVISION,
    keys::JOB_CTRL_PROVISION_IMAGE,
    keys::JOB_CTRL_RESUME,
    keys::JOB_CTRL_SIGNAL,
    keys::JOB_CTRL_TERMINATE,
    KILL_AFTER,
    STANDS_STILL,
];

/// How long ranks may take to end after they are asked to, in microseconds.
pub const KILL_AFTER: &str = "phalanx.kill_after";

/// The caller pauses its jobs because it is stopped itself, and resumes them when it goes on.
pub const STANDS_STILL: &str = "phalanx.stands_still";

/// An action on a job, or on some of its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Control {
    /// Deliver to every rank.
    Signal(i32),
    /// Ask first (SIGTERM), then kill. `signal`: the signal to report as the cause of the end.
    Terminate {
        signal: i32,
    },
    Kill,
    /// Stop and continue the ranks' process groups.
    Suspend,
    Resume,
}

/// A reason for a pause. A rank may have several, and goes on when the last one is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pauser {
    /// Requests of job control. Any of them may take it back.
    #[default]
    Request,
    /// The launcher whose daemon the root is stands still.
    User,
    /// This launcher stands still.
    Launcher(ProcId),
}

impl Control {
    pub(crate) fn signal(value: &Value) -> Result<Control, Status> {
        match value.as_i64().and_then(|number| i32::try_from(number).ok()) {
            Some(signal) if (1..=64).contains(&signal) => Ok(Control::Signal(signal)),
            _ => Err(Status::ERR_BAD_PARAM),
        }
    }

    /// The signal with which it ends processes.
    pub(crate) fn deadly(self) -> Option<i32> {
        match self {
            Control::Terminate { .. } => Some(SIGTERM),
            Control::Kill => Some(SIGKILL),
            Control::Signal(_) | Control::Suspend | Control::Resume => None,
        }
    }

    /// The signal that it sends without ending processes itself.
    pub(crate) fn sent(self) -> Option<i32> {
        match self {
            Control::Signal(signal) => Some(signal),
            Control::Terminate { .. } | Control::Kill | Control::Suspend | Control::Resume => None,
        }
    }
}

/// The contents of the directives of one call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ControlCall {
    /// The caller's name for the request.
    pub(crate) id: Option<Text>,
    pub(crate) cancel: Option<Cancel>,
    /// What the caller registers about itself.
    pub(crate) registration: Option<Registration>,
    /// `None`: nothing else.
    pub(crate) purpose: Option<Purpose>,
}

/// What is to be done with the targets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Act(ControlRequest),
    Checkpoint(CheckpointCall),
    /// Restart from this checkpoint.
    Restart(Option<Text>),
    /// This one targets nodes.
    Provision(Provision),
}

/// Nodes that are to get an image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Provision {
    /// In the syntax of the site's program.
    pub(crate) nodes: Text,
    pub(crate) image: Option<Text>,
}

impl Provision {
    fn read(directives: &[Info]) -> Result<Option<Provision>, Status> {
        let said = |key| match directives.find(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(Status::ERR_BAD_PARAM),
        };
        match (said(keys::JOB_CTRL_PROVISION)?, said(keys::JOB_CTRL_PROVISION_IMAGE)?) {
            (Some(nodes), image) => Ok(Some(Provision { nodes, image })),
            (None, Some(_)) => Err(Status::ERR_BAD_PARAM),
            (None, None) => Ok(None),
        }
    }
}

/// Which of the caller's earlier requests to cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cancel {
    All,
    Named(Text),
}

impl ControlCall {
    pub(crate) fn read(from: &ProcId, directives: &[Info]) -> Result<ControlCall, Status> {
        let id = match directives.find(keys::JOB_CTRL_ID) {
            Some(Value::String(id)) => Some(id.clone()),
            Some(Value::NullString | Value::Undef) | None => None,
            Some(_) => return Err(Status::ERR_BAD_PARAM),
        };
        let cancel = match directives.find(keys::JOB_CTRL_CANCEL) {
            Some(Value::String(id)) => Some(Cancel::Named(id.clone())),
            Some(Value::NullString | Value::Undef) => Some(Cancel::All),
            Some(_) => return Err(Status::ERR_BAD_PARAM),
            None => None,
        };
        let act = match ControlRequest::read(from, directives) {
            Err(Status::ERR_NOT_SUPPORTED) => None,
            request => Some(request?),
        };
        let then = act.as_ref().map_or(&[][..], |act| &act.actions);
        let checkpoint = CheckpointCall::read(directives, then)?;
        let registration = match checkpoint {
            Some(_) => None,
            None => Registration::read(directives)?,
        };
        let purpose = match (checkpoint, checkpoint::restart(directives)?, act) {
            (Some(checkpoint), None, _) => Some(Purpose::Checkpoint(checkpoint)),
            (None, Some(from), None) => Some(Purpose::Restart(from)),
            (None, None, act) => act.map(Purpose::Act),
            (_, Some(_), _) => return Err(Status::ERR_BAD_PARAM),
        };
        let purpose = match (purpose, Provision::read(directives)?) {
            (purpose, None) => purpose,
            (None, Some(provision)) => Some(Purpose::Provision(provision)),
            (Some(_), Some(_)) => return Err(Status::ERR_BAD_PARAM),
        };
        if cancel.is_none() && registration.is_none() && purpose.is_none() {
            return Err(Status::ERR_NOT_SUPPORTED);
        }
        Ok(ControlCall { id, cancel, registration, purpose })
    }
}

/// Actions on the targets.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ControlRequest {
    pub(crate) actions: Vec<Control>,
    /// For [`Control::Terminate`], from the polite signal to the kill; none: the job's own.
    pub(crate) grace: Option<Duration>,
    pub(crate) cleanup: Option<CleanupRequest>,
    /// For [`Control::Suspend`] and [`Control::Resume`].
    pub(crate) pauser: Pauser,
}

impl ControlRequest {
    pub(crate) fn of(actions: Vec<Control>) -> ControlRequest {
        ControlRequest { actions, ..ControlRequest::default() }
    }

    fn read(from: &ProcId, directives: &[Info]) -> Result<ControlRequest, Status> {
        let mut actions = Vec::new();
        for directive in directives {
            let on = directive.value.is_true();
            match (directive.key.as_str(), &directive.value) {
                (keys::JOB_CTRL_KILL, _) if on => actions.push(Control::Kill),
                (keys::JOB_CTRL_TERMINATE, _) if on => actions.push(Control::Terminate { signal: SIGTERM }),
                (keys::JOB_CTRL_PAUSE, _) if on => actions.push(Control::Suspend),
                (keys::JOB_CTRL_RESUME, _) if on => actions.push(Control::Resume),
                (keys::JOB_CTRL_SIGNAL, value) => actions.push(Control::signal(value)?),
                _ => {}
            }
        }
        let grace = match directives.find(KILL_AFTER).map(Value::as_u64) {
            Some(Some(micros)) => Some(Duration::from_micros(micros)),
            Some(None) => return Err(Status::ERR_BAD_PARAM),
            None => None,
        };
        let cleanup = CleanupRequest::read(directives)?;
        let pauser = match directives.find(STANDS_STILL).is_some_and(Value::is_true) {
            true => Pauser::Launcher(from.clone()),
            false => Pauser::Request,
        };
        match actions.is_empty() && cleanup.is_none() {
            true => Err(Status::ERR_NOT_SUPPORTED),
            false => Ok(ControlRequest { actions, grace, cleanup, pauser }),
        }
    }

    /// Whether it only registers paths for removal.
    pub(crate) fn is_cleanup_alone(&self) -> bool {
        self.actions.is_empty()
    }
}

encoded!(enum Control { 0 Signal(number), 1 Terminate { signal }, 2 Kill, 3 Suspend, 4 Resume });
encoded!(struct ControlRequest { actions, grace, cleanup, pauser });
encoded!(enum Pauser { 0 Request, 1 User, 2 Launcher(proc) });
