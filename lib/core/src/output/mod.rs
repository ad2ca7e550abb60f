//! Formatting of forwarded output for a reader: lines of different processes are kept apart, tagged, and assigned to files.
//!
//! There is one formatter for all that show output: the launcher, the server for readers whose library cannot, and the library
//! for its own program. It is pure: bytes and time go in, bytes come out; the caller writes them.

mod format;
mod formatter;
mod lines;
mod names;
mod owed;
mod style;

pub use format::{append, append_as, closing, opening};
pub use formatter::{Moment, OutputFormatter, Ready};
pub use lines::{Lines, MOST_HELD, Rules, Segment};
pub use names::{BadPattern, Files};
pub use owed::{Held, Owed};
pub use style::{BUFFER_ATTRIBUTES, FILE_ATTRIBUTES, FORM_ATTRIBUTES, Form, STYLE_ATTRIBUTES, Style, Tag};

use phalanx_spec::IofChannel;
use phalanx_wire::ProcId;

/// One output stream of one process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stream {
    pub proc: ProcId,
    pub channel: Channel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    Stdout,
    Stderr,
    Stddiag,
}

/// A stream and what is known of its process.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub stream: &'a Stream,
    pub host: Option<&'a str>,
    pub pid: Option<u32>,
    /// The job's number where jobs are numbered; otherwise it is taken from the namespace.
    pub job: Option<u32>,
    /// Digits of the job's highest rank.
    pub rank_width: usize,
}

impl Channel {
    /// The first of several channels; unknown ones count as standard error.
    pub fn of(channel: IofChannel) -> Channel {
        if channel.intersects(IofChannel::STDOUT) {
            Channel::Stdout
        } else if channel.intersects(IofChannel::STDDIAG) && !channel.intersects(IofChannel::STDERR) {
            Channel::Stddiag
        } else {
            Channel::Stderr
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Channel::Stdout => "stdout",
            Channel::Stderr => "stderr",
            Channel::Stddiag => "stddiag",
        }
    }
}

impl From<Channel> for IofChannel {
    fn from(channel: Channel) -> IofChannel {
        match channel {
            Channel::Stdout => IofChannel::STDOUT,
            Channel::Stderr => IofChannel::STDERR,
            Channel::Stddiag => IofChannel::STDDIAG,
        }
    }
}
