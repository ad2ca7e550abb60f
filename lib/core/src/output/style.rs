//! The style and destination of output, from attributes at up to three levels: default, job, registration.

use std::time::Duration;

use phalanx_spec::keys;
use phalanx_wire::{Info, InfoList, Value};

use super::names::{BadPattern, Files};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub form: Form,
    pub tag: Tag,
    pub timestamp: bool,
    /// All channels go where standard output goes.
    pub merge: bool,
    /// Chunks pass unchanged; lines of different processes may mix.
    pub raw: bool,
    pub files: Option<Files>,
    /// Output goes to the files only.
    pub file_only: bool,
    /// Number of bytes of a stream to collect before they are passed on; 0: none.
    pub buffer: usize,
    /// Collected bytes are passed on after this time.
    pub buffer_for: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    #[default]
    Text,
    Json,
    Xml,
}

/// The tag in front of each line of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tag {
    #[default]
    None,
    /// `3: `
    Rank,
    /// `[JOB,3]<stdout>: `, JOB being the job's number, or else the part of the namespace behind its last `@`.
    Job,
    /// `[NSPACE,3]<stdout>: `
    Fullname,
    /// `[NSPACE,3][HOST:PID]<stdout>: `
    Detailed,
}

impl Style {
    /// Applies the attributes of the next level.
    pub fn overlaid(mut self, info: &[Info]) -> Result<Style, BadPattern> {
        let flag = |key| info.find(key).map(Value::is_true);
        let set = |field: &mut bool, key| *field = flag(key).unwrap_or(*field);
        set(&mut self.timestamp, keys::IOF_TIMESTAMP_OUTPUT);
        set(&mut self.merge, keys::IOF_MERGE_STDERR_STDOUT);
        set(&mut self.raw, keys::IOF_OUTPUT_RAW);
        set(&mut self.file_only, keys::IOF_FILE_ONLY);
        if let Some(xml) = flag(keys::IOF_XML_OUTPUT) {
            self.form = if xml { Form::Xml } else { Form::Text };
        }
        // The most detailed of several tags wins.
        let wanted = TAGS.into_iter().find(|(key, _)| flag(key) == Some(true));
        let unwanted = TAGS.into_iter().any(|(key, tag)| tag == self.tag && flag(key) == Some(false));
        self.tag = match wanted {
            Some((_, tag)) => tag,
            None if unwanted => Tag::None,
            None => self.tag,
        };
        let path = |key| info.find(key).and_then(Value::as_text).filter(|path| !path.as_bytes().is_empty());
        let (directory, file) = (path(keys::IOF_OUTPUT_TO_DIRECTORY), path(keys::IOF_OUTPUT_TO_FILE));
        if let Some(path) = directory.or(file) {
            self.files = Some(match flag(keys::IOF_FILE_PATTERN) {
                Some(true) => Files::pattern_with_ending(path.as_bytes())?,
                _ if directory.is_some() => Files::in_directory(path.as_bytes()),
                _ => Files::beginning_with(path.as_bytes()),
            });
        }
        let number = |key| info.find(key).and_then(Value::as_u64);
        if let Some(bytes) = number(keys::IOF_BUFFERING_SIZE) {
            self.buffer = usize::try_from(bytes).unwrap_or(usize::MAX);
        }
        if let Some(seconds) = number(keys::IOF_BUFFERING_TIME) {
            self.buffer_for = (seconds > 0).then(|| Duration::from_secs(seconds));
        }
        Ok(self)
    }

    /// Whether standard output is one document, into which nothing else may be written.
    pub fn is_document(&self) -> bool {
        self.form != Form::Text
    }

    /// Whether lines get a prefix or are wrapped.
    pub fn marks_lines(&self) -> bool {
        self.is_document() || self.tag != Tag::None || self.timestamp
    }
}

const TAGS: [(&str, Tag); 4] = [
    (keys::IOF_TAG_DETAILED_OUTPUT, Tag::Detailed),
    (keys::IOF_TAG_FULLNAME_OUTPUT, Tag::Fullname),
    (keys::IOF_TAG_OUTPUT, Tag::Job),
    (keys::IOF_RANK_OUTPUT, Tag::Rank),
];

/// All attributes of a style.
pub const STYLE_ATTRIBUTES: &[&[&str]] = &[FORM_ATTRIBUTES, FILE_ATTRIBUTES, BUFFER_ATTRIBUTES];
/// The format of output.
pub const FORM_ATTRIBUTES: &[&str] = &[
    keys::IOF_TAG_OUTPUT,
    keys::IOF_TAG_DETAILED_OUTPUT,
    keys::IOF_TAG_FULLNAME_OUTPUT,
    keys::IOF_RANK_OUTPUT,
    keys::IOF_TIMESTAMP_OUTPUT,
    keys::IOF_XML_OUTPUT,
    keys::IOF_MERGE_STDERR_STDOUT,
    keys::IOF_OUTPUT_RAW,
];
/// The destination of output.
pub const FILE_ATTRIBUTES: &[&str] =
    &[keys::IOF_OUTPUT_TO_FILE, keys::IOF_OUTPUT_TO_DIRECTORY, keys::IOF_FILE_PATTERN, keys::IOF_FILE_ONLY];
/// When output is passed on.
pub const BUFFER_ATTRIBUTES: &[&str] = &[keys::IOF_BUFFERING_SIZE, keys::IOF_BUFFERING_TIME];

#[cfg(test)]
mod tests {
    use super::*;

    fn style(levels: &[&[Info]]) -> Result<Style, BadPattern> {
        levels.iter().try_fold(Style::default(), |style, level| style.overlaid(level))
    }

    #[test]
    fn the_last_level_that_names_an_attribute_wins() {
        let default = [Info::new(keys::IOF_TAG_OUTPUT, true), Info::new(keys::IOF_TIMESTAMP_OUTPUT, true)];
        let job = [Info::new(keys::IOF_XML_OUTPUT, true), Info::new(keys::IOF_OUTPUT_TO_FILE, "out")];
        let own = [Info::new(keys::IOF_TIMESTAMP_OUTPUT, false), Info::new(keys::IOF_FILE_ONLY, true)];
        let all = style(&[&default, &job, &own]).unwrap();
        assert_eq!((all.form, all.tag, all.timestamp, all.file_only), (Form::Xml, Tag::Job, false, true));
        assert_eq!(all.files, Some(Files::beginning_with(b"out")));
        assert_eq!(style(&[&default, &[Info::new(keys::IOF_TAG_OUTPUT, false)]]).unwrap().tag, Tag::None);
        assert_eq!(style(&[&[], &[], &[]]), Ok(Style::default()));
    }

    #[test]
    fn of_several_tags_the_longest_is_taken() {
        let all = [Info::new(keys::IOF_RANK_OUTPUT, true), Info::new(keys::IOF_TAG_FULLNAME_OUTPUT, true)];
        assert_eq!(style(&[&all]).unwrap().tag, Tag::Fullname);
    }

    #[test]
    fn a_pattern_that_cannot_be_read_is_an_error() {
        let all = [Info::new(keys::IOF_OUTPUT_TO_FILE, "a%q"), Info::new(keys::IOF_FILE_PATTERN, true)];
        assert!(style(&[&all]).unwrap_err().to_string().contains("%q"));
    }
}
