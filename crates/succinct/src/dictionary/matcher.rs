//! The parts of a record that are in the dictionary.
//!
//! The dictionary's anchors are in a table by hash. A record's anchors are looked up in it; if the
//! bytes agree, the match is extended to both sides as far as it goes. The table holds four bytes for
//! about every sixteenth byte of dictionary, while a suffix array would hold four for every byte and
//! need a search for each place.

use super::anchors::{Gear, SPARSE_BITS, WINDOW_BYTES};
use super::text::{Dictionary, REFERENCE_BYTES_MAX};

/// Slots tried for one anchor.
const PROBES: usize = 8;

/// A piece of a text that stands in the dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DictionaryMatch {
    /// Where it begins in the text.
    pub at: usize,
    /// Where it begins in the dictionary.
    pub place: usize,
    /// How long it is.
    pub len: usize,
}

/// Finds pieces of one dictionary. Shared by threads.
#[derive(Debug)]
pub struct Matcher {
    gear: Gear,
    /// Ends of anchors in the dictionary by hash; 0 for none.
    slots: Vec<u32>,
}

impl Matcher {
    /// A matcher for pieces of `dictionary`: those that hold an anchor. One in sixteen of the places
    /// behind the first [`WINDOW_BYTES`] is one.
    pub fn new(dictionary: &Dictionary) -> Self {
        let anchors = dictionary.text().len() >> SPARSE_BITS;
        let mut matcher = Self {
            gear: Gear::new(),
            slots: vec![0; (anchors * 2).next_power_of_two().max(16)],
        };
        let (gear, text) = (Gear::new(), dictionary.text());
        gear.anchors(text, 0, |end, hash| {
            matcher.insert(text, end, hash);
            true
        });
        matcher
    }

    /// Where in the table a hash's slots begin. The highest bits are those that make an anchor.
    fn first_slot(&self, hash: u64) -> usize {
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.slots.len() - 1)
    }

    fn insert(&mut self, text: &[u8], end: usize, hash: u64) {
        let (first, mask) = (self.first_slot(hash), self.slots.len() - 1);
        for probe in 0..PROBES {
            let slot = &mut self.slots[(first + probe) & mask];
            let known = *slot as usize;
            // The first place of a repeated text is kept.
            if known >= WINDOW_BYTES
                && text[known - WINDOW_BYTES..known] == text[end - WINDOW_BYTES..end]
            {
                return;
            }
            if known == 0 {
                *slot = end as u32;
                return;
            }
        }
    }

    /// Calls `found` with pieces of `text` that stand in `dictionary`, in order, none overlapping.
    ///
    /// Requires: `dictionary` is the one the matcher was made for (another one gives poor results).
    pub fn find(
        &self,
        dictionary: &Dictionary,
        text: &[u8],
        mut found: impl FnMut(DictionaryMatch),
    ) {
        let mut from = 0;
        while from + WINDOW_BYTES <= text.len() {
            let mut next = None;
            self.gear.anchors(text, from, |end, hash| {
                next = self.at_anchor(dictionary.text(), text, from, (end, hash));
                next.is_none()
            });
            let Some(piece) = next else { return };
            found(piece);
            from = piece.at + piece.len;
        }
    }

    /// The longest piece around the anchor that ends at `end`, beginning at `from` or later.
    fn at_anchor(
        &self,
        whole: &[u8],
        text: &[u8],
        from: usize,
        (end, hash): (usize, u64),
    ) -> Option<DictionaryMatch> {
        let (first, mask) = (self.first_slot(hash), self.slots.len() - 1);
        for probe in 0..PROBES {
            let known = self.slots[(first + probe) & mask] as usize;
            if known == 0 {
                return None;
            }
            let agree = known >= WINDOW_BYTES
                && whole.get(known - WINDOW_BYTES..known) == text.get(end - WINDOW_BYTES..end);
            if agree {
                // No further than a reference reaches: a long text that stands in the dictionary over and over
                // would be compared to its end for each.
                let ahead = text.len().min(end + REFERENCE_BYTES_MAX);
                let behind = common_prefix(&whole[known..], &text[end..ahead]);
                let before = common_suffix(&whole[..known], &text[from..end]);
                let len = (before + behind).min(REFERENCE_BYTES_MAX);
                return Some(DictionaryMatch {
                    at: end - before,
                    place: known - before,
                    len,
                });
            }
        }
        None
    }

    /// Bytes it takes in memory.
    pub fn memory(&self) -> usize {
        self.slots.len() * size_of::<u32>()
    }
}

/// How many first bytes two texts share.
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (mut chunks_a, mut chunks_b) = (a.chunks_exact(8), b.chunks_exact(8));
    let mut len = 0;
    for (x, y) in chunks_a.by_ref().zip(chunks_b.by_ref()) {
        if x != y {
            break;
        }
        len += 8;
    }
    let rest = a[len..].iter().zip(&b[len..]);
    len + rest.take_while(|(x, y)| x == y).count()
}

/// How many last bytes two texts share.
pub(super) fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let (chunks_a, chunks_b) = (a.rchunks_exact(8), b.rchunks_exact(8));
    let len = 8 * chunks_a.zip(chunks_b).take_while(|(x, y)| x == y).count();
    let rest = a[..a.len() - len].iter().rev();
    len + rest
        .zip(b[..b.len() - len].iter().rev())
        .take_while(|(x, y)| x == y)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumlin_base::rng::Rng;

    fn random_text(rng: &mut Rng, len: usize) -> Vec<u8> {
        let mut text = vec![0; len];
        rng.fill(&mut text);
        text
    }

    #[test]
    fn long_pieces_are_found_whole() {
        let mut rng = Rng::new(4);
        let dictionary = Dictionary::new(random_text(&mut rng, 100_000));
        let matcher = Matcher::new(&dictionary);
        for _ in 0..200 {
            let place = rng.below(99_000) as usize;
            let len = 400 + rng.below(600) as usize;
            let lead = random_text(&mut rng, 30);
            let piece = dictionary.get(place, len).expect("inside");
            let text = [&lead, piece, &lead].concat();
            let mut pieces = Vec::new();
            matcher.find(&dictionary, &text, |found| pieces.push(found));
            assert_eq!(pieces.len(), 1);
            let found = pieces[0];
            assert!(found.at <= 30 && found.at + found.len >= 30 + len);
            let same = &text[found.at..found.at + found.len];
            assert_eq!(
                dictionary.get(found.place, found.len).expect("inside"),
                same
            );
        }
    }

    #[test]
    fn common_ends_are_what_a_loop_counts() {
        let mut rng = Rng::new(5);
        for _ in 0..2000 {
            let mut text = || -> Vec<u8> {
                (0..rng.below(40))
                    .map(|_| u8::from(rng.one_in(20)))
                    .collect()
            };
            let (a, b) = (text(), text());
            let naive = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
            assert_eq!(common_prefix(&a, &b), naive);
            let naive = a.iter().rev().zip(b.iter().rev());
            assert_eq!(
                common_suffix(&a, &b),
                naive.take_while(|(x, y)| x == y).count()
            );
        }
    }
}
