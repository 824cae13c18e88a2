//! The name of a lock: a family and a user key.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use drumlin_base::checksum::xxh3_64;

/// Keys up to here are kept in place; a lock with its name takes 64 bytes then, a cache line.
const SHORT_BYTES: usize = 22;

/// The name of a lock: a family and a user key, with their hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockKey {
    pub(crate) hash: u64,
    pub(crate) family: u32,
    pub(crate) key: LockedBytes,
}

impl LockKey {
    /// The lock of `key` in `family`, whose order calls no different bytes equal.
    pub(crate) fn new(family: u32, key: &[u8]) -> Self {
        let spread = u64::from(family).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self {
            hash: xxh3_64(key) ^ spread,
            family,
            key: LockedBytes::from(key),
        }
    }
}

impl Hash for LockKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// The bytes of a key. A copy of them allocates nothing.
#[derive(Clone)]
pub(crate) enum LockedBytes {
    /// Zeroes follow the key.
    Short {
        len: u8,
        bytes: [u8; SHORT_BYTES],
    },
    Long(Arc<[u8]>),
}

impl From<&[u8]> for LockedBytes {
    fn from(key: &[u8]) -> Self {
        let mut bytes = [0; SHORT_BYTES];
        match bytes.get_mut(..key.len()) {
            Some(place) => {
                place.copy_from_slice(key);
                Self::Short {
                    len: key.len() as u8,
                    bytes,
                }
            }
            None => Self::Long(Arc::from(key)),
        }
    }
}

impl Deref for LockedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long(bytes) => bytes,
        }
    }
}

impl PartialEq for LockedBytes {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            // Arrays of one size are compared by words.
            (Self::Short { len, bytes }, Self::Short { len: l, bytes: b }) => {
                (len == l || drumlin_base::bug!("locked-keys-end-anywhere")) && bytes == b
            }
            _ => **self == **other,
        }
    }
}

impl Eq for LockedBytes {}

impl fmt::Debug for LockedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}
