//! The examples work: the server's example launches the ranks of the client's.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Builds an example and returns its path.
fn example(name: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    // With the features of the whole workspace: others would build everything below it once more.
    build.args(["build", "--quiet", "--locked", "--workspace", "--all-targets"]);
    let built = build.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap();
    assert!(built.success(), "building the example {name} failed");
    // This test is in `deps`, and the examples are beside that.
    let deps = std::env::current_exe().unwrap();
    let path = deps.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is missing", path.display());
    path
}

fn host(ranks: u32, program: &Path, arguments: &[&str]) -> Output {
    Command::new(example("host")).arg(ranks.to_string()).arg(program).args(arguments).output().unwrap()
}

#[test]
fn the_host_runs_the_ring() {
    let output = host(4, &example("ring"), &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 4, "{text}");
    for (rank, line) in lines.iter().enumerate() {
        let says = format!(":{rank} of 4: heard 4, my neighbour says \"greetings of {}\"", (rank + 1) % 4);
        assert!(line.ends_with(&says), "{line}");
    }
}

#[test]
fn the_host_says_which_rank_has_failed() {
    let output = host(2, Path::new("/bin/sh"), &["-c", "exit $PMIX_RANK"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(text.lines().count() == 1 && text.contains(":1: exit status: 1"), "{text}");
}
