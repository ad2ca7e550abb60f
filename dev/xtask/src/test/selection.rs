//! The tests to run, according to the command line.

use anyhow::{Context, Result, bail, ensure};

pub(crate) const USAGE: &str =
    "test [--no-peers] [--strict] [--repeat N [--loaded]] [--in BINARY] [--exact] [FILTER..]";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) peers: bool,
    /// A failed test is not repeated.
    pub(crate) strict: bool,
    /// Runs each test this many times, and counts.
    pub(crate) repeat: Option<usize>,
    /// With a load on all processors.
    pub(crate) loaded: bool,
    /// Only this binary.
    pub(crate) binary: Option<String>,
    /// The filters are whole names.
    pub(crate) exact: bool,
    pub(crate) filters: Vec<String>,
}

impl Default for Selection {
    fn default() -> Selection {
        let (strict, repeat, loaded, binary, exact) = (false, None, false, None, false);
        Selection { peers: true, strict, repeat, loaded, binary, exact, filters: Vec::new() }
    }
}

impl Selection {
    pub(crate) fn parse(arguments: &[String]) -> Result<Selection> {
        let mut wanted = Selection::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--no-peers" => wanted.peers = false,
                "--strict" => wanted.strict = true,
                "--loaded" => wanted.loaded = true,
                "--exact" => wanted.exact = true,
                "--repeat" => {
                    let number =
                        words.next().and_then(|number| number.parse().ok()).filter(|number| *number > 0);
                    wanted.repeat = Some(number.context("--repeat needs a number of times, at least 1")?);
                }
                "--in" => wanted.binary = Some(words.next().context("--in needs a binary")?.clone()),
                option if option.starts_with('-') => bail!("unknown option {option}\nusage: {USAGE}"),
                filter => wanted.filters.push(filter.to_owned()),
            }
        }
        let chosen = wanted.binary.is_some() || !wanted.filters.is_empty();
        ensure!(
            !wanted.exact || !wanted.filters.is_empty(),
            "--exact needs the name of a test\nusage: {USAGE}"
        );
        ensure!(wanted.repeat.is_none() || chosen, "--repeat needs a FILTER or --in\nusage: {USAGE}");
        ensure!(!wanted.loaded || wanted.repeat.is_some(), "--loaded goes with --repeat\nusage: {USAGE}");
        Ok(wanted)
    }

    /// The arguments for the binaries.
    pub(crate) fn words(&self) -> Vec<&str> {
        let exact = self.exact.then_some("--exact");
        exact.into_iter().chain(self.filters.iter().map(String::as_str)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Selection> {
        Selection::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_and_filters_may_be_mixed() {
        let wanted = parsed("dvm:: --repeat 20 --loaded --in phalanx-interop::interop run::").unwrap();
        assert_eq!((wanted.repeat, wanted.loaded, wanted.peers), (Some(20), true, true));
        assert_eq!(wanted.binary.as_deref(), Some("phalanx-interop::interop"));
        assert_eq!(wanted.words(), ["dvm::", "run::"]);
        assert_eq!(parsed("--exact a::b").unwrap().words(), ["--exact", "a::b"]);
    }

    #[test]
    fn senseless_command_lines_are_refused() {
        for line in ["--wrong", "--repeat", "--repeat 0 x", "--repeat 3", "--loaded x", "--exact", "--in"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
