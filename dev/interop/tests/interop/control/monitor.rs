//! Processes that request to be monitored.

use phalanx_interop::{Library, libpmix, new_directory, pmix, px};

#[test]
fn a_rank_whose_file_no_longer_grows_is_reported() {
    let place = new_directory();
    for library in [Library::Pmix4, Library::Pmix5] {
        let file = place.path().join(format!("{library:?}"));
        let outcome = px(["-n", "2"]).arg(pmix("watched")).arg(&file).with(library).run().expect_code(0);
        for rank in 0..2 {
            outcome.assert_line(&format!("rank {rank} of 2: the file is silent"));
        }
    }
    let file = place.path().join("ours");
    let ours = px(["-n", "2"]).arg(pmix("watched")).arg(&file).env("LD_LIBRARY_PATH", libpmix());
    ours.run().expect_code(0).assert_line("rank 1 of 2: the file is silent");
}
