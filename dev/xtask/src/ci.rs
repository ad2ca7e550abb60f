//! `cargo xtask ci`: everything that must hold before a change is taken, cheap checks first.

use anyhow::{Context, Result, ensure};

use crate::cargo::{capture, cargo};
use crate::step::step;
use crate::{deps, r#gen, sources, test};

pub(crate) fn run(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "ci takes no arguments");
    step("tools", || {
        for (tool, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
            capture(&[tool, "--version"]).with_context(|| {
                format!("cargo {tool} is needed\nhint: install it with `rustup component add {component}`")
            })?;
        }
        Ok(())
    })?;
    step("formatting", || cargo(&["fmt", "--all", "--check"]))?;
    step("generated sources", || r#gen::run(&["--check".to_owned()]))?;
    step("rules of the sources", || sources::run(&[]))?;
    step("dependencies", || deps::run(&[]))?;
    step("lints", || {
        cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"])
    })?;
    step("documentation", || cargo(&["doc", "--workspace", "--no-deps", "--locked"]))?;
    step("tests", || test::run(&[]))
}
