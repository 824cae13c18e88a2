//! Goal: what [`Db::changes`] promises, promise by promise: every kind of change in order, kept as long as asked for and
//! while a reader needs it, and a clear error where something cannot be told. Method: small databases in memory, step by
//! step; `faults` has the random histories and the crashes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use drumlin::{
    ChangeBatch, ChangeEntry, Changes, ChangesOptions, Db, DirectoryFormat, Env, ErrorKind,
    KeepChanges, Options, WriteBatch, WriteOptions,
};
use drumlin_fs::{
    CreateOptions, FileKind, FileSystem, ManualClock, StrictMemFileSystem, ThreadSpawner,
};

#[path = "../faults/copy.rs"]
mod copy;

use copy::{Copy, family_options};

const DIR: &str = "/db";
const NOW: u64 = 1_700_000_000;

struct Bench {
    files: StrictMemFileSystem,
    clock: Arc<ManualClock>,
}

impl Bench {
    fn new() -> Self {
        Self {
            files: StrictMemFileSystem::new(),
            clock: Arc::new(ManualClock::new(NOW)),
        }
    }

    fn options(&self) -> Options {
        Options {
            env: Env {
                files: Arc::new(self.files.clone()),
                clock: Arc::clone(&self.clock) as Arc<_>,
                spawner: Arc::new(ThreadSpawner),
                seed: 1,
            },
            background_threads: Some(0),
            memory_budget: Some(8 << 20),
            family: family_options(),
            ..Options::default()
        }
    }

    fn open(&self, keep: Option<KeepChanges>) -> Db {
        let mut options = self.options();
        options.keep_changes = keep;
        Db::open_all_families(DIR, options).unwrap()
    }

    /// The WAL files in the archive.
    fn archived(&self) -> Vec<PathBuf> {
        let dir = Path::new(DIR).join("archive");
        let mut names = self.files.list(&dir).unwrap();
        names.sort();
        names.into_iter().map(|name| dir.join(name)).collect()
    }
}

fn for_a_day() -> Option<KeepChanges> {
    Some(KeepChanges {
        age: Some(Duration::from_secs(86_400)),
        bytes: None,
    })
}

fn text(batch: &ChangeBatch) -> String {
    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let entries = batch.entries().map(|entry| match entry.unwrap() {
        ChangeEntry::Put { family, key, value } => {
            format!("{family} {}={}", show(key), show(value))
        }
        ChangeEntry::Merge {
            family,
            key,
            operand,
        } => format!("{family} {}+{}", show(key), show(operand)),
        ChangeEntry::Delete { family, key } => format!("{family} -{}", show(key)),
        ChangeEntry::SingleDelete { family, key } => format!("{family} ~{}", show(key)),
        ChangeEntry::DeleteRange { family, begin, end } => {
            format!("{family} -{}..{}", show(begin), show(end))
        }
        ChangeEntry::LogData(data) => format!("log {}", show(data)),
        ChangeEntry::FamilyCreated {
            family,
            name,
            order,
        } => format!("create {family} {name} {order}"),
        ChangeEntry::FamilyDropped { family } => format!("drop {family}"),
        ChangeEntry::Ingested { family, tables } => format!("ingest {family} {}", tables.len()),
        other => panic!("{other:?} is not in these tests"),
    });
    let entries: Vec<_> = entries.collect();
    format!(
        "{}-{} {}",
        batch.seqno(),
        batch.last_seqno(),
        entries.join(", ")
    )
}

fn texts(changes: Changes) -> Vec<String> {
    changes.map(|batch| text(&batch.unwrap())).collect()
}

#[test]
fn every_kind_of_change_is_told_in_order() {
    let bench = Bench::new();
    let db = bench.open(for_a_day());
    let more = db.create_family("more", family_options()).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"a", b"1").unwrap();
    batch.put_log_data(b"why").unwrap();
    batch.merge_cf(more.id(), b"b", b"2").unwrap();
    batch.delete(b"c").unwrap();
    batch.single_delete_cf(more.id(), b"d").unwrap();
    batch.delete_range(b"e", b"f").unwrap();
    db.write(batch, &WriteOptions::synced()).unwrap();
    let mut log_alone = WriteBatch::new();
    log_alone.put_log_data(b"alone").unwrap();
    db.write(log_alone, &WriteOptions::default()).unwrap();
    db.put("g", "3").unwrap();
    db.drop_family(&more).unwrap();
    let expected = [
        "1-1 create 1 more leveldb.BytewiseComparator",
        "2-6 0 a=1, log why, 1 b+2, 0 -c, 1 ~d, 0 -e..f",
        "7-7 log alone, 0 g=3",
        "8-8 drop 1",
    ];
    assert_eq!(texts(db.changes(0).unwrap()), expected);
    assert_eq!(texts(db.changes(7).unwrap()), expected[2..]);
    assert_eq!(
        texts(db.changes(4).unwrap()),
        expected[1..],
        "it is told whole"
    );
    db.flush().unwrap();
    db.close().unwrap();
    // The setting is in the OPTIONS file.
    let db = bench.open(None);
    assert_eq!(texts(db.changes(1).unwrap()), expected);
    let changes = db.changes(9).unwrap();
    assert_eq!(changes.position(), 9);
    assert!(texts(changes).is_empty());
}

#[test]
fn a_reader_goes_on_where_it_stood_while_files_are_flushed_and_moved() {
    let bench = Bench::new();
    let db = bench.open(for_a_day());
    let mut changes = db.changes(1).unwrap();
    assert!(changes.next().is_none());
    for round in 1..50u64 {
        db.put("key", round.to_string()).unwrap();
        if round % 3 == 0 {
            db.flush().unwrap();
        }
        if round % 5 == 0 {
            continue; // Two at a time.
        }
        for batch in changes.by_ref() {
            let batch = batch.unwrap();
            assert_eq!(text(&batch), format!("{0}-{0} 0 key={0}", batch.seqno()));
        }
        assert_eq!(changes.position(), round + 1);
    }
    assert!(bench.archived().len() > 10);
}

#[test]
fn changes_go_by_their_size_and_a_position_before_is_an_error() {
    let bench = Bench::new();
    let keep = KeepChanges {
        age: None,
        bytes: Some(1 << 20),
    };
    let db = bench.open(Some(keep));
    let value = "v".repeat(100_000);
    let fill = |rounds: u32| {
        for _ in 0..rounds {
            db.put("key", &value).unwrap();
            db.flush().unwrap();
        }
    };
    fill(5);
    let mut pinned = db.changes(1).unwrap();
    fill(20);
    assert!(bench.archived().len() >= 25, "a reader keeps them");
    assert!(pinned.by_ref().all(|batch| batch.is_ok()));
    assert_eq!(pinned.position(), 26);
    fill(1);
    let archived = bench.archived().len();
    assert!((8..=10).contains(&archived), "{archived} are kept");
    let oldest = db.oldest_change().unwrap();
    assert!((16..=19).contains(&oldest), "{oldest}");
    let error = db.changes(oldest - 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let first = format!("those from {oldest} on are there");
    assert!(error.to_string().contains(&first), "{error}");
    assert_eq!(texts(db.changes(oldest).unwrap()).len() as u64, 27 - oldest);
    // RocksDB's way begins at the first.
    let rocks = db.changes_in_wal(3, ChangesOptions::default()).unwrap();
    assert_eq!(rocks.position(), oldest);
}

#[test]
fn changes_are_kept_as_long_as_asked_for() {
    let bench = Bench::new();
    let db = bench.open(for_a_day());
    let hour = Duration::from_secs(3600);
    for _ in 0..40 {
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        bench.clock.advance(hour);
    }
    let oldest = db.oldest_change().unwrap();
    let age = 40 - oldest;
    assert!((23..=26).contains(&age), "the oldest is {age} hours old");
    drop(db);
    // What is too old by then goes at an open, too.
    bench.clock.advance(hour * 100);
    let db = bench.open(for_a_day());
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    // The last one may have been written to until the open.
    assert_eq!(db.oldest_change().unwrap(), 40);
}

#[test]
fn writes_without_the_wal_are_a_gap_that_is_told() {
    let bench = Bench::new();
    let db = bench.open(for_a_day());
    db.put("a", "1").unwrap();
    let without = WriteOptions {
        no_wal: true,
        ..WriteOptions::default()
    };
    db.put_cf(db.default_family(), "b", "2", &without).unwrap();
    let mut changes = db.changes(1).unwrap();
    assert_eq!(text(&changes.next().unwrap().unwrap()), "1-1 0 a=1");
    assert!(changes.next().is_none());
    for flushes in [false, true] {
        if flushes {
            db.flush().unwrap();
        }
        db.put("c", "3").unwrap();
        let error = changes.next().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(
            error.to_string().contains("changes 2 to 2 are in no WAL"),
            "{error}"
        );
        changes = db.changes(1).unwrap();
        changes.next().unwrap().unwrap();
    }
    assert_eq!(texts(db.changes(3).unwrap()), ["3-3 0 c=3", "4-4 0 c=3"]);
}

#[test]
fn only_what_is_synced_is_told_to_those_who_ask_for_that() {
    let bench = Bench::new();
    let db = bench.open(for_a_day());
    let synced_only = ChangesOptions { synced_only: true };
    let mut changes = db.changes_with(1, synced_only).unwrap();
    db.put("a", "1").unwrap();
    assert!(changes.next().is_none());
    assert_eq!(texts(db.changes(1).unwrap()).len(), 1);
    db.sync_wal().unwrap();
    assert_eq!(text(&changes.next().unwrap().unwrap()), "1-1 0 a=1");
    db.put("a", "2").unwrap();
    let synced = WriteOptions::synced();
    db.put_cf(db.default_family(), "b", "3", &synced).unwrap();
    let told: Vec<_> = changes.by_ref().map(|it| text(&it.unwrap())).collect();
    assert_eq!(told, ["2-2 0 a=2", "3-3 0 b=3"]);
}

#[test]
fn a_reader_waits_for_a_writer_and_ends_with_the_database() {
    let dir = drumlin_testkit::temp_dir();
    let options = Options {
        keep_changes: for_a_day(),
        ..Options::default()
    };
    let db = Db::open(dir.path(), options).unwrap();
    let mut changes = db.changes(1).unwrap();
    let nothing = changes.next_within(Duration::from_millis(1)).unwrap();
    assert!(nothing.is_none());
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let long = Duration::from_secs(600);
            let first = changes.next_within(long).unwrap().unwrap();
            assert_eq!(text(&first), "1-1 0 a=1");
            changes.next_within(long).unwrap_err()
        });
        db.put("a", "1").unwrap();
        while db.oldest_change().unwrap() > 1 {
            std::thread::yield_now();
        }
        db.clone().close().unwrap();
        let error = reader.join().unwrap();
        assert_eq!(error.kind(), ErrorKind::Shutdown);
    });
}

#[test]
fn damage_in_the_archive_is_an_error_with_file_and_offset() {
    let bench = Bench::new();
    let db = bench.open(for_a_day());
    for round in 0..20 {
        db.put(format!("key {round}"), "value").unwrap();
    }
    db.flush().unwrap();
    for round in 0..20 {
        db.put(format!("key {round}"), "value").unwrap();
    }
    db.close().unwrap();
    let path = bench.archived().remove(0);
    let bytes = bench.files.read_file(&path, 1 << 20).unwrap();
    let mut told = 0;
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        damaged[(at + 1) % bytes.len()] ^= 0x81;
        rewrite(&bench.files, &path, &damaged);
        let db = bench.open(for_a_day());
        let mut changes = match db.changes(1) {
            Ok(changes) => changes,
            // The first record is not there, so nothing reaches back to it.
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::NotFound), "{at}: {error}");
                told += 1;
                continue;
            }
        };
        let mut position = 1;
        let error = loop {
            match changes.next() {
                Some(Ok(batch)) => {
                    assert_eq!(batch.seqno(), position, "{at}");
                    position += 1;
                }
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        match error {
            // Past the last record, or in a mark.
            None => assert_eq!(position, 41, "{at}: it changes nothing"),
            Some(error) => {
                assert_eq!(error.file(), Some(&*path), "{at}: {error}");
                assert!(error.offset().is_some(), "{at}: {error}");
                told += 1;
            }
        }
    }
    assert!(told > 50, "{told} of {} harms", bytes.len() / 7);
    rewrite(&bench.files, &path, &bytes);
    let db = bench.open(for_a_day());
    assert_eq!(texts(db.changes(1).unwrap()).len(), 40);
    // A file that is missing is told as well.
    db.flush().unwrap();
    let second = bench.archived().remove(1);
    db.close().unwrap();
    bench.files.remove(&second).unwrap();
    let db = bench.open(for_a_day());
    db.put("a", "1").unwrap();
    let error = db.changes(1).unwrap().find_map(Result::err).unwrap();
    assert!(error.to_string().contains("are in no WAL"), "{error}");
}

fn rewrite(files: &StrictMemFileSystem, path: &Path, bytes: &[u8]) {
    files.remove(path).unwrap();
    let options = CreateOptions::new(FileKind::Other);
    let mut file = files.create(path, options).unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
    file.close().unwrap();
    files.sync_dir(path.parent().unwrap()).unwrap();
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    let bench = Bench::new();
    let db = bench.open(None);
    for error in [db.changes(1).unwrap_err(), db.oldest_change().unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("keep_changes"), "{error}");
    }
    let error = Changes::of_directory(DIR, &bench.options(), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    db.close().unwrap();
    let db = bench.open(for_a_day());
    db.put("a", "1").unwrap();
    assert!(db.changes(2).is_ok());
    let error = db.changes(3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    db.close().unwrap();
    let mut leveldb = Bench::new().options();
    leveldb.keep_changes = for_a_day();
    leveldb.format = DirectoryFormat::LevelDb;
    let error = Db::open(DIR, leveldb).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
}

#[test]
fn without_keeping_a_reader_has_what_is_not_flushed_and_keeps_that() {
    let bench = Bench::new();
    let db = bench.open(None);
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.put("b", "2").unwrap();
    let mut changes = db.changes_in_wal(1, ChangesOptions::default()).unwrap();
    assert_eq!(changes.position(), 2);
    for round in 3..30u64 {
        db.put("c", round.to_string()).unwrap();
        db.flush().unwrap();
    }
    for round in 2..30u64 {
        assert_eq!(changes.next().unwrap().unwrap().seqno(), round);
    }
    assert!(changes.next().is_none());
}

#[test]
fn another_process_reads_the_directory_while_it_is_written() {
    let bench = Bench::new();
    let db = bench.open(for_a_day());
    let other = db.create_family("other", family_options()).unwrap();
    let mut changes = Changes::of_directory(DIR, &bench.options(), 0).unwrap();
    let mut copy = Copy::new();
    for round in 0..60 {
        db.put(format!("key {round}"), "1").unwrap();
        db.put_cf(&other, "sum", "2", &WriteOptions::default())
            .unwrap();
        if round % 7 == 0 {
            db.flush().unwrap();
        }
        for batch in changes.by_ref() {
            copy.apply(&batch.unwrap(), &bench.files).unwrap();
        }
        let mut here = Copy::new();
        here.follow(&db, &bench.files).unwrap();
        here.assert_equals(&db, &format!("round {round}, from the start"));
        copy.assert_equals(&db, &format!("round {round}"));
    }
    let nothing = changes.next_within(Duration::from_millis(50)).unwrap();
    assert!(nothing.is_none());
}

#[test]
fn keeping_ends_when_it_is_ended() {
    let bench = Bench::new();
    let db = bench.open(for_a_day());
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let db = bench.open(Some(KeepChanges::default()));
    db.put("a", "2").unwrap();
    db.flush().unwrap();
    assert!(db.changes(1).is_err());
    db.close().unwrap();
    let db = bench.open(None);
    assert!(db.changes(1).is_err(), "the OPTIONS file says so");
    db.close().unwrap();
    let db = bench.open(for_a_day());
    db.put("a", "3").unwrap();
    // The second was not kept.
    let mut changes = db.changes(1).unwrap();
    assert_eq!(text(&changes.next().unwrap().unwrap()), "1-1 0 a=1");
    let error = changes.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn a_copy_keeps_up_with_several_writers() {
    let dir = drumlin_testkit::temp_dir();
    let mut options = Options {
        keep_changes: for_a_day(),
        family: family_options(),
        ..Options::default()
    };
    options.tuning.write_buffer_bytes = Some(16 << 10);
    let db = Db::open(dir.path(), options.clone()).unwrap();
    let mut copies = [Copy::new(), Copy::new()];
    let rounds = 600;
    std::thread::scope(|scope| {
        for writer in 0..3u64 {
            let db = &db;
            scope.spawn(move || {
                let own = format!("family {writer}");
                let mut family = db.create_family(&own, family_options()).unwrap();
                for round in 0..rounds {
                    let mut batch = WriteBatch::new();
                    let key = format!("key {}", round % 37);
                    batch.put(key.as_bytes(), own.as_bytes()).unwrap();
                    batch.merge_cf(family.id(), key.as_bytes(), b"+").unwrap();
                    let sync = Some(round % 50 == writer);
                    let how = WriteOptions {
                        sync,
                        ..WriteOptions::default()
                    };
                    db.write(batch, &how).unwrap();
                    if round == rounds / 2 {
                        db.drop_family(&family).unwrap();
                        family = db.create_family(&own, family_options()).unwrap();
                    }
                }
            });
        }
        let last = 6 * rounds + 9;
        let [here, elsewhere] = &mut copies;
        let (db, dir, options) = (&db, dir.path(), &options);
        let files = &*options.env.files;
        scope.spawn(move || {
            let mut changes = db.changes(1).unwrap();
            while here.position <= last {
                let batch = changes.next_within(Duration::from_secs(100)).unwrap();
                here.apply(&batch.expect("writers go on"), files).unwrap();
            }
        });
        scope.spawn(move || {
            let mut changes = Changes::of_directory(dir, options, 1).unwrap();
            while elsewhere.position <= last {
                let batch = changes.next_within(Duration::from_secs(100)).unwrap();
                elsewhere
                    .apply(&batch.expect("writers go on"), files)
                    .unwrap();
            }
        });
    });
    for copy in &copies {
        copy.assert_equals(&db, "at the end");
    }
}
