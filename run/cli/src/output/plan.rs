//! `--output`: the words of the user, resolved.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::output::files::Files;

/// How ranks' output is shown and where it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputPlan {
    pub(crate) form: Form,
    pub(crate) tag: Tag,
    pub(crate) timestamp: bool,
    /// Standard error goes where standard output goes.
    pub(crate) merge: bool,
    /// Chunks as they come; lines of different ranks may mix.
    pub(crate) raw: bool,
    pub(crate) files: Option<Files>,
    /// Nothing is shown besides the files.
    pub(crate) file_only: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    #[default]
    Text,
    Json,
    Xml,
}

/// What stands before each line of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tag {
    #[default]
    None,
    /// `3: `
    Rank,
    /// `[JOB,3]<stdout>: `, JOB being the part of the namespace behind its last `@`, or all of it.
    Job,
    /// `[NSPACE,3]<stdout>: `
    Fullname,
    /// `[NSPACE,3][HOST]<stdout>: `
    Detailed,
}

impl OutputPlan {
    /// `given`: the values of all `--output` options, each a comma-separated list.
    pub(crate) fn parse(given: &[String]) -> Result<OutputPlan, Failure> {
        let mut plan = OutputPlan::default();
        let mut as_pattern = false;
        for word in given.iter().flat_map(|list| list.split(',')).filter(|word| !word.is_empty()) {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            match (name, value) {
                ("tag", None) => plan.set_tag(Tag::Job)?,
                ("tag-detailed", None) => plan.set_tag(Tag::Detailed)?,
                ("tag-fullname", None) => plan.set_tag(Tag::Fullname)?,
                ("rank", None) => plan.set_tag(Tag::Rank)?,
                ("timestamp", None) => plan.timestamp = true,
                ("merge" | "merge-stderr-to-stdout", None) => plan.merge = true,
                ("raw", None) => plan.raw = true,
                ("json", None) => plan.set_form(Form::Json)?,
                ("xml", None) => plan.set_form(Form::Xml)?,
                ("file-only" | "nocopy" | "no-copy", None) => plan.file_only = true,
                ("pattern", None) => as_pattern = true,
                ("file", Some(path)) => {
                    let path = plan.qualified(path, &mut as_pattern)?;
                    plan.set_files(Files::PerStream(path))?;
                }
                ("directory" | "dir", Some(path)) => {
                    let path = plan.qualified(path, &mut as_pattern)?;
                    plan.set_files(Files::Directory(path))?;
                }
                ("pattern", Some(path)) => {
                    let path = plan.qualified(path, &mut as_pattern)?;
                    plan.set_files(Files::pattern(&path)?)?;
                }
                ("file" | "directory" | "dir", None) => {
                    return Err(Failure::usage(format!("'--output {name}' needs a path: {name}=PATH")));
                }
                (_, Some(_)) if NAMES.contains(&name) => {
                    return Err(Failure::usage(format!("'--output {name}' takes no value")));
                }
                _ => return Err(unknown(name)),
            }
        }
        if as_pattern {
            plan.files = match plan.files.take() {
                Some(Files::PerStream(path) | Files::Directory(path)) => Some(Files::pattern(&path)?),
                Some(pattern) => Some(pattern),
                None => return Err(Failure::usage("'--output pattern' needs a path: pattern=PATH")),
            };
        }
        plan.check()
    }

    /// Whether standard output is one document, which nothing else may be written into.
    pub(crate) fn is_document(&self) -> bool {
        self.form != Form::Text
    }

    fn set_tag(&mut self, tag: Tag) -> Result<(), Failure> {
        if self.tag != Tag::None && self.tag != tag {
            return Err(contradiction(tag.word(), self.tag.word()));
        }
        self.tag = tag;
        Ok(())
    }

    fn set_form(&mut self, form: Form) -> Result<(), Failure> {
        if self.form != Form::Text && self.form != form {
            return Err(contradiction("json", "xml"));
        }
        self.form = form;
        Ok(())
    }

    fn set_files(&mut self, files: Files) -> Result<(), Failure> {
        match self.files.replace(files) {
            None => Ok(()),
            Some(_) => Err(Failure::usage("'--output' names files twice")
                .hint("give one of file=, directory=, pattern=")),
        }
    }

    /// Takes prterun's qualifiers off a path: `NAME:nocopy`, `NAME:pattern`, `NAME:raw`.
    fn qualified(&mut self, path: &str, as_pattern: &mut bool) -> Result<PathBuf, Failure> {
        let mut path = path;
        while let Some((head, qualifier)) = path.rsplit_once(':') {
            match qualifier.to_ascii_lowercase().as_str() {
                "nocopy" => self.file_only = true,
                "copy" => self.file_only = false,
                "pattern" => *as_pattern = true,
                "raw" => self.raw = true,
                _ => break,
            }
            path = head;
        }
        match path {
            "" => Err(Failure::usage("'--output' names an empty path")),
            path => Ok(Path::new(OsStr::new(path)).to_path_buf()),
        }
    }

    fn check(self) -> Result<OutputPlan, Failure> {
        if self.file_only && self.files.is_none() {
            return Err(Failure::usage("'--output file-only' names no file")
                .hint("add file=NAME, directory=DIR or pattern=PATH"));
        }
        if self.raw && self.form == Form::Text && (self.tag != Tag::None || self.timestamp) {
            let other = if self.tag == Tag::None { "timestamp" } else { self.tag.word() };
            return Err(contradiction("raw", other).hint("a chunk is no line: nothing can stand before it"));
        }
        Ok(self)
    }
}

impl Tag {
    fn word(self) -> &'static str {
        match self {
            Tag::None => "no tag",
            Tag::Rank => "rank",
            Tag::Job => "tag",
            Tag::Fullname => "tag-fullname",
            Tag::Detailed => "tag-detailed",
        }
    }
}

fn contradiction(one: &str, other: &str) -> Failure {
    Failure::usage(format!("'--output {one}' and '--output {other}' contradict each other"))
}

fn unknown(name: &str) -> Failure {
    let failure = Failure::usage(format!("there is no '--output {name}'"));
    match crate::args::nearest::nearest(name, NAMES) {
        Some(nearest) => failure.hint(format!("the nearest word is '{nearest}'")),
        None => failure.hint(format!("words: {}", NAMES.join(", "))),
    }
}

const NAMES: &[&str] = &[
    "tag",
    "tag-detailed",
    "tag-fullname",
    "rank",
    "timestamp",
    "merge",
    "raw",
    "json",
    "xml",
    "file",
    "directory",
    "pattern",
    "file-only",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<OutputPlan, Failure> {
        OutputPlan::parse(&[words.to_owned()])
    }

    #[test]
    fn words_may_be_in_any_order_and_in_many_options() {
        let plan = OutputPlan::parse(&["json,tag".into(), "merge".into()]).expect("good words");
        assert_eq!((plan.form, plan.tag, plan.merge), (Form::Json, Tag::Job, true));
        assert_eq!(parse("").expect("nothing"), OutputPlan::default());
    }

    #[test]
    fn both_spellings_of_files() {
        let ours = parse("file=/tmp/out,file-only").expect("ours");
        assert_eq!(ours, parse("file=/tmp/out:nocopy").expect("prterun's"));
        assert_eq!(parse("directory=d").expect("ours"), parse("dir=d").expect("prterun's"));
        assert_eq!(parse("pattern=%r.log").expect("ours"), parse("file=%r.log:pattern").expect("prterun's"));
        assert_eq!(parse("merge").expect("ours"), parse("merge-stderr-to-stdout").expect("prterun's"));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_reason() {
        for (words, says) in [
            ("tga", "nearest word is 'tag'"),
            ("tag,rank", "contradict"),
            ("json,xml", "contradict"),
            ("raw,tag", "contradict"),
            ("file", "needs a path"),
            ("file=", "empty path"),
            ("tag=1", "takes no value"),
            ("file-only", "names no file"),
            ("file=a,directory=b", "twice"),
            ("pattern=%q", "%q"),
            ("pattern=100%", "%"),
        ] {
            let failure = parse(words).expect_err(words);
            let text = format!("{failure} {}", failure.hints.join(" "));
            assert!(text.contains(says), "{words}: {text}");
        }
    }
}
