//! Goal: with one background thread a flush does not wait for the end of a compaction, whatever that
//! compaction is and whatever becomes of its entries. Method: a compaction filter that holds the
//! compaction at its first entry until a memtable is full; the order in which jobs end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use drumlin::{
    CompactionFilter, CompactionInfo, CompactionStyle, Db, Env, EventListener, FamilyOptions,
    FilterDecision, FlushInfo, Options, Tuning, UniversalOptions, WriteBatch, WriteOptions,
};
use drumlin_fs::StrictMemFileSystem;

/// Entries of each of two tables: some 256 KiB of them many times.
const ENTRIES: u32 = 6000;

/// Holds the first compaction at its first entry.
struct Gate {
    held: AtomicBool,
    reached: SyncSender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl CompactionFilter for Gate {
    fn name(&self) -> &str {
        "gate"
    }

    fn reads_blobs(&self) -> bool {
        true
    }

    fn filter(&self, _level: u32, _key: &[u8], _value: &[u8]) -> FilterDecision {
        if !self.held.swap(true, Ordering::SeqCst) {
            self.reached.send(()).unwrap();
            self.go_on.lock().unwrap().recv().unwrap();
        }
        FilterDecision::Keep
    }
}

#[derive(Default)]
struct Ends(Mutex<Vec<&'static str>>);

impl EventListener for Ends {
    fn flushed(&self, _info: &FlushInfo) {
        self.0.lock().unwrap().push("flush");
    }

    fn compacted(&self, _info: &CompactionInfo) {
        self.0.lock().unwrap().push("compaction");
    }
}

fn options(style: CompactionStyle, gate: Gate, ends: &Arc<Ends>) -> Options {
    Options {
        background_threads: Some(1),
        compaction_style: style,
        listener: Some(Arc::clone(ends) as Arc<dyn EventListener>),
        family: FamilyOptions {
            compaction_filter: Some(Arc::new(gate)),
            ..FamilyOptions::default()
        },
        tuning: Tuning {
            write_buffer_bytes: Some(2 << 20),
            l0_trigger: 2,
            ..Tuning::default()
        },
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        ..Options::default()
    }
}

/// Two tables over the same keys; with `dead`, all but the first key is deleted again.
fn two_tables(db: &Db, dead: bool) {
    for table in 0..2 {
        for n in 0..ENTRIES {
            db.put(n.to_be_bytes(), [7; 50]).unwrap();
        }
        if dead && table == 1 {
            let mut batch = WriteBatch::new();
            batch.delete_range(&1u32.to_be_bytes(), b"\xff").unwrap();
            db.write(batch, &WriteOptions::default()).unwrap();
        }
        db.flush().unwrap();
    }
}

fn immutable_memtables(db: &Db) -> bool {
    let count = db.property(db.default_family(), "rocksdb.num-immutable-mem-table");
    count.is_some_and(|count| count != "0")
}

/// Fills a memtable while a compaction of `style` is held, and lets it go on.
fn a_flush_goes_first(style: CompactionStyle, dead: bool, by_hand: bool) {
    let ends = Arc::new(Ends::default());
    let (reached, is_reached) = sync_channel(1);
    let (go, go_on) = sync_channel(1);
    let gate = Gate {
        held: AtomicBool::new(false),
        reached,
        go_on: Mutex::new(go_on),
    };
    let db = Db::open("/db", options(style, gate, &ends)).unwrap();
    two_tables(&db, dead);
    std::thread::scope(|scope| {
        if by_hand {
            scope.spawn(|| db.compact_range(db.default_family(), None, None).unwrap());
        }
        is_reached.recv().unwrap();
        for n in 0.. {
            db.put(format!("later{n:06}"), [8; 1000]).unwrap();
            if immutable_memtables(&db) {
                break;
            }
        }
        go.send(()).unwrap();
    });
    db.wait_for_background().unwrap();
    let ends = ends.0.lock().unwrap().clone();
    assert_eq!(ends.get(..3), Some(&["flush"; 3][..]), "{ends:?}");
    assert_eq!(ends.get(3), Some(&"compaction"), "{ends:?}");
    assert!(db.get(0u32.to_be_bytes()).unwrap().is_some());
    let deleted = db.get(1u32.to_be_bytes()).unwrap().is_none();
    assert_eq!(deleted, dead);
}

fn universal() -> CompactionStyle {
    CompactionStyle::Universal(UniversalOptions {
        runs_trigger: 2,
        ..UniversalOptions::default()
    })
}

#[test]
fn inside_a_compaction_of_l0() {
    a_flush_goes_first(CompactionStyle::Leveled, false, false);
}

#[test]
fn inside_a_merge_of_runs() {
    a_flush_goes_first(universal(), false, false);
}

#[test]
fn inside_a_compaction_that_was_asked_for() {
    a_flush_goes_first(CompactionStyle::Manual, false, true);
}

#[test]
fn inside_a_compaction_of_dead_entries() {
    a_flush_goes_first(CompactionStyle::Leveled, true, false);
}
