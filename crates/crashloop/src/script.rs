//! The content of the batch of a number, the same for writers and checks.
//!
//! Writer `w` changes keys `w<w>/...` of two families and no others. Each of its batches leaves its
//! number in both, and beside it the batches acknowledged to every writer before it began: since the
//! surviving batches are a prefix of all, those must be present in every state that has this one.

use drumlin_base::rng::Rng;
use drumlin_testkit::model::Change;

use crate::ledger::WRITERS;

/// Keys of a writer in a family.
const KEYS: u64 = 150;

/// The families, the second made by the first child.
pub(crate) const FAMILIES: [&str; 2] = ["default", "other"];

/// The key that holds the number of `writer`'s newest batch.
pub(crate) fn newest(writer: usize) -> Vec<u8> {
    format!("w{writer}/newest").into_bytes()
}

/// The key that holds the batches acknowledged before that batch began.
pub(crate) fn known(writer: usize) -> Vec<u8> {
    format!("w{writer}/known").into_bytes()
}

fn key(writer: usize, number: u64) -> Vec<u8> {
    format!("w{writer}/k{:04}", number % KEYS).into_bytes()
}

/// The changes of batch `number`, without the acknowledgements known before it.
pub(crate) fn batch(writer: usize, number: u64) -> Vec<(&'static str, Change)> {
    let mut rng = Rng::new(number * WRITERS as u64 + writer as u64);
    let mut changes = Vec::new();
    for _ in 0..1 + rng.below(5) {
        let family = FAMILIES[rng.below(2) as usize];
        let at = rng.below(KEYS);
        changes.push((
            family,
            match rng.below(16) {
                0 => {
                    let end = at + rng.below(KEYS - at) / 4;
                    Change::DeleteRange(key(writer, at), key(writer, end))
                }
                1..=3 => Change::Delete(key(writer, at)),
                4..=5 => Change::Merge(key(writer, at), number.to_le_bytes().to_vec()),
                kind => {
                    let len = if kind == 15 { 3000 } else { rng.below(200) };
                    let mut value = number.to_le_bytes().to_vec();
                    value.resize(8 + len as usize, b'a' + (number % 26) as u8);
                    Change::Put(key(writer, at), value)
                }
            },
        ));
    }
    for family in FAMILIES {
        changes.push((
            family,
            Change::Put(newest(writer), number.to_le_bytes().to_vec()),
        ));
    }
    changes
}

/// Whether batch `number` is synced.
pub(crate) fn is_synced(writer: usize, number: u64) -> bool {
    Rng::new(number * 31 + writer as u64).one_in(20)
}

/// Numbers as a value.
pub(crate) fn encode(numbers: [u64; WRITERS]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// The reverse of [`encode`].
pub(crate) fn decode(value: &[u8]) -> Option<[u64; WRITERS]> {
    let mut numbers = [0; WRITERS];
    let mut chunks = value.chunks_exact(8);
    for number in &mut numbers {
        *number = u64::from_le_bytes(chunks.next()?.try_into().ok()?);
    }
    chunks.remainder().is_empty().then_some(numbers)
}
