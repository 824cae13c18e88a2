//! Goal: no reader ever meets an entry twice, in a memtable and in the table flushed from it.
//! Method: a key holds one merge operand; one thread reads it while another flushes it again and
//! again. An operand met twice shows in the value's length.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin::{Db, Env, FamilyOptions, MergeOperator, Options, Result, WriteOptions};
use drumlin_fs::StrictMemFileSystem;

struct Append;

impl MergeOperator for Append {
    fn name(&self) -> &str {
        "test.Append"
    }

    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        let before = existing.into_iter().chain(operands.iter().copied());
        Ok(before.flatten().copied().collect())
    }
}

fn open() -> Db {
    let options = Options {
        memory_budget: Some(4 << 20),
        background_threads: Some(1),
        family: FamilyOptions {
            merge_operator: Some(Arc::new(Append)),
            ..FamilyOptions::default()
        },
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        ..Options::default()
    };
    Db::open(Path::new("/db"), options).expect("memory does not fail")
}

#[test]
fn a_flush_never_shows_an_operand_twice() {
    let db = open();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let value = db.get(b"key").unwrap();
                assert!(value.is_none_or(|value| value.len() <= 1));
                let mut iter = db.iter(drumlin::ReadOptions::default());
                iter.seek(b"key");
                assert!(!iter.valid() || iter.value().len() <= 1);
            }
        });
        for _ in 0..3000 {
            let family = db.default_family();
            // Flushed apart, or the deletion would end each search before the table's operand.
            db.delete(b"key").unwrap();
            db.flush().unwrap();
            let options = WriteOptions::default();
            db.merge_cf(family, b"key", b"x", &options).unwrap();
            db.flush().unwrap();
        }
        done.store(true, Ordering::Release);
    });
}
