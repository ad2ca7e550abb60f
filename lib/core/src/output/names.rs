//! Names of output files.

use std::fmt;

use super::{Channel, Source};

/// How files are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    Nspace,
    Rank,
    PaddedRank,
    Host,
    Channel,
    /// `out`, `err`, `diag`
    ShortChannel,
}

/// An invalid conversion in a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPattern {
    pub pattern: String,
    /// `None`: a `%` at the end.
    pub letter: Option<char>,
}

impl Files {
    /// `PATH.RANK.out`, as `px` names them.
    pub fn per_stream(path: &[u8]) -> Files {
        Files(vec![literal(path), literal(b"."), Part::Rank, literal(b"."), Part::ShortChannel])
    }

    /// `PATH/rank.RANK/stdout`, as `px` names them.
    pub fn directory(path: &[u8]) -> Files {
        Files(vec![literal(path), literal(b"/rank."), Part::Rank, literal(b"/"), Part::Channel])
    }

    /// `PATH.NSPACE.RANK.stdout`, as the standard defines `PMIX_IOF_OUTPUT_TO_FILE`.
    pub fn beginning_with(path: &[u8]) -> Files {
        let dot = || literal(b".");
        Files(vec![literal(path), dot(), Part::Nspace, dot(), Part::Rank, dot(), Part::Channel])
    }

    /// `PATH/NSPACE/rank.RANK/stdout`, as the standard defines `PMIX_IOF_OUTPUT_TO_DIRECTORY`.
    pub fn in_directory(path: &[u8]) -> Files {
        let rank = literal(b"/rank.");
        Files(vec![
            literal(path),
            literal(b"/"),
            Part::Nspace,
            rank,
            Part::Rank,
            literal(b"/"),
            Part::Channel,
        ])
    }

    /// The same for a spawned job: its namespace precedes the rank, so that ranks of the same number do not share a file. `None`:
    /// the names differ already, or are to be shared.
    pub fn with_nspace(&self) -> Option<Files> {
        let at = self.0.iter().position(|part| matches!(part, Part::Rank | Part::PaddedRank))?;
        if self.0.contains(&Part::Nspace) {
            return None;
        }
        let mut parts = self.0.clone();
        match at.checked_sub(1) {
            Some(before) if parts.get(before) == Some(&literal(b"/rank.")) => {
                parts.splice(before..before, [literal(b"/"), Part::Nspace]);
            }
            _ => drop(parts.splice(at..at, [Part::Nspace, literal(b".")])),
        }
        Some(Files(parts))
    }

    /// A single file for all output.
    pub fn one(path: &[u8]) -> Files {
        Files(vec![literal(path)])
    }

    /// The file, if there is only one.
    pub fn only(&self) -> Option<&[u8]> {
        match self.0.as_slice() {
            [Part::Literal(path)] => Some(path),
            _ => None,
        }
    }

    /// Parses a pattern with `%n`, `%r`, `%R`, `%h`, `%s`, `%%`.
    pub fn pattern(text: &[u8]) -> Result<Files, BadPattern> {
        let mut parts = Vec::new();
        let mut plain = Vec::new();
        let mut bytes = text.iter();
        while let Some(byte) = bytes.next() {
            if *byte != b'%' {
                plain.push(*byte);
                continue;
            }
            let part = match bytes.next() {
                Some(b'%') => {
                    plain.push(b'%');
                    continue;
                }
                Some(b'n') => Part::Nspace,
                Some(b'r') => Part::Rank,
                Some(b'R') => Part::PaddedRank,
                Some(b'h') => Part::Host,
                Some(b's') => Part::Channel,
                other => {
                    let pattern = String::from_utf8_lossy(text).into_owned();
                    return Err(BadPattern { pattern, letter: other.map(|byte| char::from(*byte)) });
                }
            };
            if !plain.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut plain)));
            }
            parts.push(part);
        }
        if !plain.is_empty() {
            parts.push(Part::Literal(plain));
        }
        Ok(Files(parts))
    }

    /// The same followed by `.stdout` or the like, as the standard defines `PMIX_IOF_FILE_PATTERN`.
    pub fn pattern_with_ending(text: &[u8]) -> Result<Files, BadPattern> {
        let mut files = Files::pattern(text)?;
        files.0.extend([literal(b"."), Part::Channel]);
        Ok(files)
    }

    /// The file for output of `source` on `channel`, as bytes of a path.
    pub fn path(&self, source: &Source<'_>, channel: Channel) -> Vec<u8> {
        let rank = source.stream.proc.rank.0;
        let mut path = Vec::new();
        for part in &self.0 {
            match part {
                Part::Literal(bytes) => path.extend_from_slice(bytes),
                Part::Nspace => path.extend(one_step(source.stream.proc.nspace.as_str())),
                Part::Rank => path.extend_from_slice(rank.to_string().as_bytes()),
                Part::PaddedRank => {
                    path.extend_from_slice(format!("{rank:0width$}", width = source.rank_width).as_bytes());
                }
                Part::Host => path.extend(one_step(source.host.unwrap_or("unknown"))),
                Part::Channel => path.extend_from_slice(channel.name().as_bytes()),
                Part::ShortChannel => {
                    let name = channel.name();
                    path.extend_from_slice(name.strip_prefix("std").unwrap_or(name).as_bytes());
                }
            }
        }
        path
    }

    /// Whether every process of a job has its own files.
    pub fn one_rank_each(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Rank | Part::PaddedRank))
    }
}

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.letter {
            Some(letter) => write!(f, "the pattern '{}' holds '%{letter}'", self.pattern),
            None => write!(f, "the pattern '{}' holds a '%' at its end", self.pattern),
        }
    }
}

impl std::error::Error for BadPattern {}

fn literal(bytes: &[u8]) -> Part {
    Part::Literal(bytes.to_vec())
}

/// A name chosen by others is one component of a path, never several.
fn one_step(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().map(|byte| if byte == b'/' || byte == 0 { b'_' } else { byte })
}

#[cfg(test)]
mod tests {
    use phalanx_spec::Rank;
    use phalanx_wire::{Nspace, ProcId};

    use super::super::Stream;
    use super::*;

    fn path(files: &Files, nspace: &str, channel: Channel) -> String {
        let stream = Stream { proc: ProcId::new(&Nspace::new(nspace).unwrap(), Rank(7)), channel };
        let source = Source { stream: &stream, host: Some("n1"), pid: None, job: Some(1), rank_width: 3 };
        String::from_utf8(files.path(&source, channel)).unwrap()
    }

    #[test]
    fn as_px_names_them() {
        let plain = Files::per_stream(b"out");
        assert_eq!(path(&plain, "job@1", Channel::Stdout), "out.7.out");
        assert_eq!(path(&plain, "job@1", Channel::Stderr), "out.7.err");
        assert_eq!(path(&plain, "job@1", Channel::Stddiag), "out.7.diag");
        assert_eq!(path(&Files::directory(b"d"), "job@1", Channel::Stderr), "d/rank.7/stderr");
        let pattern = Files::pattern(b"%n/%h-%R-%r.%s.100%%").unwrap();
        assert_eq!(path(&pattern, "job@1", Channel::Stdout), "job@1/n1-007-7.stdout.100%");
    }

    #[test]
    fn jobs_below_have_names_of_their_own() {
        let below = |files: Files| files.with_nspace().map(|files| path(&files, "job@2", Channel::Stdout));
        assert_eq!(below(Files::per_stream(b"out")).as_deref(), Some("out.job@2.7.out"));
        assert_eq!(below(Files::directory(b"d")).as_deref(), Some("d/job@2/rank.7/stdout"));
        assert_eq!(below(Files::pattern(b"x-%R-%s").unwrap()).as_deref(), Some("x-job@2.007-stdout"));
        assert_eq!(below(Files::pattern(b"%n/%r").unwrap()), None);
        assert_eq!(below(Files::one(b"all")), None);
    }

    #[test]
    fn as_the_standard_names_them() {
        assert_eq!(path(&Files::beginning_with(b"out"), "job@1", Channel::Stdout), "out.job@1.7.stdout");
        assert_eq!(path(&Files::in_directory(b"d"), "job@1", Channel::Stderr), "d/job@1/rank.7/stderr");
        let pattern = Files::pattern_with_ending(b"%h.%r").unwrap();
        assert_eq!(path(&pattern, "job@1", Channel::Stdout), "n1.7.stdout");
    }

    #[test]
    fn a_name_does_not_lead_elsewhere() {
        assert_eq!(
            path(&Files::in_directory(b"d"), "../../etc", Channel::Stdout),
            "d/.._.._etc/rank.7/stdout"
        );
    }

    #[test]
    fn unknown_letters_of_a_pattern_are_reported() {
        assert_eq!(Files::pattern(b"a%q").unwrap_err().letter, Some('q'));
        assert_eq!(Files::pattern(b"a%").unwrap_err().letter, None);
    }
}
