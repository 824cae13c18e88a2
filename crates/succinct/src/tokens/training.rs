//! A vocabulary for a sample.
//!
//! Pairs of neighbouring tokens become tokens, in rounds (byte-pair encoding by batches): the sample is
//! cut with the present vocabulary, neighbours are counted, and the pairs that save most are added. The
//! vocabulary grows by about two thirds a round, so that late tokens are made of good early ones; early
//! rounds look at a part of the sample, which is enough to find the frequent pairs. In these rounds the
//! sample is cut into the longest tokens. The last rounds cut it into those that cost least together, as
//! records will be, and swap tokens that turn out to be rare for those still missing.
//!
//! The saving of a pair, for an entropy code, is `n` times the information both tokens carry beyond that
//! of the pair, which is `n log2(n N / (a b))` bits for tokens seen `a` and `b` times among `N`. A bonus
//! of `bias` bits stands for the cost of every token beyond its information: with fixed-width codes that
//! is the whole width, with Huffman codes the rounding and the time it takes to decode.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::cutting::Cutter;
use super::finder::{COST_PARTS, Finder};
use super::pairs::Pairs;
use super::vocabulary::Token;

/// The tokens that are always there.
const BYTES: usize = 256;
/// A token is not kept for fewer uses in the sample.
const USES_MIN: u32 = 3;
/// The vocabulary grows by a third of this and this much each round: (3 + 2) / 3.
const GROWTH: (usize, usize) = (5, 3);
/// Bytes of the sample that the first round looks at; it doubles each round.
const FIRST_ROUND_BYTES: usize = 512 << 10;
/// Rounds that swap rare tokens for missing ones.
const SWAPS: usize = 4;
/// Bits that a way to cut the sample may cost more than another and still be followed: nearly all are. Tokens
/// learned from the best cuts make these easy to find later.
const SLACK_BITS: u32 = 16;
/// The share of a full vocabulary that a round swaps at most: 1 / this.
const SWAPPED_SHARE: usize = 8;

/// The limit of a vocabulary's growth, and its rules.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Tokens at most, the 256 bytes included; these are kept under any limit.
    pub tokens_max: usize,
    /// Bits that a token costs beyond its information.
    pub bias: f64,
    /// How texts will be cut.
    pub cutting: Cutting,
}

/// How texts are cut into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cutting {
    /// Into the longest from left to right.
    Longest,
    /// Into those whose codes are shortest together.
    Cheapest,
}

/// A learned vocabulary: every byte is in it.
#[derive(Debug)]
pub struct Learned {
    /// The tokens with how often each was used in the sample, most used first.
    pub tokens: Vec<(Token, u64)>,
}

/// Learns a vocabulary for `sample`. The same sample gives the same vocabulary.
pub fn learn(sample: &[&[u8]], growth: Growth) -> Learned {
    let mut tokens: Vec<Token> = (0..=u8::MAX).filter_map(|b| Token::new(&[b])).collect();
    let mut bytes_max = FIRST_ROUND_BYTES;
    let size: usize = sample.iter().map(|text| text.len()).sum();
    while tokens.len() < growth.tokens_max {
        let whole = bytes_max >= size;
        let seen = Seen::in_longest(&tokens, sample, size, bytes_max);
        let wanted = (tokens.len() * GROWTH.0 / GROWTH.1).min(growth.tokens_max);
        let before = tokens.len();
        let best = seen.best(&tokens, wanted - before, growth.bias);
        tokens.extend(best.into_iter().map(|(token, _)| token));
        bytes_max = bytes_max.saturating_mul(2);
        // On a part of the sample, few new tokens only mean that more bytes are needed. If few are wanted,
        // none counts as too few as well, or this loop would not end.
        if whole && tokens.len() - before <= (wanted - before) / 8 {
            break;
        }
    }
    let mut uses = Seen::in_longest(&tokens, sample, size, usize::MAX).uses;
    for round in 0..=SWAPS {
        let seen = match growth.cutting {
            Cutting::Cheapest => Seen::in_cheapest(&tokens, &uses, sample),
            Cutting::Longest => Seen::in_longest(&tokens, sample, size, usize::MAX),
        };
        let mut kept = seen.kept(&tokens);
        if round < SWAPS {
            let lasting = growth.tokens_max - growth.tokens_max / SWAPPED_SHARE;
            // The bytes come first.
            kept.truncate(lasting.max(BYTES));
            let room = growth.tokens_max.saturating_sub(kept.len());
            kept.extend(seen.best(&tokens, room, growth.bias));
        }
        (tokens, uses) = kept.into_iter().unzip();
    }
    let uses = uses.into_iter().map(u64::from);
    let mut tokens: Vec<(Token, u64)> = tokens.into_iter().zip(uses).collect();
    tokens.sort_unstable_by_key(|&(token, uses)| (Reverse(uses), token));
    Learned { tokens }
}

/// Counts taken while a sample was cut into tokens.
struct Seen {
    uses: Vec<u32>,
    pairs: Pairs,
    total: u64,
}

impl Seen {
    fn new(tokens: &[Token]) -> Self {
        Self {
            uses: vec![0; tokens.len()],
            pairs: Pairs::new(),
            total: 0,
        }
    }

    /// Cuts records of `sample`, evenly spread, of about `bytes_max` bytes together, into the longest tokens.
    fn in_longest(tokens: &[Token], sample: &[&[u8]], size: usize, bytes_max: usize) -> Self {
        let finder = Finder::new(tokens, |_| 0);
        let mut seen = Self::new(tokens);
        let step = (size / bytes_max.min(size).max(1)).max(1);
        for text in sample.iter().step_by(step) {
            let (mut rest, mut last) = (*text, None);
            while !rest.is_empty() {
                let cut = finder.longest(rest);
                seen.count(&mut last, cut.symbol);
                rest = rest.split_at(cut.len).1;
            }
        }
        seen
    }

    /// Cuts all records of `sample` into the tokens that cost least, were each used as often as `uses` says.
    fn in_cheapest(tokens: &[Token], uses: &[u32], sample: &[&[u8]]) -> Self {
        let total: f64 = uses.iter().map(|&uses| f64::from(uses.max(1))).sum();
        let cost = |symbol: usize| {
            let uses = uses.get(symbol).map_or(1, |&uses| uses.max(1));
            ((total / f64::from(uses)).log2() * f64::from(COST_PARTS)) as u32
        };
        let cutter = Cutter::new(tokens, cost, SLACK_BITS);
        let mut seen = Self::new(tokens);
        for text in sample {
            let mut last = None;
            cutter.cut(text, |symbol| seen.count(&mut last, symbol));
        }
        seen
    }

    #[inline]
    fn count(&mut self, last: &mut Option<usize>, symbol: usize) {
        self.uses[symbol] += 1;
        self.total += 1;
        if let Some(last) = last.replace(symbol) {
            self.pairs.count(last, symbol);
        }
    }

    /// The `room` pairs that save most as tokens of their own, with how often they were seen.
    fn best(&self, tokens: &[Token], room: usize, bias: f64) -> Vec<(Token, u32)> {
        let total = self.total as f64;
        let saved = |first: usize, second: usize, count: f64| {
            let apart = f64::from(self.uses[first]) * f64::from(self.uses[second]);
            count * ((count * total / apart).log2() + bias)
        };
        let mut found: Vec<(f64, Token, u32)> = self
            .pairs
            .seen(USES_MIN)
            .filter_map(|(first, second, count)| {
                let joined = tokens[first].joined(&tokens[second])?;
                Some((saved(first, second, f64::from(count)), joined, count))
            })
            .filter(|(saved, ..)| *saved > 0.0)
            .collect();
        found.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        // One string may be the join of several pairs, and of a pair that a longer match hid.
        let mut known: HashSet<Token> = tokens.iter().copied().collect();
        let new = found.into_iter().map(|(_, token, count)| (token, count));
        new.filter(|(token, _)| known.insert(*token))
            .take(room)
            .collect()
    }

    /// Every byte, then the tokens used often enough, the most used first; with their uses.
    fn kept(&self, tokens: &[Token]) -> Vec<(Token, u32)> {
        let uses = self.uses.iter().zip(tokens);
        let mut kept: Vec<(Token, u32)> = uses
            .filter(|&(&uses, token)| uses >= USES_MIN || token.len() == 1)
            .map(|(&uses, token)| (*token, uses))
            .collect();
        let rank = |(token, uses): &(Token, u32)| (token.len() > 1, Reverse(*uses), *token);
        kept.sort_unstable_by_key(rank);
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_tokens() {
        let text = "the quick brown fox jumps over the lazy dog; ".repeat(50);
        let sample: Vec<&[u8]> = text.as_bytes().chunks(100).collect();
        let growth = Growth {
            tokens_max: 2000,
            bias: 1.0,
            cutting: Cutting::Cheapest,
        };
        let learned = learn(&sample, growth);
        assert!(learned.tokens.len() >= 256);
        let uses: u64 = learned.tokens.iter().map(|(_, uses)| uses).sum();
        assert!((uses as usize) < text.len() / 6, "{uses}");
        for byte in 0..=u8::MAX {
            let single = Token::new(&[byte]).expect("one byte");
            assert!(learned.tokens.iter().any(|(token, _)| *token == single));
        }
    }

    #[test]
    fn a_vocabulary_of_any_size_is_learned_although_few_tokens_are_to_be_had() {
        // Three pairs that are worth a token, and no fourth.
        let sample: Vec<&[u8]> = [&b"ab"[..], b"cd", b"ef"].repeat(40);
        for cutting in [Cutting::Longest, Cutting::Cheapest] {
            for tokens_max in [0, 1, 256, 257, 258, 260, 263, 266, 290, 500] {
                let growth = Growth {
                    tokens_max,
                    bias: 1.0,
                    cutting,
                };
                let learned = learn(&sample, growth).tokens;
                assert!(learned.len() <= tokens_max.clamp(256, 259), "{tokens_max}");
                let bytes = learned.iter().filter(|(token, _)| token.len() == 1);
                assert_eq!(bytes.count(), 256, "{tokens_max}");
            }
        }
    }

    #[test]
    fn an_empty_sample_gives_the_bytes() {
        let growth = Growth {
            tokens_max: 4096,
            bias: 1.0,
            cutting: Cutting::Cheapest,
        };
        assert_eq!(learn(&[], growth).tokens.len(), 256);
    }
}
