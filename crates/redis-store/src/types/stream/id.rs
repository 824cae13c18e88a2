//! The id of an entry: a time and a number within it.

use std::fmt;

use drumlin_base::coding::{Reader, put_varint64};

/// Bytes of an id in keys.
pub(super) const ID_BYTES: usize = 16;

/// See the module. Entries are in the order of their ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Mostly ms since 1970.
    pub ms: u64,
    /// Tells entries of one ms apart.
    pub seq: u64,
}

impl StreamId {
    /// The lowest; no entry has it.
    pub const MIN: Self = Self { ms: 0, seq: 0 };
    /// The highest.
    pub const MAX: Self = Self {
        ms: u64::MAX,
        seq: u64::MAX,
    };

    fn from_number(number: u128) -> Self {
        Self {
            ms: (number >> 64) as u64,
            seq: number as u64,
        }
    }

    fn to_number(self) -> u128 {
        u128::from(self.ms) << 64 | u128::from(self.seq)
    }

    /// The id behind this one; `None` after the last.
    pub fn next(self) -> Option<Self> {
        self.to_number().checked_add(1).map(Self::from_number)
    }

    /// The id before this one; `None` before the first.
    pub fn previous(self) -> Option<Self> {
        self.to_number().checked_sub(1).map(Self::from_number)
    }

    /// Bytes that sort as ids do.
    pub(super) fn to_bytes(self) -> [u8; ID_BYTES] {
        self.to_number().to_be_bytes()
    }

    /// The id in the last bytes of a key, and the bytes before.
    pub(super) fn split_last(key: &[u8]) -> Option<(&[u8], Self)> {
        let (before, bytes) = key.split_last_chunk::<ID_BYTES>()?;
        Some((before, Self::from_number(u128::from_be_bytes(*bytes))))
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        put_varint64(out, self.ms);
        put_varint64(out, self.seq);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        let ms = reader.varint64()?;
        let seq = reader.varint64()?;
        Some(Self { ms, seq })
    }
}

/// As clients read and write it.
impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_each_other_over_the_ms() {
        let last = StreamId {
            ms: 5,
            seq: u64::MAX,
        };
        let first = StreamId { ms: 6, seq: 0 };
        assert_eq!((last.next(), first.previous()), (Some(first), Some(last)));
        assert_eq!(
            (StreamId::MAX.next(), StreamId::MIN.previous()),
            (None, None)
        );
        assert!(last.to_bytes() < first.to_bytes());
        let key = [b"e", &first.to_bytes()[..]].concat();
        assert_eq!(StreamId::split_last(&key), Some((&b"e"[..], first)));
        assert_eq!(StreamId::split_last(b"e"), None);
    }
}
