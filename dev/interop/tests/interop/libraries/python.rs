//! Debian's Python bindings of libpmix.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;

use phalanx_interop::{Job, SIZES, debian_file, eventually, libpmix, new_directory, pmix, px, script};
use rustix::process::Signal;

#[test]
fn python3_pmix_exchanges_values() {
    let python = debian_file("/usr/bin/python3", "python3");
    debian_file("/usr/lib/python3/dist-packages/pypmix-4.2.2-py3.11.egg-info", "python3-pmix");
    for ranks in SIZES {
        let job = px(["-n", &ranks.to_string()]).arg(python).arg(script("python_client.py"));
        let outcome = job.run().expect_code(0).expect_nothing_left();
        for rank in 0..ranks {
            outcome.assert_line(&format!("rank {rank} of {ranks}: python3-pmix is right"));
        }
    }
}

#[test]
fn python3_pmix_serves_on_our_library() {
    let python = debian_file("/usr/bin/python3", "python3");
    for ranks in [1, 3] {
        let job = Job::new(python).args(["-W", "ignore"]).arg(script("python_server.py"));
        let job = job.arg(ranks.to_string()).arg(pmix("values")).env("LD_LIBRARY_PATH", libpmix());
        let outcome = job.run().expect_code(0).expect_stderr(&["server on b'Phalanx"]);
        for rank in 0..ranks {
            outcome.assert_line(&format!("rank {rank} of {ranks}: all values came back"));
        }
        let codes = " 0".repeat(ranks as usize);
        outcome.assert_line(&format!("server: connected finalized codes{codes}"));
    }
}

#[test]
fn python3_pmix_is_a_tool_on_both_libraries() {
    let python = debian_file("/usr/bin/python3", "python3");
    let place = new_directory();
    let uri = place.path().join("uri");
    let talks = "while :; do echo tick; sleep 0.1; done";
    let launcher = px(["--report-uri"]).arg(&uri).args(["-n", "1", "sh", "-c", talks]).start();
    eventually("the launcher can be found", || launcher.rendezvous_file().is_some());
    let name = format!("px-{}-{}", phalanx_interop::host(), launcher.pid());
    let ours = Some(libpmix());
    for (number, library) in [None, ours].into_iter().enumerate() {
        let file = place.path().join(format!("spawned{number}"));
        let job = Job::new(python).args(["-W", "ignore"]).arg(script("python_tool.py"));
        let job = job.arg(launcher.pid().to_string()).arg(&file).env("TMPDIR", launcher.tmpdir());
        let job = job.arg(format!("{name}@{}", launcher.pid() & 0xffff));
        let job = library.into_iter().fold(job, |job, dir| job.env("LD_LIBRARY_PATH", dir));
        let outcome = job.run().expect_code(0);
        let (me, jobs) = (format!("tool {name}-tool"), format!("jobs {name}@"));
        let outcome = outcome.expect_stdout(&[&me, &jobs, "found published", "left"]);
        let (version, pushed) = match library {
            Some(_) => ("library Phalanx", "got python!\n"),
            None => ("library OpenPMIx 4.2.2", "got\n"),
        };
        let _ = outcome.expect_stdout(&[version, "pulled tick\n", &format!("child {name}@")]);
        eventually("what it has spawned has run", || file.exists());
        assert_eq!(fs::read_to_string(&file).expect("readable"), pushed);
    }
    launcher.signal(Signal::TERM);
    launcher.wait().expect_code(143).expect_nothing_left();
}
