//! One command that starts daemons: its output, and its state.

use std::collections::VecDeque;

use crate::msg::ExitStatus;

/// A command that is to run, runs, or has ended.
#[derive(Debug, Default)]
pub(super) struct Running {
    pub(super) state: AgentState,
    out: Lines,
    err: Lines,
    /// The last lines of its standard error.
    pub(super) said: VecDeque<String>,
    /// The last lines of its standard output that are not from a daemon, and the size of all such lines.
    written: VecDeque<String>,
    others: usize,
    pub(super) out_closed: bool,
    pub(super) err_closed: bool,
    /// The secret and the [`super::Birth`] were sent to its daemons.
    pub(super) born: bool,
    /// The [`super::Others`] was sent to its daemons.
    pub(super) met: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AgentState {
    #[default]
    Waiting,
    Running,
    /// Some of its output may still come.
    Exited(ExitStatus),
    /// Its end was handled.
    Over,
}

impl Running {
    /// Takes data from its standard output; returns whole lines.
    pub(super) fn lines(&mut self, data: &[u8]) -> Vec<String> {
        self.out.take(data)
    }

    /// Takes data from its standard error; returns the lines that are complete.
    pub(super) fn errors(&mut self, data: &[u8]) -> Vec<String> {
        self.err.take(data)
    }

    /// Keeps a line of its standard error among the last few.
    pub(super) fn keep_error(&mut self, line: &str) {
        remember(&mut self.said, line);
    }

    /// A line that is not from a daemon. `false`: there are too many.
    pub(super) fn hear_other(&mut self, line: &str) -> bool {
        remember(&mut self.written, line);
        self.others += line.len() + 1;
        self.others <= MOST_OTHER
    }

    /// Why a daemon that it was to start is not there.
    pub(super) fn reason(&self, status: ExitStatus) -> String {
        let rest = self.err.begun();
        if status == ExitStatus::Code(255)
            && rest.is_none()
            && self.said.is_empty()
            && self.written.is_empty()
        {
            return KILLED.to_owned();
        }
        let said: Vec<&str> = self.said.iter().map(String::as_str).chain(rest).collect();
        let code = match status {
            ExitStatus::Code(code) => format!("the command that starts it ended with exit code {code}"),
            ExitStatus::Signal { number, .. } => {
                format!("the command that starts it was ended by signal {number}")
            }
        };
        let written: Vec<&str> = self.written.iter().map(String::as_str).collect();
        let mut reason = match (said.is_empty(), written.is_empty()) {
            (false, _) => said.join("; "),
            (true, false) => format!("{code}, and wrote: {}", written.join("; ")),
            (true, true) => code,
        };
        if matches!(status, ExitStatus::Code(126 | 127)) {
            reason += "; if px is at another place there, '--px-path' names it";
        }
        reason
    }
}

/// Keeps the last few lines that are not blank.
fn remember(lines: &mut VecDeque<String>, line: &str) {
    if !line.trim().is_empty() {
        lines.push_back(line.trim_end().to_owned());
        if lines.len() > MOST_SAID {
            lines.pop_front();
        }
    }
}

/// Text that is split into lines; lines that are too long are cut.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn take(&mut self, data: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in data.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST_LINE.saturating_sub(self.0.len());
            self.0.extend_from_slice(piece.get(..room).unwrap_or(piece));
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.0);
                lines.push(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned());
            }
        }
        lines
    }

    /// An unfinished last line.
    fn begun(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok().map(str::trim).filter(|line| !line.is_empty())
    }
}

/// ssh ends like this when a signal has ended the command at the other end, and does not show which.
const KILLED: &str = "it was killed by a signal, most likely 9 (SIGKILL): the command that started it ended with exit code \
                      255 without a message";
const LONGEST_LINE: usize = 4096;
const MOST_SAID: usize = 4;
/// Login shells print less than this.
const MOST_OTHER: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_bounded() {
        let mut lines = Lines::default();
        assert_eq!(lines.take(b"one\r\ntw"), ["one"]);
        assert_eq!(lines.take(b"o\n\n"), ["two", ""]);
        let long = lines.take(&[vec![b'x'; 1 << 20], vec![b'\n']].concat());
        assert_eq!(long.iter().map(String::len).collect::<Vec<_>>(), [LONGEST_LINE]);
    }

    #[test]
    fn the_last_words_are_the_reason() {
        let mut agent = Running::default();
        for line in agent.errors(b"bash: /opt/px: No such file or directory\n") {
            agent.keep_error(&line);
        }
        let reason = agent.reason(ExitStatus::Code(127));
        assert!(reason.starts_with("bash: /opt/px: No such") && reason.contains("--px-path"), "{reason}");
        let silent = Running::default().reason(ExitStatus::Signal { number: 9, core_dumped: false });
        assert!(silent.contains("signal 9"), "{silent}");
    }
}
