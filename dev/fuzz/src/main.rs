//! Runs the target named by `PHALANX_FUZZ_TARGET` under libFuzzer. `cargo xtask fuzz` builds and starts it.
#![no_main]

use std::sync::OnceLock;

use phalanx_fuzz::{Target, target};

libfuzzer_sys::fuzz_target!(|data: &[u8]| (chosen().check)(data));

/// Without a target nothing can be fuzzed.
#[allow(clippy::expect_used)]
fn chosen() -> &'static Target {
    static CHOSEN: OnceLock<&'static Target> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let name = std::env::var("PHALANX_FUZZ_TARGET").expect("PHALANX_FUZZ_TARGET names the target");
        target(&name).expect("PHALANX_FUZZ_TARGET names one of our targets")
    })
}
