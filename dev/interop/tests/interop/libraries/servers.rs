//! Servers in foreign programs: a small host in C with every upcall, compiled against Debian's headers and against ours, on
//! Debian's libpmix and on ours, with clients on either.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use phalanx_interop::{
    Job, debian_file, libpmix, new_directory, pmix, pmix_tool, rust_tool, script, workspace,
};

/// The upcalls that every server makes when `pmix_hosted` runs.
const UPCALLS: [&str; 18] = [
    "own event",
    "own get",
    "client_connected",
    "publish",
    "lookup",
    "unpublish",
    "query",
    "log",
    "job_control",
    "allocate",
    "get_credential",
    "validate_credential",
    "notify_event",
    "spawn",
    "group construct",
    "group destruct",
    "abort",
    "client_finalized",
];

/// The additional upcalls of our library: 4.2.2 monitors files itself, connects processes of one node without its host, and crashes when it
/// gets output.
const OURS: [&str; 10] = [
    "monitor",
    "register_events",
    "connect",
    "disconnect",
    "deregister_events",
    "iof_pull",
    "iof_stop",
    "push_stdin",
    "fabric request",
    "fabric update",
];

#[test]
fn a_host_compiled_for_theirs_runs_on_theirs() {
    for clients in [Path::new("/nonexistent"), libpmix()] {
        let outcome = host(pmix("host"), clients, 2, &[]).run().expect_code(0);
        outcome.expect_lines(expected(&UPCALLS, 2)).expect_nowhere("Phalanx");
    }
}

#[test]
fn a_host_compiled_for_theirs_runs_on_ours() {
    for clients in [Path::new("/nonexistent"), libpmix()] {
        for ranks in [1, 2, 6] {
            let job = host(pmix("host"), clients, ranks, &["streams"]).env("LD_LIBRARY_PATH", libpmix());
            let outcome = job.run().expect_code(0);
            let upcalls: Vec<&str> = UPCALLS.iter().chain(&OURS).copied().collect();
            outcome.expect_lines(expected(&upcalls, ranks)).expect_stderr(&["host on Phalanx"]);
        }
    }
}

#[test]
fn delivered_output_has_the_hosts_default_form() {
    for clients in [Path::new("/nonexistent"), libpmix()] {
        let job = host(pmix("host"), clients, 2, &["streams"]).env("LD_LIBRARY_PATH", libpmix());
        let upcalls: Vec<&str> = UPCALLS.iter().chain(&OURS).copied().collect();
        job.env("HOST_OUTPUT", "ranks").run().expect_code(0).expect_lines(expected(&upcalls, 2));
    }
}

#[test]
fn a_host_compiled_for_ours_runs_on_ours() {
    for clients in [Path::new("/nonexistent"), libpmix()] {
        let job = host(ours("host"), clients, 3, &["streams"]).env("LD_LIBRARY_PATH", libpmix());
        let upcalls: Vec<&str> = UPCALLS.iter().chain(&OURS).copied().collect();
        job.run().expect_code(0).expect_lines(expected(&upcalls, 3));
    }
}

#[test]
fn values_and_direct_modex_between_clients_of_a_host() {
    for clients in [Path::new("/nonexistent"), libpmix()] {
        for (program, verdict) in [("values", "all values came back"), ("modex", "direct modex is right")] {
            let job = Job::new(pmix("host")).arg("4").arg(pmix(program));
            let job = job.env("CLIENT_LIBRARY_PATH", clients).env("LD_LIBRARY_PATH", libpmix());
            let outcome = job.run().expect_code(0);
            (0..4).for_each(|rank| outcome.assert_line(&format!("rank {rank} of 4: {verdict}")));
            outcome.assert_line("host: all right");
        }
    }
}

#[test]
fn two_hosts_carry_each_others_blobs() {
    let theirs = Path::new("/nonexistent");
    // The libraries of the two hosts and of the clients.
    for (first, second, clients) in [
        (theirs, theirs, theirs),
        (theirs, theirs, libpmix()),
        (libpmix(), libpmix(), theirs),
        (libpmix(), libpmix(), libpmix()),
        (libpmix(), theirs, libpmix()),
        (theirs, libpmix(), theirs),
        (theirs, libpmix(), libpmix()),
    ] {
        for ranks in [2, 5] {
            let job = Job::new(pmix("two_hosts")).arg(ranks.to_string()).arg(pmix("spread"));
            let job = job.env("LD_LIBRARY_PATH", first).env("LIBRARY_OF_SECOND", second);
            let job = job.env("CLIENT_LIBRARY_PATH", clients);
            let lines = (0..ranks).map(|rank| format!("rank {rank} of {ranks}: spread over two nodes"));
            let hosts = (0..2).map(|host| format!("host {host}: all right"));
            job.run().expect_code(0).expect_lines(lines.chain(hosts));
        }
    }
}

#[test]
fn a_host_in_rust_serves_programs_on_theirs_and_ours() {
    for library in [Path::new("/nonexistent"), libpmix()] {
        for (program, verdict) in
            [("exchange", "everybody's values are right"), ("values", "all values came back")]
        {
            let job = Job::new(rust_tool("host")).arg("4").arg(pmix(program)).env("LD_LIBRARY_PATH", library);
            let outcome = job.run().expect_code(0);
            outcome.expect_lines((0..4).map(|rank| format!("rank {rank} of 4: {verdict}")));
        }
    }
}

#[test]
fn serving_tool_leaves_its_address() {
    let program = ours("serving_tool");
    for by_attribute in [true, false] {
        let place = new_directory();
        let (over, file) = (place.path().join("over"), place.path().join("here"));
        let job = Job::new(&program).arg(&over).env("LD_LIBRARY_PATH", libpmix());
        let job = if by_attribute { job.arg(&file) } else { job.env("PMIX_LAUNCHER_RNDZ_FILE", &file) };
        let serving = job.env("TMPDIR", place.path()).start();
        serving.until_said("serve PMIX_SUCCESS\n");
        assert!(file.exists(), "its address is there");
        for library in [Path::new("/nonexistent"), libpmix()] {
            let guest = Job::new(pmix_tool("attach")).arg("file").arg(&file).args(["--", "me"]);
            let guest = guest.env("LD_LIBRARY_PATH", library).run().expect_code(0);
            guest.assert_line("me guest 0");
        }
        fs::write(&over, "").expect("writing");
        let served = serving.wait().expect_code(0);
        served.expect_lines(["init", "serve", "finalize"].map(|what| format!("{what} PMIX_SUCCESS")));
        assert!(!file.exists());
    }
}

fn host(binary: PathBuf, clients: &Path, ranks: u32, arguments: &[&str]) -> Job {
    let job = Job::new(binary).arg(ranks.to_string()).arg(pmix("hosted")).args(arguments);
    let tmpdir = job.tmpdir().to_owned();
    job.env("CLIENT_LIBRARY_PATH", clients).env("HOST_TMPDIR", tmpdir)
}

fn expected(upcalls: &[&str], ranks: u32) -> Vec<String> {
    let verdicts = (0..ranks).map(|rank| format!("rank {rank} of {ranks}: the host does what I ask"));
    let upcalls = upcalls.iter().map(|name| format!("ok {name}"));
    verdicts.chain(upcalls).chain(["host: all right".to_owned()]).collect()
}

/// The program `programs/pmix_<name>.c`, compiled against our headers.
fn ours(name: &str) -> PathBuf {
    let binary = libpmix().join(format!("pmix_{name}-{}", std::process::id()));
    let mut command = Command::new(debian_file("/usr/bin/gcc", "gcc"));
    command.args(["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]);
    command.arg("-I").arg(workspace().join("lib/libpmix/include")).arg("-I").arg(script(""));
    command.arg(script(&format!("pmix_{name}.c"))).arg("-o").arg(&binary);
    command.arg("-L").arg(libpmix()).arg("-lpmix");
    let output = command.output().unwrap_or_else(|error| panic!("running {command:?}: {error}"));
    assert!(output.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    binary
}
