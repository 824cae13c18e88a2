//! Goal: a job changes no answer at any snapshot. Method: every history of a few entries over a
//! small domain, for every set of snapshots, against a naive model of reading.

use std::sync::Arc;

use drumlin_base::key::{ParsedKey, internal_key, user_key};
use drumlin_base::rng::Rng;
use drumlin_base::{
    CompactionFilter, FilterDecision, InternalIterator, KeyOrder, MergeOperator, RangeTombstone,
    Result, SeqNo, ValueKind,
};

use super::cover::{Cover, retain};
use super::keep::{Below, Stripes};
use super::stream::{Stream, StreamCounts, StreamOptions};
use crate::iter::range_tombstone::Fragments;

pub(super) type Entry = (Vec<u8>, SeqNo, ValueKind, Vec<u8>);

/// A cursor over a sorted vector of internal keys.
#[derive(Debug)]
pub(super) struct VecCursor {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    at: usize,
}

impl VecCursor {
    fn new(entries: &[Entry]) -> Self {
        let mut sorted = entries.to_vec();
        sorted.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        let entries = sorted
            .into_iter()
            .map(|(key, seqno, kind, value)| (internal_key(&key, seqno, kind), value))
            .collect();
        Self { entries, at: 0 }
    }
}

impl InternalIterator for VecCursor {
    fn valid(&self) -> bool {
        self.at < self.entries.len()
    }
    fn seek_to_first(&mut self) {
        self.at = 0;
    }
    fn seek_to_last(&mut self) {
        self.at = self.entries.len().saturating_sub(1);
    }
    fn seek(&mut self, target: &[u8]) {
        let is_before = |entry: &(Vec<u8>, Vec<u8>)| user_key(&entry.0) < user_key(target);
        let rest = self.entries.get(self.at..).unwrap_or_default();
        self.at += rest.partition_point(is_before);
    }
    fn seek_for_prev(&mut self, _target: &[u8]) {
        unreachable!("a stream only walks forward")
    }
    fn next(&mut self) {
        assert!(self.valid());
        self.at += 1;
    }
    fn prev(&mut self) {
        unreachable!("a stream only walks forward")
    }
    fn key(&self) -> &[u8] {
        &self.entries[self.at].0
    }
    fn value(&self) -> &[u8] {
        &self.entries[self.at].1
    }
    fn status(&self) -> Result<()> {
        Ok(())
    }
}

/// Appends operands; combines two of them only when asked to.
pub(super) struct Append {
    pub(super) partial: bool,
}

impl MergeOperator for Append {
    fn name(&self) -> &str {
        "append"
    }
    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        let mut value = existing.unwrap_or_default().to_vec();
        operands.iter().for_each(|operand| value.extend(*operand));
        Ok(value)
    }
    fn partial_merge(&self, _: &[u8], left: &[u8], right: &[u8]) -> Option<Vec<u8>> {
        self.partial.then(|| [left, right].concat())
    }
}

/// The contents of a database: entries and range tombstones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Store {
    pub(super) entries: Vec<Entry>,
    pub(super) tombstones: Vec<RangeTombstone>,
}

impl Store {
    fn and(&self, other: &Self) -> Self {
        Self {
            entries: [&self.entries[..], &other.entries].concat(),
            tombstones: [&self.tombstones[..], &other.tombstones].concat(),
        }
    }

    /// The naive reader.
    pub(super) fn read(&self, key: &[u8], snapshot: SeqNo) -> Option<Vec<u8>> {
        let deleted = self
            .tombstones
            .iter()
            .filter(|t| t.seqno <= snapshot && *t.begin <= *key && *key < *t.end)
            .map(|t| t.seqno)
            .max();
        let mut versions: Vec<&Entry> = self
            .entries
            .iter()
            .filter(|entry| entry.0 == key && entry.1 <= snapshot)
            .filter(|entry| deleted.is_none_or(|deleted| entry.1 > deleted))
            .collect();
        versions.sort_by_key(|entry| std::cmp::Reverse(entry.1));
        let mut operands = Vec::new();
        let mut base = None;
        for (_, _, kind, value) in versions {
            match kind {
                ValueKind::Merge => operands.push(value),
                ValueKind::Value => {
                    base = Some(value.clone());
                    break;
                }
                _ => break,
            }
        }
        if operands.is_empty() {
            return base;
        }
        let mut value = base.unwrap_or_default();
        operands
            .iter()
            .rev()
            .for_each(|operand| value.extend(*operand));
        Some(value)
    }
}

struct Case {
    snapshots: Vec<SeqNo>,
    below: Below,
    /// `None`: no operator; else whether it combines two operands.
    operator: Option<bool>,
    filter: Option<Arc<dyn CompactionFilter>>,
}

fn compact(store: &Store, case: &Case) -> (Store, StreamCounts) {
    let order = KeyOrder::Bytewise;
    let fragments = Arc::new(Fragments::new(&order, &store.tombstones));
    let options = StreamOptions {
        order: order.clone(),
        stripes: Stripes::new(case.snapshots.clone()),
        below: case.below.clone(),
        cover: Cover::new(Arc::clone(&fragments)),
        merge_operator: case
            .operator
            .map(|partial| Arc::new(Append { partial }) as Arc<dyn MergeOperator>),
        filter: case.filter.clone(),
        may_skip: case.snapshots.is_empty(),
        output_level: 6,
        full_history_ts_low: None,
        blobs: None,
    };
    let mut stream = Stream::new(VecCursor::new(&store.entries), options);
    let mut entries: Vec<Entry> = Vec::new();
    while stream.advance().unwrap() {
        let key = ParsedKey::parse(stream.key()).unwrap();
        let first = entries.last().is_none_or(|last| last.0 != key.user_key);
        assert_eq!(stream.starts_user_key(), first);
        if let Some(last) = entries.last() {
            let ordered = (&*last.0, std::cmp::Reverse(last.1))
                < (key.user_key, std::cmp::Reverse(key.seqno));
            assert!(ordered, "{last:?} before {key:?}");
        }
        entries.push((
            key.user_key.to_vec(),
            key.seqno,
            key.kind,
            stream.value().to_vec(),
        ));
    }
    let counts = stream.counts();
    assert!(counts.skipped || counts.input == store.entries.len() as u64);
    let stripes = Stripes::new(case.snapshots.clone());
    let tombstones = retain(&order, &fragments, &stripes, &case.below);
    (
        Store {
            entries,
            tombstones,
        },
        counts,
    )
}

fn value(seqno: SeqNo) -> Vec<u8> {
    vec![b'0' + seqno as u8]
}

/// The history that `code` spells in base `ops.len()`: one operation a sequence number, from 1.
fn history(ops: &[Option<ValueKind>], mut code: usize, length: u64) -> Store {
    let mut store = Store::default();
    for seqno in 1..=length {
        let op = ops[code % ops.len()];
        code /= ops.len();
        match op {
            None => {}
            Some(ValueKind::RangeDeletion) => store.tombstones.push(RangeTombstone {
                begin: b"a".to_vec(),
                end: b"z".to_vec(),
                seqno,
            }),
            Some(kind @ (ValueKind::Value | ValueKind::Merge)) => {
                store
                    .entries
                    .push((b"k".to_vec(), seqno, kind, value(seqno)));
            }
            Some(kind) => store.entries.push((b"k".to_vec(), seqno, kind, Vec::new())),
        }
    }
    store
}

fn snapshot_sets(length: u64) -> impl Iterator<Item = Vec<SeqNo>> {
    (0..1u32 << length).map(move |set| (1..=length).filter(|at| set >> (at - 1) & 1 == 1).collect())
}

fn assert_same_answers(before: &Store, after: &Store, snapshots: &[SeqNo], what: &str) {
    for snapshot in snapshots.iter().copied().chain([1000]) {
        assert_eq!(
            before.read(b"k", snapshot),
            after.read(b"k", snapshot),
            "{what} at {snapshot} of {snapshots:?}\n{before:?}\n{after:?}"
        );
    }
}

fn below_value() -> Store {
    Store {
        entries: vec![(b"k".to_vec(), 0, ValueKind::Value, b"below".to_vec())],
        tombstones: Vec::new(),
    }
}

#[test]
fn no_answer_changes_for_any_short_history() {
    use ValueKind::{Deletion, Merge, RangeDeletion, Value};
    let ops = [
        None,
        Some(Value),
        Some(Deletion),
        Some(Merge),
        Some(RangeDeletion),
    ];
    for code in 0..5usize.pow(4) {
        let store = history(&ops, code, 4);
        for snapshots in snapshot_sets(4) {
            for operator in [None, Some(false), Some(true)] {
                let mut case = Case {
                    snapshots: snapshots.clone(),
                    below: Below::Nothing,
                    operator,
                    filter: None,
                };
                let (after, _) = compact(&store, &case);
                assert_same_answers(&store, &after, &snapshots, "bottom");
                case.below = Below::Anything;
                let (after, _) = compact(&store, &case);
                let (under, over) = (store.and(&below_value()), after.and(&below_value()));
                assert_same_answers(&under, &over, &snapshots, "middle");
            }
        }
    }
}

#[test]
fn without_snapshots_the_bottom_holds_one_settled_value_a_key_and_no_tombstone() {
    use ValueKind::{Deletion, Merge, RangeDeletion, Value};
    let ops = [
        None,
        Some(Value),
        Some(Deletion),
        Some(Merge),
        Some(RangeDeletion),
    ];
    for code in 0..5usize.pow(4) {
        let store = history(&ops, code, 4);
        let case = Case {
            snapshots: vec![],
            below: Below::Nothing,
            operator: Some(false),
            filter: None,
        };
        let (after, _) = compact(&store, &case);
        assert!(after.tombstones.is_empty());
        assert!(after.entries.len() <= 1);
        assert!(
            after.entries.iter().all(|e| e.1 == 0 && e.2 == Value),
            "{after:?}"
        );
    }
}

/// Whether each single deletion follows exactly one put since the last one.
fn single_deletions_keep_the_rule(store: &Store, below: bool) -> bool {
    let mut puts = u32::from(below);
    store.entries.iter().all(|(_, _, kind, _)| {
        if *kind == ValueKind::Value {
            puts += 1;
            return true;
        }
        std::mem::replace(&mut puts, 0) == 1
    })
}

#[test]
fn single_deletions_hold_over_several_jobs() {
    let ops = [
        None,
        Some(ValueKind::Value),
        Some(ValueKind::SingleDeletion),
    ];
    for code in 0..3usize.pow(5) {
        let store = history(&ops, code, 5);
        for below in [false, true] {
            if !single_deletions_keep_the_rule(&store, below) {
                continue;
            }
            let bottom = if below {
                below_value()
            } else {
                Store::default()
            };
            for snapshots in snapshot_sets(5) {
                for cut in 0..=5 {
                    in_three_jobs(&store, &bottom, &snapshots, cut);
                }
            }
        }
    }
}

/// Compacts what is older than `cut` in the middle of the tree, then all of it there, then all of it
/// into the bottom.
fn in_three_jobs(store: &Store, bottom: &Store, snapshots: &[SeqNo], cut: SeqNo) {
    let mut case = Case {
        snapshots: snapshots.to_vec(),
        below: Below::Anything,
        operator: None,
        filter: None,
    };
    let before = store.and(bottom);
    let (older, newer): (Vec<_>, Vec<_>) = store
        .entries
        .iter()
        .cloned()
        .partition(|entry| entry.1 <= cut);
    let part = |entries| Store {
        entries,
        tombstones: Vec::new(),
    };
    let (older, _) = compact(&part(older), &case);
    let first = older.and(&part(newer));
    assert_same_answers(&before, &first.and(bottom), snapshots, "first");
    let (second, _) = compact(&first, &case);
    assert_same_answers(&before, &second.and(bottom), snapshots, "second");
    case.below = Below::Nothing;
    let (third, _) = compact(&second.and(bottom), &case);
    assert_same_answers(&before, &third, snapshots, "third");
}

#[test]
fn single_deletions_against_the_rule_still_hide_what_they_hid() {
    use ValueKind::{Deletion, Merge, SingleDeletion, Value};
    let ops = [
        None,
        Some(Value),
        Some(SingleDeletion),
        Some(Deletion),
        Some(Merge),
    ];
    for code in 0..5usize.pow(4) {
        let store = history(&ops, code, 4);
        for snapshots in snapshot_sets(4) {
            for below in [Below::Nothing, Below::Anything] {
                let case = Case {
                    snapshots: snapshots.clone(),
                    below,
                    operator: Some(false),
                    filter: None,
                };
                let (after, _) = compact(&store, &case);
                assert_same_answers(&store, &after, &snapshots, "against the rule");
            }
        }
    }
}

#[test]
fn many_keys_and_overlapping_range_tombstones_keep_their_answers() {
    let seed = 0x5eed_0001;
    let mut rng = Rng::new(seed);
    for round in 0..400 {
        let mut store = Store::default();
        for seqno in 1..=40 {
            let key = vec![b'a' + rng.below(8) as u8];
            match rng.below(8) {
                0 => store.tombstones.push(RangeTombstone {
                    end: vec![key[0] + rng.below(5) as u8],
                    begin: key,
                    seqno,
                }),
                1 => store
                    .entries
                    .push((key, seqno, ValueKind::Deletion, vec![])),
                2 | 3 => store
                    .entries
                    .push((key, seqno, ValueKind::Merge, value(seqno))),
                _ => store
                    .entries
                    .push((key, seqno, ValueKind::Value, value(seqno))),
            }
        }
        let case = Case {
            snapshots: (0..rng.below(4)).map(|_| rng.below(41)).collect(),
            below: if rng.one_in(2) {
                Below::Nothing
            } else {
                Below::Anything
            },
            operator: Some(rng.one_in(2)),
            filter: None,
        };
        let (after, _) = compact(&store, &case);
        for key in b'a'..=b'j' {
            for snapshot in case.snapshots.iter().copied().chain([1000]) {
                assert_eq!(
                    store.read(&[key], snapshot),
                    after.read(&[key], snapshot),
                    "seed {seed:#x} round {round} key {key} at {snapshot} {:?}",
                    case.snapshots
                );
            }
        }
    }
}

struct RemoveOdd;

impl CompactionFilter for RemoveOdd {
    fn name(&self) -> &str {
        "remove odd, mark even"
    }
    fn reads_blobs(&self) -> bool {
        true
    }
    fn filter(&self, level: u32, _key: &[u8], value: &[u8]) -> FilterDecision {
        assert_eq!(level, 6);
        match value[0] % 2 {
            0 => FilterDecision::Change(b"even".to_vec()),
            _ => FilterDecision::Remove,
        }
    }
}

/// Removes everything with the first letter of a key whose value is odd.
struct RemoveLetters;

impl CompactionFilter for RemoveLetters {
    fn name(&self) -> &str {
        "remove letters"
    }
    fn reads_blobs(&self) -> bool {
        false
    }
    fn filter(&self, _level: u32, key: &[u8], value: &[u8]) -> FilterDecision {
        match value[0] % 2 {
            0 => FilterDecision::Keep,
            _ => FilterDecision::RemoveUntil(vec![key[0] + 1]),
        }
    }
}

#[test]
fn a_removed_range_keeps_what_snapshots_see_and_ends_where_it_was_said() {
    let put = |key: &[u8], seqno| (key.to_vec(), seqno, ValueKind::Value, value(seqno));
    let deleted = |key: &[u8], seqno| (key.to_vec(), seqno, ValueKind::Deletion, vec![]);
    let store = Store {
        entries: vec![
            put(b"a1", 12),
            put(b"a2", 13), // Odd: removed, and with it all that follows of this letter.
            put(b"a2", 2),
            put(b"a3", 14),
            deleted(b"a4", 16),
            put(b"a4", 4),
            put(b"b", 6), // Where the range ends.
            put(b"b1", 18),
            put(b"b2", 20),
            put(b"c1", 21),
            put(b"d1", 22),
        ],
        tombstones: vec![],
    };
    let keys_after = |snapshots: Vec<SeqNo>| {
        let case = Case {
            snapshots,
            below: Below::Anything,
            operator: None,
            filter: Some(Arc::new(RemoveLetters)),
        };
        let (after, counts) = compact(&store, &case);
        let keys = after.entries.into_iter().map(|entry| (entry.0, entry.1));
        (keys.collect::<Vec<_>>(), counts)
    };
    let key = |key: &[u8], seqno: SeqNo| (key.to_vec(), seqno);
    let kept = [
        key(b"a1", 12),
        key(b"b", 6),
        key(b"b1", 18),
        key(b"b2", 20),
        key(b"d1", 22),
    ];
    let (after, counts) = keys_after(vec![]);
    assert_eq!(after, kept);
    assert!(counts.skipped && counts.input < store.entries.len() as u64);
    let (after, counts) = keys_after(vec![5]);
    let seen = [key(b"a2", 2), key(b"a4", 4)];
    let expected: Vec<_> = kept[..1]
        .iter()
        .chain(&seen)
        .chain(&kept[1..])
        .cloned()
        .collect();
    assert_eq!(after, expected);
    assert!(!counts.skipped && counts.input == store.entries.len() as u64);
}

#[test]
fn the_filter_sees_only_what_no_snapshot_protects() {
    let put = |key: &[u8], seqno| (key.to_vec(), seqno, ValueKind::Value, value(seqno));
    let store = Store {
        entries: vec![
            put(b"a", 1),
            put(b"b", 5),
            put(b"c", 4),
            put(b"d", 3),
            put(b"d", 2),
        ],
        tombstones: vec![],
    };
    let mut case = Case {
        snapshots: vec![2],
        below: Below::Anything,
        operator: None,
        filter: Some(Arc::new(RemoveOdd)),
    };
    let (after, counts) = compact(&store, &case);
    assert_eq!(counts.filtered, 2);
    let expected = vec![
        put(b"a", 1),
        (b"b".to_vec(), 5, ValueKind::Deletion, vec![]),
        (b"c".to_vec(), 4, ValueKind::Value, b"even".to_vec()),
        (b"d".to_vec(), 3, ValueKind::Deletion, vec![]),
        put(b"d", 2),
    ];
    assert_eq!(after.entries, expected);
    case.below = Below::Nothing;
    let (after, _) = compact(&store, &case);
    let keys: Vec<_> = after.entries.iter().map(|e| (&e.0[..], e.1)).collect();
    // The removed value at the bottom leaves no tombstone unless a snapshot still sees the key.
    assert_eq!(keys, [(&b"a"[..], 0), (b"c", 4), (b"d", 3), (b"d", 0)]);
}

#[test]
fn a_deletion_at_the_bottom_goes_once_nothing_older_is_left_even_under_a_snapshot() {
    let store = Store {
        entries: vec![
            (b"k".to_vec(), 9, ValueKind::Deletion, vec![]),
            (b"k".to_vec(), 8, ValueKind::Value, b"v".to_vec()),
        ],
        tombstones: vec![],
    };
    let case = |snapshots| Case {
        snapshots,
        below: Below::Nothing,
        operator: None,
        filter: None,
    };
    assert_eq!(compact(&store, &case(vec![5])).0.entries.len(), 0);
    assert_eq!(compact(&store, &case(vec![8])).0.entries.len(), 2);
}
