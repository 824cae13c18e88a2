//! Reads any filter block of RocksDB's: the last five bytes name its kind.
//!
//! Thread safety: immutable once parsed, shared freely.

use drumlin_base::bytes::prefetch;
use drumlin_base::perf::{Measure, count};

use super::bloom::{LINE_BYTES, LOCAL_BLOOM, LegacyBloom, Line, MARKER, METADATA_BYTES};
use super::bloom::{line_of, load_lines};
use super::ribbon::Ribbon;
use super::xxph3;

/// A filter ready to be asked.
///
/// Filters of the present kinds take a 64-bit [`hash`](super::hash) of the key, the same for every table. The
/// legacy kind hashes differently and needs the key itself: [`FilterReader::may_contain`] takes both and uses
/// the one it needs.
#[derive(Clone, Debug)]
pub struct FilterReader {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// No key was added.
    Nothing,
    /// Nothing is known.
    Anything,
    Bloom {
        lines: Box<[Line]>,
        probes: u32,
    },
    Legacy(LegacyBloom),
    Ribbon(Ribbon),
}

/// Where a key's bits are, found before they are tested: see [`FilterReader::locate`].
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    line: usize,
    hash: u64,
}

impl FilterReader {
    /// Parses the contents of a filter block or partition. The bits are copied to be on cache
    /// lines of their own.
    ///
    /// This cannot fail: kinds and parameters that are not known admit every key, as in RocksDB. The block's
    /// checksum finds damage. Five bytes or fewer are a filter without keys.
    pub fn parse(bytes: impl AsRef<[u8]>) -> Self {
        Self {
            kind: parse_kind(bytes.as_ref()),
        }
    }

    /// A filter that admits every key.
    pub fn admit_all() -> Self {
        Self {
            kind: Kind::Anything,
        }
    }

    /// Whether `key`, whose [`hash`](super::hash) is `hash`, may have been added.
    #[inline]
    pub fn may_contain(&self, key: &[u8], hash: u64) -> bool {
        match &self.kind {
            Kind::Legacy(legacy) => counted(legacy.may_contain(key)),
            _ => self.may_contain_hash(hash),
        }
    }

    /// Whether `key` may have been added.
    pub fn may_contain_key(&self, key: &[u8]) -> bool {
        self.may_contain(key, xxph3::hash(key))
    }

    /// Whether a key of `hash` may have been added. A legacy filter cannot tell from this hash and
    /// always says yes.
    #[inline]
    pub fn may_contain_hash(&self, hash: u64) -> bool {
        if drumlin_base::bug!("filter-false-negative") && hash.is_multiple_of(32) {
            return false;
        }
        match &self.kind {
            Kind::Bloom { lines, probes } => {
                let line = lines.get(line_of(hash, lines.len() as u32));
                counted(line.is_none_or(|line| line.may_contain(hash, *probes)))
            }
            Kind::Ribbon(ribbon) => counted(ribbon.may_contain(hash)),
            Kind::Anything | Kind::Legacy(_) => true,
            Kind::Nothing => false,
        }
    }

    /// First half of a test for many keys: finds the key's line and begins to load it, so that the
    /// cache misses of a batch overlap. [`FilterReader::test`] is the second half.
    #[inline]
    pub fn locate(&self, hash: u64) -> Spot {
        let line = match &self.kind {
            Kind::Bloom { lines, .. } => {
                let line = line_of(hash, lines.len() as u32);
                if let Some(line) = lines.get(line) {
                    prefetch(line, 1);
                }
                line
            }
            _ => 0,
        };
        Spot { line, hash }
    }

    /// Second half of [`FilterReader::locate`]: whether the key may have been added.
    #[inline]
    pub fn test(&self, spot: Spot) -> bool {
        if drumlin_base::bug!("filter-false-negative") && spot.hash.is_multiple_of(32) {
            return false;
        }
        match &self.kind {
            Kind::Bloom { lines, probes } => {
                let line = lines.get(spot.line);
                counted(line.is_none_or(|line| line.may_contain(spot.hash, *probes)))
            }
            _ => self.may_contain_hash(spot.hash),
        }
    }

    /// Whether the filter is asked by [`hash`](super::hash); if not, it needs the key.
    #[inline]
    pub fn is_by_hash(&self) -> bool {
        !matches!(self.kind, Kind::Legacy(_))
    }

    /// Whether the filter can deny anything at all.
    pub fn is_useful(&self) -> bool {
        !matches!(self.kind, Kind::Anything)
    }

    /// Memory it holds.
    pub fn resident_bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.kind {
                Kind::Nothing | Kind::Anything => 0,
                Kind::Bloom { lines, .. } => lines.len() * LINE_BYTES,
                Kind::Legacy(legacy) => legacy.resident_bytes(),
                Kind::Ribbon(ribbon) => ribbon.resident_bytes(),
            }
    }
}

/// The answer of a filter that can deny something.
#[inline]
fn counted(may_contain: bool) -> bool {
    count(
        match may_contain {
            true => Measure::FilterHits,
            false => Measure::FilterMisses,
        },
        1,
    );
    may_contain
}

fn parse_kind(bytes: &[u8]) -> Kind {
    let Some((body, metadata)) = bytes.split_last_chunk::<METADATA_BYTES>() else {
        return Kind::Nothing;
    };
    if body.is_empty() {
        return Kind::Nothing;
    }
    match *metadata {
        [MARKER, LOCAL_BLOOM, line_and_probes, _, _] => parse_bloom(body, line_and_probes),
        [RIBBON_MARKER, seed, a, b, c] => {
            let blocks = u32::from_le_bytes([a, b, c, 0]);
            Ribbon::new(body, u32::from(seed), blocks).map_or(Kind::Anything, Kind::Ribbon)
        }
        [probes @ 1..=127, a, b, c, d] => {
            let lines = u32::from_le_bytes([a, b, c, d]);
            LegacyBloom::new(body, lines, u32::from(probes)).map_or(Kind::Anything, Kind::Legacy)
        }
        _ => Kind::Anything,
    }
}

/// On disk: first metadata byte of Ribbon filters.
const RIBBON_MARKER: u8 = 0xFE;

/// `line_and_probes`: the line's size in the upper three bits (0 for 64 bytes, the only one in
/// use), the probes below.
fn parse_bloom(body: &[u8], line_and_probes: u8) -> Kind {
    let probes = u32::from(line_and_probes & 31);
    let lines = body.len() / LINE_BYTES;
    if line_and_probes >> 5 != 0 || !(1..=30).contains(&probes) || lines == 0 {
        return Kind::Anything;
    }
    if u32::try_from(lines).is_err() {
        return Kind::Anything;
    }
    Kind::Bloom {
        lines: load_lines(body),
        probes,
    }
}
