//! Goal: the database is read as it was at any time within the retention, over flushes, compactions, families, reopening and readers;
//! what is older is refused by name and let go of. Method: random writes under a clock that is set by hand, a copy of all rows at
//! each moment, compared with every moment that is kept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drumlin::{
    ColumnFamily, Db, DirectoryFormat, Env, ErrorKind, FamilyOptions, FollowOptions, KeepHistory,
    Options, ReadOptions, Snapshot, StringAppend, Tuning, WriteBatch, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::{Clock, ManualClock, StrictMemFileSystem};
use drumlin_testkit::temp_dir;

const DIR: &str = "/db";
const AGE: u64 = 200;
const EVERY: u64 = 10;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(files: &StrictMemFileSystem, clock: &Arc<ManualClock>) -> Options {
    let mut env = Env::system()
        .with_files(Arc::new(files.clone()))
        .with_seed(7);
    env.clock = Arc::clone(clock) as Arc<dyn Clock>;
    Options {
        memory_budget: Some(16 << 20),
        background_threads: Some(0),
        family: FamilyOptions {
            merge_operator: Some(Arc::new(StringAppend::new(","))),
            ..FamilyOptions::default()
        },
        tuning: Tuning {
            write_buffer_bytes: Some(16 << 10),
            target_file_bytes: 8 << 10,
            level_base_bytes: Some(16 << 10),
            level_multiplier: 4,
            blob_from_bytes: Some(300),
            ..Tuning::default()
        },
        env,
        ..Options::default()
    }
}

fn keeping(files: &StrictMemFileSystem, clock: &Arc<ManualClock>) -> Options {
    Options {
        keep_history: Some(KeepHistory {
            age: Duration::from_secs(AGE),
            every: Duration::from_secs(EVERY),
        }),
        ..options(files, clock)
    }
}

fn rows(db: &Db, family: &ColumnFamily, snapshot: Option<Snapshot>) -> Rows {
    let options = ReadOptions {
        snapshot,
        ..ReadOptions::default()
    };
    let mut entries = db.iter_cf(family, options);
    let mut rows = Rows::new();
    entries.seek_to_first();
    while entries.valid() {
        let value = entries.try_value().unwrap().to_vec();
        rows.insert(entries.key().to_vec(), value);
        entries.next();
    }
    entries.status().unwrap();
    rows
}

fn write(db: &Db, family: &ColumnFamily, rng: &mut Rng) {
    for _ in 0..rng.below(40) {
        let mut batch = WriteBatch::new();
        let (id, key) = (family.id(), format!("key{:03}", rng.below(60)));
        match rng.below(12) {
            0 | 1 => batch.delete_cf(id, key.as_bytes()).unwrap(),
            2 | 3 => batch.merge_cf(id, key.as_bytes(), b"operand").unwrap(),
            4 => {
                let end = format!("key{:03}", rng.below(60));
                if key < end {
                    batch
                        .delete_range_cf(id, key.as_bytes(), end.as_bytes())
                        .unwrap();
                }
            }
            5 => {
                let value = format!("large {} ", rng.below(1 << 30)).repeat(60);
                batch.put_cf(id, key.as_bytes(), value.as_bytes()).unwrap();
            }
            _ => {
                let value = format!("value {}", rng.below(1 << 30));
                batch.put_cf(id, key.as_bytes(), value.as_bytes()).unwrap();
            }
        }
        db.write(batch, &WriteOptions::default()).unwrap();
    }
    match rng.below(6) {
        0 => db.flush_cf(family).unwrap(),
        1 => db.compact_range(family, None, None).unwrap(),
        2 => db.recode(family).unwrap(),
        _ => {}
    }
}

/// All rows at each time at which a moment was marked, or would have been if something had been written.
type Past = BTreeMap<u64, [Rows; 2]>;

fn present(db: &Db) -> [Rows; 2] {
    let more = db.column_family("more").unwrap();
    [rows(db, db.default_family(), None), rows(db, &more, None)]
}

/// Every time within the retention is read as it was.
fn check(db: &Db, past: &Past, now: u64, place: &str) {
    let more = db.column_family("more").unwrap();
    let first = *past.keys().next().unwrap();
    for time in now.saturating_sub(AGE).max(first)..=now {
        let (_, told) = past.range(..=time).next_back().unwrap();
        let snapshot = db.snapshot_at(time).unwrap();
        let found = rows(db, db.default_family(), Some(snapshot.clone()));
        assert!(found == told[0], "{place}, at {time} of {now}");
        assert!(
            rows(db, &more, Some(snapshot)) == told[1],
            "{place}, at {time} of {now}"
        );
    }
}

#[test]
fn every_time_within_the_retention_is_read_as_it_was() {
    for seed in 0..8 {
        let files = StrictMemFileSystem::new();
        let clock = Arc::new(ManualClock::new(1_800_000_000));
        let mut rng = Rng::new(seed);
        let mut db = Db::open_all_families(DIR, keeping(&files, &clock)).unwrap();
        db.create_family("more", options(&files, &clock).family)
            .unwrap();
        let mut past = Past::new();
        for step in 0..60 {
            let place = format!("seed {seed}, step {step}");
            let more = db.column_family("more").unwrap();
            if rng.below(8) > 0 {
                write(&db, db.default_family(), &mut rng);
                write(&db, &more, &mut rng);
            }
            db.mark_moment().unwrap();
            let now = clock.unix_seconds();
            past.insert(now, present(&db));
            if step % 10 == 9 {
                check(&db, &past, now, &place);
            }
            if rng.below(10) == 0 {
                drop(more);
                db.close().unwrap();
                // What an opening does not say is as it was.
                db = Db::open_all_families(DIR, options(&files, &clock)).unwrap();
                check(&db, &past, now, &place);
                let reader = Db::open_read_only(DIR, options(&files, &clock)).unwrap();
                check(&reader, &past, now, &place);
            }
            clock.advance(Duration::from_secs(EVERY));
        }
        let kept = db.past_moments();
        assert!(kept.len() as u64 <= AGE / EVERY + 2, "{}", kept.len());
        let error = db.snapshot_at(kept[0].unix_seconds - 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let from = format!("it is kept from {} on", kept[0].unix_seconds);
        assert!(error.to_string().contains(&from), "{error}");
        assert!(db.verify().unwrap().damaged.is_empty());
    }
}

#[test]
fn what_is_older_than_the_retention_takes_no_space() {
    let files = StrictMemFileSystem::new();
    let clock = Arc::new(ManualClock::new(1_800_000_000));
    let db = Db::open(DIR, keeping(&files, &clock)).unwrap();
    let entries = || {
        db.compact_range(db.default_family(), None, None).unwrap();
        db.verify().unwrap().entries
    };
    for step in 0..10 {
        db.put("key", format!("{step}")).unwrap();
        db.mark_moment().unwrap();
        clock.advance(Duration::from_secs(EVERY));
    }
    assert_eq!(entries(), 10);
    clock.advance(Duration::from_secs(AGE));
    db.mark_moment().unwrap();
    // The last moment is what every time since is read at.
    assert_eq!((db.past_moments().len(), entries()), (1, 1));
    assert!(db.snapshot_at(clock.unix_seconds()).is_ok());
}

#[test]
fn history_ends_when_that_is_asked_for_and_begins_anew() {
    let files = StrictMemFileSystem::new();
    let clock = Arc::new(ManualClock::new(1_800_000_000));
    let db = Db::open(DIR, keeping(&files, &clock)).unwrap();
    db.put("key", "1").unwrap();
    db.mark_moment().unwrap();
    let time = clock.unix_seconds();
    db.put("key", "2").unwrap();
    db.close().unwrap();

    let ending = Options {
        keep_history: Some(KeepHistory::default()),
        ..options(&files, &clock)
    };
    let db = Db::open(DIR, ending).unwrap();
    assert!(db.past_moments().is_empty());
    assert_eq!(
        db.snapshot_at(time).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(
        db.mark_moment().unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    db.close().unwrap();

    clock.advance(Duration::from_secs(EVERY));
    let db = Db::open(DIR, keeping(&files, &clock)).unwrap();
    assert!(db.past_moments().is_empty());
    db.mark_moment().unwrap();
    assert_eq!(
        db.snapshot_at(time).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert!(db.snapshot_at(clock.unix_seconds()).is_ok());
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let files = StrictMemFileSystem::new();
    let clock = Arc::new(ManualClock::new(1_800_000_000));
    let mut options = keeping(&files, &clock);
    for (age, every) in [(10, 0), (1000, 1), (1_000_000, 10)] {
        options.keep_history = Some(KeepHistory {
            age: Duration::from_secs(age),
            every: Duration::from_secs(every),
        });
        let error = Db::open(DIR, options.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{age} {every}");
    }
    let mut level = keeping(&files, &clock);
    level.format = DirectoryFormat::LevelDb;
    level.family = FamilyOptions::default();
    let error = Db::open("/level", level).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");

    let db = Db::open(DIR, keeping(&files, &clock)).unwrap();
    db.put("key", "1").unwrap();
    db.mark_moment().unwrap();
    let by_hand = FollowOptions { interval: None };
    let follower = Db::open_follower(DIR, self::options(&files, &clock), by_hand).unwrap();
    let error = follower.db().snapshot_at(u64::MAX).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
    let reader = Db::open_read_only(DIR, self::options(&files, &clock)).unwrap();
    assert_eq!(
        reader.mark_moment().unwrap_err().kind(),
        ErrorKind::ReadOnly
    );
}

#[test]
fn a_thread_marks_moments_and_ends_with_the_store() {
    let dir = temp_dir();
    let options = Options {
        keep_history: Some(KeepHistory {
            age: Duration::from_secs(600),
            every: Duration::from_secs(1),
        }),
        ..Options::default()
    };
    let db = Db::open(dir.path(), options).unwrap();
    let mut number = 0;
    while db.past_moments().len() < 3 {
        number += 1;
        db.put("key", number.to_string()).unwrap();
    }
    let moments = db.past_moments();
    let at = |time| {
        let snapshot = db.snapshot_at(time).unwrap();
        let found = rows(&db, db.default_family(), Some(snapshot));
        let value = found
            .get(&b"key"[..])
            .map(|it| String::from_utf8_lossy(it).into_owned());
        value.map_or(0, |it| it.parse::<u64>().unwrap())
    };
    assert!(at(moments[1].unix_seconds) < at(moments[2].unix_seconds));
    db.close().unwrap();
}
