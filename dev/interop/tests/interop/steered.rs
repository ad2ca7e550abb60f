//! Job control of programs on others' libraries: checkpoints as in RFC0015, and ranks that are started again.

// A test that cannot go on says why and stops.
#![allow(clippy::expect_used)]

use std::fs;

use phalanx_interop::{Job, Library, Running, new_directory, pmix, px, px_binary};

fn ctl(running: &Running, words: &[&str]) -> String {
    let px = Job::new(px_binary()).arg("ctl").args(words).arg("--pid").arg(running.pid().to_string());
    px.env("TMPDIR", running.tmpdir()).run().expect_code(0).stdout
}

#[test]
fn programs_of_others_go_on_from_their_checkpoints() {
    for library in [Library::Pmix4, Library::Pmix5] {
        let place = new_directory();
        let running = px(["-n", "2"]).arg(pmix("checkpoint")).arg(place.path()).with(library).start();
        let job = running.job_name();
        running.until_said("rank 0: counts");
        running.until_said("rank 1: counts");
        let taken = ctl(&running, &["checkpoint", "--name", "night", &job]);
        assert_eq!(taken.trim(), format!("{job}: ranks 0-1: checkpointed as night"), "{library:?}");
        let again = ctl(&running, &["restart", "--from", "night", &format!("{job}:1")]);
        assert_eq!(again.trim(), format!("{job}: rank 1: started again"), "{library:?}");
        running.until_said("rank 1: goes on from its checkpoint");
        running.until_said("rank 0: hears of the restart");
        fs::write(place.path().join("end"), "").expect("a file");
        let outcome = running.wait().expect_code(0);
        for rank in 0..2 {
            outcome.assert_line(&format!("rank {rank} of 2: counted"));
        }
    }
}
