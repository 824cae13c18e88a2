//! Goal: the memtable answers as an ordered map does. Method: seeded random operations on a
//! memtable and on a `BTreeMap` twin, compared after every step, under all three orders.
#![cfg(not(loom))]

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use drumlin_base::bytes::HUGE_PAGE_BYTES;
use drumlin_base::key::{compare_internal, internal_key, seek_key, split_internal, tag_seqno};
use drumlin_base::operators::{CappedPrefix, FixedPrefix};
use drumlin_base::rng::Rng;
use drumlin_base::{
    Comparator, InternalIterator, KeyOrder, MemoryBudget, MemoryUse, PrefixExtractor, SEQNO_MAX,
    SeqNo, ValueKind,
};
use drumlin_memtable::{Memtable, MemtableIter};

/// Shorter keys first, then bytewise: an order no prefix trick may assume anything about.
struct ShortFirst;

impl Comparator for ShortFirst {
    fn name(&self) -> &str {
        "test.ShortFirst"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

/// Bytes that sort in internal-key order.
#[derive(Clone)]
struct Ordered(KeyOrder, Vec<u8>);

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Ordered {}
impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_internal(&self.0, &self.1, &other.1)
    }
}

struct Twins {
    order: KeyOrder,
    memtable: Arc<Memtable>,
    naive: BTreeMap<Ordered, Vec<u8>>,
    seqno: SeqNo,
}

impl Twins {
    fn new(order: KeyOrder) -> Self {
        Self {
            memtable: Arc::new(Memtable::new(order.clone())),
            order,
            naive: BTreeMap::new(),
            seqno: 0,
        }
    }

    fn ordered(&self, internal: Vec<u8>) -> Ordered {
        Ordered(self.order.clone(), internal)
    }

    fn add(&mut self, kind: ValueKind, key: &[u8], value: &[u8]) {
        self.seqno += 1;
        self.memtable.add(self.seqno, kind, key, value);
        let key = self.ordered(internal_key(key, self.seqno, kind));
        self.naive.insert(key, value.to_vec());
    }

    fn assert_get(&self, key: &[u8], seqno: SeqNo) {
        let mut got = Vec::new();
        self.memtable.get(key, seqno, |seqno, kind, value| {
            got.push((internal_key(key, seqno, kind), value.bytes().to_vec()));
            assert_eq!(&*value.pin(), value.bytes());
            ControlFlow::Continue(())
        });
        let from = self.ordered(seek_key(key, seqno));
        let expected: Vec<_> = self
            .naive
            .range(from..)
            .take_while(|(own, _)| split_internal(&own.1).expect("an internal key").0 == key)
            .map(|(own, value)| (own.1.clone(), value.clone()))
            .collect();
        assert_eq!(got, expected, "get {key:?} at {seqno}");
    }

    /// Many keys at once are each of them alone.
    fn assert_get_many(&self, keys: &[&[u8]], seqno: SeqNo) {
        let mut together = vec![Vec::new(); keys.len()];
        self.memtable
            .get_many(keys, seqno, |index, seqno, kind, value| {
                together[index].push((seqno, kind, value.bytes().to_vec()));
                // Half of the keys are broken off after their first version.
                match index % 2 {
                    0 => ControlFlow::Continue(()),
                    _ => ControlFlow::Break(()),
                }
            });
        for (index, (key, together)) in keys.iter().zip(together).enumerate() {
            let mut alone = Vec::new();
            self.memtable.get(key, seqno, |seqno, kind, value| {
                alone.push((seqno, kind, value.bytes().to_vec()));
                ControlFlow::Continue(())
            });
            if index % 2 == 1 {
                alone.truncate(1);
            }
            assert_eq!(
                together,
                alone,
                "get {key:?} at {seqno} among {}",
                keys.len()
            );
        }
    }

    fn assert_seek(&self, iter: &mut MemtableIter, target: &[u8]) {
        let target_key = self.ordered(target.to_vec());
        iter.seek(target);
        let mut after = self.naive.range(target_key.clone()..);
        for _ in 0..4 {
            assert_at(iter, after.next());
            if !iter.valid() {
                break;
            }
            iter.next();
        }
        iter.seek_for_prev(target);
        let mut before = self.naive.range(..=target_key).rev();
        for _ in 0..4 {
            assert_at(iter, before.next());
            if !iter.valid() {
                break;
            }
            iter.prev();
        }
    }

    fn assert_same_walk(&self, iter: &mut MemtableIter) {
        iter.seek_to_first();
        for expected in &self.naive {
            assert_at(iter, Some(expected));
            iter.next();
        }
        assert!(!iter.valid());
        iter.seek_to_last();
        for expected in self.naive.iter().rev() {
            assert_at(iter, Some(expected));
            iter.prev();
        }
        assert!(!iter.valid());
    }
}

fn assert_at(iter: &MemtableIter, expected: Option<(&Ordered, &Vec<u8>)>) {
    let got = iter.valid().then(|| (iter.key(), iter.value()));
    assert_eq!(got, expected.map(|(key, value)| (&key.1[..], &value[..])));
    iter.status().expect("memory never fails");
}

fn orders() -> [KeyOrder; 3] {
    [
        KeyOrder::Bytewise,
        KeyOrder::ReverseBytewise,
        KeyOrder::Custom(Arc::new(ShortFirst)),
    ]
}

/// Keys of every shape: empty, long common prefixes, zero bytes at the end, big-endian numbers.
fn draw_key(rng: &mut Rng, shape: u64) -> Vec<u8> {
    let number = rng.below(400);
    match shape {
        0 => format!("a/rather/long/common/prefix/user{number:010}").into_bytes(),
        1 => [&number.to_be_bytes()[..], b"00000000"].concat(),
        2 => {
            let mut key = vec![0; rng.below(20) as usize];
            rng.fill(&mut key);
            key.iter_mut().for_each(|byte| *byte %= 3);
            key
        }
        3 => [
            &b"tie beyond the cached key prefix "[..],
            &vec![b'x'; number as usize % 40],
        ]
        .concat(),
        _ => {
            let mixed = rng.below(4);
            draw_key(rng, mixed)
        }
    }
}

fn draw_kind(rng: &mut Rng) -> ValueKind {
    match rng.below(4) {
        0 => ValueKind::Deletion,
        1 => ValueKind::Merge,
        _ => ValueKind::Value,
    }
}

#[test]
fn random_operations_agree_with_an_ordered_map() {
    for order in orders() {
        for shape in 0..5 {
            let mut rng = Rng::new(7 + shape);
            let mut twins = Twins::new(order.clone());
            let mut iter = twins.memtable.iter();
            assert!(!iter.valid(), "a fresh cursor is not valid");
            for step in 0..1500 {
                let key = draw_key(&mut rng, shape);
                let mut value = vec![0; rng.below(50) as usize];
                rng.fill(&mut value);
                twins.add(draw_kind(&mut rng), &key, &value);
                let probe = draw_key(&mut rng, shape);
                let seqno = rng.below(twins.seqno + 2);
                twins.assert_get(&probe, seqno);
                twins.assert_seek(&mut iter, &seek_key(&probe, seqno));
                if step % 500 == 0 {
                    twins.assert_same_walk(&mut iter);
                    let count = rng.below(100) as usize;
                    let keys: Vec<_> = (0..count).map(|_| draw_key(&mut rng, shape)).collect();
                    let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
                    twins.assert_get_many(&keys, seqno);
                }
            }
            twins.assert_same_walk(&mut iter);
            assert_eq!(twins.memtable.entries(), 1500);
        }
    }
}

#[test]
fn ascending_and_descending_inserts_agree_with_an_ordered_map() {
    for order in orders() {
        for descending in [false, true] {
            let mut twins = Twins::new(order.clone());
            for number in 0..3000u32 {
                let number = if descending { 3000 - number } else { number };
                twins.add(ValueKind::Value, &number.to_be_bytes(), b"v");
            }
            let mut iter = twins.memtable.iter();
            twins.assert_same_walk(&mut iter);
        }
    }
}

#[test]
fn many_versions_of_one_key_come_newest_first() {
    let mut twins = Twins::new(KeyOrder::Bytewise);
    for _ in 0..500 {
        twins.add(ValueKind::Value, b"same", b"");
        twins.add(ValueKind::Value, b"samf", b"x");
    }
    for seqno in [0, 1, 2, 499, 500, 1000, 2000] {
        twins.assert_get(b"same", seqno);
        twins.assert_get(b"samf", seqno);
        twins.assert_get(b"sam", seqno);
    }
    let mut visited = 0;
    twins.memtable.get(b"same", 700, |seqno, _, _| {
        visited += 1;
        assert_eq!(tag_seqno(seqno << 8), 699);
        ControlFlow::Break(())
    });
    assert_eq!(visited, 1, "visiting stops when told to");
}

#[test]
fn a_cursor_that_stands_sees_neighbours_added_meanwhile() {
    let mut rng = Rng::new(3);
    let mut twins = Twins::new(KeyOrder::Bytewise);
    twins.add(ValueKind::Value, &5000u32.to_be_bytes(), b"");
    let mut iter = twins.memtable.iter();
    iter.seek_to_first();
    for _ in 0..5000 {
        let key = (rng.below(10_000) as u32).to_be_bytes();
        twins.add(ValueKind::Value, &key, b"");
        let here = twins.ordered(iter.key().to_vec());
        if rng.one_in(2) {
            let expected = twins.naive.range(here.clone()..).nth(1);
            iter.next();
            assert_at(&iter, expected);
        } else {
            let expected = twins.naive.range(..here.clone()).next_back();
            iter.prev();
            assert_at(&iter, expected);
        }
        if !iter.valid() {
            iter.seek(&here.1);
        }
    }
}

#[test]
fn empty_and_huge_keys_and_values_are_kept() {
    let mut twins = Twins::new(KeyOrder::Bytewise);
    let huge = vec![0xA5; 5 << 20];
    for (key, value) in [
        (&b""[..], &b""[..]),
        (b"", b"v"),
        (b"k", b""),
        (b"k", &huge),
        (&huge, b"v"),
        (&huge, &huge),
        (b"\0", b""),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff", b""),
    ] {
        twins.add(ValueKind::Value, key, value);
        twins.assert_get(key, twins.seqno);
    }
    twins.assert_same_walk(&mut twins.memtable.iter());
    assert!(twins.memtable.bytes() >= 4 * huge.len());
}

#[test]
fn an_empty_memtable_has_nothing_anywhere() {
    let twins = Twins::new(KeyOrder::Bytewise);
    let mut iter = twins.memtable.iter();
    twins.assert_same_walk(&mut iter);
    twins.assert_seek(&mut iter, &seek_key(b"x", 1));
    twins.assert_get(b"", 1);
    assert!(twins.memtable.is_empty());
}

#[test]
fn values_outlive_every_handle_of_the_memtable() {
    let mut twins = Twins::new(KeyOrder::Bytewise);
    let long = vec![b'v'; 1000];
    twins.add(ValueKind::Value, b"k", b"value");
    twins.add(ValueKind::Value, b"l", &long);
    let mut iter = twins.memtable.iter();
    iter.seek_to_first();
    let short_one = iter.pin_value();
    iter.next();
    let long_one = iter.pin_value();
    drop((iter, twins));
    assert_eq!((&*short_one, &*long_one), (&b"value"[..], &long[..]));
    assert!(long_one.is_pinned());
}

#[test]
fn range_tombstones_are_kept_apart_from_point_entries() {
    let memtable = Arc::new(Memtable::new(KeyOrder::Bytewise));
    assert_eq!(memtable.range_tombstones(), Vec::new());
    memtable.add(1, ValueKind::RangeDeletion, b"a", b"c");
    assert!(!memtable.is_empty());
    memtable.add(2, ValueKind::Deletion, b"b", b"");
    memtable.add(3, ValueKind::SingleDeletion, b"c", b"");
    memtable.add(4, ValueKind::Value, b"d", b"");
    memtable.add(5, ValueKind::RangeDeletion, b"b", b"d");
    assert_eq!(memtable.range_tombstone_count(), 2);
    let all = memtable.range_tombstones();
    assert_eq!(
        (&all[0].begin[..], &all[0].end[..], all[0].seqno),
        (&b"a"[..], &b"c"[..], 1)
    );
    assert_eq!(
        (&all[1].begin[..], &all[1].end[..], all[1].seqno),
        (&b"b"[..], &b"d"[..], 5)
    );
    assert_eq!((memtable.entries(), memtable.deletions()), (3, 2));
    let mut iter = memtable.iter();
    iter.seek_to_first();
    assert_eq!(iter.key(), internal_key(b"b", 2, ValueKind::Deletion));
}

/// The bytes before the first `:`, if there is one.
struct UpToColon;

impl PrefixExtractor for UpToColon {
    fn name(&self) -> &str {
        "test.UpToColon"
    }

    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        key.get(..key.iter().position(|&byte| byte == b':')?)
    }
}

/// The keys of `memtable` with the prefix of `start`, from it on, as a walk that stays within a
/// prefix meets them.
fn walk_prefix(
    memtable: &Arc<Memtable>,
    by: &dyn PrefixExtractor,
    start: &[u8],
    forward: bool,
) -> Vec<Vec<u8>> {
    let mut iter = memtable.iter();
    iter.stay_within_prefix(true);
    match forward {
        true => iter.seek(&seek_key(start, SEQNO_MAX)),
        false => iter.seek_for_prev(&internal_key(start, 0, ValueKind::Deletion)),
    }
    let mut met = Vec::new();
    while iter.valid() {
        let (key, _) = split_internal(iter.key()).expect("an internal key");
        if by.prefix(key) != by.prefix(start) {
            break;
        }
        met.push(key.to_vec());
        match forward {
            true => iter.next(),
            false => iter.prev(),
        }
    }
    met
}

#[test]
fn walks_within_a_prefix_meet_every_key_of_it() {
    let extractors: [Arc<dyn PrefixExtractor>; 5] = [
        Arc::new(FixedPrefix::new(3)),
        Arc::new(FixedPrefix::new(0)),
        Arc::new(FixedPrefix::new(40)),
        Arc::new(CappedPrefix::new(3)),
        Arc::new(UpToColon),
    ];
    let mut rng = Rng::new(11);
    for (by, order) in extractors
        .iter()
        .flat_map(|by| orders().map(|order| (by, order)))
    {
        let budget = MemoryBudget::new(1 << 30);
        let memtable = Memtable::charged(order.clone(), Some(Arc::clone(by)), budget);
        let memtable = Arc::new(memtable);
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for seqno in 1..400 {
            let len = rng.below(7) as usize;
            let key: Vec<u8> = (0..len).map(|_| b"ab:"[rng.below(3) as usize]).collect();
            if rng.one_in(2) {
                memtable.add(seqno, ValueKind::Value, &key, b"");
                if !keys.contains(&key) {
                    keys.push(key.clone());
                }
            }
            keys.sort_by(|a, b| order.compare(a, b));
            let in_prefix = |own: &&Vec<u8>| by.prefix(own) == by.prefix(&key);
            assert!(memtable.may_contain_prefix(&key) || !keys.iter().any(|own| in_prefix(&own)));
            if by.prefix(&key).is_none() {
                continue; // A walk from there has no prefix to stay in.
            }
            let from = keys.partition_point(|own| order.compare(own, &key).is_lt());
            let after: Vec<_> = keys[from..].iter().take_while(in_prefix).cloned().collect();
            let to = keys.partition_point(|own| order.compare(own, &key).is_le());
            let before = keys[..to].iter().rev();
            let before: Vec<_> = before.take_while(in_prefix).cloned().collect();
            let dedup = |mut met: Vec<Vec<u8>>| {
                met.dedup(); // Versions.
                met
            };
            assert_eq!(dedup(walk_prefix(&memtable, &**by, &key, true)), after);
            assert_eq!(dedup(walk_prefix(&memtable, &**by, &key, false)), before);
        }
    }
}

#[test]
fn filters_are_charged_and_answer_for_absent_prefixes() {
    let budget = MemoryBudget::new(1 << 30);
    let by: Arc<dyn PrefixExtractor> = Arc::new(FixedPrefix::new(4));
    let memtable = Memtable::charged(KeyOrder::Bytewise, Some(by), Arc::clone(&budget));
    assert_eq!(memtable.account(), budget.used(MemoryUse::Memtables));
    for number in 0..20_000u32 {
        let key = [number.to_be_bytes(), *b"rest"].concat();
        memtable.add(u64::from(number) + 1, ValueKind::Value, &key, b"");
        if number < 4_000 {
            assert_eq!(memtable.account(), budget.used(MemoryUse::Memtables));
        }
    }
    // The page that its larger chunks are cut from is charged whole.
    let (held, charged) = (memtable.account(), budget.used(MemoryUse::Memtables));
    assert!(
        (held..held + HUGE_PAGE_BYTES).contains(&charged),
        "{charged}"
    );
    let absent = (20_000..40_000u32).filter(|n| memtable.may_contain_prefix(&n.to_be_bytes()));
    assert!(absent.count() < 2_000);
    assert!((0..20_000u32).all(|n| memtable.may_contain_prefix(&n.to_be_bytes())));
    drop(memtable);
    assert_eq!(budget.used(MemoryUse::Memtables), 0);
}
