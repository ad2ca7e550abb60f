//! Debian's Python bindings of libpmix.

use phalanx_interop::{Job, SIZES, debian_file, libpmix, pmix, px, script};

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
