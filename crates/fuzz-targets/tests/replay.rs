//! Goal: the fuzz targets hold on every machine, without a fuzzer. Method: each target runs over
//! its committed corpus, then over seeded mutations of it; every core has one at a time. `DRUMLIN_FUZZ_ROUNDS` sets how many,
//! `DRUMLIN_FUZZ_SEED` from which seed, `DRUMLIN_FUZZ_TARGET` for which target alone. The memory that a run
//! takes is counted by the allocator and bounded by its input; an input that goes on and on ends the process.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the corpus is read from the source tree itself, and a hang is told before the end"
)]

mod counted;

use std::cell::{Cell, RefCell};
use std::fs;
use std::hint::black_box;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use drumlin_fuzz_targets::{CANARY, TARGETS, Target, drive, find};

use counted::Taken;

/// Rounds of a target that decodes bytes; those that build whole structures do fewer.
const ROUNDS: u64 = 30_000;
/// Targets that take long, and by how much.
const SLOWER: [(&str, u64); 13] = [
    ("blob_file", 4),
    ("db_ops", 30),
    ("manifest_replay", 4),
    ("memtable_ops", 2),
    ("model", 4),
    ("mongo_pipeline", 30),
    ("options_file", 10),
    ("range_tombstones", 4),
    ("script_code", 30),
    ("script_values", 30),
    ("sst_open_scan", 4),
    ("stored_collections", 60),
    ("wal_reader", 8),
];

/// Memory that a run may take, on any input.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Most bytes held at a time: so many, and so many for each byte of the input.
    peak: (u64, u64),
    /// All bytes asked for, one after the other.
    total: (u64, u64),
}

/// Of most targets: a decoder, and its input in a few copies.
const DECODER: Bounds = Bounds {
    peak: (2 << 20, 64),
    total: (16 << 20, 4096),
};
/// The bounds of targets with caches, windows or memtables.
const WITH_BUFFERS: Bounds = Bounds {
    peak: (32 << 20, 64),
    total: (128 << 20, 4096),
};
/// A Lua state of 4 MiB; scripts may throw away as much as they like until they are ended: some 400,000 instructions, each of which
/// may copy a string of that size. One that made a string longer by a byte each time came to 10 GB.
const SCRIPT: Bounds = Bounds {
    peak: (8 << 20, 64),
    total: (1 << 40, 4096),
};
/// Targets with other bounds than [`DECODER`].
const BOUNDS: [(&str, Bounds); 14] = [
    (
        // A decoder of bzip2 takes much each time, and all records are read in many ways.
        "blob_file",
        Bounds {
            peak: (4 << 20, 64),
            total: (512 << 20, 1 << 16),
        },
    ),
    (
        // An input of a few bytes makes records and codes of up to 128 KiB, and a damaged code may
        // rightly come to 4,096 times its length.
        "coded_rows",
        Bounds {
            peak: (256 << 20, 0),
            total: (1 << 30, 0),
        },
    ),
    ("db_ops", WITH_BUFFERS),
    ("mongo_catalog", WITH_BUFFERS),
    ("mongo_message", WITH_BUFFERS),
    ("mongo_pipeline", WITH_BUFFERS),
    (
        // The limit that the target sets, and its input.
        "decompress",
        Bounds {
            peak: (4 << 20, 64),
            total: (16 << 20, 4096),
        },
    ),
    (
        "model",
        Bounds {
            peak: (8 << 20, 4096),
            total: (16 << 20, 1 << 14),
        },
    ),
    (
        // A frame of zeros rightly has the size it claims, up to 4,096 times its length.
        "model_frame",
        Bounds {
            peak: (4 << 20, 1 << 14),
            total: (16 << 20, 1 << 15),
        },
    ),
    ("script_code", SCRIPT),
    ("script_values", SCRIPT),
    ("sst_open_scan", WITH_BUFFERS),
    ("stored_collections", WITH_BUFFERS),
    ("wal_reader", WITH_BUFFERS),
];
/// Longest that one input may take on a machine that does much else.
const HANG: Duration = Duration::from_secs(300);

thread_local! {
    /// The target that [`measured`] runs, and the most that its runs took.
    static BODY: Cell<Target> = const { Cell::new(CANARY) };
    static MOST: Cell<Taken> = const { Cell::new(Taken { peak_bytes: 0, total_bytes: 0 }) };
    static WATCH: RefCell<Option<SyncSender<Vec<u8>>>> = const { RefCell::new(None) };
}

/// Runs the target, and fails when it took more memory than its input accounts for.
fn measured(data: &[u8]) {
    let (name, body) = BODY.get();
    WATCH.with_borrow(|watch| {
        let told = watch
            .as_ref()
            .is_none_or(|watch| watch.send(data.to_vec()).is_ok());
        assert!(told, "nobody watches");
    });
    counted::begin();
    body(data);
    let taken = counted::taken();
    let most = MOST.get();
    MOST.set(Taken {
        peak_bytes: most.peak_bytes.max(taken.peak_bytes),
        total_bytes: most.total_bytes.max(taken.total_bytes),
    });
    let own = BOUNDS.iter().find(|(of, _)| *of == name);
    let bounds = own.map_or(DECODER, |(_, bounds)| *bounds);
    let limit = |(fixed, each): (u64, u64)| fixed + each * data.len() as u64;
    let fits = taken.peak_bytes <= limit(bounds.peak) && taken.total_bytes <= limit(bounds.total);
    assert!(
        fits,
        "{} bytes take more memory than {bounds:?}: {taken:?}",
        data.len()
    );
}

/// Ends the process, with the input kept, when one goes on for too long.
fn watch(target: &'static str) -> SyncSender<Vec<u8>> {
    let (sender, inputs) = sync_channel::<Vec<u8>>(16);
    thread::spawn(move || {
        let mut last = Vec::new();
        loop {
            match inputs.recv_timeout(HANG) {
                Ok(input) => last = input,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    println!("{target} hangs; kept as {}", keep(target, &last).display());
                    std::process::abort();
                }
            }
        }
    });
    sender
}

/// Keeps an input that broke a target.
fn keep(target: &str, input: &[u8]) -> PathBuf {
    let kept = folder().join(format!("target/failed-{target}"));
    fs::create_dir_all(folder().join("target")).unwrap();
    fs::write(&kept, input).unwrap();
    kept
}

/// [`drive`], with the memory of each run counted; returns the most.
fn drive_measured(
    target: Target,
    seeds: &[Vec<u8>],
    rounds: u64,
    seed: u64,
) -> (Result<(), Box<drumlin_fuzz_targets::Failure>>, Taken) {
    // Values made once for all runs are made before.
    if let Some(first) = seeds.first() {
        let _ = std::panic::catch_unwind(|| target.1(first));
    }
    BODY.set(target);
    MOST.set(Taken::default());
    WATCH.set(Some(watch(target.0)));
    let outcome = drive((target.0, measured), seeds, rounds, seed);
    WATCH.set(None);
    (outcome, MOST.get())
}

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
    let is_asked = |target: &&Target| only.as_ref().is_none_or(|only| only == target.0);
    let asked: Vec<Target> = TARGETS.iter().filter(is_asked).copied().collect();
    assert!(!asked.is_empty(), "no target {only:?}");
    let next = AtomicUsize::new(0);
    let survive_in_turn = || {
        while let Some(target) = asked.get(next.fetch_add(1, Ordering::Relaxed)) {
            survive(*target);
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(survive_in_turn);
        }
    });
}

fn survive(target: Target) {
    let seed = setting("DRUMLIN_FUZZ_SEED").unwrap_or(1);
    let (seeds, rounds) = (corpus(target.0), rounds(target));
    let (outcome, most) = drive_measured(target, &seeds, rounds, seed);
    if let Err(failure) = outcome {
        let kept = keep(target.0, &failure.input);
        panic!("{failure}\nkept as {}", kept.display());
    }
    println!(
        "{}: {} corpus files, {rounds} rounds, at most {most:?}",
        target.0,
        seeds.len()
    );
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
    // The input found fails again.
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

/// The counting is counted: memory that an input of a few bytes claims is seen, held or let go at once.
#[test]
fn what_a_target_takes_is_seen() {
    fn claims(data: &[u8]) {
        let claimed: Vec<u8> = Vec::with_capacity(data.len() << 20);
        assert!(black_box(claimed).is_empty());
    }
    fn works(data: &[u8]) {
        for _ in 0..data.len() << 2 {
            drop(black_box(Vec::<u8>::with_capacity(1 << 20)));
        }
    }
    for body in [claims, works] {
        let target: Target = ("claims", body);
        assert!(drive_measured(target, &[vec![0]], 0, 1).0.is_ok());
        let failure = drive_measured(target, &[vec![0; 5]], 0, 1).0.unwrap_err();
        assert!(failure.message.contains("more memory"), "{failure}");
    }
}
