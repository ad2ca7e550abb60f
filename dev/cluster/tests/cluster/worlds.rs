//! Worlds without hosts: a command alone, one with emptied directories, one without foreign software.

#![allow(clippy::expect_used, reason = "a test that cannot go on says why and stops")]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use phalanx_cluster::{PRIVATE, alone, bare, emptied};

use crate::needs_root;

fn player() -> PathBuf {
    needs_root();
    env!("CARGO_BIN_EXE_cluster").into()
}

/// The output of a shell, and its exit code.
fn said(mut command: Command, script: &str, argument: &Path) -> (String, Option<i32>) {
    let output = command.args(["sh", "-c", script, "sh"]).arg(argument).stderr(Stdio::inherit()).output();
    let output = output.expect("it runs");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

#[test]
fn nothing_of_others_is_seen_alone_but_what_is_kept() {
    let (seen, hidden) =
        (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    for place in [&seen, &hidden] {
        fs::write(place.path().join("file"), "").expect("writing");
    }
    let script =
        format!("ls -A {}; ls -d \"$1\" || echo none; echo $$ $(ps -e | wc -l); exit 7", PRIVATE.join(" "));
    let kept = [seen.path().to_owned()];
    let (text, code) = said(alone(&player(), &kept).expect("a world"), &script, hidden.path());
    assert_eq!(code, Some(7));
    let name = |place: &Path| place.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(text.contains(&name(seen.path())) && text.contains("none\n"), "{text}");
    assert!(!text.contains(&name(hidden.path())), "{text}");
    // Process 1 and the shell; its children come and go.
    let last = text.lines().last().expect("a line");
    let numbers: Vec<u32> = last.split(' ').map(|number| number.parse().expect("a number")).collect();
    assert!(numbers[0] < 10 && numbers[1] < 10, "{last}");
}

/// Any process that survived would still hold the pipe.
#[test]
fn all_of_a_world_ends_with_its_maker() {
    let mut maker = alone(&player(), &[]).expect("a world");
    let script = "setsid sh -c 'sleep 1000 & sleep 1000' & (sleep 1000 &) ; echo ready; wait";
    let mut maker = maker.args(["sh", "-c", script]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut pipe = maker.stdout.take().expect("a pipe");
    pipe.read_exact(&mut [0; 6]).expect("it is ready");
    maker.kill().expect("it runs");
    maker.wait().expect("it has ended");
    assert_eq!(pipe.read_to_end(&mut Vec::new()).expect("the end"), 0);
}

#[test]
fn files_and_directories_are_kept_in_what_is_emptied() {
    let place = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(place.path().join("a/b")).expect("directories");
    fs::write(place.path().join("a/b/deep"), "1\n").expect("writing");
    fs::write(place.path().join("file"), "2\n").expect("writing");
    fs::write(place.path().join("gone"), "").expect("writing");
    let kept = ["a/b/deep", "a/b", "file", "missing"].map(|name| place.path().join(name));
    let command = emptied(&player(), &[&place.path().display().to_string()], &kept).expect("a command");
    let (text, code) = said(command, "cd \"$1\"; cat a/b/deep file; ls; touch new", place.path());
    assert_eq!((text.as_str(), code), ("1\n2\na\nfile\n", Some(0)));
    assert!(place.path().join("gone").exists() && !place.path().join("new").exists());
}

#[test]
fn a_bare_command_finds_a_compiler_and_no_peers() {
    let libraries = PathBuf::from(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH));
    let script =
        "ls \"$1\" | grep -cE '^lib(hwloc|pmix|mpi)'; for p in mpirun srun gcc; do command -v $p; done";
    let (text, _) = said(bare(&player()).expect("a command"), script, &libraries);
    assert_eq!(text, "0\n/usr/bin/gcc\n");
    let present = fs::read_dir(&libraries).expect("a directory").flatten();
    let count = present.filter(|entry| entry.file_name().to_string_lossy().starts_with("libhwloc")).count();
    assert!(count > 0, "there is nothing to hide");
}
