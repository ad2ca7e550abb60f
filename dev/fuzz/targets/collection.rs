#![no_main]

#[path = "../../../lib/wire/tests/targets/mod.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::collection(data));
