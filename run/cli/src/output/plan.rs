//! `--output`: the user's words, resolved.

use phalanx_core::output::{Files, Form, Style, Tag};

use std::os::unix::fs::FileTypeExt;

use crate::failure::Failure;

/// How ranks' output is shown and where it goes. `given`: the values of all `--output` options, each a comma-separated list.
pub(crate) fn parse(given: &[String]) -> Result<Plan, Failure> {
    let mut words = Words::default();
    words.read(given)?;
    Ok(Plan { diag: words.diag, style: words.check()? })
}

/// The meaning of `--output`.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) style: Style,
    /// The ranks have a stream for diagnostics.
    pub(crate) diag: bool,
}

/// The meaning of the words so far.
#[derive(Debug, Default)]
struct Words {
    style: Style,
    files: Option<(Naming, String)>,
    as_pattern: bool,
    diag: bool,
}

/// How a path becomes names of files.
#[derive(Clone, Copy, Debug)]
enum Naming {
    PerStream,
    Directory,
    Pattern,
}

impl Words {
    fn read(&mut self, given: &[String]) -> Result<(), Failure> {
        for word in given.iter().flat_map(|list| list.split(',')).filter(|word| !word.is_empty()) {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            match (name, value) {
                ("tag", None) => self.set_tag(Tag::Job)?,
                ("tag-detailed", None) => self.set_tag(Tag::Detailed)?,
                ("tag-fullname", None) => self.set_tag(Tag::Fullname)?,
                ("rank", None) => self.set_tag(Tag::Rank)?,
                ("timestamp", None) => self.style.timestamp = true,
                ("merge" | "merge-stderr-to-stdout", None) => self.style.merge = true,
                ("diag", None) => self.diag = true,
                ("raw", None) => self.style.raw = true,
                ("json", None) => self.set_form(Form::Json)?,
                ("xml", None) => self.set_form(Form::Xml)?,
                ("file-only" | "nocopy" | "no-copy", None) => self.style.file_only = true,
                ("pattern", None) => self.as_pattern = true,
                ("file", Some(path)) => self.set_files(Naming::PerStream, path)?,
                ("directory" | "dir", Some(path)) => self.set_files(Naming::Directory, path)?,
                ("pattern", Some(path)) => self.set_files(Naming::Pattern, path)?,
                ("file" | "directory" | "dir", None) => {
                    return Err(Failure::usage(format!("'--output {name}' needs a path: {name}=PATH")));
                }
                (_, Some(_)) if NAMES.contains(&name) => {
                    return Err(Failure::usage(format!("'--output {name}' takes no value")));
                }
                _ => return Err(unknown(name)),
            }
        }
        Ok(())
    }

    fn set_tag(&mut self, tag: Tag) -> Result<(), Failure> {
        if self.style.tag != Tag::None && self.style.tag != tag {
            return Err(contradiction(word(tag), word(self.style.tag)));
        }
        self.style.tag = tag;
        Ok(())
    }

    fn set_form(&mut self, form: Form) -> Result<(), Failure> {
        if self.style.form != Form::Text && self.style.form != form {
            return Err(contradiction("json", "xml"));
        }
        self.style.form = form;
        Ok(())
    }

    /// The path may end in prterun's qualifiers: `NAME:nocopy`, `NAME:pattern`, `NAME:raw`.
    fn set_files(&mut self, naming: Naming, given: &str) -> Result<(), Failure> {
        let mut path = given;
        while let Some((head, qualifier)) = path.rsplit_once(':') {
            match qualifier.to_ascii_lowercase().as_str() {
                "nocopy" => self.style.file_only = true,
                "copy" => self.style.file_only = false,
                "pattern" => self.as_pattern = true,
                "raw" => self.style.raw = true,
                _ => break,
            }
            path = head;
        }
        if path.is_empty() {
            return Err(Failure::usage("'--output' names an empty path"));
        }
        match self.files.replace((naming, path.to_owned())) {
            None => Ok(()),
            Some(_) => Err(Failure::usage("'--output' names files twice")
                .hint("give one of file=, directory=, pattern=")),
        }
    }

    fn check(self) -> Result<Style, Failure> {
        let Words { mut style, files, as_pattern, diag: _ } = self;
        if as_pattern && files.is_none() {
            return Err(Failure::usage("'--output pattern' needs a path: pattern=PATH"));
        }
        style.files = match &files {
            None => None,
            Some((naming, path)) => Some(match if as_pattern { Naming::Pattern } else { *naming } {
                // A pipe has one name, without suffixes for ranks.
                Naming::PerStream if is_pipe(path) => Files::one(path.as_bytes()),
                Naming::PerStream => Files::per_stream(path.as_bytes()),
                Naming::Directory => Files::directory(path.as_bytes()),
                Naming::Pattern => Files::pattern(path.as_bytes())
                    .map_err(|bad| Failure::usage(bad.to_string()).hint(LETTERS))?,
            }),
        };
        if style.file_only && style.files.is_none() {
            return Err(Failure::usage("'--output file-only' names no file")
                .hint("add file=NAME, directory=DIR or pattern=PATH"));
        }
        if style.raw && style.form == Form::Text && style.marks_lines() {
            let other = if style.tag == Tag::None { "timestamp" } else { word(style.tag) };
            return Err(contradiction("raw", other).hint("raw chunks are not lines and cannot be tagged"));
        }
        Ok(style)
    }
}

fn is_pipe(path: &str) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

fn word(tag: Tag) -> &'static str {
    match tag {
        Tag::None => "no tag",
        Tag::Rank => "rank",
        Tag::Job => "tag",
        Tag::Fullname => "tag-fullname",
        Tag::Detailed => "tag-detailed",
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

const LETTERS: &str =
    "known are %n (job), %r (rank), %R (rank, padded), %h (host), %s (stdout or stderr), %%";
const NAMES: &[&str] = &[
    "tag",
    "tag-detailed",
    "tag-fullname",
    "rank",
    "timestamp",
    "merge",
    "diag",
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

    fn parse(words: &str) -> Result<Style, Failure> {
        super::parse(&[words.to_owned()]).map(|plan| plan.style)
    }

    #[test]
    fn words_may_be_in_any_order_and_in_many_options() {
        let plan = super::parse(&["json,tag".into(), "merge".into()]).expect("good words").style;
        assert_eq!((plan.form, plan.tag, plan.merge), (Form::Json, Tag::Job, true));
        assert_eq!(parse("").expect("nothing"), Style::default());
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
    fn impossible_requests_are_refused_with_the_reason() {
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
