//! RocksDB's Bloom filters: the one in use since format version 5, and the older one for reading.
//!
//! The filter is an array of 64-byte lines, one cache line each. A key's hash is cut in two halves:
//! the low one picks the line by multiplication instead of division (Lemire, "Fast random integer
//! generation in an interval", 2019), the high one walks through bits of that line. So a test costs
//! one cache miss, however large the filter:
//!
//! ```text
//! line  = (low32(hash) * lines) >> 32
//! h     = high32(hash)
//! repeat `probes` times: test bit (h >> 23) of 512; h = h * 0x9e3779b9 mod 2^32
//! ```
//!
//! Five bytes of metadata follow, see `docs/format/block-table.md`.

use super::xxph3;

/// Bytes of metadata after the lines.
pub(super) const METADATA_BYTES: usize = 5;
/// On disk: first metadata byte of filters of this kind.
pub(super) const MARKER: u8 = 0xFF;
/// On disk: the only sub-kind there is.
pub(super) const LOCAL_BLOOM: u8 = 0;
/// One line: 64 bytes.
pub(super) const LINE_BYTES: usize = 64;
/// Largest filter: the metadata must still fit 32 bits.
const FILTER_BYTES_MAX: u64 = 0xFFFF_FFC0;

const GOLDEN_RATIO: u32 = 0x9e37_79b9;

/// One cache line of filter bits: bit `n` of 512 is bit `n % 64` of word `n / 64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(super) struct Line(pub(super) [u64; 8]);

/// The line, of `lines`, that holds `hash`.
#[inline(always)]
pub(super) fn line_of(hash: u64, lines: u32) -> usize {
    ((u64::from(hash as u32) * u64::from(lines)) >> 32) as usize
}

impl Line {
    /// Whether every bit of `hash` is set here.
    #[inline(always)]
    pub(super) fn may_contain(&self, hash: u64, probes: u32) -> bool {
        // Ten bits a key ask for six probes; with the count known the loop is unrolled, and
        // gathering the bits without a branch each beats stopping early.
        match probes {
            6 => self.all_set::<6>((hash >> 32) as u32),
            _ => self.all_set_of((hash >> 32) as u32, probes),
        }
    }

    #[inline(always)]
    fn all_set<const PROBES: u32>(&self, mut h: u32) -> bool {
        let mut all = 1u64;
        for _ in 0..PROBES {
            all &= self.bit(h >> 23);
            h = h.wrapping_mul(GOLDEN_RATIO);
        }
        all & 1 == 1
    }

    fn all_set_of(&self, mut h: u32, probes: u32) -> bool {
        for _ in 0..probes {
            if self.bit(h >> 23) & 1 == 0 {
                return false;
            }
            h = h.wrapping_mul(GOLDEN_RATIO);
        }
        true
    }

    /// Bit `n` of 512 in the lowest place; the places above hold other bits.
    #[inline(always)]
    fn bit(&self, n: u32) -> u64 {
        let word = self.0.get((n >> 6) as usize & 7).copied().unwrap_or(0);
        word >> (n & 63)
    }

    #[inline(always)]
    fn set(&mut self, hash: u64, probes: u32) {
        let mut h = (hash >> 32) as u32;
        for _ in 0..probes {
            let n = h >> 23;
            if let Some(word) = self.0.get_mut((n >> 6) as usize & 7) {
                let high = if drumlin_base::bug!("bloom-line-half") {
                    31
                } else {
                    63
                };
                *word |= 1 << (n & high);
            }
            h = h.wrapping_mul(GOLDEN_RATIO);
        }
    }
}

/// Probes that give the fewest false positives, by thousandths of a bit per key. Measured by
/// RocksDB; for lines of 512 bits the best count is below that of a plain Bloom filter.
fn probes_for(millibits_per_key: u32) -> u32 {
    const STEPS: [(u32, u32); 12] = [
        (2080, 1),
        (3580, 2),
        (5100, 3),
        (6640, 4),
        (8300, 5),
        (10070, 6),
        (11720, 7),
        (14001, 8),
        (16050, 9),
        (18300, 10),
        (22001, 11),
        (25501, 12),
    ];
    let step = STEPS.iter().find(|(most, _)| millibits_per_key <= *most);
    match step {
        Some((_, probes)) => *probes,
        None if millibits_per_key > 50_000 => 24,
        None => (millibits_per_key - 1) / 2000 - 1,
    }
}

/// Thousandths of a bit per key, as RocksDB rounds and bounds them: 0 below half a bit, else 1 to
/// 100 bits.
fn millibits(bits_per_key: f64) -> u32 {
    if bits_per_key < 0.5 {
        return 0;
    }
    let bounded = if bits_per_key < 100.0 {
        bits_per_key.max(1.0)
    } else {
        100.0 // Not a number lands here too.
    };
    // The last digits nudge figures like 9.9 upwards, which binary fractions fall short of.
    (bounded * 1000.0 + 0.500_001) as u32
}

/// Collects the keys of a table (or of a partition) and makes their filter, bit for bit the one
/// RocksDB would make.
///
/// Costs eight bytes a key until [`FilterBuilder::finish`].
#[derive(Clone, Debug)]
pub struct FilterBuilder {
    millibits_per_key: u32,
    hashes: Vec<u64>,
    previous_prefix: Option<u64>,
    /// Whether the filter is the one before format version 5.
    legacy: bool,
}

impl FilterBuilder {
    /// A builder of filters with `bits_per_key` (10 gives one false positive in about 105; below
    /// 0.5 nothing is filtered, above 100 counts as 100).
    pub fn new(bits_per_key: f64) -> Self {
        Self {
            millibits_per_key: millibits(bits_per_key),
            hashes: Vec::new(),
            previous_prefix: None,
            legacy: false,
        }
    }

    /// The same for the filter that RocksDB knows before format version 5.
    pub fn legacy(bits_per_key: f64) -> Self {
        Self {
            legacy: true,
            ..Self::new(bits_per_key)
        }
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        if self.legacy {
            u64::from(legacy_hash(key))
        } else {
            xxph3::hash(key)
        }
    }

    /// Adds a key. A key equal to the one before costs nothing.
    #[inline]
    pub fn add_key(&mut self, key: &[u8]) {
        self.add_hash(self.hash(key));
    }

    /// Adds a key by its [`hash`](super::hash).
    #[inline]
    pub fn add_hash(&mut self, hash: u64) {
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// Adds a key and its prefix, each only if it differs from the one before.
    pub fn add_key_and_prefix(&mut self, key: &[u8], prefix: &[u8]) {
        let (key, prefix) = (self.hash(key), self.hash(prefix));
        let last_key = self.hashes.last().copied();
        let last_prefix = self.previous_prefix.replace(prefix);
        // The prefix goes first, so that the last hash is always that of a key.
        if Some(prefix) != last_prefix && prefix != key && Some(prefix) != last_key {
            self.hashes.push(prefix);
        }
        if Some(key) != last_key && Some(key) != last_prefix {
            self.hashes.push(key);
        }
    }

    /// Hashes added since the last [`FilterBuilder::finish`].
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Bytes [`FilterBuilder::finish`] would return now.
    pub fn filter_bytes(&self) -> usize {
        if self.hashes.is_empty() {
            return 0;
        }
        self.lines() as usize * LINE_BYTES + METADATA_BYTES
    }

    /// The filter over everything added; the builder is empty after it.
    ///
    /// Without keys the filter is empty too and denies every key. With too few bits per key to
    /// filter at all it admits every key.
    pub fn finish(&mut self) -> Vec<u8> {
        let hashes = std::mem::take(&mut self.hashes);
        self.previous_prefix = None;
        if hashes.is_empty() {
            return Vec::new();
        }
        if self.millibits_per_key == 0 {
            return vec![0; METADATA_BYTES + 1];
        }
        if self.legacy {
            return LegacyBloom::encode(&hashes, self.millibits_per_key);
        }
        let probes = probes_for(self.millibits_per_key);
        let lines = fill(&hashes, self.lines_for(hashes.len()), probes);
        encode(&lines, probes)
    }

    fn lines(&self) -> u32 {
        self.lines_for(self.hashes.len())
    }

    fn lines_for(&self, hashes: usize) -> u32 {
        let millibits = (hashes as u64).saturating_mul(u64::from(self.millibits_per_key));
        let bytes = millibits.div_ceil(8000).min(FILTER_BYTES_MAX);
        bytes.div_ceil(LINE_BYTES as u64) as u32
    }
}

/// The lines with the bits of all hashes set.
fn fill(hashes: &[u64], count: u32, probes: u32) -> Vec<Line> {
    let mut lines = vec![Line([0; 8]); count as usize];
    for hash in hashes {
        if let Some(line) = lines.get_mut(line_of(*hash, count)) {
            line.set(*hash, probes);
        }
    }
    lines
}

fn encode(lines: &[Line], probes: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(lines.len() * LINE_BYTES + METADATA_BYTES);
    for line in lines {
        for word in line.0 {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
    out.extend_from_slice(&[MARKER, LOCAL_BLOOM, probes as u8, 0, 0]);
    out
}

/// The lines that `bytes` hold, aligned to cache lines; bytes left over are dropped.
pub(super) fn load_lines(bytes: &[u8]) -> Box<[Line]> {
    let mut lines = Vec::with_capacity(bytes.len() / LINE_BYTES);
    for chunk in bytes.chunks_exact(LINE_BYTES) {
        let mut line = Line([0; 8]);
        for (word, bytes) in line.0.iter_mut().zip(chunk.chunks_exact(8)) {
            *word = bytes.try_into().map_or(0, u64::from_le_bytes);
        }
        lines.push(line);
    }
    lines.into_boxed_slice()
}

/// The Bloom filter of RocksDB before format version 5: a hash of 32 bits, lines of the writer's
/// cache line size, double hashing within the line.
#[derive(Clone, Debug)]
pub(super) struct LegacyBloom {
    bits: Box<[u8]>,
    lines: u32,
    line_bytes_log2: u32,
    probes: u32,
}

impl LegacyBloom {
    /// The filter over `bits` cut into `lines` lines; `None` when no line size fits, in which case
    /// RocksDB admits every key.
    pub(super) fn new(bits: &[u8], lines: u32, probes: u32) -> Option<Self> {
        let line_bytes = (bits.len() as u64).checked_div(u64::from(lines))?;
        let exact = line_bytes.checked_mul(u64::from(lines)) == Some(bits.len() as u64);
        if !exact || !line_bytes.is_power_of_two() {
            return None;
        }
        Some(Self {
            bits: bits.into(),
            lines,
            line_bytes_log2: line_bytes.trailing_zeros(),
            probes,
        })
    }

    /// The filter of `hashes` as RocksDB writes it, over lines of 64 bytes, of which it takes an odd number.
    fn encode(hashes: &[u64], millibits_per_key: u32) -> Vec<u8> {
        const LINE_BITS: usize = LINE_BYTES * 8;
        let bits = (hashes.len() as u64 * u64::from(millibits_per_key)).div_ceil(1000);
        let lines = bits.div_ceil(LINE_BITS as u64).min(u64::from(u32::MAX) - 1) as u32 | 1;
        let probes = (millibits_per_key * 69 / 100_000).clamp(1, 30);
        let mut out = vec![0; lines as usize * LINE_BYTES];
        for hash in hashes {
            let mut hash = *hash as u32; // Hashes of this filter have 32 bits.
            let line = (hash % lines) as usize * LINE_BYTES;
            let delta = hash.rotate_right(17);
            for _ in 0..probes {
                let bit = hash as usize % LINE_BITS;
                if let Some(byte) = out.get_mut(line + bit / 8) {
                    *byte |= 1 << (bit % 8);
                }
                hash = hash.wrapping_add(delta);
            }
        }
        out.push(probes as u8);
        out.extend_from_slice(&lines.to_le_bytes());
        out
    }

    /// Whether `key` may have been added.
    pub(super) fn may_contain(&self, key: &[u8]) -> bool {
        let mut hash = legacy_hash(key);
        let line = ((hash % self.lines) as usize) << self.line_bytes_log2;
        let line_bits_mask = (8u64 << self.line_bytes_log2) - 1;
        let delta = hash.rotate_right(17);
        for _ in 0..self.probes {
            let bit = (u64::from(hash) & line_bits_mask) as usize;
            let Some(byte) = self.bits.get(line + bit / 8) else {
                return true; // Excluded by `new`; never a wrong "no".
            };
            if byte & (1 << (bit % 8)) == 0 {
                return false;
            }
            hash = hash.wrapping_add(delta);
        }
        true
    }

    /// Memory it holds.
    pub(super) fn resident_bytes(&self) -> usize {
        self.bits.len()
    }
}

/// The hash under the older filters of both engines.
#[inline]
pub(super) fn legacy_hash(key: &[u8]) -> u32 {
    drumlin_base::hash::leveldb_hash(key, 0xbc9f_1d34)
}
