//! libFuzzer on target `spelled_document`; see `drumlin_fuzz_targets`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| drumlin_fuzz_targets::run("spelled_document", data));
