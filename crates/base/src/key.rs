//! Internal keys: a user key with its sequence number and kind.
//!
//! `user_key ‖ fixed64_le(seqno << 8 | kind)`, as LevelDB and RocksDB write it. Order: user key ascending by
//! the family's comparator, then the packed tag descending, so the newest version of a key comes first. The
//! format is documented in `docs/format/internal-key.md`.

use std::cmp::Ordering;

use crate::comparator::KeyOrder;
use crate::{Error, Result};

/// A sequence number: the place of one operation in the database's history. 56 bits.
pub type SeqNo = u64;

/// The highest sequence number that fits beside a kind.
pub const SEQNO_MAX: SeqNo = (1 << 56) - 1;

/// Bytes an internal key adds to its user key.
pub const TAG_BYTES: usize = 8;

/// The kind of an entry. The numbers are on disk (RocksDB `db/dbformat.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ValueKind {
    /// The key is gone.
    Deletion = 0x0,
    /// The key has this value.
    Value = 0x1,
    /// An operand for the family's merge operator.
    Merge = 0x2,
    /// The key is gone, and was put exactly once since the last deletion.
    SingleDeletion = 0x7,
    /// All keys from the entry's key up to, not including, its value are gone.
    RangeDeletion = 0xF,
    /// The key, in a family whose keys end with timestamps, was deleted at its timestamp: an entry like a value, which
    /// hides nothing below it but to those who look at timestamps.
    DeletionWithTimestamp = 0x14,
    /// The value is in a blob file; the entry holds its address.
    BlobIndex = 0x11,
    /// The value is a serialized set of named columns.
    WideColumnEntity = 0x16,
}

impl ValueKind {
    /// The kind stored as `byte`.
    ///
    /// # Errors
    /// `NotSupported` for a kind other engines write that this one cannot serve, `Corruption` for a
    /// byte no engine writes.
    #[inline]
    pub fn from_byte(byte: u8) -> Result<Self> {
        match byte {
            0x1 => Ok(Self::Value), // the usual kind
            _ => Self::from_other_byte(byte),
        }
    }

    #[inline(never)]
    fn from_other_byte(byte: u8) -> Result<Self> {
        Ok(match byte {
            0x0 => Self::Deletion,
            0x1 => Self::Value,
            0x2 => Self::Merge,
            0x7 => Self::SingleDeletion,
            0xF => Self::RangeDeletion,
            0x11 => Self::BlobIndex,
            0x14 => Self::DeletionWithTimestamp,
            0x16 => Self::WideColumnEntity,
            0x18 => {
                return Err(Error::not_supported(format!("entries of kind {byte:#x}")));
            }
            _ => return Err(Error::corruption(format!("unknown entry kind {byte:#x}"))),
        })
    }
}

/// The kind byte of a seek key: at least as high as any kind on disk, so that a seek to
/// (`key`, `seqno`) lands on the first entry whose seqno is at most `seqno`.
pub const SEEK_KIND: u8 = 0x7F;

/// `seqno` and `kind` as the tag that follows the user key.
#[inline]
pub const fn pack_tag(seqno: SeqNo, kind: u8) -> u64 {
    debug_assert!(seqno <= SEQNO_MAX);
    (seqno << 8) | kind as u64
}

/// The sequence number in `tag`.
#[inline]
pub const fn tag_seqno(tag: u64) -> SeqNo {
    tag >> 8
}

/// The kind byte in `tag`.
#[inline]
pub const fn tag_kind(tag: u64) -> u8 {
    (tag & 0xFF) as u8
}

/// User key and tag of an internal key; `None` when it is shorter than a tag.
#[inline]
pub fn split_internal(internal: &[u8]) -> Option<(&[u8], u64)> {
    let (user_key, tag) = internal.split_last_chunk::<TAG_BYTES>()?;
    Some((user_key, u64::from_le_bytes(*tag)))
}

/// The user key of an internal key that was checked before; empty if it is too short.
#[inline]
pub fn user_key(internal: &[u8]) -> &[u8] {
    split_internal(internal).map_or(&[], |(user_key, _)| user_key)
}

/// The first eight bytes of `user_key`, a shorter one padded with zeros, as a number. Unequal
/// prefixes order as the keys do bytewise.
#[inline]
pub fn user_key_prefix(user_key: &[u8]) -> u64 {
    match user_key.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut padded = [0; 8];
            for (to, from) in padded.iter_mut().zip(user_key) {
                *to = *from;
            }
            u64::from_be_bytes(padded)
        }
    }
}

/// [`user_key_prefix`] of an internal key's user key.
#[inline]
pub fn internal_key_prefix(internal: &[u8]) -> u64 {
    let user_bytes = internal.len().saturating_sub(TAG_BYTES);
    match internal.first_chunk::<8>() {
        Some(first) if user_bytes >= 8 => u64::from_be_bytes(*first),
        Some(first) => {
            let keep = 8 * (8 - user_bytes as u32);
            let mask = u64::MAX.checked_shl(keep).unwrap_or(0);
            u64::from_be_bytes(*first) & mask
        }
        None => 0,
    }
}

/// Appends the internal key of (`user_key`, `seqno`, `kind`) to `out`.
#[inline]
pub fn append_internal(out: &mut Vec<u8>, user_key: &[u8], seqno: SeqNo, kind: u8) {
    out.extend_from_slice(user_key);
    out.extend_from_slice(&pack_tag(seqno, kind).to_le_bytes());
}

/// The internal key of (`user_key`, `seqno`, `kind`).
pub fn internal_key(user_key: &[u8], seqno: SeqNo, kind: ValueKind) -> Vec<u8> {
    let mut out = Vec::with_capacity(user_key.len() + TAG_BYTES);
    append_internal(&mut out, user_key, seqno, kind as u8);
    out
}

/// The internal key before every entry of `user_key` visible at `seqno`.
pub fn seek_key(user_key: &[u8], seqno: SeqNo) -> Vec<u8> {
    let mut out = Vec::with_capacity(user_key.len() + TAG_BYTES);
    append_internal(&mut out, user_key, seqno, SEEK_KIND);
    out
}

/// Whether two strings of bytes are the same: as `==`, without a call for those of 8 to 32 bytes, as most
/// keys and prefixes are.
#[inline(always)]
pub fn is_same_bytes(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && match a.len() {
            8..=16 => has_same_ends::<8>(a, b),
            17..=32 => has_same_ends::<16>(a, b),
            _ => a == b,
        }
}

/// Whether the first `N` bytes of both are the same, and the last `N`: that is all bytes of strings of at
/// most twice the length.
#[inline(always)]
fn has_same_ends<const N: usize>(a: &[u8], b: &[u8]) -> bool {
    a.first_chunk::<N>() == b.first_chunk::<N>() && a.last_chunk::<N>() == b.last_chunk::<N>()
}

/// The order of two strings of bytes: as `cmp`, without a call for two of one length of 8 to 24 bytes, as most
/// keys are.
#[inline]
pub fn compare_bytes(a: &[u8], b: &[u8]) -> Ordering {
    #[inline]
    fn words(bytes: &[u8]) -> Option<[u64; 3]> {
        let first = bytes.first_chunk()?;
        let last = bytes.last_chunk()?;
        let middle = bytes.get(8..).and_then(|rest| rest.first_chunk());
        Some([first, middle.unwrap_or(last), last].map(|word| u64::from_be_bytes(*word)))
    }
    if a.len() != b.len() || a.len() > 24 {
        return a.cmp(b);
    }
    match (words(a), words(b)) {
        // The words may overlap: equal first words have equal shared bytes.
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.cmp(b),
    }
}

/// Order of two internal keys. Keys too short to hold a tag sort as if their tag were zero;
/// decoding refuses them.
#[inline]
pub fn compare_internal(order: &KeyOrder, a: &[u8], b: &[u8]) -> Ordering {
    let (a_user, a_tag) = split_internal(a).unwrap_or((a, 0));
    let (b_user, b_tag) = split_internal(b).unwrap_or((b, 0));
    order
        .compare(a_user, b_user)
        .then_with(|| b_tag.cmp(&a_tag))
}

/// An internal key taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedKey<'a> {
    /// The caller's key.
    pub user_key: &'a [u8],
    /// The sequence number of its write.
    pub seqno: SeqNo,
    /// The kind of the entry.
    pub kind: ValueKind,
}

impl<'a> ParsedKey<'a> {
    /// Takes `internal` apart.
    ///
    /// # Errors
    /// `Corruption` when it is shorter than a tag or its kind is unknown, `NotSupported` for kinds
    /// only other engines serve.
    #[inline]
    pub fn parse(internal: &'a [u8]) -> Result<Self> {
        let Some((user_key, tag)) = split_internal(internal) else {
            return Err(Error::corruption("internal key shorter than its tag"));
        };
        let kind = ValueKind::from_byte(tag_kind(tag))?;
        Ok(Self {
            user_key,
            seqno: tag_seqno(tag),
            kind,
        })
    }
}

/// All keys from `begin` up to, not including, `end` are gone for readers at `seqno` and later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// First user key covered.
    pub begin: Vec<u8>,
    /// First user key no longer covered.
    pub end: Vec<u8>,
    /// The sequence number of its write: it covers entries with a lower one.
    pub seqno: SeqNo,
}

/// The first key, in bytewise order, after all that begin with `prefix`; `None` if there is no such key.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut after = prefix.get(..=kept)?.to_vec();
    *after.last_mut()? += 1;
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_all_lengths_compare_as_slices_do() {
        let mut rng = crate::rng::Rng::new(3);
        for _ in 0..20_000 {
            let len = rng.below(40) as usize;
            let mut a: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
            let mut b = a.clone();
            for _ in 0..rng.below(3) {
                if let Some(byte) = b.get_mut(rng.below(len as u64 + 1) as usize) {
                    *byte = rng.below(256) as u8;
                }
            }
            for key in [&mut a, &mut b] {
                if rng.one_in(8) {
                    key.truncate(rng.below(len as u64 + 1) as usize);
                }
            }
            assert_eq!(is_same_bytes(&a, &b), a == b, "{a:?} {b:?}");
            assert_eq!(compare_bytes(&a, &b), a.cmp(&b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn newer_versions_come_first_and_user_keys_ascend() {
        let order = KeyOrder::Bytewise;
        let old = internal_key(b"k", 5, ValueKind::Value);
        let new = internal_key(b"k", 6, ValueKind::Deletion);
        let next = internal_key(b"k\0", 9, ValueKind::Value);
        assert_eq!(compare_internal(&order, &new, &old), Ordering::Less);
        assert_eq!(compare_internal(&order, &old, &next), Ordering::Less);
        assert!(compare_internal(&order, &seek_key(b"k", 6), &new).is_lt());
        assert!(compare_internal(&order, &seek_key(b"k", 5), &new).is_gt());
    }

    #[test]
    fn heads_order_as_the_keys_do_wherever_they_differ() {
        let keys: [&[u8]; 9] = [
            b"",
            b"\0",
            b"a",
            b"a\0",
            b"ab",
            b"abcdefg",
            b"abcdefgh",
            b"abcdefghi",
            b"\xFF",
        ];
        for a in keys {
            let prefix = user_key_prefix(a);
            assert_eq!(internal_key_prefix(&seek_key(a, SEQNO_MAX)), prefix);
            for b in keys {
                let ordering = prefix.cmp(&user_key_prefix(b));
                assert!(ordering.is_eq() || ordering == a.cmp(b), "{a:?} {b:?}");
            }
        }
        assert_eq!(
            user_key_prefix(b"abcdefgh"),
            u64::from_be_bytes(*b"abcdefgh")
        );
    }

    #[test]
    fn key_prefixes_never_contradict_the_order_of_keys() {
        let mut rng = crate::rng::Rng::new(3);
        let mut key = || {
            let mut key = vec![0; rng.below(11) as usize];
            key.iter_mut().for_each(|byte| *byte = rng.below(3) as u8);
            key
        };
        for _ in 0..20_000 {
            let (a, b) = (key(), key());
            if user_key_prefix(&a) < user_key_prefix(&b) {
                assert!(a < b, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn parse_refuses_short_and_unknown() {
        assert!(ParsedKey::parse(b"short").is_err());
        let mut key = b"k".to_vec();
        key.extend_from_slice(&pack_tag(1, 0x55).to_le_bytes());
        assert!(ParsedKey::parse(&key).is_err_and(|e| e.is_corruption()));
    }
}
