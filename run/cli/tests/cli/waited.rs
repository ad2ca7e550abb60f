//! A job that fails reports what its ranks had been waiting for, whatever runs it.
#![allow(clippy::expect_used, reason = "a test that cannot go on says why and stops")]

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The last rank fails, or does what it is given, when the others have been waiting for it for more than a second.
const SCRIPT: &str = r#"
[ $PMIX_RANK = 2 ] || exec "$PX" hello
long='"phalanx.age":[1-9][0-9][0-9][0-9]'
both='"phalanx.asked_by":\[[^]]*"rank":0}[^]]*"rank":1}'
until "$PX" why --json | grep "$long" | grep "$both" | grep -q '"fence"'; do :; done
eval "$AT_LAST"; exit 3"#;

const PX: &str = env!("CARGO_BIN_EXE_px");

fn px(place: &tempfile::TempDir, words: &[&str]) -> Command {
    let mut command = Command::new(PX);
    command.args(words).current_dir(place.path()).env("NO_COLOR", "1").env("TMPDIR", place.path());
    command.env("PX", PX).stdin(Stdio::null());
    command
}

fn expect_said(place: &tempfile::TempDir, server: &[&str], interrupted: bool) {
    let report = place.path().join("report");
    let report = report.to_str().expect("UTF-8");
    let words = [&["run", "-q", "-n", "3", "--report", report], server, &["sh", "-c", SCRIPT]].concat();
    let mut job = px(place, &words);
    let at_last = if interrupted { "read px <px; kill -INT $px; exec sleep 1000" } else { ":" };
    let job = job.env("AT_LAST", at_last).stdout(Stdio::piped()).stderr(Stdio::piped());
    let job = job.spawn().expect("px runs");
    fs::write(place.path().join("px"), format!("{}\n", job.id())).expect("a file");
    let ended = job.wait_with_output().expect("px ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(if interrupted { 130 } else { 3 }), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("px: ranks 0-1 had been waiting in fence for "), "{said}");
    assert!(last.ends_with("; rank 2 had not come"), "{said}");
    let report = fs::read_to_string(report).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["waited"][0]["ranks"], "0-1");
    assert_eq!(report["waited"][0]["operation"], "fence");
    assert!(report["waited"][0]["seconds"].as_f64() >= Some(1.0));
}

#[test]
fn a_failed_job_reports_what_its_ranks_waited_for() {
    for interrupted in [false, true] {
        expect_said(&tempfile::tempdir().expect("a directory"), &[], interrupted);
    }
}

#[test]
fn a_failed_job_in_a_dvm_reports_what_its_ranks_waited_for() {
    let place = tempfile::tempdir().expect("a directory");
    let started = px(&place, &["dvm", "start", "--daemonize", "--json"]).output().expect("px runs");
    let started: Value = serde_json::from_slice(&started.stdout).expect("JSON");
    let pid = started["pid"].to_string();
    for interrupted in [false, true] {
        expect_said(&place, &["--pid", &pid], interrupted);
    }
    assert!(px(&place, &["dvm", "stop", "--pid", &pid]).status().expect("px runs").success());
}
