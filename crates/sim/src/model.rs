//! The expected content of a database, as maps. Knows nothing of the engine but its batches.

use std::collections::{BTreeMap, BTreeSet};

use drumlin::{MergeOperator, Result, WriteBatch};
use drumlin_base::rng::Rng;

/// The key every batch adds its number to, in the default family.
pub const LOG: &[u8] = b"!log";

/// Joins operands with commas.
#[derive(Debug)]
pub struct Append;

impl MergeOperator for Append {
    fn name(&self) -> &str {
        "drumlin.sim.append"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        let parts: Vec<&[u8]> = existing.iter().chain(operands).copied().collect();
        Ok(parts.join(&b','))
    }

    fn partial_merge(&self, _key: &[u8], left: &[u8], right: &[u8]) -> Option<Vec<u8>> {
        Some([left, right].join(&b','))
    }
}

/// One change of one key or range.
#[derive(Clone, Debug)]
pub enum Op {
    /// A value set.
    Put(Vec<u8>, Vec<u8>),
    /// A key removed.
    Delete(Vec<u8>),
    /// A key removed that was put once.
    SingleDelete(Vec<u8>),
    /// An operand added.
    Merge(Vec<u8>, Vec<u8>),
    /// Every key from the first up to the second removed.
    DeleteRange(Vec<u8>, Vec<u8>),
}

impl Op {
    /// Adds the change to `batch`.
    ///
    /// # Errors
    /// The batch's.
    pub fn add_to(&self, batch: &mut WriteBatch, family: u32) -> Result<()> {
        match self {
            Self::Put(key, value) => batch.put_cf(family, key, value),
            Self::Delete(key) => batch.delete_cf(family, key),
            Self::SingleDelete(key) => batch.single_delete_cf(family, key),
            Self::Merge(key, operand) => batch.merge_cf(family, key, operand),
            Self::DeleteRange(begin, end) => batch.delete_range_cf(family, begin, end),
        }
    }
}

/// The rows of one family.
pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The rows of every family, by its id.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The families; one that is missing is empty.
    pub families: BTreeMap<u32, Rows>,
}

impl Model {
    /// Does `op`.
    pub fn apply(&mut self, family: u32, op: &Op) {
        let rows = self.families.entry(family).or_default();
        match op {
            Op::Put(key, value) => {
                rows.insert(key.clone(), value.clone());
            }
            Op::Delete(key) | Op::SingleDelete(key) => {
                rows.remove(key);
            }
            Op::Merge(key, operand) => match rows.get_mut(key) {
                Some(value) => {
                    value.push(b',');
                    value.extend_from_slice(operand);
                }
                None => {
                    rows.insert(key.clone(), operand.clone());
                }
            },
            Op::DeleteRange(begin, end) => rows.retain(|key, _| key < begin || key >= end),
        }
    }
}

/// A key as batches use them: `k000` to about `k150`.
pub fn key(rng: &mut Rng) -> Vec<u8> {
    format!("k{:03}", rng.below(150)).into_bytes()
}

/// A value: mostly short, some large enough to be kept apart.
pub fn value(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.below(20) {
        0 => 400 + rng.below(2000),
        1..=4 => 60 + rng.below(100),
        _ => rng.below(40),
    };
    let mut value = vec![b'a' + rng.below(26) as u8; len as usize];
    if rng.one_in(2) {
        rng.fill(&mut value);
        value.iter_mut().for_each(|byte| *byte = b'a' + *byte % 26);
    }
    value
}

/// A random change of a key or range.
pub fn op(rng: &mut Rng) -> Op {
    match rng.below(40) {
        0..=24 => Op::Put(key(rng), value(rng)),
        25..=30 => Op::Delete(key(rng)),
        31..=36 => Op::Merge(key(rng), value(rng)),
        _ => {
            let (one, other) = (rng.below(150), rng.below(150));
            let (low, high) = (one.min(other), one.max(other).min(one.min(other) + 30));
            let name = |n: u64| format!("k{n:03}").into_bytes();
            Op::DeleteRange(name(low), name(high))
        }
    }
}

/// The first keys in which two families differ; `None` when they do not.
pub fn difference(found: &Rows, want: &Rows) -> Option<String> {
    if found == want {
        return None;
    }
    let text = |bytes: &Vec<u8>| {
        let front = bytes.get(..bytes.len().min(30)).unwrap_or_default();
        format!("{}({})", String::from_utf8_lossy(front), bytes.len())
    };
    let keys: BTreeSet<_> = found.keys().chain(want.keys()).collect();
    let mut lines = Vec::new();
    for key in keys {
        let (found, want) = (found.get(key), want.get(key));
        if found != want {
            let (found, want) = (found.map(text), want.map(text));
            lines.push(format!("{}: {found:?}, not {want:?}", text(key)));
        }
    }
    let count = lines.len();
    lines.truncate(4);
    Some(format!("{count} keys differ: {}", lines.join("; ")))
}
