//! Goal: a moment that was marked is there after a power cut and reads as it did, whatever is written and compacted before and
//! after; one whose marking was cut is there or not. Method: a stop, or an error, at every operation of a script of writes, marks,
//! flushes and compactions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drumlin::{Db, KeepHistory, Options, ReadOptions, WriteOptions};
use drumlin_fs::{
    Clock, CrashPolicy, Fault, FaultFileSystem, FaultRule, FileSystem, ManualClock,
    StrictMemFileSystem,
};

use crate::support::{DIR, Rows, options};

fn keeping(files: Arc<dyn FileSystem>, clock: &Arc<ManualClock>) -> Options {
    let mut options = options(files);
    options.env.clock = Arc::clone(clock) as Arc<dyn Clock>;
    options.keep_history = Some(KeepHistory {
        age: Duration::from_secs(60),
        every: Duration::from_secs(10),
    });
    options
}

fn rows_at(db: &Db, time: u64) -> Rows {
    let reading = ReadOptions {
        snapshot: Some(db.snapshot_at(time).unwrap()),
        ..ReadOptions::default()
    };
    let mut entries = db.iter_cf(db.default_family(), reading);
    let mut rows = Rows::new();
    entries.seek_to_first();
    while entries.valid() {
        rows.insert(entries.key().to_vec(), entries.value().to_vec());
        entries.next();
    }
    entries.status().unwrap();
    rows
}

/// What was there at each time at which a moment was asked for, and those of them that were told to be marked.
#[derive(Default)]
struct Told {
    rows: Rows,
    past: BTreeMap<u64, Rows>,
    marked: Vec<u64>,
}

/// Overwrites and deletes the same keys, and marks a moment after each round. Ends at the first error.
fn script(db: &Db, clock: &ManualClock, told: &mut Told) -> drumlin::Result<()> {
    for round in 0..9 {
        for at in 0..4 {
            let (key, value) = (
                format!("k{at}"),
                format!("round {round} ").repeat(1 + 2 * at),
            );
            match (round + at) % 5 {
                0 => {
                    db.delete(&key)?;
                    told.rows.remove(key.as_bytes());
                }
                _ => {
                    db.put(&key, &value)?;
                    told.rows.insert(key.into_bytes(), value.into_bytes());
                }
            }
        }
        let now = clock.unix_seconds();
        told.past.insert(now, told.rows.clone());
        db.mark_moment()?;
        told.marked.push(now);
        match round {
            2 | 5 => db.flush()?,
            3 | 7 => db.compact_range(db.default_family(), None, None)?,
            _ => {}
        }
        clock.advance(Duration::from_secs(10));
    }
    Ok(())
}

/// Every moment there is reads as it did, and those that were told are there.
fn check(db: &Db, told: &Told, place: &str) {
    let moments = db.past_moments();
    for moment in &moments {
        let time = moment.unix_seconds;
        assert_eq!(rows_at(db, time), told.past[&time], "{place}, at {time}");
    }
    // The last that was asked for may have let go of some, though it was not told.
    let last = told.past.last_key_value().map_or(0, |(time, _)| *time);
    for time in told.marked.iter().filter(|&&time| time + 60 >= last) {
        let is_there = moments.iter().any(|it| it.unix_seconds == *time);
        assert!(is_there, "{place}: the moment {time} is gone");
    }
}

#[test]
fn moments_outlive_power_cuts_and_read_as_they_did() {
    for (index, fault) in (0..).flat_map(|index| [(index, Fault::Stop), (index, Fault::Io)]) {
        let place = format!("{fault:?} at {index}");
        let memory = StrictMemFileSystem::new();
        let files = FaultFileSystem::over_memory(&memory);
        let clock = Arc::new(ManualClock::new(1_800_000_000));
        let db = Db::open(DIR, keeping(Arc::new(files.clone()), &clock)).unwrap();
        files.add_rule(FaultRule::once(index, fault));
        let mut told = Told::default();
        let done = script(&db, &clock, &mut told).is_ok();
        let struck = files.injected() > 0 || files.is_stopped();
        drop(db);
        files.clear_rules();
        for policy in CrashPolicy::ALL {
            let place = format!("{place}, {policy:?}");
            let disk = memory.crash_image(index, policy);
            let db = Db::open(DIR, keeping(Arc::new(disk.clone()), &clock));
            let db = db.unwrap_or_else(|why| panic!("{place}: {why:?}"));
            check(&db, &told, &place);
            // Writes that may have the numbers of those that were lost.
            for key in 0..4 {
                let options = WriteOptions::default();
                let key = format!("k{key}");
                db.put_cf(db.default_family(), key, b"later", &options)
                    .unwrap();
            }
            db.compact_range(db.default_family(), None, None).unwrap();
            check(&db, &told, &format!("{place}, compacted"));
        }
        if !struck {
            assert!(done && index > 40, "{index}");
            break;
        }
    }
}
