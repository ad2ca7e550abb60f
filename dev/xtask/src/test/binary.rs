//! The test binaries: built once, all together, and run one after another.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Result;
use phalanx_cluster::{BUILD, bare};
use serde::Deserialize;

use crate::cargo::{capture, target};
use crate::world;

/// Tests of one kind. They run in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Own,
    InterfaceOfC,
    Hosts,
    Peers,
}

impl Stage {
    /// In this order; stages that leave the processors idle for most of their time run beside each other.
    pub(crate) const TOGETHER: [&[Stage]; 3] =
        [&[Stage::Own], &[Stage::InterfaceOfC, Stage::Hosts], &[Stage::Peers]];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::Own => "our own tests",
            Stage::InterfaceOfC => "tests of the C interface",
            Stage::Hosts => "tests of the test hosts",
            Stage::Peers => "tests with peers",
        }
    }

    pub(crate) fn needs_peers(self) -> bool {
        self >= Stage::Hosts
    }

    fn of(package: &str, name: &str) -> Stage {
        match (package, name) {
            ("phalanx-interop", "alone") => Stage::InterfaceOfC,
            ("phalanx-interop", _) => Stage::Peers,
            ("phalanx-cluster", _) => Stage::Hosts,
            _ => Stage::Own,
        }
    }
}

/// A program that runs tests: it takes filters, and prints like the standard harness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binary {
    /// The package, plus the test if it is not the library's: `phalanx-dvm`, `phalanx-interop::interop`.
    pub(crate) name: String,
    pub(crate) stage: Stage,
    runs: Runs,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Runs {
    Program {
        path: PathBuf,
        directory: PathBuf,
    },
    /// The examples in the documentation, which cargo compiles and runs.
    Examples,
}

/// Builds everything that tests need.
pub(crate) fn build() -> Result<Vec<Binary>> {
    let said = capture(&[&BUILD[..], &["--message-format=json-render-diagnostics"]].concat())?;
    let mut binaries: Vec<Binary> = said.lines().filter_map(binary).collect();
    binaries.push(Binary { name: EXAMPLES.to_owned(), stage: Stage::Own, runs: Runs::Examples });
    binaries.sort_by(|a, b| (a.stage, &a.name).cmp(&(b.stage, &b.name)));
    Ok(binaries)
}

/// Parses cargo's message about one build product, if that has tests.
fn binary(line: &str) -> Option<Binary> {
    let built: Built = serde_json::from_str(line).ok()?;
    let path = built.executable.filter(|_| built.profile.test)?;
    let directory = built.manifest_path.parent()?.to_owned();
    // The part behind the `#` has the name only if it differs from the directory's.
    let package = match built.package_id.rsplit_once('#')? {
        (_, named) if named.contains('@') => named.split('@').next()?.to_owned(),
        (place, _) => place.rsplit('/').next()?.to_owned(),
    };
    let name = match built.target.kind.first()?.as_str() {
        "test" => format!("{package}::{}", built.target.name),
        kind @ ("bin" | "example" | "bench") => format!("{package}::{kind}/{}", built.target.name),
        _ => package.clone(),
    };
    let stage = Stage::of(&package, &built.target.name);
    Some(Binary { name, stage, runs: Runs::Program { path, directory } })
}

impl Binary {
    pub(crate) fn command(&self, words: &[&str]) -> Result<Command> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = match &self.runs {
            Runs::Examples => {
                let mut command = Command::new(&cargo);
                command.args(["test", "--workspace", "--doc", "--locked", "--no-fail-fast", "--"]);
                command.current_dir(crate::root());
                command
            }
            Runs::Program { path, directory } => {
                // Tests that need no peers must not find any.
                let mut command = match !self.stage.needs_peers() && world::is_own() {
                    true => bare(&target().join("debug/cluster"))?,
                    false => Command::new("env"),
                };
                command.arg(path).current_dir(directory).env("CARGO_MANIFEST_DIR", directory);
                command
            }
        };
        command.args(words).arg(format!("--test-threads={}", self.at_once()));
        command.env("CARGO", cargo).stdin(Stdio::null());
        Ok(command)
    }

    /// How many of its tests run at the same time. Those that run processes wait for most of their time: on two processors, run in
    /// pairs, they kept these busy for a third of it.
    pub(crate) fn at_once(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let waits = self.stage != Stage::Own || self.name == "phalanx-cli::cli";
        if waits { 2 * processors } else { processors }
    }

    /// The command that runs only this binary.
    pub(crate) fn alone(&self) -> String {
        format!("cargo xtask test --in {}", self.name)
    }

    /// The command that repeats one test of it.
    pub(crate) fn again(&self, test: &str) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_:-/.".contains(c);
        let test = if test.chars().all(plain) { test.to_owned() } else { format!("'{test}'") };
        format!("{} --exact {test}", self.alone())
    }
}

const EXAMPLES: &str = "examples";

#[derive(Deserialize)]
struct Built {
    package_id: String,
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(package: &str, kind: &str, name: &str, test: bool) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","package_id":"path+file:///w/{package}","manifest_path":"/w/p/Cargo.toml",
            "target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":{test}}},"executable":"/w/target/x"}}"#
        )
    }

    #[test]
    fn binaries_are_called_by_package_and_test() {
        let named = |line: String| binary(&line).map(|binary| (binary.name, binary.stage));
        for (package, kind, target, name, stage) in [
            (
                "dev/interop#phalanx-interop@0.1.0",
                "test",
                "interop",
                "phalanx-interop::interop",
                Stage::Peers,
            ),
            (
                "dev/interop#phalanx-interop@0.1.0",
                "test",
                "alone",
                "phalanx-interop::alone",
                Stage::InterfaceOfC,
            ),
            ("lib/pmix#0.1.0", "lib", "pmix", "pmix", Stage::Own),
            ("run/cli#phalanx-cli@0.1.0", "bin", "px", "phalanx-cli::bin/px", Stage::Own),
            (
                "dev/cluster#phalanx-cluster@0.1.0",
                "test",
                "cluster",
                "phalanx-cluster::cluster",
                Stage::Hosts,
            ),
        ] {
            assert_eq!(named(said(package, kind, target, true)), Some((name.to_owned(), stage)));
        }
        assert_eq!(named(said("lib/pmix#0.1.0", "example", "attach", false)), None);
        assert_eq!(named("not what cargo says of a binary".to_owned()), None);
    }
}
