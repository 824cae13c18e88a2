//! Writes the seeds of every fuzz target to `fuzz/corpus`. Files that are there and not among the
//! seeds, such as inputs that once broke something, stay.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a tool for the source tree itself"
)]

use std::fs;
use std::path::Path;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| fs::read(root.join(path)).unwrap();
    for seed in drumlin_fuzz_targets::seeds::corpus(&read) {
        let dir = root.join("fuzz/corpus").join(seed.target);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(seed.name), seed.bytes).unwrap();
    }
}
