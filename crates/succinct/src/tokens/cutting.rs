//! Texts cut into tokens, so that their codes are short.
//!
//! The longest token at each place is cheap to find and costs some percent: it ends within a word as
//! readily as behind it, and the rest of the word is then made of scraps. The cheapest way through a text
//! is found by going through its places in order: each place that can be reached knows the cheapest way to
//! it, and each token there offers a way to a later place (Viterbi, Error Bounds for Convolutional Codes,
//! 1967).
//!
//! Most places need no further steps. Ways of different lengths are compared by their cost beyond the
//! average cost of their bytes: a place that lags behind one of the next few by more than a cutter's slack
//! is dropped. One of these is never dropped, so there always is a way to the end.

use super::finder::{COST_PARTS, Cut, Finder};
use super::vocabulary::{TOKEN_BYTES_MAX, Token};

/// Bytes that are cut at a time.
const PIECE_BYTES: usize = 1024;
/// Places that a token may lead to from one place, itself included.
const REACH: usize = TOKEN_BYTES_MAX + 1;
/// Scores are counted in so many parts of a cost's parts, because the average cost of a byte is
/// small.
const FINER: i32 = 64;
/// No way leads here yet.
const UNREACHED: i32 = i32::MAX / 2;

/// The cheapest way, or nearly, to cut texts into the tokens of a finder.
#[derive(Debug)]
pub struct Cutter {
    finder: Finder,
    /// The average cost of a byte, in scores.
    rate: i32,
    /// The excess of a way's cost over one beside it up to which it is still followed, in scores.
    slack: i32,
}

/// Ways through a piece of text.
struct Ways {
    /// The cost of the cheapest way to each place beyond the average.
    scores: [i32; PIECE_BYTES + REACH],
    /// The last token of that way: symbol and length.
    cuts: [u32; PIECE_BYTES + REACH],
}

impl Cutter {
    /// A cutter into `tokens`, each at the `cost` of its symbol, [`COST_PARTS`] to a bit. With more bits of
    /// slack more ways are followed: sixteen hardly miss a better one.
    ///
    /// # Panics
    /// As [`Finder::new`].
    pub fn new(tokens: &[Token], cost: impl Fn(usize) -> u32, slack_bits: u32) -> Self {
        let (mut bytes, mut all) = (0.0, 0.0);
        for (symbol, token) in tokens
            .iter()
            .enumerate()
            .filter(|(_, token)| !token.is_empty())
        {
            // In well coded text, a token's cost gives its share.
            let cost = f64::from(cost(symbol));
            let share = (-cost / f64::from(COST_PARTS)).exp2();
            bytes += share * token.len() as f64;
            all += share * cost;
        }
        let rate = if bytes > 0.0 { all / bytes } else { 0.0 };
        Self {
            finder: Finder::new(tokens, cost),
            rate: (rate * f64::from(FINER)) as i32,
            slack: (slack_bits * COST_PARTS) as i32 * FINER,
        }
    }

    /// Bytes it takes in memory.
    pub fn memory(&self) -> usize {
        self.finder.memory()
    }

    /// Calls `cut` with the symbols of the tokens that `text` is cut into, first to last.
    #[inline]
    pub fn cut(&self, text: &[u8], mut cut: impl FnMut(usize)) {
        if text.is_empty() {
            return; // As most texts between two references are; the ways are much to clear for nothing.
        }
        let mut ways = Ways {
            scores: [UNREACHED; PIECE_BYTES + REACH],
            cuts: [0; PIECE_BYTES + REACH],
        };
        let mut rest = text;
        while !rest.is_empty() {
            let end = self.ways(rest, &mut ways);
            ways.turn(end);
            let mut at = 0;
            while at < end {
                let (symbol, len) = unpacked(ways.cuts[at]);
                cut(symbol);
                at += len.max(1);
            }
            debug_assert!(end > 0, "a piece is cut by one token at least");
            rest = rest.split_at(end).1;
        }
    }

    /// Finds the ways through the first piece of `text`, and returns the number of its bytes to cut
    /// by them.
    #[inline]
    fn ways(&self, text: &[u8], ways: &mut Ways) -> usize {
        let piece = text.len().min(PIECE_BYTES);
        // A whole piece ends at the best of the last places, so that no token is cut short for it.
        let last = if piece < text.len() {
            piece - REACH
        } else {
            piece
        };
        ways.scores[..piece + REACH].fill(UNREACHED);
        ways.scores[0] = 0;
        // The least score from this place on: no place is reached that is not near.
        let (mut least, mut least_at) = (0, 0);
        for at in 0..last {
            let score = ways.scores[at];
            if score > least + self.slack {
                continue;
            }
            let rest = text.get(at..piece).expect("ways begin inside the piece");
            self.finder.each(rest, |found| {
                let cost = found.cost as i32 * FINER - self.rate * found.len as i32;
                let score = score + cost;
                let to = at + found.len;
                if let (Some(best), Some(way)) = (ways.scores.get_mut(to), ways.cuts.get_mut(to))
                    && score < *best
                {
                    (*best, *way) = (score, packed(found));
                    if score < least {
                        (least, least_at) = (score, to);
                    }
                }
            });
            if at == least_at {
                (least, least_at) = ways.least_behind(at);
            }
        }
        let ends = last..=piece;
        ends.min_by_key(|&at| ways.scores[at]).unwrap_or(piece)
    }
}

impl Ways {
    /// The least score of the places near behind `at`, and the first of them.
    fn least_behind(&self, at: usize) -> (i32, usize) {
        let near = self
            .scores
            .get(at + 1..)
            .and_then(<[i32]>::first_chunk::<TOKEN_BYTES_MAX>);
        let near = near.into_iter().flatten().copied().zip(at + 1..);
        near.min().unwrap_or((UNREACHED, at + 1))
    }

    /// Notes the tokens of the way to `end` where they begin, instead of where they end.
    fn turn(&mut self, end: usize) {
        let mut at = end;
        let mut next = 0;
        while at > 0 {
            let cut = std::mem::replace(&mut self.cuts[at], next);
            let (_, len) = unpacked(cut);
            next = cut;
            at -= len.clamp(1, at);
        }
        self.cuts[0] = next;
    }
}

fn packed(cut: Cut) -> u32 {
    (cut.symbol as u32) << 4 | cut.len as u32
}

fn unpacked(cut: u32) -> (usize, usize) {
    ((cut >> 4) as usize, (cut & 15) as usize)
}

#[cfg(test)]
mod tests {
    use super::super::training::{Cutting, Growth, learn};
    use super::*;
    use drumlin_base::rng::Rng;

    /// The cost of the cheapest way through `text`.
    fn cheapest(finder: &Finder, text: &[u8]) -> u32 {
        let mut costs = vec![u32::MAX; text.len() + 1];
        costs[0] = 0;
        for at in 0..text.len() {
            let cost = costs[at];
            finder.each(&text[at..], |cut| {
                let to = &mut costs[at + cut.len];
                *to = cost.saturating_add(cut.cost).min(*to);
            });
        }
        costs[text.len()]
    }

    #[test]
    fn texts_are_cut_whole_and_nearly_as_cheaply_as_can_be() {
        let mut rng = Rng::new(8);
        let mut word = || -> Vec<u8> {
            let len = 1 + rng.below(9);
            (0..len).map(|_| b'a' + rng.below(6) as u8).collect()
        };
        let words: Vec<Vec<u8>> = (0..300).map(|_| word()).collect();
        let mut text = |words_max: u64| -> Vec<u8> {
            // The first words are the most frequent.
            let count = rng.below(words_max);
            let picks = (0..count).map(|_| (rng.unit().powi(3) * 300.0) as usize);
            picks
                .flat_map(|pick| words[pick].iter().chain(b" "))
                .copied()
                .collect()
        };
        let sample: Vec<Vec<u8>> = (0..400).map(|_| text(100)).collect();
        let views: Vec<&[u8]> = sample.iter().map(Vec::as_slice).collect();
        let growth = Growth {
            tokens_max: 3000,
            bias: 2.0,
            cutting: Cutting::Cheapest,
        };
        let learned = learn(&views, growth).tokens;
        let total: u64 = learned.iter().map(|(_, uses)| uses.max(&1)).sum();
        let cost = |symbol: usize| {
            let share = total as f64 / learned[symbol].1.max(1) as f64;
            (share.log2() * f64::from(COST_PARTS)) as u32
        };
        let tokens: Vec<Token> = learned.iter().map(|(token, _)| *token).collect();
        let finder = Finder::new(&tokens, cost);
        let cutters = [1, 16].map(|slack_bits| Cutter::new(&tokens, cost, slack_bits));
        let (mut paid_in_all, mut least_in_all) = ([0, 0], 0);
        for words_max in [1, 2, 3, 10, 100, 200, 200, 200, 1500, 1500] {
            let text = text(words_max);
            let least = cheapest(&finder, &text);
            least_in_all += least;
            for (cutter, paid_in_all) in cutters.iter().zip(&mut paid_in_all) {
                let (mut joined, mut paid) = (Vec::new(), 0);
                cutter.cut(&text, |symbol| {
                    joined.extend_from_slice(tokens[symbol].bytes());
                    paid += cost(symbol);
                });
                assert_eq!(joined, text);
                assert!(paid >= least);
                *paid_in_all += paid;
            }
        }
        let [narrow, wide] = paid_in_all;
        assert!(
            narrow * 100 <= least_in_all * 103,
            "{narrow} {least_in_all}"
        );
        assert!(wide * 1000 <= least_in_all * 1005, "{wide} {least_in_all}");
    }
}
