//! libFuzzer on target `timed_values`; see `drumlin_fuzz_targets`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| drumlin_fuzz_targets::run("timed_values", data));
