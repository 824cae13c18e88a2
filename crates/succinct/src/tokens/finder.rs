//! The tokens at a place of a text, and the longest of them.
//!
//! A trie in a double array (Aoe, An Efficient Digital Search Algorithm by Using a Double-Array
//! Structure, 1989): the child of a node by byte `b` is slot `base ^ b`, and is its child if the slot
//! says `b`; for that, no two nodes have the same base. A node is eight bytes, so the hot part of
//! 64 K tokens' trie stays in the second cache. The first two bytes are looked up in one table.

use super::vocabulary::{TOKEN_BYTES_MAX, Token};

const BLOCK: usize = 256;
/// Blocks that are searched for room before a new one is opened.
const OPEN_BLOCKS: usize = 24;

/// A slot, or the answer for two first bytes: base in the low 24 bits, then the byte it is reached by
/// (9 bits, the highest set if the slot is taken), then the symbol of the token that ends here
/// (18 bits, 0 for none, else the symbol + 1), then that token's length (4 bits) and its cost (9 bits, in
/// sixteenths of a bit).
#[derive(Clone, Copy, Debug, Default)]
struct Node(u64);

impl Node {
    const TAKEN: u64 = 1 << 32;

    fn base(self) -> usize {
        (self.0 & 0xFF_FFFF) as usize
    }

    /// Whether this slot is the child by `byte` of the node that has its base.
    fn is_by(self, byte: u8) -> bool {
        (self.0 >> 24) & 0x1FF == 0x100 | u64::from(byte)
    }

    fn token(self) -> u64 {
        self.0 >> 33
    }

    fn set_base(&mut self, base: usize) {
        self.0 |= base as u64;
    }

    fn take(&mut self, byte: u8) {
        self.0 |= Self::TAKEN | u64::from(byte) << 24;
    }

    fn set_token(&mut self, cut: Cut) {
        self.0 = (self.0 & 0x1_FFFF_FFFF)
            | (cut.symbol as u64 + 1) << 33
            | (cut.len as u64) << 51
            | u64::from(cut.cost.min(COST_MAX)) << 55;
    }

    /// The token that ends here. Requires: there is one.
    #[inline]
    fn cut(self) -> Cut {
        let token = self.token();
        Cut {
            symbol: ((token & 0x3_FFFF) - 1) as usize,
            len: (token >> 18 & 15) as usize,
            cost: (token >> 22) as u32,
        }
    }
}

/// Parts of a bit in which costs are counted.
pub const COST_PARTS: u32 = 16;
/// The highest cost that is distinguished.
const COST_MAX: u32 = 511;

/// A token at a place of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The token.
    pub symbol: usize,
    /// Bytes of it.
    pub len: usize,
    /// Its cost, [`COST_PARTS`] to a bit.
    pub cost: u32,
}

/// Finds the longest token at a place. Every byte must be a token, so that there always is one.
#[derive(Debug)]
pub struct Finder {
    /// By the first two bytes, high byte first.
    pairs: Vec<Node>,
    slots: Vec<Node>,
    /// By the first byte: the token that is this byte alone.
    singles: Box<[Node; 256]>,
}

impl Finder {
    /// A finder of `tokens`, each at the `cost` of its symbol, [`COST_PARTS`] to a bit. Marks are
    /// skipped; of equal tokens the first counts.
    ///
    /// # Panics
    /// When some byte is no token.
    pub fn new(tokens: &[Token], cost: impl Fn(usize) -> u32) -> Self {
        let mut sorted: Vec<(Token, u32)> = (0u32..)
            .zip(tokens)
            .filter(|(_, token)| !token.is_empty())
            .map(|(symbol, token)| (*token, symbol))
            .collect();
        sorted.sort_unstable_by(|a, b| (a.0.bytes(), a.1).cmp(&(b.0.bytes(), b.1)));
        sorted.dedup_by(|later, kept| later.0 == kept.0);
        let sorted: Vec<(Token, Cut)> = sorted
            .into_iter()
            .map(|(token, symbol)| {
                let (symbol, len) = (symbol as usize, token.len());
                let cost = cost(symbol);
                (token, Cut { symbol, len, cost })
            })
            .collect();
        let mut singles = Box::new([Node::default(); 256]);
        for (token, cut) in &sorted {
            if let &[byte] = token.bytes() {
                singles[usize::from(byte)].set_token(*cut);
            }
        }
        assert!(
            singles.iter().all(|single| single.token() != 0),
            "every byte must be a token"
        );
        let mut builder = Builder::new(&sorted);
        builder.build();
        Self {
            pairs: builder.pairs,
            slots: builder.slots,
            singles,
        }
    }

    /// The longest token that `text` begins with. Requires: `text` is not empty (an empty one has the
    /// answer of a zero byte).
    #[inline]
    pub fn longest(&self, text: &[u8]) -> Cut {
        let mut longest = Cut::default();
        self.each(text, |cut| longest = cut);
        longest
    }

    /// Calls `found` with each token that `text` begins with, shortest first. Requires: as
    /// [`Finder::longest`].
    #[inline]
    pub fn each(&self, text: &[u8], mut found: impl FnMut(Cut)) {
        let first = text.first().copied().unwrap_or(0);
        found(self.singles[usize::from(first)].cut());
        let Some(&[first, second]) = text.first_chunk::<2>() else {
            return;
        };
        let mut node = self.pairs[usize::from(first) << 8 | usize::from(second)];
        let (_, rest) = text.split_at(2);
        let mut rest = rest.iter().take(TOKEN_BYTES_MAX - 2);
        loop {
            if node.token() != 0 {
                found(node.cut());
            }
            let Some(&byte) = rest.next() else {
                return;
            };
            let child = self.slots.get(node.base() ^ usize::from(byte));
            match child.filter(|child| child.is_by(byte)) {
                Some(&child) => node = child,
                None => return,
            }
        }
    }

    /// Bytes it takes in memory.
    pub fn memory(&self) -> usize {
        (self.pairs.len() + self.slots.len()) * size_of::<Node>()
    }
}

/// Where a node's place is kept until its children are known.
#[derive(Clone, Copy, Debug)]
enum NodePlace {
    Pair(usize),
    Slot(usize),
}

/// One node to be built: the tokens that begin with its string, and the string's length.
#[derive(Clone, Copy, Debug)]
struct Task {
    from: usize,
    to: usize,
    depth: usize,
    place: NodePlace,
}

struct Builder<'a> {
    sorted: &'a [(Token, Cut)],
    pairs: Vec<Node>,
    slots: Vec<Node>,
    /// Whether each base is given away.
    base_used: Vec<bool>,
    /// Blocks that may have room, with how much.
    open: Vec<(usize, usize)>,
}

impl<'a> Builder<'a> {
    fn new(sorted: &'a [(Token, Cut)]) -> Self {
        Self {
            sorted,
            pairs: vec![Node::default(); 1 << 16],
            slots: Vec::new(),
            base_used: Vec::new(),
            open: Vec::new(),
        }
    }

    fn build(&mut self) {
        // The first block holds no children, so that base 0 (a node without any) leads nowhere.
        self.slots.resize(BLOCK, Node::default());
        self.base_used.resize(BLOCK, true);
        let mut tasks = Vec::new();
        let mut from = 0;
        while let Some((token, _)) = self.sorted.get(from) {
            let Some(&[first, second]) = token.bytes().first_chunk::<2>() else {
                from += 1;
                continue;
            };
            let same = |other: &(Token, Cut)| other.0.bytes().starts_with(&[first, second]);
            let to = from + self.sorted[from..].partition_point(same);
            let place = NodePlace::Pair(usize::from(first) << 8 | usize::from(second));
            tasks.push(Task {
                from,
                to,
                depth: 2,
                place,
            });
            from = to;
        }
        while let Some(task) = tasks.pop() {
            self.node(task, &mut tasks);
        }
    }

    /// Builds one node and leaves its children as tasks.
    fn node(&mut self, mut task: Task, tasks: &mut Vec<Task>) {
        let (token, cut) = self.sorted[task.from];
        if token.len() == task.depth {
            self.at(task.place).set_token(cut);
            task.from += 1;
        }
        let inside = &self.sorted[task.from..task.to];
        let byte = |entry: &(Token, Cut)| entry.0.row()[task.depth];
        let mut bytes: Vec<u8> = inside.iter().map(byte).collect();
        bytes.dedup();
        if bytes.is_empty() {
            return;
        }
        let base = self.room(&bytes);
        self.at(task.place).set_base(base);
        let mut from = task.from;
        for &label in &bytes {
            let slot = base ^ usize::from(label);
            self.slots[slot].take(label);
            let to = from + self.sorted[from..task.to].partition_point(|e| byte(e) == label);
            tasks.push(Task {
                from,
                to,
                depth: task.depth + 1,
                place: NodePlace::Slot(slot),
            });
            from = to;
        }
    }

    fn at(&mut self, place: NodePlace) -> &mut Node {
        match place {
            NodePlace::Pair(index) => &mut self.pairs[index],
            NodePlace::Slot(index) => &mut self.slots[index],
        }
    }

    /// A base that no node has and whose slots for `bytes` are free.
    fn room(&mut self, bytes: &[u8]) -> usize {
        for index in (0..self.open.len()).rev() {
            let (block, free) = self.open[index];
            if free < bytes.len() {
                continue;
            }
            if let Some(base) = self.room_in(block, bytes) {
                self.claim(index, base, bytes.len());
                return base;
            }
        }
        if self.open.len() == OPEN_BLOCKS {
            self.open.remove(0);
        }
        let block = self.slots.len();
        self.slots.resize(block + BLOCK, Node::default());
        self.base_used.resize(block + BLOCK, false);
        self.open.push((block, BLOCK));
        self.claim(self.open.len() - 1, block, bytes.len());
        block
    }

    fn room_in(&self, block: usize, bytes: &[u8]) -> Option<usize> {
        let slots = &self.slots[block..block + BLOCK];
        let free = |low: usize, byte: u8| slots[low ^ usize::from(byte)].0 == 0;
        (0..BLOCK)
            .find(|&low| !self.base_used[block + low] && bytes.iter().all(|&byte| free(low, byte)))
            .map(|low| block + low)
    }

    fn claim(&mut self, open: usize, base: usize, count: usize) {
        self.base_used[base] = true;
        self.open[open].1 -= count;
        if self.open[open].1 == 0 {
            self.open.remove(open);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumlin_base::rng::Rng;
    use std::collections::HashSet;

    #[test]
    fn finds_what_a_naive_search_finds() {
        let mut rng = Rng::new(2);
        for letters in [2, 5, 26, 256] {
            let mut text = |len: u64| -> Vec<u8> {
                let letter = |rng: &mut Rng| rng.below(letters) as u8;
                (0..len).map(|_| letter(&mut rng)).collect()
            };
            let mut tokens: Vec<Token> = (0..=255).filter_map(|b| Token::new(&[b])).collect();
            let mut known = HashSet::new();
            for round in 0..3000u64 {
                let token = Token::new(&text(2 + round % 14)).expect("short enough");
                if known.insert(token) {
                    tokens.push(token);
                }
            }
            tokens.insert(7, Token::mark(1));
            let finder = Finder::new(&tokens, |symbol| symbol as u32 % 500);
            let sample = text(3000);
            for at in 0..sample.len() {
                let rest = &sample[at..];
                let mut there: Vec<Cut> = (0..tokens.len())
                    .filter(|&symbol| !tokens[symbol].is_empty())
                    .filter(|&symbol| rest.starts_with(tokens[symbol].bytes()))
                    .map(|symbol| Cut {
                        symbol,
                        len: tokens[symbol].len(),
                        cost: symbol as u32 % 500,
                    })
                    .collect();
                there.sort_unstable_by_key(|cut| cut.len);
                let mut found = Vec::new();
                finder.each(rest, |cut| found.push(cut));
                assert_eq!(found, there);
                assert_eq!(Some(finder.longest(rest)), there.pop());
            }
        }
    }
}
