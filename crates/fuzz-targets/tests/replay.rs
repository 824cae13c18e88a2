//! Goal: the fuzz targets hold on every machine, without a fuzzer. Method: each target runs over
//! its committed corpus, then over seeded mutations of it. `DRUMLIN_FUZZ_ROUNDS` sets how many,
//! `DRUMLIN_FUZZ_SEED` from which seed, `DRUMLIN_FUZZ_TARGET` for which target alone.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the corpus is read from the source tree itself"
)]

use std::fs;
use std::path::{Path, PathBuf};

use drumlin_fuzz_targets::{CANARY, TARGETS, Target, drive, find};

/// Rounds of a target that decodes bytes; those that build whole structures do fewer.
const ROUNDS: u64 = 30_000;
/// Targets that take long, and by how much.
const SLOWER: [(&str, u64); 9] = [
    ("blob_file", 4),
    ("db_ops", 30),
    ("manifest_replay", 4),
    ("memtable_ops", 2),
    ("model", 4),
    ("options_file", 10),
    ("range_tombstones", 4),
    ("sst_open_scan", 4),
    ("wal_reader", 8),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = folder().join("corpus").join(target);
    let listing = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<_> = listing.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files = paths.iter().map(|path| fs::read(path).unwrap());
    files.collect()
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number")),
    )
}

/// Rounds for `target`: as many as were asked for, or its share of the default.
fn rounds(target: Target) -> u64 {
    let slower = SLOWER.iter().find(|(name, _)| *name == target.0);
    setting("DRUMLIN_FUZZ_ROUNDS").unwrap_or(ROUNDS / slower.map_or(1, |(_, factor)| *factor))
}

#[test]
fn every_target_survives_its_corpus_and_mutations_of_it() {
    let only = std::env::var("DRUMLIN_FUZZ_TARGET").ok();
    let seed = setting("DRUMLIN_FUZZ_SEED").unwrap_or(1);
    for target in TARGETS {
        if only.as_ref().is_some_and(|only| only != target.0) {
            continue;
        }
        let (seeds, rounds) = (corpus(target.0), rounds(*target));
        if let Err(failure) = drive(*target, &seeds, rounds, seed) {
            let kept = folder().join(format!("target/failed-{}", target.0));
            fs::create_dir_all(folder().join("target")).unwrap();
            fs::write(&kept, &failure.input).unwrap();
            panic!("{failure}\nkept as {}", kept.display());
        }
        println!(
            "{}: {} corpus files, {rounds} rounds",
            target.0,
            seeds.len()
        );
    }
}

#[test]
fn the_canary_is_reported_with_the_input_that_broke_it() {
    let whole = drive(CANARY, &[b"tweet".to_vec()], 0, 1).unwrap_err();
    assert_eq!(
        (whole.target, whole.input.as_slice()),
        ("canary", &b"tweet"[..])
    );
    assert_eq!(whole.origin, "corpus file 0");
    // Found by mutation too: the seed is a bit away.
    let found = drive(CANARY, &[b"tweeu".to_vec()], 100_000, 1).unwrap_err();
    assert!(found.input.starts_with(b"tweet"));
    assert!(found.to_string().contains("the canary sings"), "{found}");
    // What was found fails again.
    assert!(drive(CANARY, std::slice::from_ref(&found.input), 0, 1).is_err());
    assert!(drive(CANARY, &[b"tweeu".to_vec()], 0, 1).is_ok());
}

#[test]
fn each_target_has_a_binary_a_corpus_and_a_name_of_its_own() {
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    for (name, _) in TARGETS.iter().chain([&CANARY]) {
        let path = folder().join(format!("fuzz_targets/{name}.rs"));
        let source = fs::read_to_string(path).unwrap();
        assert!(source.contains(&format!("\"{name}\"")), "{name}");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        assert_eq!(find(name).map(|found| found.0), Some(*name));
    }
    for (name, _) in TARGETS {
        assert!(!corpus(name).is_empty(), "{name}");
    }
    assert!(
        TARGETS.windows(2).all(|pair| pair[0].0 < pair[1].0),
        "sorted, so no name twice"
    );
    let binaries = fs::read_dir(folder().join("fuzz_targets")).unwrap().count();
    assert_eq!(binaries, TARGETS.len() + 1, "a binary without a target");
}
