//! A family built at random, beside a naive twin of it that knows every operation.
//!
//! Operations get rising sequence numbers and are dealt out in time order to layers: levels deepest
//! first, then tables of L0, immutable memtables and the memtable. Levels are cut into tables at
//! random entries, also between versions of one key; their range tombstones are left uncut, as
//! older writers did, so that only the bounds say what counts.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use drumlin_base::key::{compare_internal, internal_key, pack_tag};
use drumlin_base::limits::LEVELS;
use drumlin_base::rng::Rng;
use drumlin_base::{
    Comparator, KeyOrder, MemoryBudget, MergeOperator, PinnedSlice, RangeTombstone, Result,
    SEQNO_MAX, SeqNo, ValueKind,
};
use drumlin_memtable::Memtable;
use drumlin_table::TableReadOptions;

use super::test_tables::{TestTables, prefix};
use super::{FamilyReads, ReadContext, ReadView, WalkPool, get_to};
use crate::family::super_version::SuperVersion;
use crate::iter::merge_operands::tests::Append;
use crate::version::{FileMeta, NewFile, Version};

/// Descending by the first byte, ascending by the rest.
struct FirstDescending;

impl Comparator for FirstDescending {
    fn name(&self) -> &str {
        "test.FirstDescending"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.first().cmp(&a.first()).then_with(|| a.cmp(b))
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    SingleDelete(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

/// Every operation in time order.
#[derive(Debug, Default)]
pub(crate) struct Twin {
    pub(crate) ops: Vec<(SeqNo, Op)>,
}

impl Twin {
    /// The definition of a read.
    pub(crate) fn get(&self, order: &KeyOrder, key: &[u8], at: SeqNo) -> Option<Vec<u8>> {
        let mut operands: Vec<&[u8]> = Vec::new();
        let mut existing = None;
        for (_, op) in self.ops.iter().rev().filter(|(seqno, _)| *seqno <= at) {
            match op {
                Op::Put(k, value) if k == key => {
                    existing = Some(value.as_slice());
                    break;
                }
                Op::Delete(k) | Op::SingleDelete(k) if k == key => break,
                Op::Merge(k, operand) if k == key => operands.push(operand),
                Op::DeleteRange(begin, end)
                    if order.compare(begin, key).is_le() && order.compare(key, end).is_lt() =>
                {
                    break;
                }
                _ => {}
            }
        }
        if operands.is_empty() {
            return existing.map(<[u8]>::to_vec);
        }
        operands.reverse();
        Some(
            Append
                .full_merge(key, existing, &operands)
                .expect("no operand is poisoned"),
        )
    }

    /// All keys that show, in order.
    pub(crate) fn scan(&self, order: &KeyOrder, at: SeqNo) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut rows: Vec<_> = universe()
            .into_iter()
            .filter_map(|key| self.get(order, &key, at).map(|value| (key, value)))
            .collect();
        rows.sort_by(|a, b| order.compare(&a.0, &b.0));
        rows
    }
}

/// Every key a test may write: one letter prefixes, and some that share eight bytes and more.
pub(crate) fn universe() -> BTreeSet<Vec<u8>> {
    let mut keys = BTreeSet::new();
    for first in b'a'..=b'd' {
        for second in b'a'..=b'e' {
            keys.insert(vec![first, second]);
        }
        keys.insert([b"b-long-common-prefix", &[first][..]].concat());
    }
    keys
}

pub(crate) fn random_key(rng: &mut Rng) -> Vec<u8> {
    let keys = universe();
    let at = rng.below(keys.len() as u64) as usize;
    keys.into_iter().nth(at).expect("below the length")
}

fn random_op(rng: &mut Rng, order: &KeyOrder, seqno: SeqNo, hot: &[u8]) -> Op {
    let key = match rng.below(3) {
        0 => hot.to_vec(),
        _ => random_key(rng),
    };
    let value = match rng.below(40) {
        0 => vec![b'x'; 2000],
        _ => format!("v{seqno}").into_bytes(),
    };
    match rng.below(16) {
        0..=7 => Op::Put(key, value),
        8 | 9 => Op::Delete(key),
        10 => Op::SingleDelete(key),
        11..=13 => Op::Merge(key, value),
        _ => {
            let other = random_key(rng);
            if order.compare(&key, &other).is_le() {
                Op::DeleteRange(key, other)
            } else {
                Op::DeleteRange(other, key)
            }
        }
    }
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Point entries in order and range tombstones of `ops`.
fn entries_of(order: &KeyOrder, ops: &[(SeqNo, Op)]) -> (Entries, Vec<RangeTombstone>) {
    let mut entries = Entries::new();
    let mut tombstones = Vec::new();
    for (seqno, op) in ops {
        let (key, kind, value) = match op {
            Op::Put(key, value) => (key, ValueKind::Value, value.clone()),
            Op::Delete(key) => (key, ValueKind::Deletion, Vec::new()),
            Op::SingleDelete(key) => (key, ValueKind::SingleDeletion, Vec::new()),
            Op::Merge(key, value) => (key, ValueKind::Merge, value.clone()),
            Op::DeleteRange(begin, end) => {
                if order.compare(begin, end).is_lt() {
                    tombstones.push(RangeTombstone {
                        begin: begin.clone(),
                        end: end.clone(),
                        seqno: *seqno,
                    });
                }
                continue;
            }
        };
        entries.push((internal_key(key, *seqno, kind), value));
    }
    entries.sort_by(|a, b| compare_internal(order, &a.0, &b.0));
    tombstones.sort_by(|a, b| {
        order
            .compare(&a.begin, &b.begin)
            .then(b.seqno.cmp(&a.seqno))
    });
    (entries, tombstones)
}

fn memtable_of(order: &KeyOrder, ops: &[(SeqNo, Op)]) -> Arc<Memtable> {
    let budget = MemoryBudget::new(1 << 30);
    let memtable = Memtable::charged(order.clone(), Some(prefix()), budget);
    for (seqno, op) in ops {
        match op {
            Op::Put(key, value) => memtable.add(*seqno, ValueKind::Value, key, value),
            Op::Delete(key) => memtable.add(*seqno, ValueKind::Deletion, key, b""),
            Op::SingleDelete(key) => memtable.add(*seqno, ValueKind::SingleDeletion, key, b""),
            Op::Merge(key, value) => memtable.add(*seqno, ValueKind::Merge, key, value),
            Op::DeleteRange(begin, end) => {
                memtable.add(*seqno, ValueKind::RangeDeletion, begin, end);
            }
        }
    }
    Arc::new(memtable)
}

/// A user key's place before all its entries, as a bound: `largest` of a table cut there.
fn sentinel(user_key: &[u8]) -> Vec<u8> {
    let mut bound = user_key.to_vec();
    let tag = pack_tag(SEQNO_MAX, ValueKind::RangeDeletion as u8);
    bound.extend_from_slice(&tag.to_le_bytes());
    bound
}

/// A family, its twin and the state that reads need.
pub(crate) struct Family {
    pub(crate) order: KeyOrder,
    pub(crate) twin: Twin,
    pub(crate) context: Arc<FamilyReads>,
    pub(crate) super_version: Arc<SuperVersion>,
    /// The lowest sequence number at which every layer still knows its history.
    pub(crate) oldest: SeqNo,
    pub(crate) newest: SeqNo,
}

impl Family {
    pub(crate) fn random(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let order = match rng.below(4) {
            0 => KeyOrder::ReverseBytewise,
            1 => KeyOrder::Custom(Arc::new(FirstDescending)),
            _ => KeyOrder::Bytewise,
        };
        let builder = Builder::new(order, rng.fork());
        Self::built(rng, builder, random_op)
    }

    /// One whose tables are laid out for lookups in memory.
    pub(crate) fn in_memory(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut builder = Builder::new(KeyOrder::Bytewise, rng.fork());
        builder.tables.all_plain = true;
        let mut family = Self::built(rng, builder, |rng, order, seqno, hot| {
            match random_op(rng, order, seqno, hot) {
                Op::DeleteRange(key, _) => Op::Delete(key),
                other => other,
            }
        });
        let context = Arc::get_mut(&mut family.context).expect("nobody else has it yet");
        context.context.in_memory = true;
        family
    }

    fn built(
        mut rng: Rng,
        mut builder: Builder,
        random_op: impl Fn(&mut Rng, &KeyOrder, SeqNo, &[u8]) -> Op,
    ) -> Self {
        let order = builder.order.clone();
        let hot = random_key(&mut rng);
        let mut twin = Twin::default();
        let mut seqno = 0;
        let mut oldest = 0;
        for place in Place::random_list(&mut rng) {
            let from = twin.ops.len();
            for _ in 0..rng.below(40) {
                seqno += 1 + rng.below(3);
                twin.ops
                    .push((seqno, random_op(&mut rng, &order, seqno, &hot)));
            }
            let ops = twin.ops.get(from..).unwrap_or_default();
            match place {
                Place::Zeroed => {
                    oldest = seqno;
                    builder.add_zeroed(&twin, seqno);
                }
                Place::Level(level) => builder.add_level(level, ops),
                Place::L0 => builder.add_l0(ops),
                Place::Memtable => builder.memtables.insert(0, memtable_of(&order, ops)),
            }
        }
        let (context, super_version) = builder.finish();
        Self {
            order,
            twin,
            context,
            super_version,
            oldest,
            newest: seqno,
        }
    }
}

/// Where a layer of operations goes.
#[derive(Clone, Copy)]
enum Place {
    /// The last level, after a full compaction: one version a key, sequence number 0.
    Zeroed,
    Level(usize),
    L0,
    Memtable,
}

impl Place {
    /// Oldest first.
    fn random_list(rng: &mut Rng) -> Vec<Self> {
        let mut places = Vec::new();
        if rng.one_in(2) {
            places.push(Self::Zeroed);
        }
        for level in (1..LEVELS - 1).rev() {
            if rng.one_in(3) {
                places.push(Self::Level(level));
            }
        }
        places.extend((0..rng.below(4)).map(|_| Self::L0));
        places.extend((0..1 + rng.below(3)).map(|_| Self::Memtable));
        places
    }
}

struct Builder {
    order: KeyOrder,
    rng: Rng,
    tables: TestTables,
    levels: [Vec<Arc<FileMeta>>; LEVELS],
    memtables: Vec<Arc<Memtable>>,
    number: u64,
}

impl Builder {
    fn new(order: KeyOrder, mut rng: Rng) -> Self {
        Self {
            tables: TestTables::new(order.clone(), rng.fork()),
            order,
            rng,
            levels: Default::default(),
            memtables: Vec::new(),
            number: 10,
        }
    }

    fn add_zeroed(&mut self, twin: &Twin, at: SeqNo) {
        let entries = twin
            .scan(&self.order, at)
            .into_iter()
            .map(|(key, value)| (internal_key(&key, 0, ValueKind::Value), value))
            .collect();
        self.add_cut(LEVELS - 1, entries, &[]);
    }

    fn add_level(&mut self, level: usize, ops: &[(SeqNo, Op)]) {
        let (entries, tombstones) = entries_of(&self.order, ops);
        self.add_cut(level, entries, &tombstones);
    }

    fn add_l0(&mut self, ops: &[(SeqNo, Op)]) {
        let (entries, tombstones) = entries_of(&self.order, ops);
        self.add_file(0, entries, &tombstones, None, None);
    }

    /// Cuts a layer into tables at random entries.
    fn add_cut(&mut self, level: usize, entries: Entries, tombstones: &[RangeTombstone]) {
        let mut rest = entries;
        let mut begin: Option<Vec<u8>> = None;
        loop {
            let size = 1 + self.rng.below(12) as usize;
            if rest.len() <= size {
                self.add_file(level, rest, tombstones, begin, None);
                return;
            }
            let after = rest.split_off(size);
            let user = |entry: Option<&(Vec<u8>, Vec<u8>)>| {
                entry.map(|(key, _)| drumlin_base::key::user_key(key).to_vec())
            };
            let cut = user(after.first());
            let straddles = user(rest.last()) == cut;
            let end = cut.clone().filter(|_| !straddles);
            if straddles {
                self.add_straddling(level, rest, tombstones, begin)
            } else {
                self.add_file(level, rest, tombstones, begin, end)
            }
            (rest, begin) = (after, cut);
        }
    }

    /// A table whose last entry's key goes on in the next table.
    fn add_straddling(
        &mut self,
        level: usize,
        entries: Entries,
        tombstones: &[RangeTombstone],
        begin: Option<Vec<u8>>,
    ) {
        let last = entries.last().expect("cut after an entry").0.clone();
        let user = drumlin_base::key::user_key(&last).to_vec();
        let order = self.order.clone();
        let reaching: Vec<_> = tombstones
            .iter()
            .filter(|t| order.compare(&t.begin, &user).is_le())
            .cloned()
            .collect();
        self.add_bounded(level, entries, &reaching, begin, Some(last));
    }

    /// A table of the rows in `begin..end`; nothing when there are none.
    fn add_file(
        &mut self,
        level: usize,
        entries: Entries,
        tombstones: &[RangeTombstone],
        begin: Option<Vec<u8>>,
        end: Option<Vec<u8>>,
    ) {
        let order = self.order.clone();
        let reaching: Vec<_> = tombstones
            .iter()
            .filter(|t| {
                end.as_ref()
                    .is_none_or(|end| order.compare(&t.begin, end).is_lt())
            })
            .cloned()
            .collect();
        let tombstone_end = reaching
            .iter()
            .map(|t| match &end {
                Some(end) if order.compare(&t.end, end).is_gt() => end,
                _ => &t.end,
            })
            .max_by(|a, b| order.compare(a, b))
            .map(|end| sentinel(end));
        let last = entries.last().map(|(key, _)| key.clone());
        let largest = [last, tombstone_end]
            .into_iter()
            .flatten()
            .max_by(|a, b| compare_internal(&order, a, b));
        self.add_bounded(level, entries, &reaching, begin, largest);
    }

    fn add_bounded(
        &mut self,
        level: usize,
        entries: Entries,
        tombstones: &[RangeTombstone],
        begin: Option<Vec<u8>>,
        largest: Option<Vec<u8>>,
    ) {
        let order = self.order.clone();
        let inside: Vec<_> = tombstones
            .iter()
            .filter(|t| {
                begin
                    .as_ref()
                    .is_none_or(|begin| order.compare(&t.end, begin).is_gt())
            })
            .cloned()
            .collect();
        let first_begin = inside
            .iter()
            .map(|t| match &begin {
                Some(begin) if order.compare(&t.begin, begin).is_lt() => {
                    // Where a key straddles, the table's own first entry is its bound.
                    (entries.first().map(|(key, _)| key.clone()))
                        .filter(|key| drumlin_base::key::user_key(key) == begin)
                        .unwrap_or_else(|| internal_key(begin, t.seqno, ValueKind::RangeDeletion))
                }
                _ => internal_key(&t.begin, t.seqno, ValueKind::RangeDeletion),
            })
            .min_by(|a, b| compare_internal(&order, a, b));
        let smallest = [entries.first().map(|(key, _)| key.clone()), first_begin]
            .into_iter()
            .flatten()
            .min_by(|a, b| compare_internal(&order, a, b));
        let (Some(smallest), Some(largest)) = (smallest, largest) else {
            return;
        };
        self.number += 1;
        let file = FileMeta::new(NewFile {
            number: self.number,
            epoch: self.number,
            smallest,
            largest,
            ..NewFile::default()
        });
        let file = self.tables.write(file, &entries, &inside);
        match level {
            0 => self.levels[0].insert(0, file),
            _ => self.levels[level].push(file),
        }
    }

    fn finish(mut self) -> (Arc<FamilyReads>, Arc<SuperVersion>) {
        let context = ReadContext {
            ttl: None,
            order: self.order.clone(),
            merge_operator: Some(Arc::new(Append)),
            in_memory: self.rng.one_in(2),
            prefix: Some(prefix()),
            tables: self.tables.cache(),
            blobs: self.tables.blob_cache(),
        };
        let version = Version::new(&self.order, self.levels);
        let version = Arc::new(version.with_blobs(self.tables.blobs()));
        let immutables = self.memtables.split_off(1);
        let memtable = self.memtables.remove(0);
        let super_version = SuperVersion::new(memtable, immutables, version, 1);
        (without_pool(context), super_version)
    }
}

/// Reads whose iterators leave no walks to one another.
pub(crate) fn without_pool(context: ReadContext) -> Arc<FamilyReads> {
    let walks = WalkPool::closed();
    Arc::new(FamilyReads { context, walks })
}

/// The answer of [`super::get_to`].
pub(crate) fn get(
    super_version: &SuperVersion,
    context: &ReadContext,
    user_key: &[u8],
    seqno: SeqNo,
    options: &TableReadOptions,
) -> Result<Option<PinnedSlice>> {
    let read = ReadView {
        super_version,
        context,
        seqno,
    };
    let mut answer = Ok(None);
    get_to(read, user_key, || *options, &mut answer);
    answer
}

/// The answers of [`super::multi_get`].
pub(crate) fn multi_get<K: AsRef<[u8]>>(
    super_version: &SuperVersion,
    context: &ReadContext,
    keys: &[K],
    seqno: SeqNo,
    options: &TableReadOptions,
) -> Vec<Result<Option<PinnedSlice>>> {
    let read = ReadView {
        super_version,
        context,
        seqno,
    };
    super::multi_get(read, keys, options)
}
