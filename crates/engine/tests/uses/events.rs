//! Goal: a listener is told which tables and memtables its events are of, beginnings before ends, and may ask the store by a weak
//! handle. Method: a listener that notes what it hears, beside what the store says of itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use drumlin::{
    CompactionInfo, CompactionReason, Db, Env, EventListener, FamilyOptions, FlushInfo, IngestInfo,
    MemtableInfo, Options, PressureInfo, SstFileWriter, TableOfJob, TableWriterOptions, Tuning,
    WeakDb, WriteOptions, WritePressure,
};
use drumlin_fs::StrictMemFileSystem;

#[derive(Default)]
struct Heard {
    db: OnceLock<WeakDb>,
    lines: Mutex<Vec<String>>,
    /// The tables that there are, as the events tell.
    tables: Mutex<Vec<u64>>,
    /// The job that began last.
    job: AtomicU64,
}

impl Heard {
    fn note(&self, line: String) {
        let db = self.db.get().and_then(WeakDb::upgrade);
        let rows = db.map_or(0, |db| {
            usize::from(db.get("a").is_ok_and(|value| value.is_some()))
        });
        let mut lines = self
            .lines
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        lines.push(format!("{line}, {rows} rows"));
    }

    fn change(&self, gone: &[(usize, u64)], new: &[(usize, u64)]) {
        let mut tables = self
            .tables
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        tables.retain(|table| gone.iter().all(|(_, number)| number != table));
        tables.extend(new.iter().map(|(_, number)| *number));
        tables.sort_unstable();
    }
}

impl EventListener for Heard {
    fn memtable_sealed(&self, info: &MemtableInfo) {
        self.note(format!(
            "sealed {} with {} and {}",
            info.family, info.entries, info.deletions
        ));
    }

    fn flush_begun(&self, info: &FlushInfo) {
        assert!(info.table.is_none() && info.properties.is_none());
        self.job.store(info.job, Ordering::Relaxed);
        self.note(format!("flush of {}", info.family));
    }

    fn flushed(&self, info: &FlushInfo) {
        self.change(&[], &[(0, info.table.unwrap_or(0))]);
        assert_eq!(info.job, self.job.load(Ordering::Relaxed));
        let properties = info.properties.as_ref().expect("there is a table");
        assert_eq!((properties.num_entries, properties.num_deletions), (2, 1));
        self.note(format!("flushed {} with {:?}", info.family, info.seqnos));
    }

    fn ingested(&self, info: &IngestInfo) {
        self.change(&[], &[(0, info.table)]);
        self.note(format!(
            "ingested {} at {}",
            info.path.display(),
            info.seqno
        ));
    }

    fn compaction_begun(&self, info: &CompactionInfo) {
        assert!(info.output_tables.is_empty() && info.inputs == info.input_tables.len());
        assert!(info.properties.is_empty() && info.output_keys.is_none());
        self.job.store(info.job, Ordering::Relaxed);
        self.note("compaction".to_owned());
    }

    fn compacted(&self, info: &CompactionInfo) {
        assert_eq!(info.outputs, info.output_tables.len());
        assert_eq!(info.job, self.job.load(Ordering::Relaxed));
        assert_eq!(info.reason, CompactionReason::Manual);
        // Two flushed tables of two entries and one taken in of one; "a" and "c" are left.
        let entries = |of: &[TableOfJob]| -> u64 {
            let is_of = |number| of.iter().any(|it| it.number == number);
            let of = info.properties.iter().filter(|(number, _)| is_of(*number));
            of.map(|(_, properties)| properties.num_entries).sum()
        };
        assert_eq!(
            (entries(&info.input_tables), entries(&info.output_tables)),
            (5, 2)
        );
        assert_eq!(info.output_keys, Some((b"a".to_vec(), b"c".to_vec())));
        assert!(info.takes_all && info.blob_files.is_empty() && info.blob_garbage.is_empty());
        let [before, after] = [&info.input_tables, &info.output_tables].map(|of| {
            of.iter()
                .map(|it| (it.level, it.number))
                .collect::<Vec<_>>()
        });
        self.change(&before, &after);
        // What was wrong above would have ended this, and only this: who tells goes on.
        self.note("compacted".to_owned());
    }
}

#[test]
fn events_tell_of_their_tables_in_order() {
    let heard = Arc::new(Heard::default());
    let env = Env::system().with_files(Arc::new(StrictMemFileSystem::new()));
    let options = Options {
        background_threads: Some(0),
        listener: Some(Arc::clone(&heard) as _),
        env: env.clone(),
        ..Options::default()
    };
    let db = Db::open("/db", options).expect("memory does not fail");
    assert!(heard.db.set(db.downgrade()).is_ok());
    let family = db.default_family().clone();
    for _ in 0..2 {
        db.put("a", "1").expect("memory does not fail");
        db.delete("b").expect("memory does not fail");
        db.flush().expect("memory does not fail");
    }
    let table = TableWriterOptions::default();
    let mut writer = SstFileWriter::create(&env, "/t.sst".as_ref(), table).expect("there is room");
    writer.put(b"c", b"3").expect("there is room");
    writer.finish().expect("there is room");
    db.ingest(&family, &["/t.sst".into()], false)
        .expect("a sound table");
    assert_eq!(db.latest_seqno(), 5);
    let lines = heard.lines.lock().expect("nobody panics").clone();
    let wanted = [
        "sealed default with 2 and 1, 1 rows",
        "flush of default, 1 rows",
        "flushed default with (1, 2), 1 rows",
        "sealed default with 2 and 1, 1 rows",
        "flush of default, 1 rows",
        "flushed default with (3, 4), 1 rows",
        "ingested /t.sst at 5, 1 rows",
    ];
    assert_eq!(lines, wanted);
    db.compact_range(&family, None, None)
        .expect("memory does not fail");
    let lines = heard.lines.lock().expect("nobody panics").clone();
    assert_eq!(lines[7..], ["compaction, 1 rows", "compacted, 1 rows"]);
    let live = db.live_tables(&family).expect("memory does not fail");
    let mut live: Vec<u64> = live.iter().map(|table| table.number).collect();
    live.sort_unstable();
    assert_eq!(*heard.tables.lock().expect("nobody panics"), live);
    let weak = db.downgrade();
    drop(family);
    db.close().expect("memory does not fail");
    assert!(weak.upgrade().is_none());
}

/// What it hears of how writers are held back.
#[derive(Default)]
struct Held(Mutex<Vec<(String, WritePressure, WritePressure)>>);

impl EventListener for Held {
    fn pressure_changed(&self, info: &PressureInfo) {
        let change = (info.family.clone(), info.from, info.to);
        self.0.lock().expect("nobody panics").push(change);
    }
}

#[test]
fn of_slowed_writers_the_family_is_told_that_they_are_slowed_for() {
    let held = Arc::new(Held::default());
    let options = Options {
        background_threads: Some(2),
        listener: Some(Arc::clone(&held) as _),
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        tuning: Tuning {
            write_buffer_bytes: Some(64 << 10),
            memtables_max: 4,
            ..Tuning::default()
        },
        ..Options::default()
    };
    let db = Db::open("/db", options).expect("memory does not fail");
    let full = db.create_family("full", FamilyOptions::default());
    let full = full.expect("memory does not fail");
    // Nothing is flushed, and the line of memtables is full to three quarters.
    db.pause_background().expect("it is open");
    for key in 0..200 {
        let value = [key; 1000];
        db.put_cf(&full, [key], value, &WriteOptions::default())
            .expect("memory does not fail");
    }
    let slowed = (
        "full".to_owned(),
        WritePressure::None,
        WritePressure::Delayed,
    );
    let first = held.0.lock().expect("nobody panics").first().cloned();
    assert_eq!(first.as_ref(), Some(&slowed));
    db.continue_background().expect("it was paused");
    db.flush_cf(&full).expect("memory does not fail");
    db.put("of another", "1").expect("memory does not fail");
    db.flush().expect("memory does not fail");
    let (family, slower, faster) = slowed.clone();
    let freed = (family, faster, slower);
    // It may have been so more than once, but one follows from the other.
    let told = held.0.lock().expect("nobody panics").clone();
    let pairs = [slowed, freed].into_iter().cycle().take(told.len());
    assert_eq!(told, pairs.collect::<Vec<_>>());
    assert!(told.len().is_multiple_of(2), "{told:?}");
}
