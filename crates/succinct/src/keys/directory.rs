//! The directory: from a key to the block it would be in.
//!
//! The idea is a search tree over numbers instead of keys. Of the first key of each block the directory holds
//! a *key prefix*, eight bytes that sort as the key does; the keys themselves are only in the blocks.
//!
//! ```text
//! find(key)
//!     node = root
//!     loop
//!         strip the prefix of all first keys of the node from the key   (it differs: before or behind the node)
//!         p = key prefix of the rest
//!         i = how many key prefixes of the node are <= p
//!         the last of these is < p:      the answer is the block before number i's first
//!         it is p, of one or few blocks: compare with their first keys
//!         it is p, of many:              node = its child, which goes on behind the prefix of these blocks
//! ```
//!
//! Trick 1: key prefixes start behind the bytes that all first keys share, so that eight bytes
//! distinguish more keys.
//!
//! Trick 2: letters of fewer bits. If first keys use few different bytes, these are numbered, and a key prefix
//! holds up to sixteen of them instead of eight: keys of digits are compared at twice the length.
//!
//! Trick 3: no branch to mispredict. The root is a static tree of sixteen-fold nodes, each two cache lines,
//! in which the key prefixes not above the sought one are counted. (Khuong and Morin, *Array Layouts for
//! Comparison-Based Searching*, 2017, compare such layouts.) A batch goes down level by level, so that its
//! cache misses overlap.
//!
//! About one lookup in as many as a block has keys ends in a tie, and reads a first key.
//!
//! The directory is built when an index is opened, in two passes over the first keys and further passes
//! over those that share key prefixes; no part of it is stored. Immutable, shared by threads.

use std::cmp::Ordering;

use drumlin_base::Result;

use super::packed::without;
use super::strings::common;

/// Key prefixes of a tree node.
const FAN: usize = 16;
/// Keys that [`Directory::find_each`] takes.
pub(super) const EACH_MAX: usize = 32;
/// Blocks with equal key prefixes that are searched by their first keys instead of a node of their own.
const RUN_WITHOUT_NODE_MAX: usize = 3;
/// Most levels of nodes; deeper runs are searched by their first keys. Forged keys could need thousands.
const LEVELS_MAX: usize = 40;

/// How bytes become key prefixes.
#[derive(Debug)]
struct Coder {
    /// Bits a byte takes: 4, 5, 6, or 8 for a key prefix of seven plain bytes and their number.
    bits: u32,
    /// Each byte's letter in a key prefix: 1 + the number of smaller bytes in use, and [`UNUSED`] with it if
    /// no first key has the byte. Only below eight bits.
    letters: [u8; 256],
    /// If the bytes in use are few and consecutive: the first, and how many are above it.
    range: Option<(u8, u8)>,
}

/// In a letter: the key prefix ends with it, as small as a text can be that begins with the next byte in use.
const UNUSED: u8 = 0x80;

impl Coder {
    fn new(used: [bool; 256]) -> Self {
        let letters = used.iter().filter(|&&used| used).count();
        // Letters have numbers from 1 up; the one above the last stands for larger bytes.
        let bits = match letters {
            0..=14 => 4,
            15..=30 => 5,
            31..=62 => 6,
            _ => 8,
        };
        let mut letters = [0; 256];
        let mut smaller = 0u8;
        for (letter, &used) in letters.iter_mut().zip(&used) {
            // With more than 62 bytes in use the letters are not used.
            *letter = (smaller % UNUSED + 1) | if used { 0 } else { UNUSED };
            smaller = smaller.saturating_add(u8::from(used));
        }
        let first = used.iter().position(|&used| used);
        let last = used.iter().rposition(|&used| used);
        let range = first.zip(last).filter(|&(first, last)| {
            let all = used
                .get(first..=last)
                .expect("the first is not above the last");
            bits == 4 && last < 0x80 && all.iter().all(|&used| used)
        });
        Self {
            bits,
            letters,
            range: range.map(|(first, last)| (first as u8, (last - first) as u8)),
        }
    }

    /// The key prefix of `text`, which sorts as `text` does among first keys. Two first keys with equal key
    /// prefixes share at least seven bytes; a text with a byte that no first key has may get the key prefix of
    /// a larger one.
    #[inline]
    fn prefix(&self, text: &[u8]) -> u64 {
        if self.bits == 8 {
            let mut word = 0u64;
            for (place, &byte) in text.iter().take(7).enumerate() {
                word |= u64::from(byte) << (56 - 8 * place);
            }
            return word | text.len().min(8) as u64;
        }
        if let Some(range) = self.range
            && let Some(prefix) = digits_prefix(text, range)
        {
            return prefix;
        }
        let whole = match self.bits {
            4 => self.whole_prefix::<4, 16>(text),
            5 => self.whole_prefix::<5, 12>(text),
            _ => self.whole_prefix::<6, 10>(text),
        };
        whole.unwrap_or_else(|| self.cut_prefix(text))
    }

    /// The key prefix of a text that is long enough and has only bytes in use: no branch for each letter.
    #[inline]
    fn whole_prefix<const BITS: u32, const LETTERS: usize>(&self, text: &[u8]) -> Option<u64> {
        let text = text.first_chunk::<LETTERS>()?;
        let (mut word, mut all) = (0u64, 0u8);
        for &byte in text {
            let letter = self.letter(byte);
            all |= letter;
            word = (word << BITS) | u64::from(letter);
        }
        (all & UNUSED == 0).then_some(word << (64 - BITS * LETTERS as u32))
    }

    /// The key prefix of any text.
    #[inline(never)]
    fn cut_prefix(&self, text: &[u8]) -> u64 {
        let (mut word, mut shift) = (0u64, 64);
        for &byte in text {
            if shift < self.bits {
                break;
            }
            shift -= self.bits;
            let letter = self.letter(byte);
            word |= u64::from(letter & !UNUSED) << shift;
            if letter & UNUSED != 0 {
                break;
            }
        }
        word
    }

    #[inline]
    fn letter(&self, byte: u8) -> u8 {
        self.letters[usize::from(byte)]
    }
}

/// The key prefix, in letters of four bits, of a text whose first sixteen bytes are all from `first` to
/// `first + above`: eight bytes at a time.
#[inline]
fn digits_prefix(text: &[u8], (first, above): (u8, u8)) -> Option<u64> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHEST: u64 = 0x80 * ONES;
    let text = text.first_chunk::<16>()?;
    let (front, back) = (text.first_chunk::<8>()?, text.last_chunk::<8>()?);
    let words = [front, back].map(|word| {
        let word = u64::from_be_bytes(*word);
        // The highest bit of each byte stays, if the byte is not below the first.
        let raised = (word | HIGHEST).wrapping_sub(ONES * u64::from(first));
        let digits = raised & !HIGHEST;
        let others = word | !raised | (digits + ONES * u64::from(0x7F - above));
        // Four bits of each byte, then of each two, and of each four, move together.
        let four = digits + ONES;
        let eight = (four | four >> 4) & 0x00FF_00FF_00FF_00FF;
        let sixteen = (eight | eight >> 8) & 0x0000_FFFF_0000_FFFF;
        ((sixteen | sixteen >> 16) & 0xFFFF_FFFF, others & HIGHEST)
    });
    let [(front, front_others), (back, back_others)] = words;
    (front_others | back_others == 0).then_some(front << 32 | back)
}

/// A node of the tree: the root, or the blocks of one key prefix of its parent.
#[derive(Debug)]
struct Node {
    /// Bytes of the key that were compared before.
    depth: usize,
    /// The bytes that all first keys under the node share behind these; in [`Directory::texts`].
    text: std::ops::Range<usize>,
    /// Its key prefixes in [`Directory::prefixes`].
    prefixes: std::ops::Range<usize>,
    /// The block behind the last one under it.
    end: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Directory {
    coder: Coder,
    nodes: Vec<Node>,
    texts: Vec<u8>,
    /// Distinct key prefixes, node by node.
    prefixes: Vec<u64>,
    /// The first block of each.
    firsts: Vec<u32>,
    /// Key prefixes with a node of their own, ascending, and these nodes.
    children: Vec<(u32, u32)>,
    /// The upper levels of the root's tree, from the leaves' parents up: every 16th key prefix of the level
    /// below.
    levels: Vec<Vec<u64>>,
}

/// The first keys of blocks.
pub(super) trait FirstKeys {
    /// Appends the first key of `block`.
    fn first_key(&self, block: usize, out: &mut Vec<u8>) -> Result<()>;

    /// How the first key of `block` compares with `key`.
    fn compare_first(&self, block: usize, key: &[u8]) -> Ordering;
}

impl Directory {
    /// The directory of `blocks` blocks.
    ///
    /// # Errors
    /// Those of reading a first key.
    pub(super) fn build(blocks: usize, keys: &impl FirstKeys) -> Result<Self> {
        let mut key = Vec::new();
        let mut model = Vec::new();
        let mut used = [false; 256];
        let mut shared = usize::MAX;
        for block in 0..blocks {
            key.clear();
            keys.first_key(block, &mut key)?;
            if block == 0 {
                model.clone_from(&key);
                shared = key.len();
            }
            // A shorter common prefix uncovers bytes of the model.
            let now = common(&model, &key).min(shared);
            for &byte in key.iter().skip(now).chain(&model[now..shared]) {
                used[usize::from(byte)] = true;
            }
            shared = now;
        }
        let mut made = Self {
            coder: Coder::new(used),
            nodes: Vec::new(),
            texts: Vec::new(),
            prefixes: Vec::new(),
            firsts: Vec::new(),
            children: Vec::new(),
            levels: Vec::new(),
        };
        let mut waiting = std::collections::VecDeque::new();
        waiting.push_back((0, blocks, 0, None, 1));
        while let Some((start, end, depth, prefix, level)) = waiting.pop_front() {
            if let Some(prefix) = prefix {
                made.children.push((prefix, made.nodes.len() as u32));
            }
            let runs = made.add_node(start, end, depth, keys)?;
            let below = made
                .nodes
                .last()
                .map_or(0, |node| node.depth + node.text.len());
            for (prefix, from, until) in runs.into_iter().filter(|_| level < LEVELS_MAX) {
                waiting.push_back((from, until, below, Some(prefix), level + 1));
            }
        }
        made.children.sort_unstable();
        made.build_levels();
        Ok(made)
    }

    /// Adds the node of the blocks `start..end`, whose first keys share `depth` bytes. Returns the runs of
    /// blocks under it that need a node of their own: key prefix, first block, end.
    fn add_node(
        &mut self,
        start: usize,
        end: usize,
        depth: usize,
        keys: &impl FirstKeys,
    ) -> Result<Vec<(u32, usize, usize)>> {
        let (mut first, mut last) = (Vec::new(), Vec::new());
        if start < end {
            keys.first_key(start, &mut first)?;
            keys.first_key(end - 1, &mut last)?;
        }
        let shared = common(&first, &last).max(depth);
        let text_at = self.texts.len();
        self.texts
            .extend_from_slice(first.get(depth..shared).unwrap_or(&[]));
        let prefixes_at = self.prefixes.len();
        for block in start..end {
            first.clear();
            keys.first_key(block, &mut first)?;
            let prefix = self.coder.prefix(first.get(shared..).unwrap_or(&[]));
            if self.prefixes.len() == prefixes_at || self.prefixes.last() != Some(&prefix) {
                self.prefixes.push(prefix);
                self.firsts.push(block as u32);
            }
        }
        self.nodes.push(Node {
            depth,
            text: text_at..self.texts.len(),
            prefixes: prefixes_at..self.prefixes.len(),
            end: end as u32,
        });
        let mut runs = Vec::new();
        for at in prefixes_at..self.prefixes.len() {
            let from = self.first_of(at);
            let until = match at + 1 < self.prefixes.len() {
                true => self.first_of(at + 1),
                false => end,
            };
            // Forged keys that do not ascend get no node that equals its parent.
            let smaller = until - from < end - start || shared > depth;
            if until - from > RUN_WITHOUT_NODE_MAX && smaller {
                runs.push((at as u32, from, until));
            }
        }
        Ok(runs)
    }

    fn first_of(&self, prefix: usize) -> usize {
        self.firsts.get(prefix).map_or(0, |&block| block as usize)
    }

    fn build_levels(&mut self) {
        let root = self
            .nodes
            .first()
            .map_or(0..0, |node| node.prefixes.clone());
        let root = self.prefixes.get(root);
        let mut below = root.expect("a node's key prefixes are in the directory");
        let mut levels: Vec<Vec<u64>> = Vec::new();
        while below.len() > FAN {
            levels.push(below.iter().step_by(FAN).copied().collect());
            below = levels.last().map_or(&[], Vec::as_slice);
        }
        assert!(below.len() <= FAN, "the top is one node");
        self.levels = levels;
    }

    /// Bytes in memory.
    pub(super) fn resident_bytes(&self) -> usize {
        let levels: usize = self.levels.iter().map(|level| level.capacity() * 8).sum();
        size_of::<Self>()
            + levels
            + self.nodes.capacity() * size_of::<Node>()
            + self.texts.capacity()
            + self.prefixes.capacity() * 8
            + self.firsts.capacity() * 4
            + self.children.capacity() * 8
    }

    /// The last block whose first key is not above `key`; `None` when all are.
    #[inline]
    pub(super) fn find(&self, key: &[u8], keys: &impl FirstKeys) -> Option<usize> {
        match self.look(self.nodes.first()?, key) {
            Look::Behind(end) => end.checked_sub(1),
            Look::Tie(prefix, rest) => self.find_among(prefix, rest, key, keys),
        }
    }

    /// [`Directory::find`] of each of `keys`, at most [`EACH_MAX`], level by level: the cache misses of a level
    /// overlap.
    pub(super) fn find_each(
        &self,
        keys: &[&[u8]],
        first_keys: &impl FirstKeys,
        blocks: &mut [Option<usize>],
    ) {
        debug_assert!(keys.len() <= EACH_MAX);
        let prefixes = match self.nodes.first() {
            Some(root) if !self.levels.is_empty() => self.prefixes.get(root.prefixes.clone()),
            _ => None,
        };
        let (Some(root), Some(root_prefixes)) = (self.nodes.first(), prefixes) else {
            for (block, key) in blocks.iter_mut().zip(keys) {
                *block = self.find(key, first_keys);
            }
            return;
        };
        let shared = self.shared_text(root);
        // A key that does not begin as all first keys do needs no key prefix.
        let mut searches = [(0u64, 0usize); EACH_MAX];
        for ((prefix, _), key) in searches.iter_mut().zip(keys) {
            *prefix = without(key, shared).map_or(0, |rest| self.coder.prefix(rest));
        }
        let levels = self.levels.iter().rev().map(Vec::as_slice);
        for level in levels.chain(std::iter::once(root_prefixes)) {
            for (prefix, behind) in searches.iter_mut().take(keys.len()) {
                *behind = descend(level, *behind, *prefix);
            }
        }
        let searches = searches.iter().zip(keys);
        for (block, (&(prefix, behind), key)) in blocks.iter_mut().zip(searches) {
            let is_tie = behind > 0 && root_prefixes.get(behind - 1) == Some(&prefix);
            *block = match is_tie || without(key, shared).is_none() {
                true => self.find(key, first_keys),
                false => self.end_of(root, behind).checked_sub(1),
            };
        }
    }

    /// Searches the key prefixes of `node` for `text`, the part of a key behind the bytes above the node.
    #[inline]
    fn look<'k>(&self, node: &Node, text: &'k [u8]) -> Look<'k> {
        let shared = self.shared_text(node);
        let Some(rest) = without(text, shared) else {
            return Look::Behind(match shared < text {
                true => node.end as usize,
                false => self.first_of(node.prefixes.start),
            });
        };
        let prefix = self.coder.prefix(rest);
        let behind = self.count_not_above(node, prefix);
        // In an empty node nothing is equal.
        if behind > 0 && self.prefixes.get(node.prefixes.start + behind - 1) == Some(&prefix) {
            return Look::Tie(node.prefixes.start + behind - 1, rest);
        }
        Look::Behind(self.end_of(node, node.prefixes.start + behind))
    }

    /// Goes on below the root's key prefix at `prefix`, which `key` has; `text` is the part behind it.
    #[inline(never)]
    fn find_among(
        &self,
        mut prefix: usize,
        mut text: &[u8],
        key: &[u8],
        keys: &impl FirstKeys,
    ) -> Option<usize> {
        let mut node = self.nodes.first()?;
        loop {
            let (from, until) = (self.first_of(prefix), self.end_of(node, prefix + 1));
            let child = match until - from > RUN_WITHOUT_NODE_MAX {
                true => self.child(prefix),
                false => None,
            };
            let Some(child) = child else {
                return settle(from, until, key, keys);
            };
            node = child;
            match self.look(node, text) {
                Look::Behind(end) => return end.checked_sub(1),
                Look::Tie(at, rest) => (prefix, text) = (at, rest),
            }
        }
    }

    /// The first block of the key prefix at `prefix`, or the end of the blocks of `node` if that is past its last.
    #[inline]
    fn end_of(&self, node: &Node, prefix: usize) -> usize {
        match prefix < node.prefixes.end {
            true => self.first_of(prefix),
            false => node.end as usize,
        }
    }

    /// The bytes that all first keys under `node` share behind its depth.
    #[inline]
    fn shared_text(&self, node: &Node) -> &[u8] {
        let text = self.texts.get(node.text.clone());
        text.expect("a node's text is in the directory")
    }

    /// How many key prefixes of `node` are not above `prefix`.
    #[inline]
    fn count_not_above(&self, node: &Node, prefix: u64) -> usize {
        let prefixes = self.prefixes.get(node.prefixes.clone());
        let prefixes = prefixes.expect("a node's key prefixes are in the directory");
        if node.prefixes.start != 0 || self.levels.is_empty() {
            return prefixes.partition_point(|&at| at <= prefix);
        }
        let mut behind = 0;
        let levels = self.levels.iter().rev().map(Vec::as_slice);
        for level in levels.chain(std::iter::once(prefixes)) {
            behind = descend(level, behind, prefix);
        }
        behind
    }

    #[inline(never)]
    fn child(&self, prefix: usize) -> Option<&Node> {
        let at = self
            .children
            .binary_search_by_key(&prefix, |&(prefix, _)| prefix as usize);
        let (_, node) = self.children.get(at.ok()?)?;
        self.nodes.get(*node as usize)
    }
}

/// The result of a search among the key prefixes of a node.
enum Look<'k> {
    /// The key is in the block before this one.
    Behind(usize),
    /// The key has the key prefix at this place; and the part of the key behind the bytes above it.
    Tie(usize, &'k [u8]),
}

/// How many of `level` are not above `prefix`, if `behind` of the level above are not: it has every 16th.
#[inline]
fn descend(level: &[u64], behind: usize, prefix: u64) -> usize {
    let start = FAN * usize::saturating_sub(behind, 1);
    let (_, line) = level.split_at(start);
    start
        + match line.first_chunk::<FAN>() {
            Some(line) => count_not_above(line, prefix),
            None => line.partition_point(|&at| at <= prefix),
        }
}

/// The number of entries of `line`, which ascends, that are not above `prefix`: whole fours first, then the
/// four behind these.
#[inline]
fn count_not_above(line: &[u64; FAN], prefix: u64) -> usize {
    let is_not_above = |at: usize| usize::from(line[at] <= prefix);
    let fours = 4 * (is_not_above(3) + is_not_above(7) + is_not_above(11));
    let rest = [0, 1, 2, 3].map(|at| is_not_above((fours + at) % FAN));
    fours + rest[0] + rest[1] + rest[2] + rest[3]
}

/// The last of the blocks `from..until` whose first key is not above `key`, or the one before them.
#[inline(never)]
fn settle(from: usize, until: usize, key: &[u8], keys: &impl FirstKeys) -> Option<usize> {
    let (mut low, mut high) = (from, until);
    while low < high {
        let middle = low + (high - low) / 2;
        match keys.compare_first(middle, key) {
            Ordering::Greater => high = middle,
            _ => low = middle + 1,
        }
    }
    low.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    #[test]
    fn prefixes_of_a_range_of_bytes_are_those_of_their_letters() {
        let mut rng = Rng::new(4);
        for _ in 0..300 {
            let (first, above) = (rng.below(110) as u8, rng.below(14) as u8);
            let used = std::array::from_fn(|byte| {
                (usize::from(first)..=usize::from(first + above)).contains(&byte)
            });
            let coder = Coder::new(used);
            assert_eq!(coder.range, Some((first, above)));
            for _ in 0..200 {
                let mut text = vec![0; 10 + rng.below(10) as usize];
                rng.fill(&mut text);
                let is_wild = rng.one_in(4);
                for byte in text.iter_mut().skip(usize::from(is_wild)) {
                    *byte = first + *byte % (above + 1);
                }
                assert_eq!(coder.prefix(&text), coder.cut_prefix(&text), "{text:?}");
            }
        }
    }

    #[test]
    fn prefixes_that_are_not_above_are_counted() {
        let mut rng = Rng::new(5);
        for _ in 0..2000 {
            let mut line: [u64; FAN] = std::array::from_fn(|_| rng.below(40));
            line.sort_unstable();
            for prefix in 0..41 {
                let expected = line.partition_point(|&at| at <= prefix);
                assert_eq!(
                    count_not_above(&line, prefix),
                    expected,
                    "{line:?} {prefix}"
                );
            }
        }
    }
}
