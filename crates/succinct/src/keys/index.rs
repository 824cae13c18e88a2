//! An index of sorted keys: from a key to its rank and back.
//!
//! Immutable and shared by threads; a lookup allocates nothing but in the rare cases where the first
//! key of a block must be printed to be compared.

use std::cmp::Ordering;

use drumlin_base::bytes::{LINE_BYTES, prefetch};
use drumlin_base::coding::Reader;
use drumlin_base::{Error, Result};

use super::BLOCK_KEYS;
use super::columns::Columns;
use super::cursor::KeyCursor;
use super::directory::{Directory, EACH_MAX, FirstKeys};
use super::letters::Letters;
use super::probe;
use super::run::KeyRun;
use super::strings::{SearchEnd, Strings};
use super::template::{Row, Template};
use crate::held::HeldBytes;

/// Ways to encode blocks that an index may have.
pub(super) const PLANS_MAX: usize = 64;
/// Cache lines of a block that are asked for ahead: blocks of columns have no more.
const BLOCK_LINES_MAX: usize = 8;
/// Bytes of a usual key: the most room that is made for each key of a block before decoding.
const USUAL_KEY_BYTES: usize = 24;
const USUAL_RUN_BYTES_MAX: usize = 16 << 10;

/// How the keys of a block are encoded.
#[derive(Clone, Debug)]
pub(super) enum BlockPlan {
    /// As integers.
    Columns(Template),
    /// As texts.
    Strings(Box<Letters>),
}

impl BlockPlan {
    /// Appends the plan as it is stored.
    pub(super) fn store(&self, out: &mut Vec<u8>) {
        match self {
            Self::Strings(letters) => {
                out.push(0);
                letters.store(out);
            }
            Self::Columns(template) => {
                out.push(1);
                template.store(out);
            }
        }
    }

    fn load(from: &mut Reader<'_>) -> Option<Self> {
        match from.u8()? {
            0 => Letters::load(from).map(|letters| Self::Strings(Box::new(letters))),
            1 => Template::load(from).map(Self::Columns),
            _ => None,
        }
    }

    fn resident_bytes(&self) -> usize {
        match self {
            Self::Columns(template) => template.resident_bytes(),
            Self::Strings(letters) => letters.resident_bytes(),
        }
    }
}

/// A block, read in place.
#[expect(
    clippy::large_enum_variant,
    reason = "lives on the stack for one lookup, which must not allocate"
)]
enum Block<'a> {
    Columns(Columns<'a>),
    Strings(Strings<'a>),
}

/// Sorted keys in memory, each with its rank, which is the number of smaller keys.
pub struct KeyIndex {
    pub(super) blocks: Blocks,
    pub(super) directory: Directory,
}

/// The keys as they are encoded.
pub(super) struct Blocks {
    pub(super) bytes: HeldBytes,
    /// Where each block begins, and the end of the last.
    pub(super) offsets: Vec<u32>,
    pub(super) plans: Vec<BlockPlan>,
    /// The first plan of columns: most blocks are of it, if there is one.
    usual: Option<usize>,
    pub(super) keys: u64,
}

impl KeyIndex {
    /// The index whose blocks are `blocks` and whose tail is `tail`, as
    /// [`KeyIndexBuilder`](super::KeyIndexBuilder) gave them. Cost: a few lookups a block.
    ///
    /// # Errors
    /// `Corruption` when the two do not belong together or are no index. Blocks are not decoded as a
    /// whole: see [`KeyIndex::verify`].
    pub fn open(blocks: impl Into<HeldBytes>, tail: &[u8]) -> Result<Self> {
        let blocks = Blocks::load(blocks.into(), tail)
            .ok_or_else(|| Error::corruption("the tail of a key index is damaged"))?;
        let directory = Directory::build(blocks.count(), &blocks)?;
        Ok(Self { blocks, directory })
    }

    /// Number of keys.
    pub fn len(&self) -> u64 {
        self.blocks.keys
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.blocks.keys == 0
    }

    /// Bytes in memory.
    pub fn memory(&self) -> usize {
        let plans: usize = self
            .blocks
            .plans
            .iter()
            .map(BlockPlan::resident_bytes)
            .sum();
        size_of::<Self>()
            + plans
            + self.blocks.bytes.memory()
            + self.blocks.offsets.capacity() * 4
            + self.directory.resident_bytes()
    }

    /// The rank of `key`.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<u64> {
        let block = self.directory.find(key, &self.blocks)?;
        self.blocks.find_in(block, key)
    }

    /// The block that `key` would be in, for [`KeyIndex::get_in`]; `None` when it is below all keys. Asks
    /// for the block's memory: other keys can be looked for while it comes.
    #[inline]
    pub fn block_of(&self, key: &[u8]) -> Option<usize> {
        let block = self.directory.find(key, &self.blocks)?;
        self.blocks.prefetch(block);
        Some(block)
    }

    /// [`KeyIndex::block_of`] of each of `keys`, in `blocks`, which has as many places.
    #[inline]
    pub fn blocks_of(&self, keys: &[&[u8]], blocks: &mut [Option<usize>]) {
        for (keys, blocks) in keys.chunks(EACH_MAX).zip(blocks.chunks_mut(EACH_MAX)) {
            self.directory.find_each(keys, &self.blocks, blocks);
            for block in blocks.iter().flatten() {
                self.blocks.prefetch(*block);
            }
        }
    }

    /// The rank of `key`, whose block [`KeyIndex::block_of`] returned.
    #[inline]
    pub fn get_in(&self, block: usize, key: &[u8]) -> Option<u64> {
        self.blocks.find_in(block, key)
    }

    /// The rank of each of `keys`, in `ranks`, as [`KeyIndex::get`] gives it. Faster for many, whose
    /// waits for memory overlap.
    pub fn get_batch(&self, keys: &[&[u8]], ranks: &mut Vec<Option<u64>>) {
        ranks.clear();
        for keys in keys.chunks(EACH_MAX) {
            let mut blocks = [None; EACH_MAX];
            self.blocks_of(keys, blocks.split_at_mut(keys.len()).0);
            ranks.extend(
                blocks
                    .iter()
                    .zip(keys)
                    .map(|(block, key)| block.and_then(|block| self.blocks.find_in(block, key))),
            );
        }
    }

    /// How many keys are smaller than `key`: the rank of the first that is not.
    pub fn seek(&self, key: &[u8]) -> u64 {
        let Some(block) = self.directory.find(key, &self.blocks) else {
            return 0;
        };
        self.blocks.seek_in(block, key)
    }

    /// Appends the key of `rank` to `out`. False when there is none.
    pub fn key(&self, rank: u64, out: &mut Vec<u8>) -> bool {
        if rank >= self.blocks.keys {
            return false;
        }
        let (block, index) = place_of(rank);
        match self.blocks.block(block) {
            Some(Block::Columns(columns)) => columns.key(index, out),
            Some(Block::Strings(strings)) => return strings.key(index, out),
            None => return false,
        }
        true
    }

    /// A cursor over the keys, not yet positioned.
    pub fn cursor(&self) -> KeyCursor<'_> {
        KeyCursor::new(self)
    }

    /// Reads all keys and checks that they ascend and are found.
    ///
    /// # Errors
    /// `Corruption`. Cost: decodes every block.
    pub fn verify(&self) -> Result<()> {
        let mut run = KeyRun::default();
        let mut last: Option<Vec<u8>> = None;
        for block in 0..self.blocks.count() {
            if !self.decode_block(block, &mut run) {
                return Err(Error::corruption(format!("key block {block} is damaged")));
            }
            for index in 0..run.len() {
                let key = run.get(index);
                if last.as_deref().is_some_and(|last| last >= key) {
                    return Err(Error::corruption("the keys of an index do not ascend"));
                }
                last.get_or_insert_default().clear();
                last.get_or_insert_default().extend_from_slice(key);
                let rank = (block * BLOCK_KEYS + index) as u64;
                if self.get(key) != Some(rank) {
                    return Err(Error::corruption("a key index does not find its own key"));
                }
            }
        }
        Ok(())
    }

    /// Decodes the key of `rank` alone into `run`. False when its block is damaged.
    pub(super) fn decode_key(&self, rank: u64, run: &mut KeyRun) -> bool {
        run.clear();
        let (bytes, ends) = run.parts_mut();
        let is_there = self.key(rank, bytes);
        ends.push(bytes.len());
        is_there
    }

    /// Decodes the keys of `block` into `run`. False when the block is damaged.
    pub(super) fn decode_block(&self, block: usize, run: &mut KeyRun) -> bool {
        let usual = run.bytes().max(USUAL_KEY_BYTES) * BLOCK_KEYS;
        run.clear();
        let (bytes, ends) = run.parts_mut();
        if bytes.capacity() == 0 || ends.capacity() < BLOCK_KEYS {
            bytes.reserve(usual.min(USUAL_RUN_BYTES_MAX));
            ends.reserve(BLOCK_KEYS);
        }
        match self.blocks.block(block) {
            Some(Block::Columns(columns)) => columns.keys(bytes, |out| ends.push(out.len())),
            Some(Block::Strings(strings)) => {
                return strings.keys(bytes, |out| ends.push(out.len()));
            }
            None => return false,
        }
        true
    }
}

/// The block of a rank, and the place in it.
fn place_of(rank: u64) -> (usize, usize) {
    let block = usize::try_from(rank / BLOCK_KEYS as u64).unwrap_or(usize::MAX);
    (block, (rank % BLOCK_KEYS as u64) as usize)
}

impl Blocks {
    fn load(bytes: HeldBytes, tail: &[u8]) -> Option<Self> {
        let mut from = Reader::new(tail);
        let keys = from.varint64()?;
        let plan_count = usize::from(from.u8()?);
        if plan_count > PLANS_MAX {
            return None;
        }
        let mut plans = Vec::new();
        for _ in 0..plan_count {
            plans.push(BlockPlan::load(&mut from)?);
        }
        // Each block's length takes a byte of the tail at least.
        let count = usize::try_from(keys.div_ceil(BLOCK_KEYS as u64)).ok()?;
        if count > from.rest().len() || bytes.bytes().len() > u32::MAX as usize {
            return None;
        }
        let mut offsets = Vec::with_capacity(count + 1);
        let mut end = 0usize;
        offsets.push(0);
        for _ in 0..count {
            // A block has at least the number of its plan.
            let len = Some(from.varint32()? as usize).filter(|&len| len > 0)?;
            end = end.checked_add(len)?;
            offsets.push(u32::try_from(end).ok()?);
        }
        let is_columns = |plan: &BlockPlan| matches!(plan, BlockPlan::Columns(_));
        (end == bytes.bytes().len() && from.is_empty()).then_some(Self {
            bytes,
            offsets,
            usual: plans.iter().position(is_columns),
            plans,
            keys,
        })
    }

    /// How many blocks.
    pub(super) fn count(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Where `block` begins.
    #[inline]
    pub(super) fn offset(&self, block: usize) -> usize {
        self.offsets.get(block).map_or(0, |&at| at as usize)
    }

    /// Asks for the memory of `block`.
    #[inline]
    fn prefetch(&self, block: usize) {
        let (at, end) = (self.offset(block), self.offset(block + 1));
        if let Some(bytes) = self.bytes.bytes().get(at..end) {
            let lines = bytes.len().div_ceil(LINE_BYTES).min(BLOCK_LINES_MAX);
            prefetch(bytes.as_ptr(), lines);
        }
    }

    /// The number of the plan of `block`, its bytes and those behind it, and the number of its keys. Readers
    /// of words go past a block's end, but its content ends with [`Blocks::own_bytes`].
    #[inline]
    fn parts(&self, block: usize) -> Option<(usize, &[u8], usize)> {
        let (&plan, bytes) = self
            .bytes
            .bytes()
            .get(self.offset(block)..)?
            .split_first()?;
        let before = (block * BLOCK_KEYS) as u64;
        let count = (self.keys.checked_sub(before)?).min(BLOCK_KEYS as u64) as usize;
        Some((usize::from(plan), bytes, count))
    }

    #[inline]
    fn block(&self, block: usize) -> Option<Block<'_>> {
        let (plan, bytes, count) = self.parts(block)?;
        match self.plans.get(plan)? {
            BlockPlan::Columns(template) => {
                Columns::new(template, bytes, count).map(Block::Columns)
            }
            BlockPlan::Strings(letters) => {
                let own = self.own_bytes(block);
                Strings::new(letters, bytes, own, count).map(Block::Strings)
            }
        }
    }

    /// How many bytes behind its plan are the block's own.
    #[inline]
    fn own_bytes(&self, block: usize) -> usize {
        let end = self.offset(block + 1);
        end.saturating_sub(self.offset(block) + 1)
    }

    #[inline]
    fn find_in(&self, block: usize, key: &[u8]) -> Option<u64> {
        // The key is parsed for the most frequent plan before the block is read: its own plan is known
        // only once its cache line has arrived.
        let mut row = Row::default();
        let guessed = match self.usual.and_then(|usual| self.plans.get(usual)) {
            Some(BlockPlan::Columns(template)) => template.parse(key, &mut row),
            _ => false,
        };
        let (plan, bytes, count) = self.parts(block)?;
        let index = match self.plans.get(plan)? {
            BlockPlan::Columns(template) => {
                let fits = match self.usual == Some(plan) {
                    true => guessed,
                    false => {
                        row = Row::default();
                        template.parse(key, &mut row)
                    }
                };
                if !fits {
                    return None;
                }
                probe::find(template, bytes, count, &row)?
            }
            BlockPlan::Strings(letters) => {
                // Where the block ends is not looked up: a search makes no key, and reads no more of a forged
                // block than the sought key is long.
                let strings = Strings::new(letters, bytes, bytes.len(), count)?;
                match strings.find(key) {
                    SearchEnd { index, equal: true } => index,
                    SearchEnd { .. } => return None,
                }
            }
        };
        Some((block * BLOCK_KEYS + index) as u64)
    }

    fn seek_in(&self, block: usize, key: &[u8]) -> u64 {
        let index = match self.block(block) {
            Some(Block::Columns(columns)) => columns.lower_bound(key, &mut Vec::new()),
            Some(Block::Strings(strings)) => strings.find(key).index,
            None => 0,
        };
        (block * BLOCK_KEYS + index) as u64
    }
}

impl FirstKeys for Blocks {
    fn first_key(&self, block: usize, out: &mut Vec<u8>) -> Result<()> {
        match self.block(block) {
            Some(Block::Columns(columns)) => columns.key(0, out),
            Some(Block::Strings(strings)) if strings.key(0, out) => {}
            _ => return Err(Error::corruption(format!("key block {block} is damaged"))),
        }
        Ok(())
    }

    fn compare_first(&self, block: usize, key: &[u8]) -> Ordering {
        let mut first = Vec::new();
        match self.first_key(block, &mut first) {
            Ok(()) => first.as_slice().cmp(key),
            Err(_) => Ordering::Greater, // Blocks were readable when the index was opened.
        }
    }
}

impl std::fmt::Debug for KeyIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyIndex")
            .field("keys", &self.blocks.keys)
            .field("plans", &self.describe())
            .finish_non_exhaustive()
    }
}
