//! Goal: searchable tables hold the values that their model makes small, and every core codes them.
//! Method: files are counted in a directory, threads by a spawner that knows their names.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use drumlin::{Db, Options, TableFormat, Tuning};
use drumlin_base::Result;
use drumlin_base::rng::Rng;
use drumlin_fs::{Env, JoinHandle, Spawner, ThreadSpawner};
use drumlin_testkit::memory_dir;

use crate::common::{compact, key, options};

/// About `bytes` of words.
fn prose(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    let words = ["carefully ", "final ", "deposits ", "sleep ", "among "];
    let mut text = Vec::new();
    while text.len() < bytes {
        text.extend_from_slice(words[rng.below(5) as usize].as_bytes());
    }
    text
}

fn blob_files(dir: &std::path::Path) -> usize {
    let names = std::fs::read_dir(dir).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name());
    names
        .filter(|name| name.to_string_lossy().ends_with(".blob"))
        .count()
}

#[test]
fn a_model_serves_values_of_up_to_64_kib() {
    let dir = memory_dir();
    let mut options = options(Some(TableFormat::Searchable));
    options.tuning.blob_from_bytes = None;
    let db = Db::open(dir.path(), options).unwrap();
    let mut rng = Rng::new(1);
    for number in 0..40 {
        let bytes = 3000 + 1500 * number as usize;
        db.put(key(number), prose(&mut rng, bytes)).unwrap();
    }
    compact(&db);
    assert_eq!(blob_files(dir.path()), 0, "3,000 to 61,500 bytes");
    db.put(key(50), prose(&mut rng, 64 << 10)).unwrap();
    compact(&db);
    assert_eq!(blob_files(dir.path()), 1);
    let report = db.verify().unwrap();
    assert!(report.damaged.is_empty(), "{:?}", report.damaged);
    db.close().unwrap();
}

/// Counts threads that parts of compactions get.
#[derive(Debug, Default)]
struct Counting(Arc<AtomicUsize>);

impl Spawner for Counting {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
        if name == "drumlin-compact" {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        ThreadSpawner.spawn(name, body)
    }
}

#[test]
fn rows_that_a_small_table_holds_are_coded_by_every_core() {
    let dir = memory_dir();
    let threads = Arc::new(AtomicUsize::new(0));
    let format = options(Some(TableFormat::Searchable));
    let options = Options {
        background_threads: Some(2),
        tuning: Tuning {
            target_file_bytes: 256 << 10,
            ..Tuning::default()
        },
        env: Env {
            spawner: Arc::new(Counting(Arc::clone(&threads))),
            ..Env::system()
        },
        ..format
    };
    let db = Db::open(dir.path(), options).unwrap();
    let mut rng = Rng::new(2);
    for number in 0..3000 {
        db.put(key(number), prose(&mut rng, 400)).unwrap();
    }
    db.recode(db.default_family()).unwrap();
    let before = threads.swap(0, Ordering::Relaxed);
    db.recode(db.default_family()).unwrap();
    let parts = threads.load(Ordering::Relaxed);
    assert!(parts > 0, "1.2 MB of rows: {before} at first, then {parts}");
    db.wait_for_background().unwrap();
    db.close().unwrap();
}
