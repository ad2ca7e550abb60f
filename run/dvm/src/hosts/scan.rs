//! Reads a text line by line and word by word, keeping track of the position.

use super::HostsError;

/// How many hosts one text may name, ranges included.
pub(super) const MOST_HOSTS: usize = 1 << 18;

/// One line without its comment.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    file: &'a str,
    number: u32,
    whole: &'a str,
    /// The rest to read, a suffix of `whole` up to `end`.
    at: usize,
    end: usize,
}

/// The text of a file.
pub fn text_of<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, HostsError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let (valid, rest) = bytes.split_at(error.valid_up_to());
        // It is valid.
        let before = String::from_utf8_lossy(valid);
        let found = rest.first().map(|byte| format!("\\x{byte:02x}"));
        HostsError {
            file: file.to_owned(),
            line: before.matches('\n').count() as u32 + 1,
            column: before.chars().rev().take_while(|c| *c != '\n').count() as u32 + 1,
            expected: "text in UTF-8".to_owned(),
            found: found.unwrap_or_default(),
        }
    })
}

/// The lines of a file that are not blank. A `#` begins a comment anywhere.
pub(super) fn lines<'a>(file: &'a str, text: &'a str) -> impl Iterator<Item = Line<'a>> {
    let numbered = text.lines().zip(1u32..);
    let lines = numbered.map(move |(whole, number)| {
        let end = whole.find('#').unwrap_or(whole.len());
        Line { file, number, whole, at: 0, end }
    });
    lines.filter(|line| !line.rest().trim().is_empty())
}

/// A text of a single line: the value of an option.
pub(super) fn single<'a>(option: &'a str, text: &'a str) -> Line<'a> {
    Line { file: option, number: 1, whole: text, at: 0, end: text.len() }
}

impl<'a> Line<'a> {
    /// The number of the line in its file, from 1.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// What has not been read yet.
    pub(super) fn rest(&self) -> &'a str {
        self.whole.get(self.at..self.end).unwrap_or_default()
    }

    pub(super) fn skip_blanks(&mut self) {
        self.at = self.end - self.rest().trim_start().len();
    }

    /// Reads as far as characters satisfy `accept`.
    pub(super) fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Reads the text if it comes next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Reads a number that fits.
    pub(super) fn number_of(&mut self, what: &str) -> Result<u32, HostsError> {
        let before = *self;
        let digits = self.take_while(|c| c.is_ascii_digit());
        digits.parse().map_err(|_| before.expected(what))
    }

    /// Reads an `=`, with blanks around it.
    pub(super) fn equals(&mut self, after: &str) -> Result<(), HostsError> {
        self.skip_blanks();
        if !self.take("=") {
            return Err(self.expected(&format!("\"=\" after {after}")));
        }
        self.skip_blanks();
        Ok(())
    }

    /// Refuses what was named from here on if there are too many hosts already.
    pub(super) fn check_count(&self, hosts: usize) -> Result<(), HostsError> {
        if hosts > MOST_HOSTS { Err(self.expected(&format!("at most {MOST_HOSTS} hosts"))) } else { Ok(()) }
    }

    /// The error for unexpected text at this position.
    pub(super) fn expected(&self, what: &str) -> HostsError {
        let found = self.rest().split_whitespace().next().unwrap_or_default();
        let before = self.whole.get(..self.at).unwrap_or_default();
        HostsError {
            file: self.file.to_owned(),
            line: self.number,
            column: before.chars().count() as u32 + 1,
            expected: what.to_owned(),
            // Control characters would reach the terminal.
            found: found.chars().take(60).flat_map(printable).collect(),
        }
    }
}

fn printable(c: char) -> impl Iterator<Item = char> {
    let (shown, escaped) = if c.is_control() { (None, Some(c.escape_default())) } else { (Some(c), None) };
    shown.into_iter().chain(escaped.into_iter().flatten())
}
