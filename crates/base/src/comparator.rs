//! The order of user keys: bytewise, reverse, or the user's own.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A total order over user keys, given by the user.
///
/// The name is stored in the MANIFEST and checked at open: a database written under one order is
/// never read under another. Called from many threads at once, with internal latches held: it must
/// not panic and must not call back into the database.
pub trait Comparator: Send + Sync {
    /// The stored name. Change it whenever the order changes.
    fn name(&self) -> &str;

    /// The order of `a` and `b`. Must be total and must not change for the database's life.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// Bytes of the timestamp that each key ends with; 0 for keys without. The newer timestamp of a key comes first, `0xFF`
    /// in all bytes before any other, and 0 in all of them last. Deletions are then entries of their own, that walks show
    /// ([`ValueKind::DeletionWithTimestamp`](crate::ValueKind)); what a reader at a timestamp sees is for who reads to say.
    fn timestamp_bytes(&self) -> usize {
        0
    }

    /// The order of `a` and `b`, which have timestamps, without them.
    fn compare_without_timestamps(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.compare(a, b)
    }

    /// May shorten `start` to any key `k` with `start <= k < limit`, to keep indexes small.
    fn shorten_separator(&self, start: &mut Vec<u8>, limit: &[u8]) {
        let _ = (start, limit);
    }

    /// May shorten `key` to any key `k >= key`.
    fn shorten_successor(&self, key: &mut Vec<u8>) {
        let _ = key;
    }
}

/// The order a family was created with. Cheap to clone; the two built-in orders compare inline.
#[derive(Clone, Default)]
pub enum KeyOrder {
    /// `memcmp`, then length. Stored as `leveldb.BytewiseComparator`.
    #[default]
    Bytewise,
    /// Bytewise turned round. Stored as `rocksdb.ReverseBytewiseComparator`.
    ReverseBytewise,
    /// The user's own.
    Custom(Arc<dyn Comparator>),
}

impl KeyOrder {
    /// The name stored on disk.
    pub fn name(&self) -> &str {
        match self {
            Self::Bytewise => "leveldb.BytewiseComparator",
            Self::ReverseBytewise => "rocksdb.ReverseBytewiseComparator",
            Self::Custom(comparator) => comparator.name(),
        }
    }

    /// The built-in order stored under `name`, if it is one.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "leveldb.BytewiseComparator" => Some(Self::Bytewise),
            "rocksdb.ReverseBytewiseComparator" => Some(Self::ReverseBytewise),
            _ => None,
        }
    }

    /// The order of `a` and `b`.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Bytewise => a.cmp(b),
            Self::ReverseBytewise => b.cmp(a),
            Self::Custom(comparator) => comparator.compare(a, b),
        }
    }

    /// Bytes of the timestamp that each key ends with.
    pub fn timestamp_bytes(&self) -> usize {
        match self {
            Self::Bytewise | Self::ReverseBytewise => 0,
            Self::Custom(comparator) => comparator.timestamp_bytes(),
        }
    }

    /// The order that takes keys for equal that differ in their timestamps alone. By it tables are chosen, so that all of a
    /// key that is in a level stays together.
    #[must_use]
    pub fn without_timestamps(&self) -> Self {
        match self {
            Self::Custom(comparator)
                if comparator.timestamp_bytes() > 0
                    && !crate::bug!("versions-apart-in-a-level") =>
            {
                Self::Custom(Arc::new(WithoutTimestamps(Arc::clone(comparator))))
            }
            order => order.clone(),
        }
    }

    /// Whether keys equal under this order are equal bytes, so that hashes and filters may be used.
    /// True for the built-in orders only: a user's order may call different bytes equal.
    pub fn equality_is_bytewise(&self) -> bool {
        !matches!(self, Self::Custom(_))
    }

    /// Shortens `start` to some key `k` with `start <= k < limit`.
    pub fn shorten_separator(&self, start: &mut Vec<u8>, limit: &[u8]) {
        match self {
            Self::Bytewise => shorten_bytewise(start, limit),
            Self::ReverseBytewise => {}
            Self::Custom(comparator) => comparator.shorten_separator(start, limit),
        }
    }

    /// Shortens `key` to some key `k >= key`.
    pub fn shorten_successor(&self, key: &mut Vec<u8>) {
        match self {
            Self::Bytewise => {
                if let Some(at) = key.iter().position(|&byte| byte != 0xFF) {
                    key.truncate(at + 1);
                    if let Some(last) = key.last_mut() {
                        *last += u8::from(!crate::bug!("successor-too-small"));
                    }
                }
            }
            Self::ReverseBytewise => {}
            Self::Custom(comparator) => comparator.shorten_successor(key),
        }
    }
}

/// See [`KeyOrder::without_timestamps`].
struct WithoutTimestamps(Arc<dyn Comparator>);

impl Comparator for WithoutTimestamps {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.compare_without_timestamps(a, b)
    }
}

/// Requires: `start < limit` bytewise; otherwise leaves `start` as it is.
fn shorten_bytewise(start: &mut Vec<u8>, limit: &[u8]) {
    let common = start.iter().zip(limit).take_while(|(a, b)| a == b).count();
    let (Some(&a), Some(&b)) = (start.get(common), limit.get(common)) else {
        return; // One is a prefix of the other: there is no shorter key between them.
    };
    if a < b && a < 0xFF && a + 1 < b {
        start.truncate(common + 1);
        if let Some(last) = start.last_mut() {
            *last += 1;
        }
    }
}

impl fmt::Debug for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyOrder({})", self.name())
    }
}

impl PartialEq for KeyOrder {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_lie_between_their_keys() {
        for (start, limit) in [
            ("abc1", "abf"),
            ("a", "ab"),
            ("abc", "abd"),
            ("", "z"),
            ("zz", "zz"),
            ("b", "a"),
        ] {
            let mut key = start.as_bytes().to_vec();
            KeyOrder::Bytewise.shorten_separator(&mut key, limit.as_bytes());
            assert!(key.as_slice() >= start.as_bytes(), "{start} {limit}");
            if start < limit {
                assert!(key.as_slice() < limit.as_bytes(), "{start} {limit}");
            }
        }
        let mut key = b"abc1".to_vec();
        KeyOrder::Bytewise.shorten_separator(&mut key, b"abf");
        assert_eq!(key, b"abd");
    }

    #[test]
    fn keys_are_the_same_without_their_timestamps() {
        struct Timed;
        impl Comparator for Timed {
            fn name(&self) -> &str {
                "timed"
            }
            fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
                let order = self.compare_without_timestamps(a, b);
                order.then_with(|| b.last().cmp(&a.last()))
            }
            fn timestamp_bytes(&self) -> usize {
                1
            }
            fn compare_without_timestamps(&self, a: &[u8], b: &[u8]) -> Ordering {
                a[..a.len() - 1].cmp(&b[..b.len() - 1])
            }
        }
        let order = KeyOrder::Custom(Arc::new(Timed));
        let without = order.without_timestamps();
        assert!(order.compare(b"k2", b"k1").is_lt());
        assert!(without.compare(b"k2", b"k1").is_eq());
        assert!(without.compare(b"j1", b"k2").is_lt());
        assert_eq!(without.timestamp_bytes(), 0);
        assert_eq!(without, order);
        assert_eq!(KeyOrder::Bytewise.without_timestamps(), KeyOrder::Bytewise);
    }

    #[test]
    fn successors_are_not_smaller() {
        for key in [&b"abc"[..], b"\xff\xffa", b"\xff\xff", b""] {
            let mut next = key.to_vec();
            KeyOrder::Bytewise.shorten_successor(&mut next);
            assert!(next.as_slice() >= key);
        }
    }
}
