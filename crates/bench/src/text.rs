//! TPC-H text, the source of lineitem comments.
//!
//! TPC-H fills a pool with sentences of a small grammar once and cuts every comment out of it, so
//! that each stretch of text occurs in the data as many times as the data is larger than the pool.
//! The size of the pool decides how far a store can compress. [`CommentText`] therefore takes its
//! size, and offers a second kind that never repeats: sentences of the same grammar, made for each
//! row.

use drumlin_base::rng::Rng;
use drumlin_base::{Error, Result};
use tpchgen::distribution::{Distribution, Distributions};
use tpchgen::text::TextPool;

/// The pool's size in TPC-H.
pub const POOL_BYTES_TPCH: u64 = 300 << 20;
/// The smallest pool comments of up to 64 KiB can be cut from.
const POOL_BYTES_MIN: u64 = 256;

/// Where comments come from. Immutable, shared by threads.
#[derive(Debug)]
pub enum CommentText {
    /// Cut from a pool.
    Pool(TextPool),
    /// Made for each row.
    Fresh(Box<Grammar>),
}

/// The comment of a row: enough to write it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Offset in the pool, or the seed of a fresh one.
    pub start: u64,
    /// Bytes.
    pub len: u32,
}

impl CommentText {
    /// A pool of `bytes` bytes. Takes about a second for the 300 MiB of TPC-H.
    ///
    /// # Errors
    /// `InvalidArgument` for sizes no comment of `comment_bytes_max` fits in, or past 2 GiB.
    pub fn pool(bytes: u64, comment_bytes_max: u32) -> Result<Self> {
        let smallest = POOL_BYTES_MIN.max(u64::from(comment_bytes_max) * 2);
        let size = i32::try_from(bytes).ok().filter(|_| bytes >= smallest);
        let size = size.ok_or_else(|| {
            Error::invalid_argument(format!(
                "a text pool has {smallest} to {} bytes, not {bytes}",
                i32::MAX
            ))
        })?;
        Ok(Self::Pool(TextPool::new(
            size,
            Distributions::static_default(),
        )))
    }

    /// Text that never repeats.
    pub fn fresh() -> Self {
        Self::Fresh(Box::new(Grammar::new(Distributions::static_default())))
    }

    /// Bytes of the pool; `None` when there is none.
    pub fn pool_bytes(&self) -> Option<i32> {
        match self {
            Self::Pool(pool) => Some(pool.size()),
            Self::Fresh(_) => None,
        }
    }

    /// Appends `comment`. Requires: it was drawn for this text.
    pub fn append(&self, comment: Comment, out: &mut Vec<u8>) {
        match self {
            Self::Pool(pool) => {
                let start = i32::try_from(comment.start).unwrap_or(0);
                let len = i32::try_from(comment.len).unwrap_or(0);
                out.extend_from_slice(pool.text(start, start + len).as_bytes());
            }
            Self::Fresh(grammar) => {
                let end = out.len() + comment.len as usize;
                let mut rng = Rng::new(comment.start);
                while out.len() < end {
                    grammar.append_sentence(&mut rng, out);
                }
                out.truncate(end);
            }
        }
    }
}

/// Weighted words, drawn by one table look-up.
#[derive(Debug)]
struct Words(Vec<&'static str>);

impl Words {
    fn new(distribution: &'static Distribution) -> Self {
        let mut words = Vec::new();
        for (index, word) in distribution.get_values().iter().enumerate() {
            let end = usize::try_from(distribution.get_weight(index)).unwrap_or(0);
            words.resize(end.max(words.len()), *word);
        }
        Self(words)
    }

    fn draw(&self, rng: &mut Rng) -> &'static str {
        let index = rng.below(self.0.len() as u64) as usize;
        self.0.get(index).copied().unwrap_or_default()
    }
}

/// The grammar of TPC-H text (specification 2.2.2.14), driven by a generator of 64 bits of state.
#[derive(Debug)]
pub struct Grammar {
    sentences: Words,
    noun_phrases: Words,
    verb_phrases: Words,
    prepositions: Words,
    terminators: Words,
    articles: Words,
    adjectives: Words,
    adverbs: Words,
    nouns: Words,
    verbs: Words,
    auxiliaries: Words,
}

impl Grammar {
    fn new(words: &'static Distributions) -> Self {
        Self {
            sentences: Words::new(words.grammar()),
            noun_phrases: Words::new(words.noun_phrase()),
            verb_phrases: Words::new(words.verb_phrase()),
            prepositions: Words::new(words.prepositions()),
            terminators: Words::new(words.terminators()),
            articles: Words::new(words.articles()),
            adjectives: Words::new(words.adjectives()),
            adverbs: Words::new(words.adverbs()),
            nouns: Words::new(words.nouns()),
            verbs: Words::new(words.verbs()),
            auxiliaries: Words::new(words.auxiliaries()),
        }
    }

    /// Appends one sentence and a space. The rules are strings of symbols: N a noun phrase, V a verb
    /// phrase, P a prepositional one, T the end.
    fn append_sentence(&self, rng: &mut Rng, out: &mut Vec<u8>) {
        for symbol in self.sentences.draw(rng).chars() {
            match symbol {
                'N' => self.append_phrase(self.noun_phrases.draw(rng), rng, out),
                'V' => self.append_phrase(self.verb_phrases.draw(rng), rng, out),
                'P' => {
                    out.extend_from_slice(self.prepositions.draw(rng).as_bytes());
                    out.extend_from_slice(b" the ");
                    self.append_phrase(self.noun_phrases.draw(rng), rng, out);
                }
                'T' => {
                    out.pop_if(|last| *last == b' ');
                    out.extend_from_slice(self.terminators.draw(rng).as_bytes());
                    out.push(b' ');
                }
                _ => {}
            }
        }
    }

    fn append_phrase(&self, rule: &str, rng: &mut Rng, out: &mut Vec<u8>) {
        for symbol in rule.chars() {
            let words = match symbol {
                'A' => &self.articles,
                'J' => &self.adjectives,
                'D' => &self.adverbs,
                'N' => &self.nouns,
                'V' => &self.verbs,
                'X' => &self.auxiliaries,
                ',' => {
                    out.pop_if(|last| *last == b' ');
                    out.extend_from_slice(b", ");
                    continue;
                }
                _ => continue,
            };
            out.extend_from_slice(words.draw(rng).as_bytes());
            out.push(b' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn fresh(start: u64, len: u32) -> String {
        let mut out = Vec::new();
        CommentText::fresh().append(Comment { start, len }, &mut out);
        String::from_utf8(out).expect("text is ASCII")
    }

    #[test]
    fn fresh_text_is_the_same_for_a_row_and_differs_between_rows() {
        assert_eq!(fresh(7, 512), fresh(7, 512));
        assert_eq!(fresh(7, 512)[..100], fresh(7, 100));
        assert_ne!(fresh(7, 100), fresh(8, 100));
    }

    #[test]
    fn fresh_text_is_made_of_the_pools_words() {
        let pool = TextPool::new(1 << 20, Distributions::static_default());
        let bare = |word: &'_ str| {
            word.trim_end_matches([',', '.', ';', ':', '?', '!', '-'])
                .to_owned()
        };
        let known: HashSet<String> = pool.text(0, 1 << 20).split(' ').map(bare).collect();
        let text = fresh(3, 20_000);
        // The last word may be cut.
        let (whole, _) = text.rsplit_once(' ').expect("several words");
        for word in whole.split(' ') {
            assert!(known.contains(&bare(word)), "{word:?}");
        }
    }

    #[test]
    fn a_pool_too_small_for_its_comments_is_refused() {
        assert!(CommentText::pool(1000, 819).is_err());
        assert!(CommentText::pool(3 << 30, 819).is_err());
        assert_eq!(
            CommentText::pool(1 << 16, 819).expect("fits").pool_bytes(),
            Some(1 << 16)
        );
    }
}
