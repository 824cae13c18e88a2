//! Random operations, applied alike to Drumlin and to RocksDB.

use drumlin::{ColumnFamily, Db, WriteOptions};
use drumlin_base::rng::Rng;

use crate::rocks::Rocks;
use crate::rows::key;

/// One change.
#[derive(Clone, Debug)]
pub enum Op {
    /// Sets a key.
    Put(Vec<u8>, Vec<u8>),
    /// Removes a key.
    Delete(Vec<u8>),
    /// Adds an operand to a key.
    Merge(Vec<u8>, Vec<u8>),
    /// Removes the keys from one up to another.
    DeleteRange(Vec<u8>, Vec<u8>),
}

/// The operations that may be drawn beside puts and deletions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Operators {
    /// Merges.
    pub merges: bool,
    /// Range deletions.
    pub ranges: bool,
    /// Whether keys are ordered last to first.
    pub reverse: bool,
}

/// A change to one of `keys` keys.
pub fn random_op(rng: &mut Rng, keys: usize, operators: Operators) -> Op {
    let at = rng.below(keys as u64) as usize;
    match rng.below(100) {
        0..=14 => Op::Delete(key(at)),
        15..=34 if operators.merges => Op::Merge(key(at), operand(rng)),
        35 if operators.ranges => {
            let end = at + rng.below(20) as usize + 1;
            match operators.reverse {
                false => Op::DeleteRange(key(at), key(end)),
                true => Op::DeleteRange(key(end), key(at)),
            }
        }
        _ => {
            let len = if rng.one_in(500) {
                5000
            } else {
                rng.below(80) as usize
            };
            let mut value = vec![0; len];
            rng.fill(value.get_mut(..len / 2).unwrap_or_default());
            Op::Put(key(at), value)
        }
    }
}

fn operand(rng: &mut Rng) -> Vec<u8> {
    rng.below(1 << 20).to_le_bytes().to_vec()
}

/// Applies `op` to `db`.
///
/// # Panics
/// When the write fails.
pub fn apply_ours(db: &Db, family: &ColumnFamily, op: &Op) {
    let options = WriteOptions::default();
    match op {
        Op::Put(key, value) => db.put_cf(family, key, value, &options),
        Op::Delete(key) => db.delete_cf(family, key, &options),
        Op::Merge(key, operand) => db.merge_cf(family, key, operand, &options),
        Op::DeleteRange(begin, end) => db.delete_range_cf(family, begin, end, &options),
    }
    .expect("we write");
}

/// Applies `op` to `db`.
///
/// # Panics
/// When the write fails.
pub fn apply_rocks(db: &Rocks, family: &str, op: &Op) {
    match op {
        Op::Put(key, value) => db.put(family, key, value),
        Op::Delete(key) => db.delete(family, key),
        Op::Merge(key, operand) => db.merge(family, key, operand),
        Op::DeleteRange(begin, end) => db.delete_range(family, begin, end),
    }
}
