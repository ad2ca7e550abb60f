//! `cargo xtask ci`: everything that must hold before a change is accepted, cheap checks first. All of it runs, even after failures.

use anyhow::{Context, Result, bail};

use crate::cargo::{capture, cargo};
use crate::report::Report;
use crate::test::{self, Selection};
use crate::{deps, r#gen, sources, words, world};

pub(crate) fn run(args: &[String]) -> Result<()> {
    let strict = args == ["--strict"];
    if !strict && !args.is_empty() {
        bail!("ci takes no arguments but --strict");
    }
    for (tool, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        capture(&[tool, "--version"]).with_context(|| {
            format!("cargo {tool} is needed\nhint: install it with `rustup component add {component}`")
        })?;
    }
    world::enter("ci", args)?;
    let mut report = Report::default();
    for (name, arguments) in CARGO {
        report.step(name, &format!("cargo {}", arguments.join(" ")), |_| cargo(arguments));
    }
    for (name, command, check) in CHECKS {
        let arguments = command.split(' ').skip(3).map(str::to_owned).collect::<Vec<_>>();
        report.step(name, command, |_| check(&arguments));
    }
    test::all(&Selection { strict, ..Selection::default() }, &mut report);
    report.close()
}

/// Checks by cargo.
const CARGO: [(&str, &[&str]); 3] = [
    ("formatting", &["fmt", "--all", "--check"]),
    ("lints", &["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"]),
    ("documentation", &["doc", "--workspace", "--no-deps", "--locked"]),
];

type Check = fn(&[String]) -> Result<()>;

/// Checks by other chores.
const CHECKS: [(&str, &str, Check); 4] = [
    ("generated sources", "cargo xtask gen --check", r#gen::run),
    ("rules of the sources", "cargo xtask sources", sources::run),
    ("words", "cargo xtask words", words::run),
    ("dependencies", "cargo xtask deps", deps::run),
];
