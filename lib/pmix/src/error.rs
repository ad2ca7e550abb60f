//! Errors, and the nearest status of the standard for each.

use std::fmt;
use std::io;

use phalanx_core::InitError;
use phalanx_shell::rendezvous::AnnounceError;
use phalanx_shell::{NotAUser, TRUST_USER};
use phalanx_spec::Status;
use phalanx_wire::{Info, NameError};

#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A variable of the environment does not hold what a launcher puts there.
    Environment { variable: &'static str, problem: String },
    /// The environment names a server, but not which of its processes this is.
    Unnamed { server: &'static str },
    /// The operating system refused something that the library needs.
    System { doing: &'static str, source: io::Error },
    /// The server did not admit this process.
    Init { server: String, reason: InitError, source: Option<io::Error> },
    /// An attribute has an invalid value.
    Attribute { key: &'static str, problem: String },
    /// A required attribute is unknown.
    Required { key: String },
    /// No server admits this tool. `tried`: what was looked for, where, and why each candidate was passed over.
    NoServer { tried: Vec<String>, status: Status },
    /// A rendezvous file cannot be written.
    Announce(AnnounceError),
    /// The text cannot be a key.
    Key { key: String, reason: NameError },
    /// Keys that begin with `pmix` are the standard's; only the host puts them.
    ReservedKey { key: String },
    /// The kernel's description of this node cannot be read.
    Topology { source: phalanx_topo::TopologyError },
    /// A scope that values cannot be put with.
    Scope(phalanx_spec::Scope),
    /// The process was forked after init: its parent has the connection.
    Forked,
    /// The client was finalized, or its progress thread has died.
    Ended,
    /// The call would wait for the thread that makes it: it was made in an event handler.
    OnProgressThread,
    /// The server, or the wait for it, failed. `operation`: the request.
    Failed { operation: String, status: Status },
    /// The same, with details from the server, for example the failed targets (`PMIX_PROC_INFO_ARRAY`).
    Reported { operation: String, status: Status, results: Vec<Info> },
}

impl Error {
    /// The nearest code of the standard.
    pub fn status(&self) -> Status {
        match self {
            Error::Environment { .. } | Error::Key { .. } | Error::ReservedKey { .. } | Error::Scope(_) => {
                Status::ERR_BAD_PARAM
            }
            Error::Unnamed { .. } => Status::ERR_UNREACH,
            Error::System { .. } => Status::ERR_IN_ERRNO,
            Error::Topology { .. } => Status::ERR_NOT_AVAILABLE,
            Error::Attribute { .. } => Status::ERR_BAD_PARAM,
            Error::Required { .. } => Status::ERR_NOT_SUPPORTED,
            Error::NoServer { status, .. } => *status,
            Error::Announce(_) => Status::ERR_FILE_WRITE_FAILURE,
            Error::Init { reason, .. } => reason.status(),
            Error::Forked | Error::Ended => Status::ERR_INIT,
            Error::OnProgressThread => Status::ERR_WOULD_BLOCK,
            Error::Failed { status, .. } | Error::Reported { status, .. } => *status,
        }
    }

    /// Whether the requested item does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status() == Status::ERR_NOT_FOUND
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Environment { variable, problem } => {
                write!(f, "environment variable {variable}: {problem}")
            }
            Error::Unnamed { server } => {
                write!(
                    f,
                    "environment variable {server} names a server, but PMIX_NAMESPACE and PMIX_RANK do not say which of its processes this is"
                )
            }
            Error::System { doing, source } => write!(f, "{doing}: {source}"),
            Error::Init { server, reason, source } => {
                write!(f, "the PMIx server at {server} did not let this process in: {reason}")?;
                match source {
                    Some(source) => write!(f, " ({source})"),
                    None => Ok(()),
                }
            }
            Error::Attribute { key, problem } => write!(f, "attribute {key}: {problem}"),
            Error::Required { key } => write!(f, "attribute {key} is required here and not known"),
            Error::NoServer { tried, status } => {
                write!(f, "no PMIx server lets this tool in ({status})")?;
                tried.iter().try_for_each(|line| write!(f, "\n{line}"))
            }
            Error::Announce(error) => error.fmt(f),
            Error::Key { key, reason } => write!(f, "`{}` is no key: {reason}", key.escape_debug()),
            Error::ReservedKey { key } => {
                write!(f, "key {key} cannot be put: names with `pmix` in front are reserved")
            }
            Error::Topology { source } => write!(f, "reading the hardware of this node: {source}"),
            Error::Scope(scope) => write!(f, "values cannot be put with scope {scope:?}"),
            Error::Forked => f.write_str("the PMIx client belongs to the parent of this forked process"),
            Error::Ended => f.write_str("the PMIx client has ended"),
            Error::OnProgressThread => f.write_str("a blocking PMIx call cannot be made in an event handler"),
            Error::Failed { operation, status } | Error::Reported { operation, status, .. } => {
                write!(f, "{operation}: {status}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::System { source, .. } | Error::Init { source: Some(source), .. } => Some(source),
            Error::Key { reason, .. } => Some(reason),
            Error::Topology { source } => Some(source),
            _ => None,
        }
    }
}

/// The machine answered a call with the answer to another: our own defect.
pub(crate) fn unexpected(operation: &str, got: &impl fmt::Debug) -> Error {
    tracing::error!(operation, ?got, "an answer of another kind");
    Error::Failed { operation: operation.into(), status: Status::ERROR }
}

impl From<AnnounceError> for Error {
    fn from(error: AnnounceError) -> Error {
        Error::Announce(error)
    }
}

impl From<NotAUser> for Error {
    fn from(_: NotAUser) -> Error {
        Error::Attribute { key: TRUST_USER, problem: "its value is not the number of a user".to_owned() }
    }
}
