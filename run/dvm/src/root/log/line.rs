//! The form of a text that is logged: what the directives put around it.

use std::time::Duration;

use phalanx_core::output::{Channel, Form, Source, Stream, Style, Tag, append_as};
use phalanx_spec::keys;
use phalanx_wire::{Info, InfoList, ProcId, plain};

#[derive(Debug)]
pub(super) struct Shape {
    style: Style,
    source: ProcId,
    /// Since the beginning of 1970.
    time: Duration,
}

impl Shape {
    pub(super) fn of(directives: &[Info], source: ProcId, time: Duration) -> Shape {
        let is_set = |key| directives.is_set(key);
        let style = Style {
            form: if is_set(keys::LOG_XML_OUTPUT) { Form::Xml } else { Form::Text },
            tag: if is_set(keys::LOG_TAG_OUTPUT) { Tag::Job } else { Tag::None },
            timestamp: is_set(keys::LOG_TIMESTAMP_OUTPUT),
            ..Style::default()
        };
        Shape { style, source, time }
    }

    pub(super) fn source(&self) -> &ProcId {
        &self.source
    }

    /// Whole lines. `name`: that of the channel.
    pub(super) fn lines(&self, name: &str, text: &str) -> String {
        let text = format!("{}\n", text.trim_end_matches(['\0', '\n']));
        if !self.style.marks_lines() {
            return text;
        }
        let stream = Stream { proc: self.source.clone(), channel: Channel::Stderr };
        let source = Source { stream: &stream, host: None, pid: None, job: None, rank_width: 0 };
        let mut lines = Vec::new();
        append_as(&mut lines, &self.style, name, &source, text.as_bytes(), true, self.time);
        String::from_utf8_lossy(&lines).into_owned()
    }

    /// The same as one line, without its end, for logs in which a line is an entry.
    pub(super) fn line(&self, name: &str, text: &str) -> String {
        let line = plain::line(text.trim_end_matches(['\0', '\n']));
        self.lines(name, &line).trim_end_matches('\n').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use phalanx_spec::Rank;
    use phalanx_wire::Nspace;

    use super::*;

    fn shape(directives: &[&'static str]) -> Shape {
        let directives: Vec<Info> = directives.iter().map(|key| Info::new(key, true)).collect();
        let source = ProcId::new(&Nspace::new("px-1@2").unwrap(), Rank(3));
        Shape::of(&directives, source, Duration::from_secs(1_795_192_741))
    }

    #[test]
    fn directives_shape_each_line() {
        assert_eq!(shape(&[]).lines("stderr", "a\nb\n\n\0"), "a\nb\n");
        let tagged = shape(&[keys::LOG_TAG_OUTPUT]);
        assert_eq!(tagged.lines("stdout", "a\nb"), "[2,3]<stdout>: a\n[2,3]<stdout>: b\n");
        let timed = shape(&[keys::LOG_TIMESTAMP_OUTPUT]);
        assert_eq!(timed.lines("stdout", "a"), "2026-11-20T16:39:01.000000Z a\n");
        let xml = shape(&[keys::LOG_XML_OUTPUT]);
        assert_eq!(xml.lines("syslog", "<"), "<syslog nspace=\"px-1@2\" rank=\"3\">&lt;</syslog>\n");
    }

    #[test]
    fn an_entry_is_one_line_that_steers_no_terminal() {
        assert_eq!(shape(&[]).line("file", "a\u{1b}[2J\nb\n"), "a\\u001b[2J\\nb");
        assert_eq!(shape(&[keys::LOG_TAG_OUTPUT]).line("file", "a\nb"), "[2,3]<file>: a\\nb");
    }
}
