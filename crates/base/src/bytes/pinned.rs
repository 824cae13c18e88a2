//! What a read returns: bytes that are owned, or pinned where they already lie.
//!
//! A read returns its value where it was found (a cached block, a memtable's arena) and keeps the
//! owner alive, so that no byte is copied.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use super::shared::{ErasedHandle, SharedBytes};

/// Keeps the memory behind a [`PinnedSlice`] alive.
pub trait Pin: Send + Sync {}
impl<T: Send + Sync> Pin for T {}

enum Owner {
    Vec(Vec<u8>),
    Pinned(#[expect(dead_code, reason = "held so that the bytes stay alive")] Arc<dyn Pin>),
    Shared(#[expect(dead_code, reason = "held so that the bytes stay alive")] ErasedHandle),
}

/// Immutable bytes with their owner. Dereferences to `[u8]`.
///
/// Holding one keeps its block or memtable in memory; copy out what must live long.
pub struct PinnedSlice {
    ptr: *const u8,
    len: usize,
    owner: Owner,
}

// SAFETY: the bytes are immutable for as long as `owner` lives (contract of `pinned`), and every
// owner is itself Send + Sync, so sharing or moving the slice between threads shares only that.
unsafe impl Send for PinnedSlice {}
// SAFETY: as above.
unsafe impl Sync for PinnedSlice {}

impl PinnedSlice {
    /// Bytes that own themselves.
    pub fn owned(bytes: Vec<u8>) -> Self {
        Self {
            ptr: bytes.as_ptr(),
            len: bytes.len(),
            owner: Owner::Vec(bytes),
        }
    }

    /// The bytes of `bytes` from `start` on, without copying them. `None` when there are fewer.
    pub fn tail(bytes: Vec<u8>, start: usize) -> Option<Self> {
        let tail = bytes.get(start..)?;
        Some(Self {
            ptr: tail.as_ptr(),
            len: tail.len(),
            owner: Owner::Vec(bytes),
        })
    }

    /// `bytes`, kept alive by `owner`.
    ///
    /// # Safety
    /// `bytes` must stay valid and unchanged, at its present address, for as long as `owner` (or
    /// any clone of it) lives.
    pub unsafe fn pinned(owner: Arc<dyn Pin>, bytes: &[u8]) -> Self {
        Self {
            ptr: bytes.as_ptr(),
            len: bytes.len(),
            owner: Owner::Pinned(owner),
        }
    }

    /// The `range` of a shared vector, kept alive by it. `None` when it lies outside.
    pub fn of_vector(buffer: &Arc<Vec<u8>>, range: Range<usize>) -> Option<Self> {
        let bytes = buffer.get(range)?;
        let owner: Arc<dyn Pin> = Arc::<Vec<u8>>::clone(buffer);
        // SAFETY: nobody gets at a vector mutably while a second handle to it lives, and the owner
        // is one.
        Some(unsafe { Self::pinned(owner, bytes) })
    }

    /// The `range` of a shared buffer, kept alive by it. `None` when it lies outside the buffer.
    #[inline]
    pub fn of_shared<M: Send + Sync + 'static>(
        buffer: &SharedBytes<M>,
        range: Range<usize>,
    ) -> Option<Self> {
        let bytes = buffer.bytes().get(range)?;
        Some(Self {
            ptr: bytes.as_ptr(),
            len: bytes.len(),
            // The bytes of a shared buffer stay as and where they are while there is a handle.
            owner: Owner::Shared(buffer.erase()),
        })
    }

    /// Whether the bytes lie in memory that something else shares.
    pub fn is_pinned(&self) -> bool {
        !matches!(self.owner, Owner::Vec(_))
    }

    /// The bytes as a vector; copies only when they are pinned or a tail.
    pub fn into_vec(self) -> Vec<u8> {
        if self.is_pinned() {
            return self.to_vec();
        }
        match self.owner {
            Owner::Vec(mut bytes) => {
                let skipped = bytes.len() - self.len;
                bytes.drain(..skipped);
                bytes
            }
            Owner::Pinned(_) | Owner::Shared(_) => Vec::new(), // Excluded above.
        }
    }
}

impl Deref for PinnedSlice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `ptr` and `len` came from a valid slice whose owner is held by `self` and whose
        // bytes do not move or change while the owner lives. A `Vec`'s buffer stays where it is
        // when the `Vec` itself moves, and `self` never touches it.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

impl AsRef<[u8]> for PinnedSlice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for PinnedSlice {
    fn from(bytes: Vec<u8>) -> Self {
        Self::owned(bytes)
    }
}

impl fmt::Debug for PinnedSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedSlice({:?})", &**self)
    }
}

impl PartialEq for PinnedSlice {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for PinnedSlice {}

impl PartialEq<[u8]> for PinnedSlice {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_bytes_outlive_the_handle_they_came_from() {
        let buffer = SharedBytes::new(b"hello world", ());
        let slice = PinnedSlice::of_shared(&buffer, 6..11).unwrap();
        drop(buffer);
        assert_eq!(&*slice, b"world");
        assert!(slice.is_pinned());
        assert_eq!(slice.into_vec(), b"world");
    }

    #[test]
    fn owned_bytes_survive_moves() {
        let slice = PinnedSlice::owned(b"abc".to_vec());
        let moved = Box::new(slice);
        assert_eq!(&**moved, b"abc");
        assert_eq!(moved.into_vec(), b"abc");
    }

    #[test]
    fn the_tail_of_a_vector_is_handed_out_where_it_lies() {
        let bytes = b"header value".to_vec();
        let place = bytes[7..].as_ptr();
        let slice = PinnedSlice::tail(bytes, 7).unwrap();
        assert_eq!((slice.as_ptr(), &*slice), (place, &b"value"[..]));
        assert_eq!(slice.into_vec(), b"value");
        assert!(PinnedSlice::tail(b"ab".to_vec(), 3).is_none());
    }
}
