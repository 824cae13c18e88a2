//! Goal: a directory moves back and forth between Drumlin and many versions of RocksDB, with kills, and no row
//! is ever lost or wrong. Method: random operations, which follow from a seed, by one engine after the other,
//! each in a process of its own that is killed or closes; each compares all rows with a map before and after.
//!
//! `rocksdb-versions run LIBRARIES [SEEDS]`; `LIBRARIES` holds a `VERSION.so` each, which
//! `fetch-versions.sh` puts there. The newest takes over at the end of each.

mod library;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use drumlin::{ChecksumKind, Db, Options, ReadOptions, Tuning, UInt64Add, WriteOptions};
use drumlin_base::rng::Rng;
use drumlin_testkit::temp_dir;
use library::{Rocks, Row};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
type Done<T = ()> = Result<T, String>;

const OPERATIONS: usize = 1500;
const KEYS: u64 = 400;
/// The name of Drumlin in a step.
const OURS: &str = "drumlin";
/// Small sizes, so that there are flushes and compactions in a step.
const OPTIONS: &str = "create_if_missing=true;write_buffer_size=65536;target_file_size_base=65536;\
    max_bytes_for_level_base=262144;level0_file_num_compaction_trigger=2;\
    block_based_table_factory={filter_policy=bloomfilter:10:false}";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["run", libraries] => run(Path::new(libraries), 2),
        ["run", libraries, seeds] => match seeds.parse() {
            Ok(seeds) => run(Path::new(libraries), seeds),
            Err(error) => Err(format!("{seeds}: {error}")),
        },
        ["step", who, dir, seeds, kind] => step(who, Path::new(dir), seeds, Kind::named(kind)),
        _ => Err("usage: rocksdb-versions run LIBRARIES [SEEDS]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("FAILED: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn say(line: &str) {
    // The reader of the output is gone, so the error has no receiver.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Every version, by seeds from 1 to `seeds`.
fn run(libraries: &Path, seeds: u64) -> Done {
    let listed =
        std::fs::read_dir(libraries).map_err(|e| format!("{}: {e}", libraries.display()))?;
    let paths = listed.flatten().map(|entry| entry.path());
    let mut found: Vec<(Vec<u32>, PathBuf)> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "so"))
        .map(|path| (version(&path), path))
        .collect();
    found.sort();
    let Some((_, newest)) = found.last().cloned() else {
        return Err(format!("no library in {}", libraries.display()));
    };
    let mut cases = 0;
    for (version, path) in &found {
        for seed in 1..=seeds {
            Case::new(seed, Kind::Theirs).theirs_first(path, &newest)?;
            cases += 1;
            // Versions from 6.6 on read a new store without blob files, those from 6.27 on also one
            // with them.
            if *version >= vec![6, 6] {
                let kind = match *version >= vec![6, 27] {
                    true => Kind::Ours,
                    false => Kind::OursWithoutBlobs,
                };
                Case::new(seed, kind).ours_first(path, &newest)?;
                cases += 1;
            }
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        say(&format!("RocksDB {name}: nothing lost"));
    }
    say(&format!("{cases} passed, 0 failed"));
    Ok(())
}

fn version(path: &Path) -> Vec<u32> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem.split('.')
        .filter_map(|part| part.parse().ok())
        .collect()
}

/// The engine that creates the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Theirs: our options ask for more than old versions read, and are not to get it.
    Theirs,
    /// Ours, by default options.
    Ours,
    /// The same without values of the size that goes to blob files.
    OursWithoutBlobs,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Theirs, Self::Ours, Self::OursWithoutBlobs];

    fn named(name: &str) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| format!("{kind:?}") == name)
            .unwrap_or(Self::Ours)
    }
}

/// A directory that goes from one to the other.
struct Case {
    dir: PathBuf,
    _keeps: Box<dyn std::any::Any>,
    seeds: Vec<u64>,
    next: Rng,
    kind: Kind,
}

impl Case {
    fn new(seed: u64, kind: Kind) -> Self {
        let temp = temp_dir();
        Self {
            dir: temp.path().join("db"),
            _keeps: Box::new(temp),
            seeds: Vec::new(),
            next: Rng::new(seed),
            kind,
        }
    }

    fn theirs_first(&mut self, theirs: &Path, newest: &Path) -> Done {
        self.by(Some(theirs))?;
        for _ in 0..2 {
            self.by(None)?;
            self.by(None)?;
            self.by(Some(theirs))?;
        }
        self.handed_on(newest)
    }

    fn ours_first(&mut self, theirs: &Path, newest: &Path) -> Done {
        for _ in 0..2 {
            self.by(None)?;
            self.by(Some(theirs))?;
        }
        self.by(None)?;
        self.by(Some(theirs))?;
        self.handed_on(newest)
    }

    /// The newest RocksDB, we, and the newest again.
    fn handed_on(&mut self, newest: &Path) -> Done {
        self.by(None)?;
        self.by(Some(newest))?;
        self.by(None)?;
        self.by(Some(newest))
    }

    /// A step by a library, or by us, in a process of its own.
    fn by(&mut self, library: Option<&Path>) -> Done {
        self.seeds.push(self.next.next_u64() >> 1);
        let who = library.map_or(OURS.to_owned(), |path| path.display().to_string());
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        let seeds = seeds.join(",");
        let kind = format!("{:?}", self.kind);
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new(program)
            .args(["step", &who])
            .arg(&self.dir)
            .args([&seeds, &kind])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut said = String::new();
        if let Some(stdout) = child.stdout.take() {
            // A child that ended leaves `said` empty, which the match below reports.
            let _ = BufReader::new(stdout).read_line(&mut said);
        }
        // It waits for this, or has ended.
        let _ = child.kill();
        let ended = child.wait().map_err(|error| error.to_string())?;
        match said.trim() {
            "done" => Ok(()),
            said => Err(format!(
                "step {} by {who}, {kind}, seeds {seeds}: {said} ({ended})",
                self.seeds.len()
            )),
        }
    }
}

/// One engine's part: checks the rows, does some operations, checks again; then waits to be killed.
fn step(who: &str, dir: &Path, seeds: &str, kind: Kind) -> Done {
    let seeds: Vec<u64> = seeds
        .split(',')
        .filter_map(|seed| seed.parse().ok())
        .collect();
    let Some((&seed, before)) = seeds.split_last() else {
        return Err("no seed".to_owned());
    };
    let mut rows = Rows::new();
    for &seed in before {
        operations(seed, kind)
            .iter()
            .for_each(|op| op.model(&mut rows));
    }
    let store = match who {
        OURS => Store::Ours(ours(dir, &rows, kind)?),
        library => Store::Theirs(Box::new(Rocks::open(Path::new(library), dir, OPTIONS)?)),
    };
    store.check(&rows, "as it was left")?;
    for op in operations(seed, kind) {
        store.apply(&op)?;
        op.model(&mut rows);
    }
    store.check(&rows, "after this step")?;
    let closes = seed % 3 == 0;
    if closes {
        store.close()?;
    }
    say("done");
    loop {
        std::thread::park();
    }
}

/// Opened by us, after a look by a handle that only reads.
fn ours(dir: &Path, rows: &Rows, kind: Kind) -> Done<Db> {
    let mut options = Options {
        memory_budget: Some(64 << 20),
        tuning: Tuning {
            write_buffer_bytes: Some(64 << 10),
            target_file_bytes: 64 << 10,
            level_base_bytes: Some(256 << 10),
            ..Tuning::default()
        },
        ..Options::default()
    };
    options.family.merge_operator = Some(Arc::new(UInt64Add));
    if kind == Kind::Theirs {
        options.tuning.checksum = ChecksumKind::Xxh3;
        options.tuning.blob_from_bytes = Some(200);
    }
    if !rows.is_empty() {
        let db = Db::open_read_only(dir, options.clone()).map_err(|error| error.to_string())?;
        Store::Ours(db).check(rows, "read-only")?;
    }
    Db::open(dir, options).map_err(|error| error.to_string())
}

enum Op {
    Put(Vec<u8>, Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
    Flush,
    Compact,
}

/// The operations of a seed.
fn operations(seed: u64, kind: Kind) -> Vec<Op> {
    let mut rng = Rng::new(seed);
    let mut draw = || {
        let key = |at: u64| format!("key{at:05}").into_bytes();
        let at = rng.below(KEYS);
        match rng.below(1000) {
            0..=1 => Op::Flush,
            2 if rng.one_in(2) => Op::Compact,
            3..=12 => Op::DeleteRange(key(at), key(at + 1 + rng.below(20))),
            13..=150 => Op::Delete(key(at)),
            151..=300 => {
                let counter = format!("sum{:03}", at % 50).into_bytes();
                Op::Merge(counter, rng.below(1 << 40).to_le_bytes().to_vec())
            }
            301..=310 if kind != Kind::OursWithoutBlobs => {
                Op::Put(key(at), filled(&mut rng, 4000, 20_000))
            }
            _ => Op::Put(key(at), filled(&mut rng, 0, 300)),
        }
    };
    (0..OPERATIONS).map(|_| draw()).collect()
}

fn filled(rng: &mut Rng, least: u64, most: u64) -> Vec<u8> {
    let mut value = vec![0; (least + rng.below(most - least)) as usize];
    let half = value.len() / 2;
    rng.fill(&mut value[..half]);
    value
}

impl Op {
    fn model(&self, rows: &mut Rows) {
        match self {
            Self::Put(key, value) => {
                rows.insert(key.clone(), value.clone());
            }
            Self::Merge(key, operand) => {
                let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
                let old = rows.get(key).map_or(0, |value| number(value));
                let sum = old.wrapping_add(number(operand));
                rows.insert(key.clone(), sum.to_le_bytes().to_vec());
            }
            Self::Delete(key) => {
                rows.remove(key);
            }
            Self::DeleteRange(begin, end) => {
                rows.retain(|key, _| key < begin || key >= end);
            }
            Self::Flush | Self::Compact => {}
        }
    }
}

enum Store {
    Ours(Db),
    Theirs(Box<Rocks>),
}

impl Store {
    fn apply(&self, op: &Op) -> Done {
        match self {
            Self::Ours(db) => {
                let (family, options) = (db.default_family(), &WriteOptions::default());
                let done = match op {
                    Op::Put(key, value) => db.put(key, value),
                    Op::Merge(key, operand) => db.merge_cf(family, key, operand, options),
                    Op::Delete(key) => db.delete(key),
                    Op::DeleteRange(begin, end) => db.delete_range_cf(family, begin, end, options),
                    Op::Flush => db.flush(),
                    Op::Compact => db.compact_range(db.default_family(), None, None),
                };
                done.map_err(|error| error.to_string())
            }
            Self::Theirs(rocks) => match op {
                Op::Put(key, value) => rocks.put(key, value),
                Op::Merge(key, operand) => rocks.merge(key, operand),
                Op::Delete(key) => rocks.delete(key),
                Op::DeleteRange(begin, end) => rocks.delete_range(begin, end),
                Op::Flush => rocks.flush(),
                Op::Compact => {
                    rocks.compact();
                    Ok(())
                }
            },
        }
    }

    /// All rows by a walk, every tenth and keys that are not there by gets.
    fn check(&self, want: &Rows, when: &str) -> Done {
        let rows = match self {
            Self::Ours(db) => our_rows(db)?,
            Self::Theirs(rocks) => rocks.rows()?,
        };
        if !rows.iter().map(|(k, v)| (k, v)).eq(want.iter()) {
            return Err(format!("{when}: {}", difference(&rows, want)));
        }
        for at in (0..KEYS).step_by(10) {
            let key = format!("key{at:05}").into_bytes();
            let got = match self {
                Self::Ours(db) => db
                    .get(&key)
                    .map(|value| value.map(|value| value.to_vec()))
                    .map_err(|error| error.to_string())?,
                Self::Theirs(rocks) => rocks.get(&key)?,
            };
            if got.as_ref() != want.get(&key) {
                return Err(format!("{when}: a get of key{at:05} gives something else"));
            }
        }
        if let Self::Ours(db) = self {
            let report = db.verify().map_err(|error| error.to_string())?;
            if let Some(damaged) = report.damaged.first() {
                return Err(format!("{when}: verify: {damaged:?}"));
            }
        }
        Ok(())
    }

    fn close(self) -> Done {
        match self {
            Self::Ours(db) => db.close().map_err(|error| error.to_string()),
            Self::Theirs(rocks) => {
                rocks.close();
                Ok(())
            }
        }
    }
}

fn our_rows(db: &Db) -> Done<Vec<Row>> {
    let mut iter = db.iter(ReadOptions::default());
    let mut rows = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        rows.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next();
    }
    iter.status().map_err(|error| error.to_string())?;
    Ok(rows)
}

fn difference(rows: &[Row], want: &Rows) -> String {
    let have: Rows = rows.iter().cloned().collect();
    let key = have
        .keys()
        .chain(want.keys())
        .find(|key| have.get(*key) != want.get(*key));
    let key = key.map(|key| key.escape_ascii().to_string());
    format!(
        "{} rows of {}, the first that differs: {key:?}",
        rows.len(),
        want.len()
    )
}
