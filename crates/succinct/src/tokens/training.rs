//! A vocabulary for a sample.
//!
//! Pairs of neighbouring tokens become tokens, in rounds (byte-pair encoding by batches): the sample
//! is cut with the present vocabulary, neighbours are counted, and the pairs that save most join it.
//! The vocabulary grows by about two thirds a round, so that late tokens are made of good early ones;
//! early rounds look at a part of the sample, which is enough to see what is frequent. Two last rounds
//! swap what turned out to be rare for what is still missing.
//!
//! What a pair saves, for an entropy code: `n` times the information both tokens carry beyond that of
//! the pair, which is `n log2(n N / (a b))` bits for tokens seen `a` and `b` times among `N`. A bonus of
//! `bias` bits stands for what every token costs beyond its information: with fixed-width codes that is
//! the whole width, with Huffman codes the rounding and the time it takes to decode.

use std::collections::HashSet;

use super::finder::Finder;
use super::pairs::Pairs;
use super::vocabulary::Token;

/// A token is not kept for fewer uses in the sample.
const USES_MIN: u32 = 3;
/// The vocabulary grows by a third of this and this much each round: (3 + 2) / 3.
const GROWTH: (usize, usize) = (5, 3);
/// Bytes of the sample that the first round looks at; it doubles each round.
const FIRST_ROUND_BYTES: usize = 512 << 10;
/// Rounds that swap rare tokens for missing ones.
const SWAPS: usize = 2;

/// How far a vocabulary grows, and by what.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Tokens at most, the 256 bytes included.
    pub tokens_max: usize,
    /// Bits that a token costs beyond its information.
    pub bias: f64,
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
        let seen = Seen::of(&tokens, sample, size, bytes_max);
        let wanted = (tokens.len() * GROWTH.0 / GROWTH.1).min(growth.tokens_max);
        let before = tokens.len();
        tokens.extend(seen.best(&tokens, wanted - before, growth.bias));
        bytes_max = bytes_max.saturating_mul(2);
        // On a part of the sample, few new tokens only say that more is to be seen.
        if whole && tokens.len() - before < (wanted - before) / 8 {
            break;
        }
    }
    for _ in 0..SWAPS {
        let seen = Seen::of(&tokens, sample, size, usize::MAX);
        let kept = seen.kept(&tokens);
        let room = growth.tokens_max.saturating_sub(kept.len());
        let new = seen.best(&tokens, room, growth.bias);
        tokens = kept.into_iter().map(|(token, _)| token).collect();
        tokens.extend(new);
        tokens.sort_unstable();
        tokens.dedup();
    }
    let seen = Seen::of(&tokens, sample, size, usize::MAX);
    let mut tokens = seen.kept(&tokens);
    tokens.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    Learned { tokens }
}

/// What was counted while a sample was cut into tokens.
struct Seen {
    uses: Vec<u32>,
    pairs: Pairs,
    total: u64,
}

impl Seen {
    /// Cuts records of `sample`, evenly spread, of about `bytes_max` bytes together.
    fn of(tokens: &[Token], sample: &[&[u8]], size: usize, bytes_max: usize) -> Self {
        let finder = Finder::new(tokens);
        let mut seen = Self {
            uses: vec![0; tokens.len()],
            pairs: Pairs::new(),
            total: 0,
        };
        let step = (size / bytes_max.min(size).max(1)).max(1);
        for text in sample.iter().step_by(step) {
            let (mut rest, mut last) = (*text, None);
            while !rest.is_empty() {
                let (symbol, len) = finder.longest(rest);
                seen.uses[symbol] += 1;
                seen.total += 1;
                if let Some(last) = last {
                    seen.pairs.count(last, symbol);
                }
                last = Some(symbol);
                rest = rest.get(len..).unwrap_or_default();
            }
        }
        seen
    }

    /// The `room` pairs that save most as tokens of their own.
    fn best(&self, tokens: &[Token], room: usize, bias: f64) -> Vec<Token> {
        let total = self.total as f64;
        let saved = |first: usize, second: usize, count: f64| {
            let apart = f64::from(self.uses[first]) * f64::from(self.uses[second]);
            count * ((count * total / apart).log2() + bias)
        };
        let mut found: Vec<(f64, Token)> = self
            .pairs
            .seen(USES_MIN)
            .filter_map(|(first, second, count)| {
                let joined = tokens[first].joined(&tokens[second])?;
                Some((saved(first, second, f64::from(count)), joined))
            })
            .filter(|(saved, _)| *saved > 0.0)
            .collect();
        found.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        // One string may be the join of several pairs, and of a pair that a longer match hid.
        let mut known: HashSet<Token> = tokens.iter().copied().collect();
        let new = found.into_iter().map(|(_, token)| token);
        new.filter(|token| known.insert(*token))
            .take(room)
            .collect()
    }

    /// The tokens used often enough, and every byte, with their uses.
    fn kept(&self, tokens: &[Token]) -> Vec<(Token, u64)> {
        let uses = self.uses.iter().zip(tokens);
        uses.filter(|&(&uses, token)| uses >= USES_MIN || token.len() == 1)
            .map(|(&uses, token)| (*token, u64::from(uses)))
            .collect()
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
    fn an_empty_sample_gives_the_bytes() {
        let growth = Growth {
            tokens_max: 4096,
            bias: 1.0,
        };
        assert_eq!(learn(&[], growth).tokens.len(), 256);
    }
}
