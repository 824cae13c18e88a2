//! One decoded block: where its entries end and where its restart points are.
//!
//! ```text
//! entries · restart offsets u32[n] · [buckets u8[m] · m u16]? · [values offset u32]? · packed u32
//! ```
//!
//! `packed` holds the number of restart points in its low 28 bits. Bit 31 says that a hash index
//! follows the restart points, which is skipped: the key prefixes made in memory ([`super::lookup`])
//! lead to the entry itself. Bit 29 says that the keys are evenly spread (a hint, ignored), bit 28
//! that values are stored apart from their keys, behind the entries. A
//! block of the last kind is rewritten into the usual layout once, when it is loaded, so that readers
//! meet one layout only; it loses its hash index by that. Bit 30 is not assigned; a block with it is
//! refused.
//!
//! Invariant of every [`Block`]: `restarts_at + 4 * restart_count <= bytes.len()` and
//! `restart_count >= 1`. Everything else in the bytes is a claim that the cursors check.

use drumlin_base::bytes::{Draft, SharedBytes};
use drumlin_base::coding::{fixed32_at, put_fixed32, put_varint32, varint32_at};
use drumlin_base::key::TAG_BYTES;
use drumlin_base::{Error, Result};

use super::lookup::KeyPrefixes;

/// On disk: a hash index is between the restart points and the rest.
pub(super) const HASH_INDEX_BIT: u32 = 1 << 31;
const UNASSIGNED_BIT: u32 = 1 << 30;
const UNIFORM_KEYS_BIT: u32 = 1 << 29;
const SEPARATED_VALUES_BIT: u32 = 1 << 28;
const RESTART_COUNT_MASK: u32 = SEPARATED_VALUES_BIT - 1;
/// On disk: blocks larger than this have no hash index, for their readers keep offsets in 16 bits.
const HASHED_BLOCK_BYTES_MAX: usize = 1 << 16;
/// On disk: bytes behind the buckets of a hash index, which hold their number.
const BUCKET_COUNT_BYTES: usize = 2;

/// Where the parts of a block are.
#[derive(Debug)]
pub struct BlockMeta {
    /// Offset of the restart array, which is where the entries end.
    pub(crate) restarts_at: u32,
    /// Entries of the restart array; at least one.
    pub(crate) restart_count: u32,
}

/// A block in memory, with its layout; a handle that the cache and its readers share. Values are
/// pinned by holding it.
pub type Block = SharedBytes<BlockMeta>;

/// The decoded last bytes of a block.
struct Trailer {
    restarts_at: usize,
    restart_count: usize,
    /// Where the separate values begin, if they are separate.
    values_at: Option<usize>,
}

/// A copy of the uncompressed `bytes` of a block (without its checksum trailer), taken apart, with
/// room for the key prefixes of all entries it can have.
///
/// # Errors
/// `Corruption` when the trailer does not fit the bytes.
pub(crate) fn parse_block(bytes: &[u8]) -> Result<Block> {
    parse_draft(draft_of(bytes))
}

/// A copy of `bytes` on the heap.
fn draft_of(bytes: &[u8]) -> Draft<BlockMeta> {
    // An entry takes three bytes for its lengths, and a tag: there cannot be more key prefixes than this.
    let prefixes_max = u32::try_from(bytes.len() / 8 + 1).unwrap_or(0);
    let mut draft = Draft::on_heap(bytes.len(), prefixes_max);
    draft.bytes_mut().copy_from_slice(bytes);
    draft
}

/// Parses a block that was read into a draft.
///
/// # Errors
/// As [`parse_block`].
pub(crate) fn parse_draft(draft: Draft<BlockMeta>) -> Result<Block> {
    let trailer = parse_trailer(draft.bytes())?;
    let Some(values_at) = trailer.values_at else {
        let meta = meta_of(&trailer)?;
        assert!(
            trailer.restarts_at + 4 * trailer.restart_count <= draft.bytes().len(),
            "the restart points of a parsed block are in it"
        );
        return Ok(draft.share(meta));
    };
    let joined = join_values(draft.bytes(), &trailer, values_at)
        .ok_or_else(|| Error::corruption("block with separate values does not decode"))?;
    let trailer = parse_trailer(&joined)?;
    let meta = meta_of(&trailer)?;
    Ok(draft_of(&joined).share(meta))
}

fn meta_of(trailer: &Trailer) -> Result<BlockMeta> {
    assert!(trailer.restart_count >= 1, "parsing checked it");
    let too_large = |_| Error::corruption("block is larger than 4 GiB");
    Ok(BlockMeta {
        restarts_at: u32::try_from(trailer.restarts_at).map_err(too_large)?,
        restart_count: u32::try_from(trailer.restart_count).map_err(too_large)?,
    })
}

fn parse_trailer(bytes: &[u8]) -> Result<Trailer> {
    let short = || Error::corruption("block is too short for its restart points");
    let mut end = bytes.len().checked_sub(4).ok_or_else(short)?;
    let packed = fixed32_at(bytes, end).ok_or_else(short)?;
    if packed & UNASSIGNED_BIT != 0 {
        return Err(Error::corruption(format!(
            "block trailer {packed:#010x} uses a bit no engine assigns"
        )));
    }
    let _hint = packed & UNIFORM_KEYS_BIT;
    let values_at = if packed & SEPARATED_VALUES_BIT != 0 {
        end = end.checked_sub(4).ok_or_else(short)?;
        Some(fixed32_at(bytes, end).ok_or_else(short)? as usize)
    } else {
        None
    };
    if packed & HASH_INDEX_BIT != 0 {
        let count_at = end.checked_sub(BUCKET_COUNT_BYTES).ok_or_else(short)?;
        let buckets = bytes
            .get(count_at..end)
            .and_then(|two| two.try_into().ok())
            .map(u16::from_le_bytes)
            .ok_or_else(short)?;
        if buckets == 0 || bytes.len() > HASHED_BLOCK_BYTES_MAX {
            return Err(Error::corruption("block has a hash index it cannot have"));
        }
        end = count_at
            .checked_sub(if drumlin_base::bug!("buckets-taken-for-restarts") {
                0
            } else {
                usize::from(buckets)
            })
            .ok_or_else(short)?;
    }
    let restart_count = (packed & RESTART_COUNT_MASK) as usize;
    let restarts_at = end.checked_sub(restart_count * 4).ok_or_else(short)?;
    if restart_count == 0 {
        return Err(Error::corruption("block has no restart point"));
    }
    if values_at.is_some_and(|at| at > restarts_at) {
        return Err(Error::corruption("block's values begin past its end"));
    }
    Ok(Trailer {
        restarts_at,
        restart_count,
        values_at,
    })
}

/// Rewrites a block whose values are stored apart into the usual layout. `None` when it does not decode.
fn join_values(bytes: &[u8], trailer: &Trailer, values_at: usize) -> Option<Vec<u8>> {
    let keys = bytes.get(..values_at)?;
    let values = bytes.get(values_at..trailer.restarts_at)?;
    let mut restarts = bytes
        .get(trailer.restarts_at..)?
        .chunks_exact(4)
        .take(trailer.restart_count)
        .filter_map(|four| four.try_into().ok().map(u32::from_le_bytes))
        .peekable();
    let mut out = Vec::with_capacity(bytes.len());
    let mut new_restarts = Vec::with_capacity(trailer.restart_count);
    let (mut at, mut value_at) = (0usize, 0usize);
    while at < keys.len() {
        let is_restart = restarts.next_if(|&next| next as usize == at).is_some();
        let (shared, next) = varint32_at(keys, at)?;
        let (unshared, next) = varint32_at(keys, next)?;
        let (value_len, mut next) = varint32_at(keys, next)?;
        if is_restart {
            let (offset, past) = varint32_at(keys, next)?;
            value_at = offset as usize;
            next = past;
            new_restarts.push(u32::try_from(out.len()).ok()?);
        }
        let delta_end = next.checked_add(unshared as usize)?;
        let value_end = value_at.checked_add(value_len as usize)?;
        put_varint32(&mut out, shared);
        put_varint32(&mut out, unshared);
        put_varint32(&mut out, value_len);
        out.extend_from_slice(keys.get(next..delta_end)?);
        out.extend_from_slice(values.get(value_at..value_end)?);
        at = delta_end;
        value_at = value_end + usize::from(drumlin_base::bug!("separate-values-shifted"));
    }
    if new_restarts.is_empty() {
        new_restarts.push(0); // An empty block has one restart point, at its end.
    } else if restarts.next().is_some() {
        return None; // A restart point between entries.
    }
    for restart in &new_restarts {
        put_fixed32(&mut out, *restart);
    }
    put_fixed32(&mut out, u32::try_from(new_restarts.len()).ok()?);
    Some(out)
}

/// Reading helpers over a parsed block.
pub(crate) trait BlockView {
    /// The bytes that hold entries.
    fn entries(&self) -> &[u8];
    /// Offset of restart point `index`.
    fn restart(&self, index: u32) -> Option<u32>;
    /// Number of restart points.
    fn restart_count(&self) -> u32;
    /// The key prefixes of the entries, made when first asked for. `None` when the block does not decode,
    /// or has more entries than there is room for key prefixes.
    fn key_prefixes(&self) -> Option<KeyPrefixes<'_>>;
    /// The key prefixes of the entries, if they are made already.
    fn key_prefixes_if_made(&self) -> Option<KeyPrefixes<'_>>;
}

impl BlockView for Block {
    #[inline]
    fn entries(&self) -> &[u8] {
        self.bytes()
            .get(..self.meta().restarts_at as usize)
            .expect("the restart points of a parsed block are in it")
    }

    #[inline]
    fn restart(&self, index: u32) -> Option<u32> {
        if index >= self.meta().restart_count {
            return None;
        }
        fixed32_at(
            self.bytes(),
            self.meta().restarts_at as usize + 4 * index as usize,
        )
    }

    #[inline]
    fn restart_count(&self) -> u32 {
        self.meta().restart_count
    }

    #[inline]
    fn key_prefixes(&self) -> Option<KeyPrefixes<'_>> {
        let words = self.words(|room| KeyPrefixes::build(self, room).unwrap_or(0))?;
        KeyPrefixes::of(words)
    }

    #[inline]
    fn key_prefixes_if_made(&self) -> Option<KeyPrefixes<'_>> {
        KeyPrefixes::of(self.words_if_made()?)
    }
}

/// The header of one entry: lengths, and where its key delta begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryHeader {
    pub(crate) shared: usize,
    pub(crate) unshared: usize,
    pub(crate) value_len: usize,
    /// Where the key delta begins in the entries.
    pub(crate) delta_at: usize,
}

impl EntryHeader {
    /// Where the value begins.
    #[inline]
    pub(crate) fn value_at(&self) -> usize {
        self.delta_at + self.unshared
    }

    /// Where the next entry begins.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        self.value_at() + self.value_len
    }
}

/// Decodes the entry header at `at`. `None` when it is cut, or the entry reaches past `entries`.
#[inline]
pub(crate) fn entry_header(entries: &[u8], at: usize) -> Option<EntryHeader> {
    let header = match entries.get(at..at.checked_add(3)?) {
        Some(&[shared, unshared, value_len]) if (shared | unshared | value_len) < 0x80 => {
            EntryHeader {
                shared: usize::from(shared),
                unshared: usize::from(unshared),
                value_len: usize::from(value_len),
                delta_at: at + 3,
            }
        }
        _ => entry_header_slow(entries, at)?,
    };
    (header.end() <= entries.len()).then_some(header)
}

#[inline(never)]
fn entry_header_slow(entries: &[u8], at: usize) -> Option<EntryHeader> {
    let (shared, next) = varint32_at(entries, at)?;
    let (unshared, next) = varint32_at(entries, next)?;
    let (value_len, delta_at) = varint32_at(entries, next)?;
    Some(EntryHeader {
        shared: shared as usize,
        unshared: unshared as usize,
        value_len: value_len as usize,
        delta_at,
    })
}

/// Offset of the last restart point whose key is `before` the one sought; of the first restart
/// point if none is. `None` when a restart point's key does not decode.
#[inline]
pub(crate) fn last_restart_before(block: &Block, before: impl Fn(&[u8]) -> bool) -> Option<usize> {
    let entries = block.entries();
    let (mut low, mut high) = (0, block.restart_count());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let key = restart_key(entries, block.restart(middle)? as usize)?;
        if before(key) {
            low = middle;
        } else {
            high = middle;
        }
    }
    block.restart(low).map(|at| at as usize)
}

/// The key stored whole at a restart point.
#[inline]
fn restart_key(entries: &[u8], at: usize) -> Option<&[u8]> {
    let header = entry_header(entries, at)?;
    if header.shared != 0 || header.unshared < TAG_BYTES {
        return None;
    }
    entries.get(header.delta_at..header.value_at())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailer_that_does_not_fit_is_refused() {
        for bytes in [
            &b""[..],
            &[1, 0, 0],
            &[0, 0, 0, 0],
            &[1, 0, 0, 0],
            &[0, 0, 0, 0, 1, 0, 0, 0x40],
            &[0, 0, 0, 0, 1, 0, 0, 0x10],
            &[0, 0, 0, 0, 9, 0, 1, 0, 0, 0x80],
            &[0, 0, 0, 0, 0, 0, 1, 0, 0, 0x80],
        ] {
            assert!(
                parse_block(bytes).is_err_and(|e| e.is_corruption()),
                "{bytes:?}"
            );
        }
        let empty = parse_block(&[0, 0, 0, 0, 1, 0, 0, 0]).unwrap();
        assert!(empty.entries().is_empty());
        assert_eq!(empty.restart(0), Some(0));
        assert_eq!(empty.restart(1), None);
    }

    #[test]
    fn a_hash_index_behind_the_restart_points_is_skipped() {
        let mut bytes = vec![0, 1, 1, b'k', b'v'];
        bytes.extend_from_slice(&[0, 0, 0, 0]); // Restart 0.
        bytes.extend_from_slice(&[255, 0, 255, 3, 0]); // Three buckets.
        bytes.extend_from_slice(&(1u32 | HASH_INDEX_BIT | UNIFORM_KEYS_BIT).to_le_bytes());
        let block = parse_block(&bytes).unwrap();
        assert_eq!(block.entries(), &[0, 1, 1, b'k', b'v']);
        assert_eq!(block.restart_count(), 1);
        // A block of more than 64 KiB cannot have one.
        let mut large = vec![0; HASHED_BLOCK_BYTES_MAX];
        large.extend_from_slice(&bytes);
        assert!(parse_block(&large).is_err_and(|error| error.is_corruption()));
    }

    #[test]
    fn separate_values_are_joined_to_their_keys() {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&[0, 2, 1, 0, b'a', b'a']); // Restart: value at 0.
        bytes.extend_from_slice(&[1, 1, 2, b'b']);
        let second = bytes.len() as u32;
        bytes.extend_from_slice(&[0, 1, 1, 3, b'c']); // Restart: value at 3.
        let values_at = bytes.len() as u32;
        bytes.extend_from_slice(b"1223");
        bytes.extend_from_slice(&0u32.to_le_bytes());
        bytes.extend_from_slice(&second.to_le_bytes());
        bytes.extend_from_slice(&values_at.to_le_bytes());
        bytes.extend_from_slice(&(2u32 | SEPARATED_VALUES_BIT).to_le_bytes());
        let block = parse_block(&bytes).unwrap();
        assert_eq!(
            block.entries(),
            b"\x00\x02\x01aa1\x01\x01\x02b22\x00\x01\x01c3"
        );
        assert_eq!(block.restart(1), Some(12));
        // A value that reaches past the section is refused.
        bytes[7] = 1;
        bytes[8] = 9;
        assert!(parse_block(&bytes).is_err());
    }
}
