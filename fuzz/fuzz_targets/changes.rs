//! libFuzzer on target `changes`; see `drumlin_fuzz_targets`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| drumlin_fuzz_targets::run("changes", data));
