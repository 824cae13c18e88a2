//! Goal: reads that must ask several runs have them merged, once, and only when nobody writes. Method:
//! a small database in memory without threads and with a clock of its own; tables and compactions are
//! counted after known numbers of reads.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drumlin::{
    CompactionFilter, CompactionInfo, CompactionReason, CompactionStyle, Db, Env, EventListener,
    FamilyOptions, FilterDecision, Options, ReadOptions, Tuning, UniversalOptions,
};
use drumlin_fs::{FileSystem, ManualClock, Spawner, StrictMemFileSystem, ThreadSpawner};

/// More keys than a job passes between two checks for other work.
const KEYS: u32 = 8000;

/// A key between the others.
const MEANWHILE: [u8; 5] = [0, 0, 1, 1, 1];

/// The compactions for reads that a listener heard of: tables read, and tables written.
#[derive(Default)]
struct Heard(Mutex<Vec<(usize, usize)>>);

impl EventListener for Heard {
    fn compacted(&self, info: &CompactionInfo) {
        if info.reason == CompactionReason::Reads {
            let mut heard = self.0.lock().expect("nobody panics with it");
            heard.push((info.inputs, info.outputs));
        }
    }
}

/// An action inside a compaction, once, at the first key that is not below this one.
type Act = (u32, Box<dyn FnOnce() + Send>);

/// A filter that keeps everything, and acts on request.
#[derive(Default)]
struct Acts(Mutex<Option<Act>>);

impl CompactionFilter for Acts {
    fn name(&self) -> &str {
        "test.Acts"
    }

    fn reads_blobs(&self) -> bool {
        true
    }

    fn filter(&self, _: u32, key: &[u8], _: &[u8]) -> FilterDecision {
        let mut told = self.0.lock().expect("nobody panics with it");
        let due = told.take_if(|(from, _)| key >= &from.to_be_bytes()[..]);
        drop(told);
        if let Some((_, act)) = due {
            act();
        }
        FilterDecision::Keep
    }
}

/// Writes until L0 is full.
fn fill_l0(db: &Db) {
    for value in 0..4u8 {
        let put = db.put(MEANWHILE, [value]);
        put.and_then(|()| db.flush()).expect("memory does not fail");
    }
}

struct Store {
    db: Db,
    clock: Arc<ManualClock>,
    files: StrictMemFileSystem,
    heard: Arc<Heard>,
    acts: Arc<Acts>,
}

impl Store {
    /// Every key in one table at the bottom, and every tenth in each of two younger ones above.
    fn with_three_runs(style: CompactionStyle) -> Self {
        let clock = Arc::new(ManualClock::new(1_700_000_000));
        let files = StrictMemFileSystem::new();
        let mut env = Env::system().with_files(Arc::new(files.clone()));
        env.clock = Arc::clone(&clock) as _;
        let heard = Arc::new(Heard::default());
        let acts = Arc::new(Acts::default());
        let options = Options {
            memory_budget: Some(64 << 20),
            background_threads: Some(0),
            compaction_style: style,
            listener: Some(Arc::clone(&heard) as _),
            family: FamilyOptions {
                compaction_filter: Some(Arc::clone(&acts) as _),
                ..FamilyOptions::default()
            },
            tuning: Tuning {
                age_max_seconds: None,
                ..Tuning::default()
            },
            env,
            ..Options::default()
        };
        let db = Db::open(Path::new("/db"), options).expect("memory does not fail");
        let store = Self {
            db,
            clock,
            files,
            heard,
            acts,
        };
        store.put_every(1, "old");
        let family = store.db.default_family();
        let compacted = store.db.compact_range(family, None, None);
        compacted.expect("memory does not fail");
        store.put_every(10, "new");
        store.put_every(10, "newest");
        store
    }

    /// A table with every `step`th key.
    fn put_every(&self, step: u32, value: &str) {
        for key in (0..KEYS).step_by(step as usize) {
            let put = self.db.put(key.to_be_bytes(), value);
            put.expect("memory does not fail");
        }
        self.db.flush().expect("memory does not fail");
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
        self.settle();
    }

    fn settle(&self) {
        let idle = self.db.wait_for_background();
        idle.expect("memory does not fail");
    }

    /// Gets keys that only the oldest run has.
    fn get_old(&self, gets: u32) {
        for get in 0..gets {
            let key = get % (KEYS / 10) * 10 + 5;
            let value = self.db.get(key.to_be_bytes());
            let value = value.expect("memory does not fail");
            assert_eq!(value.as_deref(), Some(&b"old"[..]));
        }
    }

    /// Has the next compaction call `act` at `key`.
    fn act_at(&self, key: u32, act: impl FnOnce() + Send + 'static) {
        *self.acts.0.lock().expect("nobody panics with it") = Some((key, Box::new(act)));
    }

    /// Tables in the directory, whether of the present version or not.
    fn tables(&self) -> usize {
        let names = self.files.list(Path::new("/db"));
        let names = names.expect("memory does not fail");
        let is_table = |name: &&PathBuf| name.extension().is_some_and(|end| end == "sst");
        names.iter().filter(is_table).count()
    }

    fn runs(&self) -> (usize, usize) {
        let files = |level: usize| -> usize {
            let name = format!("rocksdb.num-files-at-level{level}");
            let files = self.db.property(self.db.default_family(), &name);
            files.expect("a property").parse().expect("a number")
        };
        (files(0), (1..7).map(files).sum())
    }

    fn compactions_for_reads(&self) -> u64 {
        self.db.statistics().compactions_for_reads.get()
    }
}

/// Gets that pay the least price there is, twice over.
const MANY: u32 = 8192;

#[test]
fn gets_over_several_runs_leave_one_run_and_then_nothing_is_done_any_more() {
    let store = Store::with_three_runs(CompactionStyle::Leveled);
    store.pass(100);
    assert_eq!(store.runs(), (2, 1), "nobody has read yet");
    store.get_old(MANY);
    let text = store.db.explain(store.db.default_family(), None);
    assert!(text.contains("reads over several runs have paid"), "{text}");
    assert!(text.contains("(Reads)"), "{text}");
    store.settle();
    assert_eq!(store.runs(), (0, 1));
    assert_eq!(*store.heard.0.lock().unwrap(), [(3, 1)]);
    for _ in 0..3 {
        store.get_old(MANY);
        store.pass(100);
    }
    assert_eq!(store.compactions_for_reads(), 1);
    let text = store.db.explain(store.db.default_family(), None);
    assert!(!text.contains("reads over several runs"), "{text}");
}

#[test]
fn gets_done_together_pay_as_well() {
    let store = Store::with_three_runs(CompactionStyle::Leveled);
    store.pass(100);
    let keys: Vec<_> = (0..64).map(|n: u32| (n * 10 + 5).to_be_bytes()).collect();
    for _ in 0..MANY as usize / keys.len() {
        let family = store.db.default_family();
        let values = store
            .db
            .multi_get_cf(family, &keys, &ReadOptions::default());
        assert!(values.iter().all(Result::is_ok));
    }
    store.settle();
    assert_eq!((store.runs(), store.compactions_for_reads()), ((0, 1), 1));
}

#[test]
fn walks_and_seeks_over_several_runs_pay_as_well() {
    type Walk = fn(&Db);
    let seeks: Walk = |db| {
        for key in 0..MANY {
            db.iter(ReadOptions::default()).seek(&key.to_be_bytes());
        }
    };
    let forward: Walk = |db| {
        for _ in 0..200 {
            let mut walk = db.iter(ReadOptions::default());
            walk.seek_to_first();
            while walk.valid() {
                walk.next();
            }
        }
    };
    let backward: Walk = |db| {
        for _ in 0..200 {
            let mut walk = db.iter(ReadOptions::default());
            walk.seek_to_last();
            while walk.valid() {
                walk.prev();
            }
        }
    };
    for walk in [seeks, forward, backward] {
        let store = Store::with_three_runs(CompactionStyle::Leveled);
        store.pass(100);
        walk(&store.db);
        store.settle();
        assert_eq!((store.runs(), store.compactions_for_reads()), ((0, 1), 1));
    }
}

#[test]
fn nothing_is_done_for_reads_while_the_store_is_written() {
    let store = Store::with_three_runs(CompactionStyle::Leveled);
    store.get_old(MANY);
    store.settle();
    assert_eq!(store.runs(), (2, 1), "the last flush was just now");
    store.pass(4);
    store.put_every(10, "once more");
    store.pass(4);
    assert_eq!(store.runs(), (3, 1), "it was again");
    store.pass(2);
    assert_eq!((store.runs(), store.compactions_for_reads()), ((0, 1), 1));
}

#[test]
fn it_is_given_up_when_writes_fill_l0_and_must_be_paid_for_again() {
    let store = Store::with_three_runs(CompactionStyle::Leveled);
    store.pass(100);
    store.get_old(MANY);
    let db = store.db.clone();
    store.act_at(0, move || fill_l0(&db));
    store.settle();
    let given_up = &store.db.statistics().compactions_for_reads_given_up;
    assert_eq!((given_up.get(), store.compactions_for_reads()), (1, 0));
    assert_eq!(store.runs(), (0, 1), "by a compaction that writes needed");
    let value = store.db.get(MEANWHILE).unwrap();
    assert_eq!(value.as_deref(), Some(&[3][..]));
    store.put_every(10, "again");
    store.pass(100);
    assert_eq!(store.runs(), (1, 1));
    store.get_old(MANY);
    store.settle();
    assert_eq!((store.runs(), store.compactions_for_reads()), ((0, 1), 1));
}

#[test]
fn it_is_given_up_for_a_compaction_that_is_asked_for() {
    let store = Store::with_three_runs(CompactionStyle::Leveled);
    store.pass(100);
    store.get_old(MANY);
    let (db, asked) = (store.db.clone(), Arc::new(Mutex::new(None)));
    let asks = Arc::clone(&asked);
    // Past the job's first check for other work, which sees all of it.
    store.act_at(KEYS / 2, move || {
        let other = db.clone();
        let compact = move || {
            let compacted = other.compact_range(other.default_family(), None, None);
            compacted.expect("memory does not fail");
        };
        let thread = ThreadSpawner.spawn("asks", Box::new(compact));
        *asks.lock().unwrap() = thread.ok();
        let next = || db.explain(db.default_family(), None);
        while !next().contains("a manual compaction") {
            std::thread::yield_now();
        }
    });
    store.settle();
    let asked = asked.lock().unwrap().take().expect("there was one");
    asked.join().unwrap();
    let given_up = &store.db.statistics().compactions_for_reads_given_up;
    assert_eq!((given_up.get(), store.compactions_for_reads()), (1, 0));
    assert_eq!(store.runs(), (0, 1));
}

#[test]
fn tables_that_a_walk_kept_go_after_it_though_nothing_is_compacted_any_more() {
    let store = Store::with_three_runs(CompactionStyle::Leveled);
    store.pass(100);
    store.get_old(MANY);
    let walk = store.db.iter(ReadOptions::default());
    store.settle();
    assert_eq!((store.runs(), store.tables()), ((0, 1), 4));
    drop(walk);
    store.settle();
    assert_eq!(store.tables(), 1);
}

#[test]
fn gets_that_the_newest_run_answers_pay_for_nothing() {
    let store = Store::with_three_runs(CompactionStyle::Leveled);
    store.pass(100);
    for get in 0..4 * MANY {
        let key = get % (KEYS / 10) * 10;
        let value = store
            .db
            .get(key.to_be_bytes())
            .expect("memory does not fail");
        assert_eq!(value.as_deref(), Some(&b"newest"[..]));
    }
    store.settle();
    assert_eq!(store.runs(), (2, 1));
}

#[test]
fn styles_that_shape_the_tree_otherwise_do_nothing_for_reads() {
    let universal = CompactionStyle::Universal(UniversalOptions::default());
    for style in [CompactionStyle::Manual, universal] {
        let store = Store::with_three_runs(style);
        let before = store.runs();
        store.pass(100);
        store.get_old(MANY);
        store.pass(100);
        assert_eq!((store.runs(), store.compactions_for_reads()), (before, 0));
    }
}
