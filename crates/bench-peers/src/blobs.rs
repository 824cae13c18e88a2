//! Large values across engines: RocksDB reads the blob files that Drumlin wrote, and the other way
//! round, after overwrites, deletions and collection on both sides.
//!
//! One directory changes hands four times. Each side compares everything with a map that took the same
//! changes, once by walking and once by getting each key, and must have blob files to read.

use std::collections::BTreeMap;
use std::path::Path;

use drumlin_base::rng::Rng;
use drumlin_base::{Error, Result};
use rocksdb::{
    BottommostLevelCompaction, CompactOptions, DB, DBCompressionType, IteratorMode, Options,
};

use crate::engines::failed;

/// Keys in the key space.
const KEYS: u64 = 3000;
/// Changes a side makes: each key several times.
const CHANGES: u64 = 15_000;
/// Values from this size on are kept apart.
const BLOB_BYTES_MIN: u64 = 4096;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn broken(error: impl std::fmt::Display) -> Error {
    failed("RocksDB", error)
}

/// Runs the check in `dir`, which is emptied, and describes the comparisons for people.
pub(crate) fn check(dir: &Path) -> Result<String> {
    if dir.exists() {
        // Removes only files of a database, and nothing else by mistake.
        DB::destroy(&Options::default(), dir).map_err(broken)?;
    }
    let mut model = Model::new();
    let mut rng = Rng::new(11);
    let mut lines = Vec::new();
    for round in 1..=2 {
        let files = drumlin_writes(dir, &mut model, &mut rng)?;
        let read = rocksdb_compares(dir, &model)?;
        lines.push(format!(
            "round {round}: Drumlin wrote {files} blob files, RocksDB 11.8.1 read {read} keys the same"
        ));
        let files = rocksdb_writes(dir, &mut model, &mut rng)?;
        let read = drumlin_compares(dir, &model)?;
        lines.push(format!(
            "round {round}: RocksDB 11.8.1 wrote {files} blob files, Drumlin read {read} keys the same"
        ));
    }
    lines.push("all equal\n".to_owned());
    Ok(lines.join("\n"))
}

/// The next change: a deletion, or a value of a size below or above the threshold.
fn change(rng: &mut Rng) -> (Vec<u8>, Option<Vec<u8>>) {
    let key = format!("key{:06}", rng.below(KEYS)).into_bytes();
    if rng.one_in(10) {
        return (key, None);
    }
    let len = match rng.below(4) {
        0 => rng.below(200),
        1 => BLOB_BYTES_MIN - 2 + rng.below(4),
        _ => BLOB_BYTES_MIN + rng.below(20_000),
    };
    let mut value = vec![0; len as usize];
    rng.fill(&mut value);
    if rng.one_in(2) {
        // Half of them can be compressed.
        value
            .iter_mut()
            .skip(1)
            .step_by(2)
            .for_each(|it| *it = b'a');
    }
    (key, Some(value))
}

fn note(model: &mut Model, key: Vec<u8>, value: Option<Vec<u8>>) {
    match value {
        Some(value) => model.insert(key, value),
        None => model.remove(&key),
    };
}

fn drumlin_options() -> drumlin::Options {
    drumlin::Options {
        compression: drumlin::Compression::new(drumlin::Codec::Lz4),
        tuning: drumlin::Tuning {
            write_buffer_bytes: Some(4 << 20),
            // Blob files of four times that, so that there are many to collect.
            target_file_bytes: 256 << 10,
            level_base_bytes: Some(2 << 20),
            ..drumlin::Tuning::default()
        },
        ..drumlin::Options::default()
    }
}

fn drumlin_blob_files(db: &drumlin::Db) -> Result<u64> {
    let text = db.property(db.default_family(), "rocksdb.num-blob-files");
    let files = text.and_then(|text| text.parse().ok()).unwrap_or(0);
    some_files(files, "Drumlin")
}

fn some_files(files: u64, who: &str) -> Result<u64> {
    match files {
        0 => Err(Error::corruption(format!("{who} has no blob files"))),
        files => Ok(files),
    }
}

fn drumlin_writes(dir: &Path, model: &mut Model, rng: &mut Rng) -> Result<u64> {
    let db = drumlin::Db::open(dir, drumlin_options())?;
    for _ in 0..CHANGES {
        let (key, value) = change(rng);
        match &value {
            Some(value) => db.put(&key, value)?,
            None => db.delete(&key)?,
        }
        note(model, key, value);
    }
    db.flush()?;
    db.compact_range(db.default_family(), None, None)?;
    db.wait_for_background()?;
    let tickers = db.statistics().tickers();
    let moved = tickers
        .iter()
        .find(|(name, _)| *name == "rocksdb.blobdb.gc.num.keys.relocated");
    if moved.is_none_or(|(_, count)| *count == 0) {
        return Err(Error::corruption("Drumlin collected nothing"));
    }
    let files = drumlin_blob_files(&db)?;
    db.close()?;
    Ok(files)
}

fn drumlin_compares(dir: &Path, model: &Model) -> Result<usize> {
    let db = drumlin::Db::open(dir, drumlin_options())?;
    drumlin_blob_files(&db)?;
    db.verify()?;
    let mut cursor = db.iter(drumlin::ReadOptions::default());
    cursor.seek_to_first();
    for (key, value) in model {
        let same = cursor.valid() && cursor.key() == key && cursor.try_value()? == &value[..];
        let got = db.get(key)?;
        if !same || got.as_deref() != Some(&value[..]) {
            return Err(differs("Drumlin", key));
        }
        cursor.next();
    }
    cursor.status()?;
    if cursor.valid() {
        return Err(differs("Drumlin", cursor.key()));
    }
    drop(cursor);
    db.close()?;
    Ok(model.len())
}

fn differs(who: &str, key: &[u8]) -> Error {
    let key = String::from_utf8_lossy(key);
    Error::corruption(format!("{who} reads something else at {key}"))
}

fn rocksdb_options() -> Options {
    let mut options = Options::default();
    options.set_write_buffer_size(4 << 20);
    options.set_target_file_size_base(256 << 10);
    options.set_enable_blob_files(true);
    options.set_min_blob_size(BLOB_BYTES_MIN);
    options.set_blob_file_size(1 << 20);
    options.set_blob_compression_type(DBCompressionType::Zstd);
    options.set_enable_blob_gc(true);
    options.set_blob_gc_age_cutoff(0.5);
    options.set_blob_gc_force_threshold(0.3);
    options
}

fn rocksdb_blob_files(db: &DB) -> Result<u64> {
    let files = db.property_int_value("rocksdb.num-blob-files");
    some_files(files.map_err(broken)?.unwrap_or(0), "RocksDB")
}

fn rocksdb_writes(dir: &Path, model: &mut Model, rng: &mut Rng) -> Result<u64> {
    let db = DB::open(&rocksdb_options(), dir).map_err(broken)?;
    for _ in 0..CHANGES {
        let (key, value) = change(rng);
        match &value {
            Some(value) => db.put(&key, value).map_err(broken)?,
            None => db.delete(&key).map_err(broken)?,
        }
        note(model, key, value);
    }
    db.flush().map_err(broken)?;
    let mut compact = CompactOptions::default();
    compact.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
    db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &compact);
    rocksdb_blob_files(&db)
}

fn rocksdb_compares(dir: &Path, model: &Model) -> Result<usize> {
    let db = DB::open(&rocksdb_options(), dir).map_err(broken)?;
    rocksdb_blob_files(&db)?;
    let mut rows = db.iterator(IteratorMode::Start);
    for (key, value) in model {
        let row = rows.next().transpose().map_err(broken)?;
        let same = row.is_some_and(|(k, v)| *k == key[..] && *v == value[..]);
        let got = db.get(key).map_err(broken)?;
        if !same || got.as_ref() != Some(value) {
            return Err(differs("RocksDB", key));
        }
    }
    match rows.next().transpose().map_err(broken)? {
        Some((key, _)) => Err(differs("RocksDB", &key)),
        None => Ok(model.len()),
    }
}
