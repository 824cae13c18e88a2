//! Building an index from keys in order, in bounded memory.
//!
//! The first keys are held back as a sample. From it a template is learned, and both ways to encode,
//! as columns and as texts, are tried on it; the cheaper is taken, in bytes and in time. From then on
//! every 64 keys become a block. A block with a key that does not fit is encoded as texts; when many
//! are, a new sample is taken: ranges of keys of different shapes get templates of their own.

use drumlin_base::coding::{put_varint32, put_varint64};
use drumlin_base::{Error, ErrorKind, Result};

use super::index::{BlockPlan, PLANS_MAX};
use super::learn::candidates;
use super::letters::Letters;
use super::rows::Rows;
use super::run::KeyRun;
use super::strings::common;
use super::template::Template;
use super::{BLOCK_KEYS, columns, strings};

/// Keys of the first sample, and of later ones.
const SAMPLE_KEYS: usize = 16 << 10;
const LATER_SAMPLE_KEYS: usize = 2 << 10;
/// A sample ends early at this many bytes.
const SAMPLE_BYTES_MAX: usize = 1 << 20;
/// Blocks of the sample that both ways are tried on.
const TRIED_BLOCKS: usize = 32;
/// Of this many blocks in a row, so many that do not fit ask for a new sample.
const WATCHED_BLOCKS: u32 = 32;
const MISFITS_MAX: u32 = 8;
/// The worth of a byte of a key, in nanoseconds of a lookup.
const NS_A_BYTE: f64 = 150.0;
/// The approximate cost of a lookup in a block of columns.
pub(super) const COLUMNS_NS: f64 = 100.0;
pub(super) const STRINGS_NS: f64 = 250.0;

/// Takes keys in order and gives blocks, and at the end the tail that makes an index of them.
///
/// Memory: the sample, the ends of blocks (about two bits a key), and the blocks that the caller has
/// not yet taken from [`KeyIndexBuilder::blocks`].
#[derive(Debug)]
pub struct KeyIndexBuilder {
    waiting: KeyRun,
    /// How many keys are to wait before they are encoded.
    wanted: usize,
    plans: Vec<BlockPlan>,
    /// The plan for the next block, once there is one, and the one for blocks that do not fit.
    plan: Option<usize>,
    fallback: usize,
    watched: u32,
    misfits: u32,
    /// Blocks until texts are sampled again.
    patience: u32,
    patience_next: u32,
    blocks: Vec<u8>,
    taken_bytes: u64,
    block_lens: Vec<u32>,
    keys: u64,
    /// The last key, while none waits.
    last: Vec<u8>,
    rows: Rows,
}

impl Default for KeyIndexBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl KeyIndexBuilder {
    /// A builder without keys.
    pub fn new() -> Self {
        Self {
            waiting: KeyRun::default(),
            wanted: SAMPLE_KEYS,
            plans: Vec::new(),
            plan: None,
            fallback: 0,
            watched: 0,
            misfits: 0,
            patience: 0,
            patience_next: 64,
            blocks: Vec::new(),
            taken_bytes: 0,
            block_lens: Vec::new(),
            keys: 0,
            last: Vec::new(),
            rows: Rows::default(),
        }
    }

    /// Adds `key`. Its rank is the number of keys added before.
    ///
    /// # Errors
    /// `InvalidArgument` when it is not above the key before; `TooLarge` when the blocks of an index
    /// would be larger than 4 GiB.
    #[inline]
    pub fn add(&mut self, key: &[u8]) -> Result<()> {
        let last = match self.waiting.last() {
            Some(last) => last,
            None => &self.last,
        };
        if self.keys > 0 && last >= key {
            return Err(Error::invalid_argument(
                "the keys of an index do not ascend",
            ));
        }
        self.keys += 1;
        self.waiting.push(key);
        if self.waiting.len() >= self.wanted || self.waiting.bytes() >= SAMPLE_BYTES_MAX {
            self.last.clear();
            self.last.extend_from_slice(key);
            self.encode_waiting(false)?;
        }
        Ok(())
    }

    /// Number of keys added.
    pub fn len(&self) -> u64 {
        self.keys
    }

    /// Whether no key was added.
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// The blocks encoded since they were last taken, which the caller may take away. All of them
    /// together are the input of [`KeyIndex::open`](super::KeyIndex::open).
    pub fn blocks(&mut self) -> Vec<u8> {
        self.taken_bytes += self.blocks.len() as u64;
        std::mem::take(&mut self.blocks)
    }

    /// Bytes that wait in [`KeyIndexBuilder::blocks`].
    pub fn blocks_bytes(&self) -> usize {
        self.blocks.len()
    }

    /// Bytes of memory it holds; the type's documentation lists them.
    pub fn memory(&self) -> usize {
        let ends = self.block_lens.capacity() * size_of::<u32>();
        size_of::<Self>() + self.waiting.memory() + self.blocks.capacity() + ends
    }

    /// Bytes the index would have if it were finished now, about.
    pub fn size_estimate(&self) -> u64 {
        let done = self.taken_bytes + self.blocks.len() as u64;
        done + self.waiting.bytes() as u64 / 2 + self.block_lens.len() as u64 * 2
    }

    /// The last blocks and the tail.
    ///
    /// # Errors
    /// As [`KeyIndexBuilder::add`].
    pub fn finish(mut self) -> Result<(Vec<u8>, Vec<u8>)> {
        if self.waiting.len() > 0 {
            self.encode_waiting(true)?;
        }
        let mut tail = Vec::new();
        put_varint64(&mut tail, self.keys);
        tail.push(self.plans.len() as u8);
        for plan in &self.plans {
            plan.store(&mut tail);
        }
        for &len in &self.block_lens {
            put_varint32(&mut tail, len);
        }
        Ok((self.blocks, tail))
    }

    /// Encodes the keys that wait, whole blocks of them unless they are the last.
    fn encode_waiting(&mut self, all: bool) -> Result<()> {
        if self.waiting.len() > BLOCK_KEYS || self.plan.is_none() {
            self.learn();
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut from = 0;
        while waiting.len() - from >= BLOCK_KEYS || (all && from < waiting.len()) {
            let until = (from + BLOCK_KEYS).min(waiting.len());
            self.encode_block(&waiting, from, until)?;
            from = until;
        }
        waiting.remove_front(from);
        self.waiting = waiting;
        self.wanted = BLOCK_KEYS;
        if self.asks_for_sample() {
            self.wanted = LATER_SAMPLE_KEYS;
        }
        Ok(())
    }

    /// Whether the plan has become doubtful.
    fn asks_for_sample(&mut self) -> bool {
        if self.plans.len() + 2 > PLANS_MAX {
            return false;
        }
        if self.plan == Some(self.fallback) {
            self.patience = self.patience.saturating_sub(1);
            return self.patience == 0;
        }
        self.misfits > MISFITS_MAX
    }

    /// Encodes the keys `from..until` of `keys` as one block.
    fn encode_block(&mut self, keys: &KeyRun, from: usize, until: usize) -> Result<()> {
        let start = self.blocks.len();
        let plan = self.plan.unwrap_or(self.fallback);
        self.watched += 1;
        if self.watched > WATCHED_BLOCKS {
            self.watched = 0;
            self.misfits /= 2;
        }
        let fits = match self.plans.get(plan) {
            Some(BlockPlan::Columns(template)) => self.rows.parse(template, keys, from, until),
            _ => false,
        };
        match self.plans.get(plan) {
            Some(BlockPlan::Columns(template)) if fits => {
                self.blocks.push(plan as u8);
                columns::encode(template, &self.rows, &mut self.blocks);
            }
            _ => {
                self.misfits += u32::from(plan != self.fallback);
                if let Some(BlockPlan::Strings(letters)) = self.plans.get(self.fallback) {
                    self.blocks.push(self.fallback as u8);
                    strings::encode(letters, keys.range(from, until), &mut self.blocks);
                }
            }
        }
        let len = self.blocks.len() - start;
        if self.taken_bytes + self.blocks.len() as u64 > u64::from(u32::MAX) {
            return Err(Error::new(
                ErrorKind::TooLarge,
                "the keys of an index take more than 4 GiB",
            ));
        }
        self.block_lens.push(len as u32);
        Ok(())
    }

    /// Learns from the keys that wait how to encode them and those after.
    fn learn(&mut self) {
        let sample = &self.waiting;
        let letters = Letters::of_counts(&own_bytes(sample));
        let as_strings = cost_of_strings(&letters, sample);
        let best = candidates(sample)
            .into_iter()
            .map(|template| (cost_of_columns(&template, &letters, sample), template))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        self.misfits = 0;
        self.watched = 0;
        if self.plan.is_none() {
            self.plans.push(BlockPlan::Strings(Box::new(letters)));
            self.plan = Some(0);
        }
        match best {
            Some((cost, template)) if cost < as_strings => {
                self.plan = Some(self.place_of(template));
                self.patience_next = 64;
            }
            _ => {
                // Each sample that finds nothing makes the next come later.
                self.plan = Some(self.fallback);
                self.patience = self.patience_next;
                self.patience_next = self.patience_next.saturating_mul(2);
            }
        }
    }

    /// The plan with `template`, a new one unless there is one that parses and prints alike.
    fn place_of(&mut self, template: Template) -> usize {
        let known = self.plans.iter().position(|plan| match plan {
            BlockPlan::Columns(known) => {
                known.fields == template.fields && known.literals == template.literals
            }
            BlockPlan::Strings(_) => false,
        });
        known.unwrap_or_else(|| {
            self.plans.push(BlockPlan::Columns(template));
            self.plans.len() - 1
        })
    }
}

/// The count of each byte in the parts that keys do not share with the one before.
pub(super) fn own_bytes(sample: &KeyRun) -> [u64; 256] {
    let mut counts = [0u64; 256];
    for index in 0..sample.len() {
        let key = sample.get(index);
        let shared = match index.checked_sub(1) {
            Some(before) => common(sample.get(before), key),
            None => 0,
        };
        for &byte in key.iter().skip(shared) {
            counts[usize::from(byte)] += 1;
        }
    }
    counts
}

/// The blocks of `sample` that are tried: first and last key of each.
fn tried(sample: &KeyRun) -> impl Iterator<Item = (usize, usize)> {
    let blocks = sample.len().div_ceil(BLOCK_KEYS);
    let len = sample.len();
    (0..blocks)
        .step_by(blocks.div_ceil(TRIED_BLOCKS).max(1))
        .map(move |block| (block * BLOCK_KEYS, ((block + 1) * BLOCK_KEYS).min(len)))
}

/// The cost of a key as text: its bytes, and its time as bytes.
fn cost_of_strings(letters: &Letters, sample: &KeyRun) -> f64 {
    let (mut out, mut keys) = (Vec::new(), 0);
    for (from, until) in tried(sample) {
        strings::encode(letters, sample.range(from, until), &mut out);
        keys += until - from;
    }
    out.len() as f64 / keys.max(1) as f64 + STRINGS_NS / NS_A_BYTE
}

/// The cost of a key in columns, with blocks that do not fit as texts.
fn cost_of_columns(template: &Template, letters: &Letters, sample: &KeyRun) -> f64 {
    let (mut out, mut rows) = (Vec::new(), Rows::default());
    let (mut keys, mut ns) = (0, 0.0);
    for (from, until) in tried(sample) {
        let count = until - from;
        keys += count;
        if rows.parse(template, sample, from, until) {
            columns::encode(template, &rows, &mut out);
            ns += COLUMNS_NS * count as f64;
        } else {
            strings::encode(letters, sample.range(from, until), &mut out);
            ns += STRINGS_NS * count as f64;
        }
    }
    (out.len() as f64 + ns / NS_A_BYTE) / keys.max(1) as f64
}
