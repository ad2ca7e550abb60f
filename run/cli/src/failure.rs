//! Why px cannot do what it should: the operation and its object, why it failed, and what would help.
//!
//! Every part of px returns this one type; [`crate::render::hint`] prints it, as text or as JSON.

use std::fmt;

/// An error for the user. Ends px with `exit_code`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) exit_code: u8,
    pub(crate) message: String,
    /// From the nearest to the deepest.
    pub(crate) causes: Vec<String>,
    pub(crate) hints: Vec<String>,
}

impl Failure {
    /// From a node's message, which may end in lines of hints.
    pub(crate) fn told(text: &str) -> Failure {
        let mut lines = text.lines();
        let failure = Failure::new(lines.next().unwrap_or_default());
        lines.fold(failure, |failure, line| match line.strip_prefix("hint: ") {
            Some(hint) => failure.hint(hint),
            None => failure.because(line),
        })
    }

    /// An operation failed.
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure { exit_code: EXIT_FAILURE, message: message.into(), causes: Vec::new(), hints: Vec::new() }
    }

    /// The command line is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure { exit_code: EXIT_USAGE, ..Failure::new(message) }
    }

    pub(crate) fn because(mut self, cause: impl fmt::Display) -> Failure {
        self.causes.push(cause.to_string());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hints.push(hint.into());
        self
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        let mut chain = error.chain().map(ToString::to_string);
        let mut failure = Failure::new(chain.next().unwrap_or_default());
        failure.causes.extend(chain);
        failure
    }
}

/// `message: cause: deeper cause`
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.causes.iter().try_for_each(|cause| write!(f, ": {cause}"))
    }
}

impl std::error::Error for Failure {}

/// A failure that is no fault of the command line.
pub(crate) const EXIT_FAILURE: u8 = 1;
/// The reader of our output has left: the code that shells report for a program ended by SIGPIPE.
pub(crate) const EXIT_SIGPIPE: u8 = 128 + 13;
/// Our terminal was hung up.
pub(crate) const EXIT_SIGHUP: u8 = 128 + 1;
/// The command line was wrong.
pub(crate) const EXIT_USAGE: u8 = 2;
/// As with timeout(1): the awaited event has not come.
pub(crate) const EXIT_TIMEOUT: u8 = 124;
