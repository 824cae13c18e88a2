//! Recognizes text that was read before, word for word or nearly so.
//!
//! Documentation says things many times: a licence in each package, a sentence about each function that
//! differs in its name, the same page for two versions of a program. A paragraph is old when its words are
//! those of an earlier one, digits and signs left out, or when more than half of its runs of five words
//! occurred in earlier ones. Of the runs one in eight is remembered and asked for, chosen by its hash, so the
//! memory is about a twelfth of the text; a paragraph too short to have one is compared by its words alone.
//!
//! For one thread.

use std::collections::HashSet;

use drumlin_base::checksum::xxh3_64;

/// Words of a run.
const RUN_WORDS: usize = 5;
/// One run in so many is remembered.
const RUNS_ONE_IN: u64 = 8;

/// The paragraphs that were new so far.
#[derive(Debug, Default)]
pub(super) struct Novelty {
    paragraphs: HashSet<u64>,
    runs: HashSet<u64>,
    /// Hashes of the paragraph at hand: its words, and the runs that are remembered.
    words: Vec<u64>,
    chosen: Vec<u64>,
}

impl Novelty {
    /// Whether `paragraph` is new; it is remembered then.
    pub(super) fn is_new(&mut self, paragraph: &str) -> bool {
        self.words.clear();
        let words = paragraph.split(|c: char| !c.is_alphabetic());
        for word in words.filter(|word| !word.is_empty()) {
            self.words.push(xxh3_64(word.to_lowercase().as_bytes()));
        }
        if !self.paragraphs.insert(joined(&self.words)) {
            return false;
        }
        self.chosen.clear();
        let runs = self.words.windows(RUN_WORDS).map(joined);
        self.chosen
            .extend(runs.filter(|run| run % RUNS_ONE_IN == 0));
        let known = self.chosen.iter().filter(|run| self.runs.contains(run));
        if known.count() * 2 > self.chosen.len() {
            return false;
        }
        self.runs.extend(&self.chosen);
        true
    }
}

/// A hash of hashes in their order.
fn joined(hashes: &[u64]) -> u64 {
    let mixed = hashes.iter().fold(0u64, |sum, hash| {
        (sum.rotate_left(23) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    // The low bits of a product are poor, and they choose.
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(from: u64, to: u64) -> String {
        let word = |n: u64| {
            let letter = |at: u32| char::from(b'a' + ((n * 0x9e37_79b9) >> (5 * at)) as u8 % 26);
            (0..6).map(letter).collect::<String>()
        };
        (from..to).map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_paragraph_is_old_when_only_its_digits_and_signs_differ() {
        let mut novelty = Novelty::default();
        assert!(novelty.is_new("Defined at line 17 of file a.h."));
        assert!(!novelty.is_new("Defined at line 4: of file A.H"));
        assert!(novelty.is_new("Defined at line 4 of file b.h."));
    }

    #[test]
    fn a_paragraph_is_old_when_most_of_it_was_there() {
        let mut novelty = Novelty::default();
        assert!(novelty.is_new(&words(0, 1000)));
        assert!(
            !novelty.is_new(&words(200, 1200)),
            "four fifths of it were there"
        );
        assert!(novelty.is_new(&words(800, 1800)), "a fifth of it was there");
        assert!(
            !novelty.is_new(&words(1000, 1800)),
            "as part of the one before"
        );
        assert!(novelty.is_new(&words(2000, 3000)));
        assert!(novelty.is_new("") && !novelty.is_new("123"));
    }
}
