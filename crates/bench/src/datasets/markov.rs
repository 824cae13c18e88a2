//! A Markov chain over words: text with the word order of other text, drawn from a seed.

use std::collections::HashMap;

use drumlin_base::rng::Rng;
use drumlin_base::{Error, Result};

/// A Markov chain over words: each word is followed by one that followed it in the text the chain
/// was made of, as often as in that text.
///
/// Words and short phrases are those of the source; sentences are new. So to a compressor it is like
/// prose of one author, without long repetitions. (Shannon: A Mathematical Theory of Communication,
/// 1948, section 3.)
#[derive(Debug)]
pub struct Chain {
    words: Vec<Box<str>>,
    /// Where the successors of each word begin in `next`, and one more for the end.
    starts: Vec<u32>,
    next: Vec<u32>,
    /// Words that begin a sentence.
    openings: Vec<u32>,
}

impl Chain {
    /// The chain of the successions of words in `text`.
    ///
    /// # Errors
    /// `InvalidArgument` when there are fewer than two words.
    pub fn new<'t>(text: impl Iterator<Item = &'t str>) -> Result<Self> {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut words: Vec<Box<str>> = Vec::new();
        let mut order = Vec::new();
        for piece in text {
            for word in piece.split_whitespace() {
                let fresh = u32::try_from(words.len()).unwrap_or(u32::MAX);
                let number = *numbers.entry(word).or_insert_with(|| {
                    words.push(word.into());
                    fresh
                });
                order.push(number);
            }
        }
        if order.len() < 2 {
            return Err(Error::invalid_argument(
                "a chain needs a text of some words",
            ));
        }
        // The last word is followed by the first, so that none is without a successor.
        let pairs = || {
            let after = order.iter().skip(1).chain(order.first());
            order.iter().zip(after)
        };
        let mut starts = vec![0u32; words.len() + 1];
        for (word, _) in pairs() {
            starts[*word as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut free = starts.clone();
        let mut next = vec![0u32; order.len()];
        let mut openings = Vec::new();
        for (word, after) in pairs() {
            let place = &mut free[*word as usize];
            next[*place as usize] = *after;
            *place += 1;
            if words[*word as usize].ends_with(['.', '!', '?']) {
                openings.push(*after);
            }
        }
        if openings.is_empty() {
            openings.extend(order.first());
        }
        Ok(Self {
            words,
            starts,
            next,
            openings,
        })
    }

    /// Different words.
    pub fn words(&self) -> usize {
        self.words.len()
    }

    /// Appends sentences to `out` until it has at least `bytes` bytes more, ending with a whole word.
    pub fn append(&self, bytes: usize, rng: &mut Rng, out: &mut Vec<u8>) {
        let end = out.len() + bytes;
        let mut word = draw(&self.openings, rng);
        loop {
            let at = word as usize;
            out.extend_from_slice(self.words.get(at).map_or(b"", |word| word.as_bytes()));
            if out.len() >= end {
                return;
            }
            out.push(b' ');
            let start = self.starts.get(at).map_or(0, |start| *start as usize);
            let stop = self.starts.get(at + 1).map_or(0, |stop| *stop as usize);
            word = draw(self.next.get(start..stop).unwrap_or_default(), rng);
        }
    }
}

fn draw(from: &[u32], rng: &mut Rng) -> u32 {
    let index = rng.below(from.len() as u64) as usize;
    from.get(index).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_each_other_as_often_as_in_the_text() {
        let text = "a b a b a c. a b";
        let chain = Chain::new([text].into_iter()).expect("a text");
        assert_eq!(chain.words(), 3);
        let mut out = Vec::new();
        chain.append(200_000, &mut Rng::new(5), &mut out);
        let text = String::from_utf8(out).expect("text of text");
        let words: Vec<&str> = text.split(' ').collect();
        let after_a = words.windows(2).filter(|pair| pair[0] == "a");
        let to_b = after_a.clone().filter(|pair| pair[1] == "b").count() as f64;
        let share = to_b / after_a.count() as f64;
        // Of the four that follow "a" three are "b".
        assert!((0.74..0.76).contains(&share), "{share}");
        assert!(
            words
                .windows(2)
                .all(|pair| pair[0] != "c." || pair[1] == "a")
        );
    }

    #[test]
    fn a_chain_needs_words() {
        assert!(Chain::new(["", " one "].into_iter()).is_err());
    }
}
