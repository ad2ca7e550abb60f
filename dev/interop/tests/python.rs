//! Debian's Python bindings of libpmix.

use phalanx_interop::{SIZES, debian_file, px, script};

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
