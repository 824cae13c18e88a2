//! Goal: no interleaving of adds and reads loses, tears or misorders an entry. Method: loom runs
//! small cases exhaustively, up to a bound of preemptions, on nodes of three slots, so that leaves
//! and inner nodes split under the readers' feet.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p drumlin-memtable --release --test loom`
#![cfg(loom)]

use std::ops::ControlFlow;
use std::sync::Arc;

use drumlin_base::key::{seek_key, split_internal, tag_kind, tag_seqno};
use drumlin_base::{InternalIterator, KeyOrder, MemoryBudget, MemoryUse, SEQNO_MAX, ValueKind};
use drumlin_memtable::{Memtable, Sight, set_stepping};

/// A memtable that holds `keys`, each with itself as its value.
fn memtable_of(keys: &[u8]) -> Arc<Memtable> {
    let memtable = Arc::new(Memtable::new(KeyOrder::Bytewise));
    for &key in keys {
        add(&memtable, key);
    }
    memtable
}

fn add(memtable: &Memtable, key: u8) {
    memtable.add(u64::from(key), ValueKind::Value, &[key], &[key]);
}

fn get(memtable: &Arc<Memtable>, key: u8) -> Option<u8> {
    let mut found = None;
    memtable.get(&[key], SEQNO_MAX, |_, _, value| {
        found = value.bytes().first().copied();
        ControlFlow::Break(())
    });
    found
}

fn walk(memtable: &Arc<Memtable>, forward: bool) -> Vec<u8> {
    let mut iter = memtable.iter();
    let mut keys = Vec::new();
    if forward {
        iter.seek_to_first();
    } else {
        iter.seek_to_last();
    }
    while iter.valid() {
        let (key, _) = split_internal(iter.key()).expect("an internal key");
        assert_eq!(iter.value(), key, "an entry is seen whole");
        keys.extend_from_slice(key);
        if forward {
            iter.next();
        } else {
            iter.prev();
        }
    }
    keys
}

/// Asserts that `seen` is ascending, holds all of `before`, and nothing that is not in `all`.
fn assert_between(seen: &[u8], before: &[u8], all: &[u8]) {
    assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
    assert!(before.iter().all(|key| seen.contains(key)), "{seen:?}");
    assert!(seen.iter().all(|key| all.contains(key)), "{seen:?}");
}

fn sorted(keys: &[u8], more: &[u8]) -> Vec<u8> {
    let mut all = [keys, more].concat();
    all.sort_unstable();
    all
}

/// One writer for each of `added` adds it to `before`, while the main thread runs `read` with the
/// keys it must see and those it may see. One writer is explored with extra switching points and up
/// to two preemptions, two writers without and up to three.
fn model<const WRITERS: usize>(
    before: &'static [u8],
    added: [u8; WRITERS],
    read: impl Fn(&Arc<Memtable>, &[u8], &[u8]) + Send + Sync + Copy + 'static,
) {
    let stepping = WRITERS == 1;
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(if stepping { 2 } else { 3 });
    builder.max_branches = 20_000;
    builder.check(move || {
        set_stepping(false);
        let memtable = memtable_of(before);
        set_stepping(stepping);
        let all = sorted(before, &added);
        let writers: Vec<_> = added
            .into_iter()
            .map(|key| {
                let memtable = Arc::clone(&memtable);
                loom::thread::spawn(move || add(&memtable, key))
            })
            .collect();
        read(&memtable, before, &all);
        for writer in writers {
            writer.join().expect("writers do not panic");
        }
        set_stepping(false);
        assert_eq!(walk(&memtable, true), all);
        assert_eq!(memtable.entries(), all.len());
        for &key in &all {
            assert_eq!(get(&memtable, key), Some(key));
        }
    });
}

fn read_forward(memtable: &Arc<Memtable>, before: &[u8], all: &[u8]) {
    assert_between(&walk(memtable, true), before, all);
}

fn read_backward(memtable: &Arc<Memtable>, before: &[u8], all: &[u8]) {
    let mut seen = walk(memtable, false);
    seen.reverse();
    assert_between(&seen, before, all);
}

fn read_points(memtable: &Arc<Memtable>, before: &[u8], all: &[u8]) {
    for &key in all {
        let found = get(memtable, key);
        assert!(found == Some(key) || (found.is_none() && !before.contains(&key)));
    }
}

fn read_many(memtable: &Arc<Memtable>, before: &[u8], all: &[u8]) {
    let keys: Vec<_> = all.iter().map(std::slice::from_ref).collect();
    let mut found = vec![None; all.len()];
    memtable.get_many(&keys, SEQNO_MAX, |index, _, _, value| {
        found[index] = value.bytes().first().copied();
        ControlFlow::Break(())
    });
    for (key, found) in all.iter().zip(found) {
        assert!(found == Some(*key) || (found.is_none() && !before.contains(key)));
    }
}

fn read_seeks(memtable: &Arc<Memtable>, before: &[u8], all: &[u8]) {
    let (Some(&last), Some(&first)) = (before.last(), before.first()) else {
        return;
    };
    let mut iter = memtable.iter();
    iter.seek(&seek_key(&[last], SEQNO_MAX));
    assert_eq!(iter.value(), [last]);
    iter.seek_for_prev(&seek_key(&[first + 1], SEQNO_MAX));
    assert!(iter.valid() && iter.value() >= &[first][..] && all.contains(&iter.value()[0]));
}

/// The root leaf has one slot free: one writer fills it, the other splits it.
#[test]
fn a_splitting_root_leaf_serves_points() {
    model(&[10, 30], [20, 40], read_points);
}

/// Both writers meet a full root leaf, in its middle.
#[test]
fn a_full_root_leaf_serves_walks_forward() {
    model(&[10, 30, 50], [20, 40], read_forward);
}

/// One writer appends behind all, the other goes before all.
#[test]
fn a_full_root_leaf_serves_walks_backward() {
    model(&[10, 30, 50], [5, 60], read_backward);
}

/// Both append to the tail.
#[test]
fn appends_race_for_the_tail() {
    model(&[10, 30], [50, 60], read_backward);
}

/// The root is an inner node, its leaves are full or nearly so.
#[test]
fn splitting_leaves_below_an_inner_root_serve_seeks() {
    model(&[10, 20, 30, 40, 50, 60], [25, 55], read_seeks);
}

/// The root is a full inner node: the writers split it and a leaf.
#[test]
fn a_splitting_inner_root_serves_points() {
    model(
        &[10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110],
        [15, 105],
        |memtable, _, _| {
            assert_eq!(get(memtable, 10), Some(10));
            assert_eq!(get(memtable, 60), Some(60));
            assert_eq!(get(memtable, 110), Some(110));
        },
    );
}

/// Entries are shifted while a reader stands on them.
#[test]
fn shifted_entries_serve_walks_forward() {
    model(&[10, 30], [5], read_forward);
}

/// Entries are shifted while a reader looks for them.
#[test]
fn shifted_entries_serve_points() {
    model(&[10, 30], [5], read_points);
}

/// The root leaf splits while a reader goes down.
#[test]
fn a_new_root_serves_points() {
    model(&[10, 30, 50], [20], read_points);
}

/// The root leaf splits while many searches go down together.
#[test]
fn a_new_root_serves_many_points() {
    model(&[10, 30, 50], [20], read_many);
}

/// A leaf below an inner root splits while many searches wait between the two.
#[test]
fn a_splitting_leaf_serves_many_points() {
    model(&[10, 20, 30, 40, 50], [45], |memtable, _, _| {
        read_many(memtable, &[10, 50], &[10, 50]);
    });
}

/// The root leaf splits while a reader stands in it.
#[test]
fn a_new_root_serves_walks_backward() {
    model(&[10, 30, 50], [20], read_backward);
}

/// A reader that met an entry is never told afterwards that it is absent.
fn read_what_was_met(memtable: &Arc<Memtable>, _: &[u8], _: &[u8]) {
    for key in walk(memtable, false) {
        assert_eq!(get(memtable, key), Some(key));
    }
}

/// The filter's layer in use has room for one key more.
#[test]
fn a_filter_knows_every_entry_that_was_met() {
    model(&[10, 20, 30], [25], read_what_was_met);
}

/// The next layer is started.
#[test]
fn a_filter_that_grows_knows_every_entry_that_was_met() {
    model(&[10, 20, 30, 40], [25], read_what_was_met);
}

/// One writer sets bits in the layer in use, the other starts the next.
#[test]
fn a_filter_that_grows_under_writers_serves_points() {
    model(&[10, 20, 30], [25, 35], read_points);
}

/// Both writers start the next layer.
#[test]
fn a_layer_is_started_once() {
    model(&[10, 20, 30, 40], [25, 35], |_, _, _| {});
}

/// `before` range tombstones are there, two more are added by writers of their own, out of order, and a reader
/// that was told of some sees those, at its snapshot. Two tombstones make a group in a model.
fn model_of_tombstones(before: u64) {
    let add = |memtable: &Memtable, seqno: u64| {
        let (begin, end) = ([seqno as u8], [seqno as u8 + 3]);
        memtable.add(seqno, ValueKind::RangeDeletion, &begin, &end);
    };
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        set_stepping(false);
        let memtable = Arc::new(Memtable::new(KeyOrder::Bytewise));
        (1..=before).for_each(|seqno| add(&memtable, seqno));
        let writers = [before + 2, before + 1].map(|seqno| {
            let memtable = Arc::clone(&memtable);
            loom::thread::spawn(move || add(&memtable, seqno))
        });
        for key in 1..=before as u8 + 2 {
            let newest = u64::from(key);
            assert_eq!(
                memtable.covering_seqno(&[key], newest.min(before)),
                newest.min(before)
            );
            let now = memtable.covering(&[key], SEQNO_MAX).seqno;
            assert!(now == newest || (newest > before && now < newest));
        }
        for writer in writers {
            writer.join().expect("writers do not panic");
        }
        for seqno in 1..=before + 2 {
            assert_eq!(memtable.covering_seqno(&[seqno as u8], SEQNO_MAX), seqno);
        }
        assert_eq!(memtable.range_tombstone_count() as u64, before + 2);
    });
}

/// The first two of all.
#[test]
fn the_first_range_tombstones_are_seen() {
    model_of_tombstones(0);
}

/// The first group is made.
#[test]
fn range_tombstones_that_make_a_group_are_seen() {
    model_of_tombstones(1);
}

/// Groups are merged, and merged again.
#[test]
fn range_tombstones_whose_groups_are_merged_are_seen() {
    model_of_tombstones(7);
}

/// The first key from `from` on that is no deletion, or is too new for a reader at `seqno`.
fn first_that_shows(memtable: &Arc<Memtable>, from: &[u8], seqno: u64) -> Option<Vec<u8>> {
    let mut iter = memtable.iter();
    iter.seek(&seek_key(from, SEQNO_MAX));
    while iter.valid() {
        let (key, tag) = split_internal(iter.key()).expect("an internal key");
        if tag_kind(tag) == ValueKind::Value as u8 || tag_seqno(tag) > seqno {
            return Some(key.to_vec());
        }
        iter.next();
    }
    None
}

/// Of a walk that notes dead keys and a writer among them, the walk meets the entry or the writer cuts the note.
#[test]
fn what_is_written_into_a_span_while_it_is_noted_is_in_none() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        set_stepping(false);
        let order = KeyOrder::Bytewise;
        let memtable = Arc::new(Memtable::new(order.clone()));
        for key in [1, 3] {
            memtable.add(u64::from(key), ValueKind::Deletion, &[key], &[]);
        }
        let writer = {
            let memtable = Arc::clone(&memtable);
            loom::thread::spawn(move || {
                memtable.add(9, ValueKind::Value, &[2], b"value");
                let added = std::iter::once(&[2][..]);
                memtable.dead_spans().cut(memtable.order(), added);
            })
        };
        let spans = memtable.dead_spans();
        let sight = |seqno| Sight { state: 1, seqno };
        let note = spans.open(&order, (&[1], None), sight(5));
        let note = note.expect("nobody else notes");
        let found = first_that_shows(&memtable, &note.from, 5);
        spans.settle(&order, &note, found.as_deref());
        writer.join().expect("writers do not panic");
        let end = spans.end_over(&order, &[1], sight(9));
        assert_eq!(end, Some(Some(vec![2])));
    });
}

/// Values outlive the memtable; its memory goes once, with the last of them.
#[test]
fn pinned_values_and_the_memtable_may_go_in_any_order() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        set_stepping(false);
        let budget = MemoryBudget::new(1 << 30);
        let memtable = Arc::new(Memtable::charged(
            KeyOrder::Bytewise,
            None,
            Arc::clone(&budget),
        ));
        memtable.add(1, ValueKind::Value, b"key", &[7; 200]);
        memtable.account();
        let readers = [(); 2].map(|()| {
            let mut pinned = None;
            memtable.get(b"key", SEQNO_MAX, |_, _, value| {
                pinned = Some(value.pin());
                ControlFlow::Break(())
            });
            let budget = Arc::clone(&budget);
            loom::thread::spawn(move || {
                assert!(budget.used(MemoryUse::Memtables) > 0, "freed while pinned");
                drop(pinned);
            })
        });
        drop(memtable);
        for reader in readers {
            reader.join().expect("readers do not panic");
        }
        assert_eq!(budget.used(MemoryUse::Memtables), 0, "never freed");
    });
}
