//! The phase of a client, and why init failed.

use std::fmt;

use phalanx_spec::Status;
use phalanx_wire::codec::DecodeError;
use phalanx_wire::frame;
use phalanx_wire::{Nspace, ProcId};

use crate::explain::Waiting;
use crate::machine::Time;

/// The phase of the client.
#[derive(Debug)]
pub(super) enum Phase {
    /// Init has not been called.
    Idle,
    ExpectOpened(Start),
    ExpectHelloReply {
        start: Start,
        got: Vec<u8>,
    },
    ExpectJobData(Start),
    /// A debugger holds the process in init, without a time limit.
    ExpectRelease {
        since: Time,
    },
    Ready,
    /// No server; the process is a job of its own.
    Alone,
    /// Waits for the server to answer finalize.
    Finalizing,
    /// The connection has ended without a finalize.
    Lost,
    Ended,
}

/// When init began, and its deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) since: Time,
    pub(super) deadline: Time,
}

/// Why init failed.
#[derive(Clone, Debug, PartialEq)]
pub enum InitError {
    /// Init was called before.
    Again,
    /// No server listens at the server's address.
    Unreachable,
    /// The listening process belongs to a user that is not trusted; nothing was sent.
    Foreign,
    /// The server closed the connection instead of answering: it does not know this process, or not this user.
    TurnedAway,
    Refused(Status),
    /// No answer within the time given.
    TimedOut,
    /// The server's answer cannot be read.
    Malformed(DecodeError),
    /// A message is longer than we accept.
    TooLong(frame::FrameTooLong),
    /// The tool has reached its maximum number of servers.
    TooManyServers,
    /// The server's answer to the handshake is inconsistent.
    BadWelcome(String),
    /// The address is now another server's.
    WrongServer {
        got: ProcId,
    },
    /// The server sent the data of another job.
    WrongJob {
        got: Nspace,
    },
}

impl Phase {
    pub(super) fn deadline(&self) -> Option<Time> {
        self.start().map(|start| start.deadline)
    }

    fn start(&self) -> Option<Start> {
        match self {
            Phase::ExpectOpened(start)
            | Phase::ExpectHelloReply { start, .. }
            | Phase::ExpectJobData(start) => Some(*start),
            _ => None,
        }
    }

    pub(super) fn explain(&self, me: &ProcId) -> Option<Waiting> {
        let (subject, since, unblocked_by) = match self {
            Phase::ExpectOpened(start) => {
                ("the connection to the server", start.since, "the server accepting it")
            }
            Phase::ExpectHelloReply { start, .. } => {
                ("being let in", start.since, "the server's answer to the handshake")
            }
            Phase::ExpectJobData(start) => ("the job's data", start.since, "the server's reply"),
            Phase::ExpectRelease { since } => {
                ("held by a debugger", *since, "the debugger letting it go (PMIX_DEBUGGER_RELEASE)")
            }
            _ => return None,
        };
        Some(Waiting {
            operation: "init".into(),
            subject: subject.into(),
            asked_by: vec![me.clone()],
            missing: Vec::new(),
            since,
            deadline: self.deadline(),
            unblocked_by: unblocked_by.into(),
        })
    }
}

impl InitError {
    /// The nearest code of the standard.
    pub fn status(&self) -> Status {
        match self {
            InitError::Again => Status::ERR_INIT,
            InitError::Unreachable | InitError::TurnedAway | InitError::WrongServer { .. } => {
                Status::ERR_UNREACH
            }
            InitError::Foreign => Status::ERR_NO_PERMISSIONS,
            InitError::Refused(status) => *status,
            InitError::TimedOut => Status::ERR_TIMEOUT,
            InitError::Malformed(_) | InitError::TooLong(_) => Status::ERR_UNPACK_FAILURE,
            InitError::TooManyServers => Status::ERR_OUT_OF_RESOURCE,
            InitError::WrongJob { .. } | InitError::BadWelcome(_) => Status::ERR_HANDSHAKE_FAILED,
        }
    }
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitError::Again => f.write_str("init was called before"),
            InitError::Unreachable => f.write_str("nobody accepts connections there"),
            InitError::Foreign => f.write_str("the server there is a stranger's"),
            InitError::TurnedAway => f.write_str(
                "the server closed the connection: it does not expect this process, or not this user",
            ),
            InitError::Refused(status) => write!(f, "the server refused: {status}"),
            InitError::TimedOut => f.write_str("the server did not answer in time"),
            InitError::Malformed(error) => write!(f, "the server's answer cannot be read: {error}"),
            InitError::TooLong(error) => write!(f, "the server's answer cannot be read: {error}"),
            InitError::TooManyServers => f.write_str("this tool has as many servers as it can have"),
            InitError::BadWelcome(problem) => {
                write!(f, "the server's answer to the handshake makes no sense: {problem}")
            }
            InitError::WrongServer { got } => {
                write!(f, "that address is now another server's, {got}")
            }
            InitError::WrongJob { got } => write!(f, "the server sent the data of another job, {got}"),
        }
    }
}

impl std::error::Error for InitError {}
