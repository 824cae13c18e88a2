//! A change of a node's page as the `sub` family has it: the bytes that changed, in the place of the whole page.
//!
//! | bytes | meaning |
//! | --- | --- |
//! | varint | bytes of the page before |
//! | rest | exchanges, one after the other |
//!
//! An exchange: varints of the place in the page, of the bytes taken out there and of those put in; these; and the second byte
//! of the page after, which is the number of its items.
//!
//! It is a merge operand over the page. Where that has another length, or there is none, the outcome is empty, which no node
//! is: compactions go on over a dead collection, of which only the newest entries may be left, and a reader is told of damage.

use drumlin::MergeOperator;
use drumlin_base::Result;
use drumlin_base::coding::{Reader, put_varint64};

use super::page::{Exchange, items_byte, replace, set_items_byte};

/// So many operands may be over a page; the next change writes it whole.
pub(super) const OPERANDS_MAX: u8 = 8;

/// A change that grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Splice {
    bytes: Vec<u8>,
}

impl Splice {
    /// The operand; empty where nothing was changed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes back what was appended after it had `len` bytes.
    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// Appends an exchange that made `page` what it is.
    pub(super) fn push(&mut self, exchange: Exchange, page: &[u8]) {
        let (at, taken, put) = (exchange.at, exchange.taken, exchange.put);
        if self.bytes.is_empty() {
            put_varint64(&mut self.bytes, (page.len() + taken - put) as u64);
        }
        for number in [at, taken, put] {
            put_varint64(&mut self.bytes, number as u64);
        }
        self.bytes
            .extend_from_slice(page.get(at..at + put).unwrap_or(&[]));
        self.bytes.push(items_byte(page));
    }
}

/// The page after `operand`; `None` where it is not a change of this page.
fn applied(mut page: Vec<u8>, operand: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::new(operand);
    if reader.varint64()? != page.len() as u64 {
        return None;
    }
    while !reader.is_empty() {
        let mut number = || usize::try_from(reader.varint64()?).ok();
        let (at, taken, put) = (number()?, number()?, number()?);
        let until = at.checked_add(taken).filter(|end| *end <= page.len())?;
        replace(&mut page, at..until, reader.bytes(put)?);
        let items = reader.u8()?;
        if !drumlin_base::bug!("redis-splice-leaves-the-count") {
            set_items_byte(&mut page, items);
        }
    }
    Some(page)
}

/// The merge operator of the `sub` family.
pub(crate) struct Splices;

impl MergeOperator for Splices {
    fn name(&self) -> &'static str {
        "drumlin.redis.splice"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        let page = existing.map(<[u8]>::to_vec);
        let mut operands = operands.iter();
        let folded = page.and_then(|page| operands.try_fold(page, |page, it| applied(page, it)));
        Ok(folded.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::page::exchange;
    use drumlin_base::rng::Rng;

    /// The example of `docs/format/redis.md`.
    #[test]
    fn a_change_has_the_bytes_of_the_document() {
        let mut page = b"\x00\x02\x02a\x04bc".to_vec();
        let mut splice = Splice::default();
        let done = exchange(&mut page, 2..4, b"", &mut Vec::new());
        set_items_byte(&mut page, 1);
        splice.push(done.expect("in the page"), &page);
        assert_eq!(splice.bytes(), b"\x07\x02\x02\x00\x01");
    }

    /// Goal: the operands of some rounds make the page what it was made, and nothing else folds. Method: random exchanges, some
    /// taken back; then operands that are left out, cut and damaged.
    #[test]
    fn operands_fold_to_the_page_that_was_changed() {
        let mut rng = Rng::new(5);
        for _ in 0..300 {
            let first: Vec<u8> = (0..2 + rng.below(40)).map(|at| at as u8).collect();
            let (mut page, mut operands) = (first.clone(), Vec::new());
            for _ in 0..=rng.below(4) {
                let mut splice = Splice::default();
                for _ in 0..=rng.below(3) {
                    let from = 2 + rng.below(page.len() as u64 - 1) as usize;
                    let until = from + rng.below((page.len() - from) as u64 + 1) as usize;
                    let new = vec![rng.below(256) as u8; rng.below(9) as usize];
                    let (before, len, mut taken) = (page.clone(), splice.len(), Vec::new());
                    let done = exchange(&mut page, from..until, &new, &mut taken);
                    let done = done.expect("in the page");
                    set_items_byte(&mut page, rng.below(256) as u8);
                    splice.push(done, &page);
                    if rng.below(4) == 0 {
                        done.take_back(&mut page, &taken);
                        assert_eq!(page, before);
                        splice.truncate(len);
                    }
                }
                if splice.len() > 0 {
                    operands.push(splice.bytes().to_vec());
                }
            }
            let fold = |existing: Option<&[u8]>, operands: &[Vec<u8>]| {
                let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
                Splices
                    .full_merge(b"n", existing, &operands)
                    .expect("a page")
            };
            assert_eq!(fold(Some(&first), &operands), page);
            assert!(operands.is_empty() || fold(None, &operands).is_empty());
            let shorter = first.get(1..).expect("a byte");
            assert!(operands.is_empty() || fold(Some(shorter), &operands).is_empty());
            for at in 0..operands.first().map_or(0, Vec::len) {
                let mut damaged = operands.clone();
                damaged[0][at] ^= 1 << rng.below(8);
                drop(fold(Some(&first), &damaged));
                damaged[0].truncate(at);
                drop(fold(Some(&first), &damaged));
            }
        }
    }
}
