//! Goal: a compaction's filter is made for it, learns what is durable, may remove ranges unread, reads no blob unless
//! it asks for them, and fails by name when it panics; entries it keeps are there, before and after opening again.
//! Method: families whose keys begin with a number, and a filter that knows which numbers are dead.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use drumlin::{
    CompactionFilter, CompactionFilterFactory, Db, Env, ErrorKind, FamilyOptions, FilterDecision,
    FilterJob, Health, Options, ReadOptions, Tuning, WriteOptions,
};
use drumlin_fs::{Fault, FaultFileSystem, FaultRule, FileKind, OpKind, StrictMemFileSystem};

/// Groups of keys that nobody reads any more, each with the sequence number of its death.
#[derive(Default)]
struct Deaths {
    dead: Mutex<Vec<(u32, u64)>>,
    asked: AtomicUsize,
    jobs: Mutex<Vec<FilterJob>>,
    panics: bool,
    reads_blobs: bool,
}

struct OfJob {
    deaths: Arc<Deaths>,
    dead: BTreeSet<u32>,
}

impl CompactionFilterFactory for Deaths {
    fn create(self: Arc<Self>, job: &FilterJob) -> Option<Arc<dyn CompactionFilter>> {
        self.jobs.lock().unwrap().push(job.clone());
        let all = self.dead.lock().unwrap();
        let durable = all.iter().filter(|(_, at)| *at <= job.durable_seqno);
        let dead = durable.map(|(group, _)| *group).collect();
        drop(all);
        Some(Arc::new(OfJob { deaths: self, dead }))
    }
}

impl CompactionFilter for OfJob {
    fn name(&self) -> &str {
        "test.Deaths"
    }

    fn reads_blobs(&self) -> bool {
        self.deaths.reads_blobs
    }

    fn filter(&self, _level: u32, key: &[u8], _value: &[u8]) -> FilterDecision {
        assert!(!self.deaths.panics, "as it was told to");
        self.deaths.asked.fetch_add(1, Ordering::Relaxed);
        let group = u32::from_be_bytes(key[..4].try_into().unwrap());
        match self.dead.contains(&group) {
            true => FilterDecision::RemoveUntil((group + 1).to_be_bytes().to_vec()),
            false => FilterDecision::Keep,
        }
    }
}

const GROUPS: u32 = 5;
const MEMBERS: u32 = 2000;

fn key(group: u32, member: u32) -> Vec<u8> {
    [group.to_be_bytes(), member.to_be_bytes()].concat()
}

fn open(deaths: &Arc<Deaths>, env: &Env, blob_from_bytes: Option<usize>) -> Db {
    let options = Options {
        env: env.clone(),
        family: FamilyOptions {
            compaction_filter: Some(Arc::clone(deaths) as _),
            ..FamilyOptions::default()
        },
        tuning: Tuning {
            blob_from_bytes,
            ..Tuning::default()
        },
        ..Options::default()
    };
    Db::open("/db", options).unwrap()
}

fn memory() -> Env {
    Env::system().with_files(Arc::new(StrictMemFileSystem::new()))
}

fn fill(db: &Db, value: &[u8]) {
    for group in 0..GROUPS {
        for member in 0..MEMBERS {
            db.put(key(group, member), value).unwrap();
        }
    }
    db.flush().unwrap();
}

fn count(db: &Db, group: u32) -> usize {
    let mut iter = db.iter(ReadOptions {
        lower_bound: Some(group.to_be_bytes().to_vec()),
        upper_bound: Some((group + 1).to_be_bytes().to_vec()),
        ..ReadOptions::default()
    });
    iter.seek_to_first();
    let mut count = 0;
    while iter.valid() {
        count += 1;
        iter.next();
    }
    iter.status().unwrap();
    count
}

fn compact(db: &Db) -> drumlin::Result<()> {
    db.compact_range(db.default_family(), None, None)
}

/// Declares the group dead by a write, which is synced or not.
fn kill(db: &Db, deaths: &Deaths, group: u32, sync: bool) {
    let options = WriteOptions {
        sync: Some(sync),
        ..WriteOptions::default()
    };
    db.put_cf(db.default_family(), key(u32::MAX, group), b"dead", &options)
        .unwrap();
    deaths.dead.lock().unwrap().push((group, db.latest_seqno()));
}

#[test]
fn a_dead_range_is_passed_over_unread() {
    let (deaths, env) = (Arc::new(Deaths::default()), memory());
    let db = open(&deaths, &env, None);
    fill(&db, b"value");
    kill(&db, &deaths, 1, true);
    kill(&db, &deaths, 3, true);
    compact(&db).unwrap();
    let counts: Vec<usize> = (0..GROUPS).map(|group| count(&db, group)).collect();
    let all = MEMBERS as usize;
    assert_eq!(counts, [all, 0, all, 0, all]);
    let asked = deaths.asked.load(Ordering::Relaxed);
    assert!(
        asked < 3 * all + 100,
        "{asked} of {} were asked about",
        5 * all
    );
    let job = deaths.jobs.lock().unwrap().pop().unwrap();
    assert!(job.family == 0 && job.durable_seqno <= db.latest_seqno());
    drop(db);
    let db = open(&deaths, &env, None);
    assert_eq!((count(&db, 1), count(&db, 2)), (0, all));
    assert!(db.verify().unwrap().damaged.is_empty());
}

#[test]
fn a_death_that_is_not_durable_does_not_count() {
    let deaths = Arc::new(Deaths::default());
    let db = open(&deaths, &memory(), None);
    fill(&db, b"value");
    kill(&db, &deaths, 1, false);
    // Its own WAL is not synced by a compaction of flushed tables.
    compact(&db).unwrap();
    let durable = deaths.jobs.lock().unwrap().last().unwrap().durable_seqno;
    assert!(durable < db.latest_seqno());
    assert_eq!(count(&db, 1), MEMBERS as usize);
    db.sync_wal().unwrap();
    compact(&db).unwrap();
    assert_eq!(count(&db, 1), 0);
}

#[test]
fn snapshots_see_what_a_filter_removes() {
    let deaths = Arc::new(Deaths::default());
    let db = open(&deaths, &memory(), None);
    fill(&db, b"value");
    let snapshot = db.snapshot();
    kill(&db, &deaths, 1, true);
    compact(&db).unwrap();
    let at = ReadOptions {
        snapshot: Some(snapshot),
        ..ReadOptions::default()
    };
    let family = db.default_family();
    assert!(db.get_cf(family, key(1, 7), &at).unwrap().is_some());
    drop(at);
    compact(&db).unwrap();
    assert_eq!(count(&db, 1), 0);
}

#[test]
fn blobs_are_read_for_a_filter_only_if_it_asks_and_counted_when_they_go() {
    let value = vec![7; 10_000];
    for reads_blobs in [false, true] {
        let deaths = Arc::new(Deaths {
            reads_blobs,
            ..Deaths::default()
        });
        let files = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
        let env = Env::system().with_files(Arc::new(files.clone()));
        let db = open(&deaths, &env, Some(4096));
        // Too few of group 1 to make the rest worth moving, which reads them.
        for member in 0..60 {
            db.put(key(2, member), &value).unwrap();
            db.put(key(1, member % 3), &value).unwrap();
        }
        db.put(key(1, 0), b"short").unwrap();
        db.flush().unwrap();
        kill(&db, &deaths, 1, true);
        if !reads_blobs {
            let no_reads = FaultRule::always(Fault::Io).on(OpKind::Read);
            files.add_rule(no_reads.of_kind(FileKind::Blob));
        }
        compact(&db).unwrap();
        files.clear_rules();
        assert_eq!(files.injected(), 0);
        let asked = deaths.asked.load(Ordering::Relaxed);
        assert_eq!(asked > 20, reads_blobs, "{asked}");
        assert_eq!((count(&db, 1), count(&db, 2)), (0, 60));
        assert!(db.verify().unwrap().damaged.is_empty());
    }
}

#[test]
fn a_filter_that_panics_is_named() {
    let deaths = Arc::new(Deaths {
        panics: true,
        ..Deaths::default()
    });
    let db = open(&deaths, &memory(), None);
    fill(&db, b"value");
    let error = compact(&db).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Aborted);
    assert!(error.to_string().contains("test.Deaths"), "{error}");
    assert!(db.health() <= Health::BackgroundPaused);
    assert_eq!(count(&db, 1), MEMBERS as usize);
    db.put(b"more", b"writes").unwrap();
}
