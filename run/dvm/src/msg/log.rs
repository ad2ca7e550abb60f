//! What daemons write for processes that log.

use phalanx_wire::Text;

use crate::encoding::encoded;

/// A line for a log of the host, which the shell writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogLine {
    /// `priority`: facility and severity, as in syslog(3).
    Syslog { priority: u8, line: Text },
    /// Appended to the file at this absolute path.
    File { path: Text, line: Text },
}

/// A mail, for the command that sends mails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mail {
    /// Header and body, with `\n` as line ends.
    pub(crate) text: Text,
    pub(crate) server: Option<Text>,
    pub(crate) port: Option<u32>,
}

encoded!(enum LogLine {
    0 Syslog { priority, line },
    1 File { path, line },
});
encoded!(struct Mail { text, server, port });
