//! Goal: an optimistic transaction loses no update; a serializable one reads what it would have read had it run alone when
//! it committed, gaps included, and is refused for nothing that it did not read. Method: transactions interleaved by a seed,
//! each that commits is done again, alone, on a map; under snapshot isolation the same check must fail (the canary);
//! histories of two, step by step, in both built-in orders; threads with a rule that write skew would break.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use drumlin::{
    ColumnFamily, Env, ErrorKind, FamilyOptions, Isolation, KeyOrder, Locking, Options,
    ReadOptions, Transaction, TransactionDb, TransactionOptions, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_fs::StrictMemFileSystem;

const DIR: &str = "/db";

fn open_in_order(isolation: Isolation, order: KeyOrder) -> TransactionDb {
    let options = Options {
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        family: FamilyOptions {
            order,
            ..FamilyOptions::default()
        },
        ..Options::default()
    };
    let locking = Locking {
        isolation,
        ..Locking::default()
    };
    TransactionDb::open(DIR, options, locking).unwrap()
}

fn open(isolation: Isolation) -> TransactionDb {
    open_in_order(isolation, KeyOrder::Bytewise)
}

type Rows = BTreeMap<u8, u8>;

/// One thing that a transaction did, with what it saw.
#[derive(Debug)]
enum Step {
    Get(u8, Option<u8>),
    /// From a key, or the first that is there, forwards or backwards, so many rows at most; and those rows.
    Walk(u8, bool, usize, Vec<(u8, u8)>),
    Put(u8, u8),
    Delete(u8),
    DeleteRange(u8, u8),
}

fn walked(rows: &Rows, from: u8, forward: bool, most: usize) -> Vec<(u8, u8)> {
    let copy = |(key, value): (&u8, &u8)| (*key, *value);
    match forward {
        true => rows.range(from..).map(copy).take(most).collect(),
        false => rows.range(..=from).rev().map(copy).take(most).collect(),
    }
}

impl Step {
    /// Does it on `rows`; whether it sees there what was seen.
    fn again(&self, rows: &mut Rows) -> bool {
        match self {
            Self::Get(key, seen) => rows.get(key) == seen.as_ref(),
            Self::Walk(from, forward, most, seen) => walked(rows, *from, *forward, *most) == *seen,
            Self::Put(key, value) => {
                rows.insert(*key, *value);
                true
            }
            Self::Delete(key) => {
                rows.remove(key);
                true
            }
            Self::DeleteRange(begin, end) => {
                rows.retain(|key, _| !(*begin..*end).contains(key));
                true
            }
        }
    }

    fn writes(&self) -> bool {
        !matches!(self, Self::Get(..) | Self::Walk(..))
    }
}

/// One random step of `tx`.
fn random_step(rng: &mut Rng, tx: &mut Transaction<'_>, family: &ColumnFamily) -> Step {
    let key = 10 + rng.below(6) as u8;
    match rng.below(10) {
        0..3 => {
            let seen = tx.get(family, [key]).unwrap();
            Step::Get(key, seen.map(|value| value[0]))
        }
        3..6 => {
            let (forward, most) = (rng.below(2) == 0, 1 + rng.below(3) as usize);
            let mut walk = tx.iter(family, ReadOptions::default()).unwrap();
            match forward {
                true => walk.seek(&[key]),
                false => walk.seek_for_prev(&[key]),
            }
            let mut seen = Vec::new();
            while walk.valid() {
                seen.push((walk.key()[0], walk.value()[0]));
                if seen.len() == most {
                    break;
                }
                match forward {
                    true => walk.next(),
                    false => walk.prev(),
                }
            }
            walk.status().unwrap();
            Step::Walk(key, forward, most, seen)
        }
        6 | 7 => {
            let value = rng.below(256) as u8;
            tx.put(family, [key], [value]).unwrap();
            Step::Put(key, value)
        }
        8 => {
            tx.delete(family, [key]).unwrap();
            Step::Delete(key)
        }
        _ => {
            let end = key + rng.below(3) as u8;
            tx.delete_range(family, [key], [end]).unwrap();
            Step::DeleteRange(key, end)
        }
    }
}

/// One transaction under way: its steps, and the rows there were when it began.
struct Live<'db> {
    tx: Transaction<'db>,
    steps: Vec<Step>,
    began: Rows,
}

/// What became of the transactions of a seed.
#[derive(Debug, Default)]
struct Tally {
    committed: u32,
    refused: u32,
    /// Committed ones that saw what they would not have seen alone.
    skewed: u32,
}

/// Ends `live`; `rows` are those committed before and after.
fn commit(live: Live<'_>, rows: &mut Rows, tally: &mut Tally) {
    let Live { tx, steps, began } = live;
    let mut alone = began.clone();
    let saw_its_moment = steps.iter().all(|step| step.again(&mut alone));
    assert!(saw_its_moment, "it read another moment than its own");
    match tx.commit() {
        Ok(_) if steps.iter().any(Step::writes) => {
            tally.committed += 1;
            let mut after = rows.clone();
            let seen = steps.iter().map(|step| step.again(&mut after));
            tally.skewed += u32::from(seen.filter(|same| !same).count() > 0);
            // No update is lost: nothing that it wrote to had changed.
            for step in &steps {
                if let Step::Put(key, _) | Step::Delete(key) = step {
                    assert_eq!(rows.get(key), began.get(key), "an update is lost");
                }
            }
            *rows = after;
        }
        Ok(_) => {}
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
            tally.refused += 1;
        }
    }
}

fn interleave(isolation: Isolation, seeds: std::ops::Range<u64>) -> Tally {
    let db = open(isolation);
    let family = db.default_family();
    let mut rows = Rows::new();
    let mut tally = Tally::default();
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let mut live: Vec<Live<'_>> = Vec::new();
        for _ in 0..60 {
            if live.len() < 4 && rng.below(3) == 0 {
                live.push(Live {
                    tx: db.begin(),
                    steps: Vec::new(),
                    began: rows.clone(),
                });
            }
            if live.is_empty() {
                continue;
            }
            let chosen = rng.below(live.len() as u64) as usize;
            if rng.below(6) == 0 {
                commit(live.swap_remove(chosen), &mut rows, &mut tally);
            } else {
                let step = random_step(&mut rng, &mut live[chosen].tx, family);
                live[chosen].steps.push(step);
            }
        }
        if rng.below(10) == 0 {
            db.flush().unwrap();
        }
    }
    let mut cursor = db.iter(family, ReadOptions::default());
    cursor.seek_to_first();
    for (key, value) in &rows {
        assert_eq!((cursor.key(), cursor.value()), (&[*key][..], &[*value][..]));
        cursor.next();
    }
    assert!(!cursor.valid());
    tally
}

#[test]
fn what_commits_as_serializable_saw_what_it_would_have_seen_alone() {
    let tally = interleave(Isolation::Serializable, 0..400);
    assert_eq!(tally.skewed, 0, "{tally:?}");
    assert!(tally.committed > 500 && tally.refused > 500, "{tally:?}");
    // The canary: the check sees the skew that snapshot isolation allows.
    let tally = interleave(Isolation::Snapshot, 0..400);
    assert!(tally.skewed > 100, "{tally:?}");
}

#[test]
fn each_of_two_that_rest_on_the_other_commits_under_snapshots_alone() {
    for (isolation, both) in [
        (Isolation::Snapshot, true),
        (Isolation::Serializable, false),
    ] {
        let db = open(isolation);
        let family = db.default_family();
        let (mut one, mut two) = (db.begin(), db.begin());
        for (tx, key) in [(&mut one, b"one"), (&mut two, b"two")] {
            assert!(tx.get(family, b"one").unwrap().is_none());
            assert!(tx.get(family, b"two").unwrap().is_none());
            tx.put(family, key, b"gone").unwrap();
        }
        one.commit().unwrap();
        let outcome = two.commit();
        assert_eq!(outcome.is_ok(), both, "{isolation:?}");
        if let Err(error) = outcome {
            assert_eq!(error.kind(), ErrorKind::Busy);
            assert!(error.to_string().contains("\"one\""), "{error}");
        }
    }
}

#[test]
fn updates_are_not_lost_and_plain_writes_and_locks_count() {
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let db = open(isolation);
        let family = db.default_family();
        db.put(family, b"k", b"0").unwrap();
        let mut blind = db.begin();
        let mut careful = db.begin();
        let mut reader = db.begin();
        let mut checked = db.begin();
        blind.put(family, b"k", b"1").unwrap();
        careful.get_for_update(family, b"k").unwrap();
        careful.put(family, b"other", b"1").unwrap();
        assert!(reader.get_for_share(family, b"k").unwrap().is_some());
        checked.get_for_update(family, b"k").unwrap();
        // Nothing is locked yet.
        db.put(family, b"k", b"2").unwrap();
        for tx in [blind, careful] {
            assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Busy);
        }
        // What wrote nothing is of its moment.
        reader.commit().unwrap();
        let refused = checked.commit_checked(&WriteOptions::default());
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Busy);

        // Whoever locks is waited for, and refused by whoever came first.
        let mut holder = db.begin_with(TransactionOptions {
            isolation: Some(Isolation::Locks),
            ..TransactionOptions::default()
        });
        let mut optimist = db.begin_with(TransactionOptions {
            lock_timeout: Some(std::time::Duration::ZERO),
            ..TransactionOptions::default()
        });
        holder.put(family, b"k", b"3").unwrap();
        optimist.put(family, b"k", b"4").unwrap();
        assert_eq!(optimist.commit().unwrap_err().kind(), ErrorKind::TimedOut);
        holder.commit().unwrap();
        assert_eq!(db.get(family, b"k").unwrap().as_deref(), Some(&b"3"[..]));
        assert!(db.get(family, b"other").unwrap().is_none());
    }
}

/// Whether a serializable transaction that walked by `walk` commits though `key` was put meanwhile.
fn passes(
    order: &KeyOrder,
    key: &[u8],
    walk: impl FnOnce(&mut drumlin::OverlayIterator<'_>),
) -> bool {
    let db = open_in_order(Isolation::Serializable, order.clone());
    let family = db.default_family();
    for key in [b"c", b"g", b"m"] {
        db.put(family, key, b"").unwrap();
    }
    let mut tx = db.begin();
    let mut walked = tx.iter(family, ReadOptions::default()).unwrap();
    walk(&mut walked);
    drop(walked);
    tx.put(family, b"written", b"").unwrap();
    db.put(family, key, b"new").unwrap();
    tx.commit().is_ok()
}

#[test]
fn a_walk_counts_as_far_as_it_went() {
    let order = KeyOrder::Bytewise;
    // From d to g, where it found a key: d, e, f and g count, and nothing else.
    for (key, ok) in [
        (b"c", true),
        (b"d", false),
        (b"f", false),
        (b"g", false),
        (b"h", true),
    ] {
        assert_eq!(passes(&order, key, |walk| walk.seek(b"d")), ok, "{key:?}");
        let back = |walk: &mut drumlin::OverlayIterator<'_>| {
            walk.seek_for_prev(b"g");
            walk.seek(b"d");
        };
        assert_eq!(passes(&order, key, back), ok, "{key:?}");
    }
    // To the end, to the beginning, and there and back.
    let to_the_end = |walk: &mut drumlin::OverlayIterator<'_>| {
        walk.seek(b"h");
        walk.next();
    };
    for (key, ok) in [(b"g", true), (b"h", false), (b"z", false)] {
        assert_eq!(passes(&order, key, to_the_end), ok, "{key:?}");
    }
    let first = |walk: &mut drumlin::OverlayIterator<'_>| walk.seek_to_first();
    let last = |walk: &mut drumlin::OverlayIterator<'_>| walk.seek_to_last();
    for (key, at_first, at_last) in [(b"a", false, true), (b"d", true, true), (b"z", true, false)] {
        assert_eq!(passes(&order, key, first), at_first, "{key:?}");
        assert_eq!(passes(&order, key, last), at_last, "{key:?}");
        let reverse = KeyOrder::ReverseBytewise;
        assert_eq!(passes(&reverse, key, last), at_first, "{key:?}");
        assert_eq!(passes(&reverse, key, first), at_last, "{key:?}");
    }
    let there_and_back = |walk: &mut drumlin::OverlayIterator<'_>| {
        walk.seek(b"g");
        walk.next();
        walk.prev();
        walk.prev();
    };
    for (key, ok) in [(b"b", true), (b"d", false), (b"l", false), (b"n", true)] {
        assert_eq!(passes(&order, key, there_and_back), ok, "{key:?}");
    }
}

#[test]
fn one_stays_on_call_though_threads_leave_at_the_same_time() {
    const DOCTORS: u8 = 4;
    let db = open(Isolation::Serializable);
    let family = db.default_family();
    for doctor in 0..DOCTORS {
        db.put(family, [doctor], b"on").unwrap();
    }
    let on_call = |tx: &mut Transaction<'_>| {
        let mut walk = tx.iter(family, ReadOptions::default())?;
        let mut count = 0;
        walk.seek_to_first();
        while walk.valid() {
            count += 1;
            walk.next();
        }
        walk.status().map(|()| count)
    };
    let may_fail = |outcome: drumlin::Result<()>| {
        if let Err(error) = outcome {
            let kind = error.kind();
            let known = [ErrorKind::Busy, ErrorKind::Deadlock, ErrorKind::TimedOut];
            assert!(known.contains(&kind), "{error}");
        }
    };
    thread::scope(|scope| {
        for doctor in 0..DOCTORS {
            let (db, on_call) = (&db, &on_call);
            scope.spawn(move || {
                for _ in 0..60 {
                    may_fail(db.run(|tx| match on_call(tx)? {
                        0 | 1 => Ok(()),
                        _ => tx.delete(family, [doctor]),
                    }));
                    may_fail(db.run(|tx| tx.put(family, [doctor], b"on")));
                }
            });
        }
        for _ in 0..200 {
            assert!(on_call(&mut db.begin()).unwrap() > 0, "nobody is there");
        }
    });
}
