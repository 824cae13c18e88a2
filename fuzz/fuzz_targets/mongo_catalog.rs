//! libFuzzer on target `mongo_catalog`; see `drumlin_fuzz_targets`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| drumlin_fuzz_targets::run("mongo_catalog", data));
