//! Goal: a walk within a prefix asks the tables' prefix filters and still finds everything. Method:
//! real files; blocks are forbidden to be read (`cache_only`) where the filter alone must answer.

use std::sync::Arc;

use drumlin::{Db, FamilyOptions, FixedPrefix, Options, ReadOptions, Tuning};
use drumlin_testkit::temp_dir;

const PREFIXES: u32 = 400;

fn options() -> Options {
    Options {
        family: FamilyOptions {
            prefix_extractor: Some(Arc::new(FixedPrefix::new(8))),
            ..FamilyOptions::default()
        },
        tuning: Tuning {
            target_file_bytes: 32 << 10,
            filter_bits: 20.0,
            ..Tuning::default()
        },
        ..Options::default()
    }
}

/// Even prefixes hold ten keys each, odd ones none.
fn fill(db: &Db) {
    for prefix in (0..PREFIXES).step_by(2) {
        for row in 0..10 {
            db.put(format!("{prefix:08}{row:02}"), format!("{prefix} {row}"))
                .expect("the write is sound");
        }
    }
    db.flush().expect("the flush is sound");
    db.compact_range(db.default_family(), None, None)
        .expect("the compaction is sound");
    // A second layer over part of it.
    for prefix in (0..PREFIXES).step_by(10) {
        db.put(format!("{prefix:08}03"), "newer")
            .expect("the put is sound");
        db.delete(format!("{prefix:08}04"))
            .expect("the delete is sound");
    }
    db.flush().expect("the flush is sound");
}

#[test]
fn a_prefix_walk_finds_its_rows_and_reads_nothing_for_absent_prefixes() {
    let dir = temp_dir();
    fill(&Db::open(dir.path(), options()).unwrap());
    let db = Db::open(dir.path(), options()).unwrap();
    let within = ReadOptions {
        prefix_same_as_start: true,
        ..ReadOptions::default()
    };
    let mut absent = db.iter(ReadOptions {
        cache_only: true,
        ..within.clone()
    });
    let mut answered = 0;
    for prefix in (1..PREFIXES).step_by(2) {
        absent.seek(format!("{prefix:08}").as_bytes());
        assert!(!absent.valid(), "{prefix}");
        answered += u32::from(absent.status().is_ok());
    }
    assert!(
        answered > PREFIXES / 2 - 5,
        "the filters answered only {answered} seeks"
    );
    let mut walk = db.iter(within);
    for prefix in (0..PREFIXES).step_by(2) {
        walk.seek(format!("{prefix:08}").as_bytes());
        let mut rows = 0;
        while walk.valid() {
            assert!(walk.key().starts_with(format!("{prefix:08}").as_bytes()));
            rows += 1;
            walk.next();
        }
        walk.status().unwrap();
        assert_eq!(rows, if prefix % 10 == 0 { 9 } else { 10 }, "{prefix}");
    }
}
