//! Jobs that are started inside a job get an identity of their own.

#![allow(clippy::expect_used, reason = "a test that cannot go on says why and stops")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) const PX: &str = env!("CARGO_BIN_EXE_px");

pub(crate) fn px(dir: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(PX);
    command.args(words).current_dir(dir).env("TMPDIR", dir).env("PX", PX).stdin(Stdio::null());
    command
}

/// A DVM below this directory.
pub(crate) fn dvm(dir: &Path) -> Child {
    let child = px(dir, &["dvm", "start"]).stdout(Stdio::null()).spawn().expect("px runs");
    let begun = Instant::now();
    while !px(dir, &["query", "phalanx.jobs", "--pid", &child.id().to_string(), "--wait-server", "60"])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain for the DVM");
    }
    child
}

/// The environment of a rank in a job that a rank of another job has started with all of its own environment.
fn inner(dir: &Path, options: &str) -> Vec<String> {
    let print = "tr '\\\\0' '\\\\n' < /proc/self/environ";
    let script = format!(
        r#"PHALANX_RESTARTS=3 PHALANX_PID=7 exec "$PX" run -q {options} -x 'PHALANX_*' -x 'PMIX_*' -n 1 sh -c "{print}""#
    );
    let output = px(
        dir,
        &[
            "run",
            "-q",
            "--output",
            "diag",
            "-n",
            "2",
            "sh",
            "-c",
            &format!("test $PHALANX_RANK = 0 || {script}"),
        ],
    );
    let output = { output }.output().expect("px runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

fn check(env: &[String]) {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, value) in env.iter().filter_map(|line| line.split_once('=')) {
        values.entry(name).or_default().push(value);
    }
    let twice: Vec<_> = values.iter().filter(|(_, values)| values.len() > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert_eq!((&*values["PHALANX_RANK"], &*values["PHALANX_SIZE"]), (&["0"][..], &["1"][..]));
    assert_eq!(values["PHALANX_JOB"], values["PMIX_NAMESPACE"]);
    for gone in ["PHALANX_STDDIAG_FD", "PHALANX_RESTARTS", "PHALANX_PID"] {
        assert_eq!(values.get(gone), None, "{gone}");
    }
}

#[test]
fn a_job_inside_of_a_job_has_its_own_identity_once() {
    let place = tempfile::tempdir().expect("a directory");
    check(&inner(place.path(), ""));
    let mut dvm = dvm(place.path());
    check(&inner(place.path(), &format!("--pid {}", dvm.id())));
    assert!(
        px(place.path(), &["dvm", "stop", "--pid", &dvm.id().to_string()])
            .status()
            .is_ok_and(|s| s.success())
    );
    assert!(dvm.wait().expect("the DVM ends").success());
}

/// The messages of a job inside a job when the other rank of the outer job runs `other`.
fn said_by_inner(dir: &Path, options: &str, other: &str) -> String {
    let inner =
        format!(r#"echo $$ > pid; exec "$PX" run {options} -n 1 sh -c ': > begun; exec sleep 1000' 2> said"#);
    let script =
        format!("test $PHALANX_RANK = 0 || {{ {inner}; }}; until [ -e begun ]; do sleep 0.05; done; {other}");
    let output = px(dir, &["run", "-q", "-n", "2", "sh", "-c", &script]).output().expect("px runs");
    assert!(!output.status.success(), "{output:?}");
    let said = std::fs::read_to_string(dir.join("said")).expect("readable");
    for file in ["said", "begun", "pid"] {
        std::fs::remove_file(dir.join(file)).expect("removed");
    }
    said
}

#[test]
fn a_job_that_ends_with_an_outer_job_says_so() {
    let place = tempfile::tempdir().expect("a directory");
    let mut dvm = dvm(place.path());
    for options in [String::new(), format!("--pid {}", dvm.id())] {
        let said = said_by_inner(place.path(), &options, "exit 3");
        assert!(said.contains("the job was ended with its parent, job px-"), "{options}: {said}");
        assert!(!said.contains("SIGTERM"), "{options}: {said}");
        let said = said_by_inner(place.path(), &options, "kill -TERM $(cat pid); exec sleep 1000");
        assert!(said.contains("the job was ended by SIGTERM"), "{options}: {said}");
    }
    dvm.kill().expect("a signal");
    dvm.wait().expect("the DVM ends");
}
