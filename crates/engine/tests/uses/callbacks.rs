//! Goal: callbacks of a program never hang the store. A listener may ask the store anything in any
//! call; a key order that panics ends writing with an error that says so, for everybody who waits,
//! and loses nothing. Method: a listener that asks everything on every call, through flushes, compactions,
//! waits, failures and their end; an order that panics at a chosen key among several writers. Each in a thread
//! that is watched.

#![expect(
    clippy::disallowed_methods,
    reason = "helpers of tests fail by panicking, and their threads are the program's"
)]

use std::cmp::Ordering as Order;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock, Weak, mpsc};
use std::time::Duration;

use drumlin::{
    CompactionInfo, Comparator, Db, Env, Error, ErrorKind, EventListener, FamilyOptions, FlushInfo,
    Health, KeyOrder, Options, Tuning, WriteOptions,
};
use drumlin_fs::{Fault, FaultFileSystem, FaultRule, OpKind, StrictMemFileSystem};

/// Far more than any of this takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `body` in a thread of its own, and fails where it does not end.
fn watched(body: impl FnOnce() + Send + 'static) {
    let (sender, done) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        body();
        sender.send(()).unwrap();
    });
    match done.recv_timeout(PATIENCE) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        _ => thread.join().unwrap(),
    }
}

/// Asks the store every question in each call of a listener.
#[derive(Default)]
struct Curious {
    db: OnceLock<Weak<Db>>,
    flushed: AtomicU64,
    compacted: AtomicU64,
    failed: AtomicU64,
    health: Mutex<Vec<(Health, Health)>>,
    waited: AtomicU64,
}

impl Curious {
    fn ask(&self) {
        let Some(db) = self.db.get().and_then(Weak::upgrade) else {
            return;
        };
        drop(db.get(b"key00001").unwrap());
        drop(db.snapshot());
        let mut iter = db.iter(Default::default());
        iter.seek_to_first();
        drop(iter);
        for family in db.families() {
            for name in [
                "rocksdb.stats",
                "rocksdb.num-files-at-level0",
                "rocksdb.cur-size-all-mem-tables",
            ] {
                drop(db.property(&family, name));
            }
        }
        drop(db.explain(db.default_family(), Some(b"key00001")));
    }
}

impl EventListener for Curious {
    fn flushed(&self, _: &FlushInfo) {
        self.flushed.fetch_add(1, Ordering::Relaxed);
        self.ask();
    }
    fn compacted(&self, _: &CompactionInfo) {
        self.compacted.fetch_add(1, Ordering::Relaxed);
        self.ask();
    }
    fn background_failed(&self, _: &Error) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.ask();
    }
    fn health_changed(&self, from: Health, to: Health, _: &str) {
        self.health.lock().unwrap().push((from, to));
        self.ask();
    }
    fn write_waited(&self, _: u64, _: &str) {
        self.waited.fetch_add(1, Ordering::Relaxed);
        self.ask();
    }
}

fn a_curious_listener(threads: Option<usize>) {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    let curious = Arc::new(Curious::default());
    let options = Options {
        env: Env::system().with_files(Arc::new(files.clone())),
        listener: Some(Arc::clone(&curious) as _),
        background_threads: threads,
        tuning: Tuning {
            write_buffer_bytes: Some(16 << 10),
            memtables_max: 2,
            ..Tuning::default()
        },
        ..Options::default()
    };
    let db = Arc::new(Db::open("/db", options).unwrap());
    curious.db.set(Arc::downgrade(&db)).unwrap();
    let write = |from: u32| {
        for at in from..from + 2_000 {
            drop(db.put(format!("key{:05}", at % 500), [7; 100]));
        }
    };
    let other = db.create_family("other", FamilyOptions::default()).unwrap();
    write(0);
    db.put_cf(&other, b"key", b"value", &WriteOptions::default())
        .unwrap();
    db.flush().unwrap();
    db.compact_range(db.default_family(), None, None).unwrap();
    db.drop_family(&other).unwrap();
    // A full disk, met by writers, flushes and the MANIFEST, that heals.
    for operation in [OpKind::Append, OpKind::Create, OpKind::Sync] {
        files.add_rule(FaultRule::always(Fault::NoSpace).on(operation));
        write(10_000);
        drop(db.flush());
        files.clear_rules();
        write(20_000);
        drop(db.flush());
    }
    drop(db.wait_for_background());
    assert!(curious.flushed.load(Ordering::Relaxed) > 0);
    assert!(curious.compacted.load(Ordering::Relaxed) > 0);
    assert!(curious.failed.load(Ordering::Relaxed) > 0);
    assert!(!curious.health.lock().unwrap().is_empty());
    drop(Arc::into_inner(db).map(Db::close));
}

#[test]
fn a_listener_may_ask_the_store_anything() {
    watched(|| a_curious_listener(None));
    watched(|| a_curious_listener(Some(0)));
    watched(|| a_curious_listener(Some(1)));
}

/// Bytewise, and panics where it sees the key it waits for, while it is armed.
struct Panicking {
    armed: AtomicBool,
}

impl Comparator for Panicking {
    fn name(&self) -> &str {
        "test.Panicking"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Order {
        let meets = a == b"panic" || b == b"panic";
        assert!(
            !(meets && self.armed.load(Ordering::Acquire)),
            "told to panic"
        );
        a.cmp(b)
    }
}

fn a_panicking_order(sync: bool, large: bool) {
    let files = Arc::new(StrictMemFileSystem::new());
    let order = Arc::new(Panicking {
        armed: AtomicBool::new(true),
    });
    let options = Options {
        env: Env::system().with_files(files),
        family: FamilyOptions {
            order: KeyOrder::Custom(Arc::clone(&order) as _),
            ..FamilyOptions::default()
        },
        ..Options::default()
    };
    let db = Db::open("/db", options.clone()).unwrap();
    let how = WriteOptions {
        sync: Some(sync),
        ..WriteOptions::default()
    };
    let value = vec![1; if large { 64 << 10 } else { 10 }];
    db.put_cf(db.default_family(), b"before", b"value", &how)
        .unwrap();
    let (begin, acknowledged) = (Barrier::new(4), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (db, how, value, begin, acknowledged) = (&db, &how, &value, &begin, &acknowledged);
            scope.spawn(move || {
                begin.wait();
                // Until it gets an error: the watch ends a thread that never does.
                for at in 0.. {
                    let key = match (writer, at) {
                        (0, 50) => "panic".to_owned(),
                        _ => format!("key {writer} {}", at % 1000),
                    };
                    match db.put_cf(db.default_family(), &key, value, how) {
                        Ok(()) => acknowledged.lock().unwrap().push(key),
                        Err(error) => {
                            let kinds = [ErrorKind::Aborted, ErrorKind::Poisoned];
                            assert!(kinds.contains(&error.kind()), "{error}");
                            return;
                        }
                    }
                }
            });
        }
    });
    assert_eq!(db.health(), Health::Poisoned);
    let error = db.put(b"later", b"value").unwrap_err();
    assert!(error.to_string().contains("told to panic"), "{error}");
    assert!(db.flush().is_err());
    assert!(db.get(b"before").unwrap().is_some());
    let acknowledged = acknowledged.into_inner().unwrap();
    for key in &acknowledged {
        assert!(db.get(key).unwrap().is_some(), "{key}");
    }
    drop(db.close());
    order.armed.store(false, Ordering::Release);
    let db = Db::open("/db", options).unwrap();
    for key in &acknowledged {
        assert!(db.get(key).unwrap().is_some(), "{key}");
    }
    db.put(b"later", b"value").unwrap();
}

#[test]
fn an_order_that_panics_ends_writing_and_hangs_nobody() {
    for sync in [false, true] {
        for large in [false, true] {
            watched(move || a_panicking_order(sync, large));
        }
    }
}

/// Panics in every call.
struct Rude;

impl EventListener for Rude {
    fn flushed(&self, _: &FlushInfo) {
        panic!("told of a flush");
    }
    fn compacted(&self, _: &CompactionInfo) {
        panic!("told of a compaction");
    }
    fn background_failed(&self, _: &Error) {
        panic!("told of a failure");
    }
}

#[test]
fn a_listener_that_panics_ends_nothing() {
    for threads in [None, Some(0), Some(1)] {
        watched(move || {
            let options = Options {
                env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
                listener: Some(Arc::new(Rude)),
                background_threads: threads,
                ..Options::default()
            };
            let db = Db::open("/db", options).unwrap();
            for round in 0..5 {
                db.put(b"key", format!("{round}")).unwrap();
                db.flush().unwrap();
            }
            db.compact_range(db.default_family(), None, None).unwrap();
            db.wait_for_background().unwrap();
            assert_eq!(db.health(), Health::Healthy);
            db.close().unwrap();
        });
    }
}

#[test]
fn an_order_that_panics_in_the_background_hangs_nobody() {
    for threads in [None, Some(0), Some(1)] {
        watched(move || {
            let order = Arc::new(Panicking {
                armed: AtomicBool::new(false),
            });
            let options = Options {
                env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
                family: FamilyOptions {
                    order: KeyOrder::Custom(Arc::clone(&order) as _),
                    ..FamilyOptions::default()
                },
                background_threads: threads,
                ..Options::default()
            };
            let db = Db::open("/db", options.clone()).unwrap();
            let write = |round: u32| -> drumlin::Result<()> {
                db.put(b"a", format!("{round}"))?;
                db.put(b"panic", format!("{round}"))?;
                db.put(b"z", format!("{round}"))
            };
            for round in 0..3 {
                write(round).unwrap();
                db.flush().unwrap();
            }
            write(3).unwrap();
            order.armed.store(true, Ordering::Release);
            // The next work due fails, here or in the background; each of these calls comes to an end.
            drop(db.flush());
            drop(db.compact_range(db.default_family(), None, None));
            drop(db.wait_for_background());
            drop(db.close());
            order.armed.store(false, Ordering::Release);
            let db = Db::open("/db", options).unwrap();
            for key in ["a", "panic", "z"] {
                assert_eq!(db.get(key).unwrap().as_deref(), Some(&b"3"[..]));
            }
            db.compact_range(db.default_family(), None, None).unwrap();
            db.close().unwrap();
        });
    }
}
