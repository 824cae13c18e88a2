//! Goal: iterators that take over the walk of one before them show what new ones would, whatever that one
//! did, and leave nothing behind. Method: random iterators one after the other over a random family in
//! memory, beside its twin; and a database whose engine must go when its handles do.

use std::sync::{Arc, Weak};
use std::time::Duration;

use drumlin_base::operators::FixedPrefix;
use drumlin_base::rng::Rng;
use drumlin_base::{SeqNo, ValueKind};
use drumlin_fs::{Clock, Env, StrictMemFileSystem, SystemClock};
use drumlin_table::{TableFormat, TableReadOptions};

use super::test_family::{Family, random_key};
use super::{DbIterator, FamilyReads, IteratorOptions, RefreshSource, WalkPool};
use crate::family::super_version::SuperVersion;
use crate::{Db, FamilyOptions, Options, ReadOptions};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

type Row = (Vec<u8>, Vec<u8>);

/// A super version that stays the present one.
struct Fixed(Arc<SuperVersion>, SeqNo);

impl RefreshSource for Fixed {
    fn present(&self) -> (Arc<SuperVersion>, SeqNo) {
        (Arc::clone(&self.0), self.1)
    }

    fn seqno_if_present(&self, held: &Arc<SuperVersion>) -> Option<SeqNo> {
        Arc::ptr_eq(&self.0, held).then_some(self.1)
    }
}

fn row(iter: &DbIterator) -> Option<Row> {
    iter.status().expect("no source fails");
    let row = || {
        assert_eq!(&*iter.pin_value(), iter.value());
        (iter.key().to_vec(), iter.value().to_vec())
    };
    iter.valid().then(row)
}

/// A family in memory whose iterators leave their walks to one another.
fn family(seed: u64) -> Family {
    let mut family = Family::in_memory(seed);
    let context = Arc::get_mut(&mut family.context).expect("nobody else has it yet");
    context.walks = WalkPool::new(family.super_version.number);
    family
}

fn iterator(family: &Family, seqno: SeqNo, options: IteratorOptions) -> DbIterator {
    let (context, super_version): (&Arc<FamilyReads>, _) = (&family.context, &family.super_version);
    DbIterator::over_present(context, super_version, seqno, None, options, || {
        Arc::new(Fixed(Arc::clone(super_version), seqno))
    })
}

fn random_options(rng: &mut Rng) -> IteratorOptions {
    let mut bounds = [random_key(rng), random_key(rng)];
    bounds.sort();
    let [low, high] = bounds;
    IteratorOptions {
        lower_bound: rng.one_in(3).then_some(low),
        upper_bound: rng.one_in(3).then_some(high),
        prefix_same_as_start: rng.one_in(2),
        table: TableReadOptions {
            fill_cache: rng.one_in(2),
            ..TableReadOptions::default()
        },
    }
}

/// Some moves of `iter` beside `rows`, all that it may show.
fn check_moves(rng: &mut Rng, iter: &mut DbIterator, rows: &[Row], within: bool, hint: &str) {
    let (mut place, mut prefix): (Option<usize>, Option<u8>) = (None, None);
    assert_eq!(row(iter), None, "{hint}");
    let first_of = |place: Option<usize>| rows.get(place?).map(|(key, _)| key[0]);
    for step in 0..rng.below(16) {
        let target = random_key(rng);
        match rng.below(10) {
            0 => {
                iter.seek_to_first();
                place = (!rows.is_empty()).then_some(0);
                prefix = first_of(place);
            }
            1 => {
                iter.seek_to_last();
                place = rows.len().checked_sub(1);
                prefix = first_of(place);
            }
            2..=4 => {
                iter.seek(&target);
                place = rows.iter().position(|(key, _)| *key >= target);
                prefix = target.first().copied();
            }
            5 => {
                iter.seek_for_prev(&target);
                place = rows.iter().rposition(|(key, _)| *key <= target);
                prefix = target.first().copied();
            }
            6..=8 if place.is_some() => {
                iter.next();
                place = place.map(|i| i + 1);
            }
            9 if place.is_some() => {
                iter.prev();
                place = place.and_then(|i| i.checked_sub(1));
            }
            _ => continue,
        }
        let stays = !within || prefix.is_none() || prefix == first_of(place);
        place = place.filter(|&place| stays && place < rows.len());
        let want = place.and_then(|place| rows.get(place));
        assert_eq!(row(iter).as_ref(), want, "{hint} step {step}");
    }
}

#[test]
fn iterators_one_after_the_other_show_what_new_ones_would() {
    for seed in 0..250 {
        let family = family(seed);
        let mut rng = Rng::new(seed);
        let mut newest = family.newest;
        let mut twin = family.twin.scan(&family.order, newest);
        for round in 0..12 {
            let at = match rng.below(3) {
                0 => family.oldest + rng.below(family.newest - family.oldest + 1),
                _ => newest,
            };
            let mut rows = if at == newest {
                twin.clone()
            } else {
                family.twin.scan(&family.order, at)
            };
            let options = random_options(&mut rng);
            let (low, high) = (&options.lower_bound, &options.upper_bound);
            rows.retain(|(key, _)| {
                low.as_ref().is_none_or(|low| key >= low)
                    && high.as_ref().is_none_or(|high| key < high)
            });
            let within = options.prefix_same_as_start;
            let mut iter = iterator(&family, at, options);
            let hint = format!("seed {seed} round {round} at {at}");
            check_moves(&mut rng, &mut iter, &rows, within, &hint);
            if rng.one_in(4) {
                // Another one beside it finds the pool empty.
                let options = random_options(&mut rng);
                drop(iterator(&family, newest, options));
            }
            drop(iter);
            if rng.one_in(3) {
                newest += 1;
                let key = random_key(&mut rng);
                let memtable = &family.super_version.memtable;
                memtable.add(newest, ValueKind::Value, &key, b"late");
                twin.retain(|(other, _)| *other != key);
                let at = twin.partition_point(|(other, _)| *other < key);
                twin.insert(at, (key, b"late".to_vec()));
            }
        }
    }
}

#[test]
fn range_tombstones_written_meanwhile_hide_rows_from_the_next_iterator() {
    for seed in 0..60 {
        let family = family(seed);
        let options = random_options(&mut Rng::new(seed));
        drop(iterator(&family, family.newest, options));
        let at = family.newest + 1;
        let memtable = &family.super_version.memtable;
        memtable.add(at, ValueKind::RangeDeletion, b"", &[0xff; 9]);
        for _ in 0..2 {
            let options = IteratorOptions {
                lower_bound: None,
                upper_bound: None,
                prefix_same_as_start: false,
                table: TableReadOptions::default(),
            };
            let mut iter = iterator(&family, at, options);
            iter.seek_to_first();
            assert_eq!(row(&iter), None, "seed {seed}");
        }
    }
}

/// A database in memory with a family `other`, both of plain tables.
fn database() -> (Db, crate::ColumnFamily) {
    let in_memory = FamilyOptions {
        table_format: Some(TableFormat::Plain),
        prefix_extractor: Some(Arc::new(FixedPrefix::new(3))),
        ..FamilyOptions::default()
    };
    let options = Options {
        family: in_memory.clone(),
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        ..Options::default()
    };
    let db = Db::open("/db", options).expect("an empty file system takes a database");
    let other = db.create_family("other", in_memory);
    (db, other.expect("there is no such family yet"))
}

fn walked(db: &Db, family: &crate::ColumnFamily) -> usize {
    let options = ReadOptions {
        prefix_same_as_start: true,
        ..ReadOptions::default()
    };
    let mut iter = db.iter_cf(family, options);
    iter.seek(b"key1");
    let mut rows = 0;
    while iter.valid() {
        rows += 1;
        iter.next();
    }
    iter.status().expect("memory does not fail");
    rows
}

/// Waits until `weak` has `held` owners. A background thread that looks around, as each does after a change,
/// holds the super version it looks at for a moment, so no count is right at once.
fn wait_for_owners<T>(weak: &Weak<T>, held: usize) {
    let clock = SystemClock::new();
    while weak.strong_count() != held {
        assert!(
            clock.monotonic() < PATIENCE,
            "{} own it",
            weak.strong_count()
        );
        clock.sleep(Duration::from_millis(1));
    }
}

#[test]
fn walks_that_wait_let_go_of_old_views_and_of_what_is_closed() {
    let (db, other) = database();
    let default = db.default_family().clone();
    let write = crate::WriteOptions::default();
    for round in 1..=5 {
        for family in [&default, &other] {
            let key = format!("key{round}");
            db.put_cf(family, key, "value", &write)
                .expect("it takes writes");
            assert_eq!((walked(&db, family), walked(&db, family)), (round, round));
            let super_version = Arc::downgrade(&family.0.super_version.load());
            db.flush_cf(family).expect("memory does not fail");
            wait_for_owners(&super_version, 0);
            assert_eq!(walked(&db, family), round);
        }
    }
    let held = db.iter_cf(&default, ReadOptions::default());
    db.drop_family(&other).expect("it is there");
    assert_eq!(walked(&db, &other), 5, "a handle goes on reading");
    let dropped = Arc::downgrade(&other.0);
    drop(other);
    db.wait_for_background().expect("nothing fails");
    wait_for_owners(&dropped, 0);
    let engine = Arc::downgrade(&db.engine);
    db.clone().close().expect("nothing fails");
    assert_eq!(walked(&db, &default), 5, "a closed database is read on");
    drop((db, default));
    wait_for_owners(&engine, 1); // The iterator's.
    drop(held);
    wait_for_owners(&engine, 0);
}
