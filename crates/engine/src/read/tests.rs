//! Goal: every way to read agrees with the definition of a read. Method: random families in random
//! layers beside a naive twin, read at random sequence numbers, bounds and prefixes.

use std::sync::Arc;

use drumlin_base::rng::Rng;
use drumlin_base::{Error, ErrorKind, SeqNo};
use drumlin_table::{ReadTier, TableReadOptions};

use super::get::get_charged;
use super::test_family::{Family, random_key, universe};
use super::test_family::{get, multi_get, without_pool};
use super::test_tables::TestTables;
use super::{DbIterator, FamilyReads, IteratorOptions, ReadContext, ReadView, RefreshSource};
use crate::family::super_version::SuperVersion;

type Row = (Vec<u8>, Vec<u8>);

fn options() -> IteratorOptions {
    IteratorOptions {
        lower_bound: None,
        upper_bound: None,
        prefix_same_as_start: false,
        table: TableReadOptions::default(),
    }
}

fn iter(family: &Family, seqno: SeqNo, options: IteratorOptions) -> DbIterator {
    let (context, super_version) = (
        Arc::clone(&family.context),
        Arc::clone(&family.super_version),
    );
    DbIterator::new(context, super_version, seqno, options)
}

fn row(iter: &DbIterator) -> Option<Row> {
    if !iter.valid() {
        iter.status().expect("no source fails");
        return None;
    }
    assert_eq!(&*iter.pin_value(), iter.value());
    Some((iter.key().to_vec(), iter.value().to_vec()))
}

fn random_seqno(family: &Family, rng: &mut Rng) -> SeqNo {
    match rng.below(3) {
        0 => family.newest,
        _ => family.oldest + rng.below(family.newest - family.oldest + 1),
    }
}

/// Random bounds, in order, and the rows of `rows` within them.
fn random_bounds(family: &Family, rng: &mut Rng, rows: Vec<Row>) -> (IteratorOptions, Vec<Row>) {
    let mut options = options();
    let (a, b) = (random_key(rng), random_key(rng));
    let (low, high) = if family.order.compare(&a, &b).is_le() {
        (a, b)
    } else {
        (b, a)
    };
    options.lower_bound = rng.one_in(2).then_some(low);
    options.upper_bound = rng.one_in(2).then_some(high);
    let order = &family.order;
    let within = rows
        .into_iter()
        .filter(|(key, _)| {
            let above = |low: &Vec<u8>| order.compare(key, low).is_ge();
            let below = |high: &Vec<u8>| order.compare(key, high).is_lt();
            options.lower_bound.as_ref().is_none_or(above)
                && options.upper_bound.as_ref().is_none_or(below)
        })
        .collect();
    (options, within)
}

#[test]
fn get_and_multi_get_answer_as_defined() {
    for seed in 0..400 {
        answers_are_as_defined(seed, &Family::random(seed));
    }
}

#[test]
fn get_and_multi_get_in_memory_answer_as_defined() {
    for seed in 0..400 {
        let family = Family::in_memory(seed);
        let runs = family
            .super_version
            .resident_runs(&family.order, &family.context.tables);
        assert!(runs.is_some(), "seed {seed}");
        answers_are_as_defined(seed, &family);
    }
}

fn answers_are_as_defined(seed: u64, family: &Family) {
    let (super_version, context) = (&*family.super_version, &*family.context);
    let mut rng = Rng::new(seed);
    let keys: Vec<Vec<u8>> = universe().into_iter().rev().collect();
    for _ in 0..4 {
        let at = random_seqno(family, &mut rng);
        let table = TableReadOptions::default();
        // More than are looked up side by side at a time.
        let thrice = keys.iter().cycle().take(3 * keys.len()).cloned();
        let thrice: Vec<Vec<u8>> = thrice.collect();
        let many = multi_get(super_version, context, &thrice, at, &table);
        assert_eq!(many.len(), thrice.len());
        for (key, among_many) in thrice.iter().zip(many) {
            let want = family.twin.get(&family.order, key, at);
            let one = get(super_version, context, key, at, &table).unwrap();
            let found = one.as_deref();
            assert_eq!(found, want.as_deref(), "seed {seed} key {key:?} at {at}");
            let read = ReadView {
                super_version,
                context,
                seqno: at,
            };
            let mut sampled = Ok(None);
            get_charged(read, key, &table, &mut sampled);
            let sampled = sampled.unwrap();
            assert_eq!(sampled.as_deref(), want.as_deref(), "seed {seed}");
            let among_many = among_many.unwrap();
            assert_eq!(among_many.as_deref(), want.as_deref(), "seed {seed}");
        }
    }
}

#[test]
fn walks_yield_the_rows_that_show_and_backward_is_forward_reversed() {
    for seed in 0..600 {
        let family = Family::random(seed);
        let mut rng = Rng::new(seed);
        for _ in 0..3 {
            let at = random_seqno(&family, &mut rng);
            let rows = family.twin.scan(&family.order, at);
            let (options, rows) = random_bounds(&family, &mut rng, rows);
            let mut iter = iter(&family, at, options);
            iter.seek_to_first();
            for want in &rows {
                assert_eq!(row(&iter).as_ref(), Some(want), "seed {seed} at {at}");
                iter.next();
            }
            assert_eq!(row(&iter), None, "seed {seed} at {at}");
            iter.seek_to_last();
            for want in rows.iter().rev() {
                assert_eq!(row(&iter).as_ref(), Some(want), "seed {seed} at {at}");
                iter.prev();
            }
            assert_eq!(row(&iter), None, "seed {seed} at {at}");
        }
    }
}

#[test]
fn random_moves_follow_the_rows() {
    for seed in 0..600 {
        let family = Family::random(seed);
        let order = &family.order;
        let mut rng = Rng::new(seed);
        let at = random_seqno(&family, &mut rng);
        let rows = family.twin.scan(order, at);
        let (options, rows) = random_bounds(&family, &mut rng, rows);
        let mut iter = iter(&family, at, options);
        let mut place: Option<usize> = None;
        for step in 0..80 {
            match rng.below(8) {
                0 => {
                    let target = random_key(&mut rng);
                    iter.seek(&target);
                    place = rows
                        .iter()
                        .position(|(key, _)| order.compare(key, &target).is_ge());
                }
                1 => {
                    let target = random_key(&mut rng);
                    iter.seek_for_prev(&target);
                    place = rows
                        .iter()
                        .rposition(|(key, _)| order.compare(key, &target).is_le());
                }
                2..=4 if place.is_some() => {
                    iter.next();
                    place = place.map(|i| i + 1).filter(|&i| i < rows.len());
                }
                5..=7 if place.is_some() => {
                    iter.prev();
                    place = place.and_then(|i| i.checked_sub(1));
                }
                _ => continue,
            }
            let want = place.and_then(|i| rows.get(i));
            assert_eq!(row(&iter).as_ref(), want, "seed {seed} at {at} step {step}");
        }
    }
}

#[test]
fn the_walk_may_turn_at_every_row() {
    for seed in 0..60 {
        let family = Family::random(seed);
        let rows = family.twin.scan(&family.order, family.newest);
        let mut iter = iter(&family, family.newest, options());
        for (at, want) in rows.iter().enumerate() {
            iter.seek_to_first();
            (0..at).for_each(|_| iter.next());
            iter.prev();
            assert_eq!(
                row(&iter).as_ref(),
                at.checked_sub(1).map(|i| &rows[i]),
                "seed {seed}"
            );
            if iter.valid() {
                iter.next();
                assert_eq!(row(&iter).as_ref(), Some(want), "seed {seed}");
                iter.next();
                assert_eq!(row(&iter).as_ref(), rows.get(at + 1), "seed {seed}");
            }
        }
    }
}

#[test]
fn a_walk_within_a_prefix_ends_where_the_prefix_ends() {
    for seed in 0..200 {
        let family = Family::random(seed);
        let order = &family.order;
        let mut rng = Rng::new(seed);
        let mut options = options();
        options.prefix_same_as_start = true;
        let mut iter = iter(&family, family.newest, options);
        let target = random_key(&mut rng);
        let rows = family.twin.scan(order, family.newest);
        let same = |key: &[u8]| key.first() == target.first();
        iter.seek(&target);
        for want in rows
            .iter()
            .filter(|(k, _)| same(k) && order.compare(k, &target).is_ge())
        {
            assert_eq!(row(&iter).as_ref(), Some(want), "seed {seed}");
            iter.next();
        }
        assert_eq!(row(&iter), None, "seed {seed}");
        iter.seek_for_prev(&target);
        let before = rows.iter().rev();
        for want in before.filter(|(k, _)| same(k) && order.compare(k, &target).is_le()) {
            assert_eq!(row(&iter).as_ref(), Some(want), "seed {seed}");
            iter.prev();
        }
        assert_eq!(row(&iter), None, "seed {seed}");
    }
}

#[test]
fn moves_within_a_prefix_follow_its_rows_wherever_they_begin() {
    for seed in 0..600 {
        let family = Family::random(seed);
        let order = &family.order;
        let mut rng = Rng::new(seed);
        let at = random_seqno(&family, &mut rng);
        let rows = family.twin.scan(order, at);
        let (mut options, rows) = random_bounds(&family, &mut rng, rows);
        options.prefix_same_as_start = true;
        let mut iter = iter(&family, at, options);
        let (mut place, mut prefix): (Option<usize>, Option<u8>) = (None, None);
        for step in 0..80 {
            // The empty key has no prefix to stay in.
            let target = if rng.one_in(4) {
                Vec::new()
            } else {
                random_key(&mut rng)
            };
            let first_of = |place: Option<usize>| rows.get(place?).map(|(key, _)| key[0]);
            match rng.below(12) {
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
                2 | 3 => {
                    iter.seek(&target);
                    place = rows
                        .iter()
                        .position(|(key, _)| order.compare(key, &target).is_ge());
                    prefix = target.first().copied();
                }
                4 | 5 => {
                    iter.seek_for_prev(&target);
                    place = rows
                        .iter()
                        .rposition(|(key, _)| order.compare(key, &target).is_le());
                    prefix = target.first().copied();
                }
                6..=8 if place.is_some() => {
                    iter.next();
                    place = place.map(|i| i + 1).filter(|&i| i < rows.len());
                }
                9.. if place.is_some() => {
                    iter.prev();
                    place = place.and_then(|i| i.checked_sub(1));
                }
                _ => continue,
            }
            place = place.filter(|_| prefix.is_none() || prefix == first_of(place));
            let want = place.and_then(|i| rows.get(i));
            assert_eq!(row(&iter).as_ref(), want, "seed {seed} at {at} step {step}");
        }
    }
}

#[test]
fn writes_after_its_making_do_not_show_until_a_refresh() {
    struct Fixed(Arc<SuperVersion>, SeqNo);
    impl RefreshSource for Fixed {
        fn present(&self) -> (Arc<SuperVersion>, SeqNo) {
            (Arc::clone(&self.0), self.1)
        }

        fn seqno_if_present(&self, held: &Arc<SuperVersion>) -> Option<SeqNo> {
            Arc::ptr_eq(&self.0, held).then_some(self.1)
        }
    }
    for seed in 0..100 {
        let family = Family::random(seed);
        let rows = family.twin.scan(&family.order, family.newest);
        let later = family.newest + 1;
        let mut iter = iter(&family, family.newest, options())
            .with_source(Arc::new(Fixed(Arc::clone(&family.super_version), later)));
        iter.seek_to_first();
        let kind = drumlin_base::ValueKind::Value;
        family
            .super_version
            .memtable
            .add(later, kind, b"bzz", b"late");
        let mut seen = Vec::new();
        while let Some(row) = row(&iter) {
            seen.push(row);
            iter.next();
        }
        assert_eq!(seen, rows, "seed {seed}");
        iter.refresh().unwrap();
        iter.seek(b"bzz");
        assert_eq!(
            row(&iter),
            Some((b"bzz".to_vec(), b"late".to_vec())),
            "seed {seed}"
        );
    }
}

#[test]
fn many_versions_and_wide_tombstones_are_left_by_seeks_not_steps() {
    use drumlin_base::{KeyOrder, ValueKind};
    use drumlin_memtable::Memtable;
    let family = Family::random(1);
    let old = Memtable::new(KeyOrder::Bytewise);
    let new = Memtable::new(KeyOrder::Bytewise);
    for seqno in 1..=1000 {
        old.add(
            seqno,
            ValueKind::Value,
            format!("key{seqno:04}").as_bytes(),
            b"v",
        );
        old.add(1000 + seqno, ValueKind::Value, b"hot", b"v");
    }
    new.add(3000, ValueKind::RangeDeletion, b"key0001", b"key0999");
    let (old, new) = (Arc::new(old), Arc::new(new));
    let version = Arc::new(crate::version::Version::empty());
    let super_version = SuperVersion::new(new, vec![old], version, 1);
    let context = ReadContext {
        ttl: None,
        order: KeyOrder::Bytewise,
        merge_operator: None,
        in_memory: false,
        prefix: None,
        tables: Arc::clone(&family.context.tables),
        blobs: Arc::clone(&family.context.blobs),
    };
    let mut iter = DbIterator::new(without_pool(context), super_version, 4000, options());
    let keys = |iter: &DbIterator| String::from_utf8_lossy(iter.key()).into_owned();
    iter.seek_to_first();
    assert_eq!(keys(&iter), "hot");
    iter.next();
    assert_eq!(keys(&iter), "key0999");
    iter.next();
    iter.prev();
    iter.prev();
    assert_eq!(keys(&iter), "hot");
    let counters = iter.counters();
    assert!(
        counters.entries_hidden + counters.range_deleted < 100,
        "{counters:?}"
    );
}

#[test]
fn operands_without_an_operator_fail_reads_by_name() {
    use drumlin_base::ValueKind;
    let family = Family::random(2);
    family
        .super_version
        .memtable
        .add(family.newest + 1, ValueKind::Merge, b"ab", b"x");
    let context = without_pool(ReadContext {
        ttl: None,
        order: family.order.clone(),
        merge_operator: None,
        in_memory: false,
        prefix: None,
        tables: Arc::clone(&family.context.tables),
        blobs: Arc::clone(&family.context.blobs),
    });
    let at = family.newest + 1;
    let error = get(
        &family.super_version,
        &context,
        b"ab",
        at,
        &TableReadOptions::default(),
    );
    assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let mut iter = DbIterator::new(context, Arc::clone(&family.super_version), at, options());
    iter.seek(b"ab");
    assert!(!iter.valid());
    assert_eq!(
        iter.status().unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}

/// Two tables of one level, the second of which cannot be opened.
fn half_readable() -> (Arc<FamilyReads>, Arc<SuperVersion>) {
    use crate::version::{FileMeta, NewFile, Version};
    use drumlin_base::key::internal_key;
    use drumlin_base::{KeyOrder, ValueKind};
    let order = KeyOrder::Bytewise;
    let mut tables = TestTables::new(order.clone(), Rng::new(3));
    let files = [[b"a", b"b"], [b"c", b"d"]].map(|keys| {
        let entry = |key: &[u8; 1]| (internal_key(key, 1, ValueKind::Value), b"v".to_vec());
        let entries = keys.map(entry);
        let file = FileMeta::new(NewFile {
            number: 900 + u64::from(keys[0][0]),
            smallest: entries[0].0.clone(),
            largest: entries[1].0.clone(),
            ..NewFile::default()
        });
        tables.write(file, &entries, &[])
    });
    files[1].table.store(None);
    let mut levels: [Vec<Arc<FileMeta>>; 7] = Default::default();
    levels[3] = files.to_vec();
    let memtable = Arc::new(drumlin_memtable::Memtable::new(order.clone()));
    let version = Version::new(&order, levels).with_blobs(tables.blobs());
    let version = Arc::new(version);
    let context = ReadContext {
        ttl: None,
        order,
        merge_operator: None,
        in_memory: false,
        prefix: None,
        tables: tables.cache(),
        blobs: tables.blob_cache(),
    };
    let super_version = SuperVersion::new(memtable, Vec::new(), version, 1);
    (without_pool(context), super_version)
}

#[test]
fn a_table_that_cannot_be_opened_fails_only_the_reads_that_need_it() {
    let (context, super_version) = half_readable();
    let table = TableReadOptions::default();
    assert!(
        get(&super_version, &context, b"b", 9, &table)
            .unwrap()
            .is_some()
    );
    assert!(get(&super_version, &context, b"c", 9, &table).is_err());
    let many = multi_get(&super_version, &context, &["c", "a", "bb"], 9, &table);
    assert!(many[0].is_err() && many[1].is_ok() && many[2].as_ref().unwrap().is_none());

    let mut iter = DbIterator::new(context, super_version, 9, options());
    iter.seek_to_first();
    iter.next();
    assert_eq!(iter.key(), b"b");
    iter.next();
    assert!(!iter.valid() && iter.status().is_err());
    iter.seek(b"b");
    assert!(
        iter.valid() && iter.status().is_ok(),
        "a new seek forgets the error"
    );
}

#[test]
fn reads_from_the_cache_only_open_no_table() {
    let (context, super_version) = half_readable();
    let mut cached = options();
    cached.table.tier = ReadTier::BlockCache;
    let kind = |error: &Error| error.kind();
    let found = get(&super_version, &context, b"c", 9, &cached.table);
    assert_eq!(found.as_ref().map_err(kind), Err(ErrorKind::Incomplete));
    let many = multi_get(&super_version, &context, &["c", "a"], 9, &cached.table);
    assert_eq!(many[0].as_ref().map_err(kind), Err(ErrorKind::Incomplete));
    let mut iter = DbIterator::new(context, super_version, 9, cached);
    iter.seek(b"c");
    assert!(!iter.valid());
    assert_eq!(
        iter.status().map_err(|error| kind(&error)),
        Err(ErrorKind::Incomplete)
    );
}

#[test]
fn tables_past_the_bounds_are_not_opened() {
    let (context, super_version) = half_readable();
    let mut bounded = options();
    bounded.upper_bound = Some(b"c".to_vec());
    let mut iter = DbIterator::new(Arc::clone(&context), Arc::clone(&super_version), 9, bounded);
    iter.seek(b"b");
    iter.next();
    assert!(!iter.valid());
    iter.status().unwrap();
    iter.seek(b"bb");
    assert!(!iter.valid());
    iter.status().unwrap();
}

#[test]
fn an_iterator_may_move_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<DbIterator>();
}
