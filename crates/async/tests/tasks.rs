//! The store as tasks use it: what they are answered, what they are told, and what is forgotten.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Bound;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use drumlin::{Db, ErrorKind, MergeOperator, Options, ReadOptions, WriteBatch, WriteOptions};
use drumlin_async::{AsyncDb, AsyncFamily};
use drumlin_base::rng::Rng;
use drumlin_testkit::temp_dir;
use tokio::runtime::{Builder, Runtime};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A runtime of one task: nothing but the standard library.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
        std::thread::park();
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .expect("threads")
}

/// More than memory holds, so that reads go to the disk.
fn small_budget() -> Options {
    Options {
        memory_budget: Some(16 << 20),
        background_threads: Some(1),
        ..Options::default()
    }
}

const KEYS: u64 = 30_000;

fn key(number: u64) -> String {
    format!("key{number:08}")
}

fn value(number: u64) -> Vec<u8> {
    let mut value = vec![0; 1000];
    Rng::new(number).fill(&mut value);
    value
}

fn filled(db: &Db) {
    for first in (0..KEYS).step_by(500) {
        let mut batch = WriteBatch::new();
        for number in first..first + 500 {
            batch
                .put(key(number).as_bytes(), &value(number))
                .expect("small");
        }
        db.write(batch, &WriteOptions::default()).expect("written");
    }
    db.flush().expect("flushed");
    db.compact_range(db.default_family(), None, None)
        .expect("compacted");
}

#[test]
fn many_tasks_read_what_is_on_the_disk() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), small_budget()).expect("opened");
    filled(&db);
    let runtime = runtime();
    let family = AsyncDb::over(db).expect("threads").default_family();
    let tasks: Vec<_> = (0..300)
        .map(|task| {
            let family = family.clone();
            runtime.spawn(async move {
                let mut rng = Rng::new(task);
                for _ in 0..20 {
                    let number = rng.below(KEYS + 10);
                    let expected = (number < KEYS).then(|| value(number));
                    let found = family.get(key(number)).await.expect("readable");
                    assert_eq!(found.as_deref(), expected.as_deref(), "{number}");
                    let numbers: Vec<_> = (0..5).map(|_| rng.below(KEYS)).collect();
                    let keys = numbers.iter().map(|number| key(*number)).collect();
                    let found = family.get_many(keys).await.expect("readable");
                    for (found, number) in found.iter().zip(numbers) {
                        assert_eq!(found.as_deref(), Some(&value(number)[..]));
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task).expect("a task does not panic");
    }
}

#[test]
fn what_is_dropped_is_forgotten() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), small_budget()).expect("opened");
    filled(&db);
    let family = AsyncDb::over(db).expect("threads").default_family();
    let mut rng = Rng::new(1);
    let mut context = Context::from_waker(Waker::noop());
    let (mut waited, mut walk) = (0, family.walk::<&str>(..));
    for round in 0..2000 {
        let number = rng.below(KEYS);
        let mut get = pin!(family.get(key(number)));
        match get.as_mut().poll(&mut context) {
            Poll::Ready(found) => assert!(found.expect("readable").is_some()),
            Poll::Pending => waited += 1,
        }
        if round % 10 == 0 {
            // A walk's call that is dropped loses no entry.
            let _ = pin!(walk.next()).poll(&mut context).map(|entry| {
                assert!(entry.expect("readable").is_some());
            });
        }
    }
    assert!(waited > 500, "{waited} reads went to the disk");
    let mut last = None;
    while let Some((key, _)) = block_on(walk.next()).expect("readable") {
        assert!(last < Some(key.clone()), "in order");
        last = Some(key);
    }
    assert_eq!(last, Some(key(KEYS - 1).into_bytes()));
    assert_eq!(
        block_on(family.get(key(7))).expect("readable").as_deref(),
        Some(&value(7)[..])
    );
}

#[test]
fn writes_that_share_a_batch_are_told_each_its_own() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), small_budget()).expect("opened");
    let runtime = runtime();
    let serving = AsyncDb::over(db).expect("threads");
    let tasks: Vec<_> = (0..400_u64)
        .map(|number| {
            let serving = serving.clone();
            runtime.spawn(async move {
                let family = serving.default_family();
                let key = key(number);
                if number % 50 == 7 {
                    // The family has no merge operator.
                    let refused = family.merge(&key, "x").synced().await;
                    assert_eq!(
                        refused.expect_err("refused").kind(),
                        ErrorKind::InvalidArgument
                    );
                    return;
                }
                let mut batch = WriteBatch::new();
                for entry in 0..1 + number % 3 {
                    let key = format!("{key}.{entry}");
                    batch.put(key.as_bytes(), b"v").expect("small");
                }
                batch
                    .put(key.as_bytes(), &number.to_le_bytes())
                    .expect("small");
                let synced = WriteOptions {
                    sync: Some(number % 4 != 0),
                    ..WriteOptions::default()
                };
                let last = serving.write(batch, synced).await.expect("written");
                let now = ReadOptions::default();
                let newest = serving
                    .db()
                    .newest_seqno_cf(family.family(), key.as_bytes(), &now);
                assert_eq!(newest.expect("readable"), Some(last), "{number}");
                let found = family.get(&key).await.expect("readable");
                assert_eq!(found.as_deref(), Some(&number.to_le_bytes()[..]));
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task).expect("a task does not panic");
    }
}

/// A walk's entries.
fn walked(mut walk: drumlin_async::Walk) -> Vec<(Vec<u8>, Vec<u8>)> {
    block_on(async {
        let mut found = Vec::new();
        while let Some((key, value)) = walk.next().await.expect("readable") {
            found.push((key, value.to_vec()));
        }
        found
    })
}

#[test]
fn walks_show_what_a_map_shows() {
    for seed in 0..4 {
        let dir = temp_dir();
        let db = Db::open(dir.path(), small_budget()).expect("opened");
        let serving = AsyncDb::over(db).expect("threads");
        let family = serving.default_family();
        let mut rng = Rng::new(seed);
        let mut map = BTreeMap::new();
        for round in 0..300 {
            for _ in 0..50 {
                let (key, value) = (key(rng.below(4000)), rng.next_u64().to_le_bytes().to_vec());
                if rng.below(4) == 0 {
                    block_on(family.delete(&key)).expect("deleted");
                    map.remove(key.as_bytes());
                } else {
                    block_on(family.put(&key, &value)).expect("put");
                    map.insert(key.into_bytes(), value);
                }
            }
            if round % 60 == 59 {
                block_on(serving.run(|db| db.flush())).expect("flushed");
            }
            if round % 30 != 0 {
                continue;
            }
            let mut end = || {
                let key = key(rng.below(4000)).into_bytes();
                match rng.below(3) {
                    0 => Bound::Unbounded,
                    1 => Bound::Included(key),
                    _ => Bound::Excluded(key),
                }
            };
            let (start, stop) = (end(), end());
            if map_range_is_empty(&start, &stop) {
                continue;
            }
            let range = (start, stop);
            let expected: Vec<_> = map
                .range::<Vec<u8>, _>((range.0.as_ref(), range.1.as_ref()))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            let walk = family.walk::<Vec<u8>>((range.0.clone(), range.1.clone()));
            let then = family.as_of(serving.db().snapshot());
            block_on(family.put("later", "x")).expect("put");
            assert_eq!(walked(walk), expected, "seed {seed}, {range:?}");
            let mut backward = walked(then.walk_back::<Vec<u8>>(range));
            backward.reverse();
            assert_eq!(backward, expected, "seed {seed}, backward");
            block_on(family.delete("later")).expect("deleted");
        }
    }
}

/// What a map's `range` panics at.
fn map_range_is_empty(start: &Bound<Vec<u8>>, stop: &Bound<Vec<u8>>) -> bool {
    match (start, stop) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(start), Bound::Included(stop)) => start > stop,
        (
            Bound::Included(start) | Bound::Excluded(start),
            Bound::Included(stop) | Bound::Excluded(stop),
        ) => start >= stop,
    }
}

#[derive(Debug)]
struct Panics;

impl MergeOperator for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> drumlin::Result<Vec<u8>> {
        panic!("the user's")
    }
}

#[test]
fn a_read_that_panics_is_told_and_the_next_one_is_read() {
    let dir = temp_dir();
    let mut options = small_budget();
    options.family.merge_operator = Some(Arc::new(Panics));
    let db = Db::open(dir.path(), options).expect("opened");
    filled(&db);
    let family = AsyncDb::over(db.clone()).expect("threads").default_family();
    for number in 0..100 {
        let merged = key(number * 97);
        block_on(family.merge(&merged, "x")).expect("merged");
        let read = std::panic::AssertUnwindSafe(|| block_on(family.get(&merged)));
        match std::panic::catch_unwind(read) {
            // In the task itself: all was in memory.
            Err(_) => {}
            Ok(found) => assert_eq!(found.expect_err("told").kind(), ErrorKind::Aborted),
        }
        let found = block_on(family.get(key(number * 97 + 1)));
        assert!(found.expect("readable").is_some());
    }
}

#[test]
fn a_call_that_panics_is_told_and_the_next_one_runs() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), small_budget()).expect("opened");
    let serving = AsyncDb::over(db).expect("threads");
    let failed = block_on(serving.run(|_| -> drumlin::Result<()> { panic!("the user's") }));
    assert_eq!(failed.expect_err("told").kind(), ErrorKind::Aborted);
    let path = block_on(serving.run(|db| Ok(db.path().to_owned())));
    assert_eq!(path.expect("run"), dir.path());
}

#[test]
fn closing_releases_the_directory_and_ends_all_clones() {
    let dir = temp_dir();
    for round in 0..20 {
        let db = Db::open(dir.path(), small_budget()).expect("released");
        let serving = AsyncDb::over(db).expect("threads");
        let family: AsyncFamily = serving.default_family();
        block_on(family.put("round", [round])).expect("put");
        block_on(serving.close()).expect("closed");
        let refused = block_on(family.put("round", "x")).expect_err("closed");
        assert_eq!(refused.kind(), ErrorKind::Shutdown);
        let refused = block_on(family.put("round", "x").synced()).expect_err("closed");
        assert_eq!(refused.kind(), ErrorKind::Shutdown);
    }
}

#[test]
fn threads_end_with_the_last_clone() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), small_budget()).expect("opened");
    let serving = AsyncDb::over(db).expect("threads");
    let (held, waits) = std::sync::mpsc::channel::<()>();
    let mut run = Box::pin(serving.run(move |_| {
        waits.recv().ok();
        Ok(())
    }));
    let mut context = Context::from_waker(Waker::noop());
    assert!(run.as_mut().poll(&mut context).is_pending());
    drop(serving);
    drop(held);
    block_on(run).expect("what was begun is done");
    // The threads let go of the database when their queues are empty.
    for _ in 0..1000 {
        match Db::open(dir.path(), small_budget()) {
            Ok(_) => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Locked),
        }
        let clock = drumlin::Env::system().clock;
        clock.sleep(std::time::Duration::from_millis(10));
    }
    panic!("the directory is still locked");
}
