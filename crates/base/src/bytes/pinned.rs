//! The result of a read: bytes that are owned, or pinned in place.
//!
//! A read returns its value in place (in a cached block, in a memtable's arena) and keeps the owner alive, so
//! that no byte is copied. A pin changes a counter of the owner twice, which costs more than copying two
//! cache lines, and makes the readers of one owner contend; so a value of at most [`SMALL_BYTES`] is copied
//! into the [`PinnedSlice`] itself instead.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use super::shared::{ErasedHandle, SharedBytes};
use super::striped_pin::CountedPin;

/// Keeps the memory behind a [`PinnedSlice`] alive.
pub trait Pin: Send + Sync {}
impl<T: Send + Sync> Pin for T {}

/// Values of at most this many bytes are copied instead of pinned.
pub const SMALL_BYTES: usize = 126;

enum Repr {
    /// The first `len` bytes, in the slice itself.
    Small { len: u8, bytes: [u8; SMALL_BYTES] },
    /// Bytes outside the slice, kept alive by their owner.
    Apart {
        ptr: *const u8,
        len: usize,
        owner: Owner,
    },
}

enum Owner {
    Vec(Vec<u8>),
    Pinned(#[expect(dead_code, reason = "held so that the bytes stay alive")] Arc<dyn Pin>),
    Kept(#[expect(dead_code, reason = "held so that the bytes stay alive")] CountedPin),
    Shared(#[expect(dead_code, reason = "held so that the bytes stay alive")] ErasedHandle),
}

/// Immutable bytes with their owner. Dereferences to `[u8]`.
///
/// Holding one keeps its block or memtable in memory, unless the bytes are few; copy out bytes that
/// must live long.
pub struct PinnedSlice {
    repr: Repr,
}

// SAFETY: the bytes are immutable for as long as `owner` lives (contract of `pinned`), and every
// owner is itself Send + Sync, so a slice that is shared or moved between threads shares nothing
// else.
unsafe impl Send for PinnedSlice {}
// SAFETY: as above.
unsafe impl Sync for PinnedSlice {}

impl PinnedSlice {
    /// Bytes that own themselves.
    pub fn owned(bytes: Vec<u8>) -> Self {
        Self::apart(bytes.as_ptr(), bytes.len(), Owner::Vec(bytes))
    }

    /// A copy of `bytes` that needs no memory but the slice's own; `None` when they are too many.
    #[inline]
    pub fn small(bytes: &[u8]) -> Option<Self> {
        let mut space = [0; SMALL_BYTES];
        space.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self {
            repr: Repr::Small {
                len: bytes.len() as u8,
                bytes: space,
            },
        })
    }

    /// Makes this a copy of `bytes` in place, as [`PinnedSlice::small`] does by value: moving a slice that was
    /// just filled stalls store-to-load forwarding. False, with nothing done, when they are too many.
    #[inline]
    pub fn copy_small(&mut self, from: &[u8]) -> bool {
        if from.len() > SMALL_BYTES {
            return false;
        }
        if !matches!(self.repr, Repr::Small { .. }) {
            *self = Self::default();
        }
        if let Repr::Small { len, bytes } = &mut self.repr {
            *len = from.len() as u8;
            let done = copy_ends::<64>(bytes, from) || copy_ends::<32>(bytes, from);
            if let (false, Some(to)) = (done, bytes.get_mut(..from.len())) {
                to.copy_from_slice(from);
            }
        }
        true
    }

    #[inline]
    fn apart(ptr: *const u8, len: usize, owner: Owner) -> Self {
        let repr = Repr::Apart { ptr, len, owner };
        Self { repr }
    }

    /// The bytes of `bytes` from `start` on, without copying them. `None` when there are fewer.
    pub fn tail(bytes: Vec<u8>, start: usize) -> Option<Self> {
        let tail = bytes.get(start..)?;
        let (ptr, len) = (tail.as_ptr(), tail.len());
        Some(Self::apart(ptr, len, Owner::Vec(bytes)))
    }

    /// `bytes`, kept alive by `owner`.
    ///
    /// # Safety
    /// `bytes` must stay valid and unchanged, at its present address, for as long as `owner` (or
    /// any clone of it) lives.
    pub unsafe fn pinned(owner: Arc<dyn Pin>, bytes: &[u8]) -> Self {
        Self::apart(bytes.as_ptr(), bytes.len(), Owner::Pinned(owner))
    }

    /// `bytes`, kept alive by `pin`.
    ///
    /// # Safety
    /// As for [`PinnedSlice::pinned`].
    #[inline]
    pub(super) unsafe fn kept(pin: CountedPin, bytes: &[u8]) -> Self {
        Self::apart(bytes.as_ptr(), bytes.len(), Owner::Kept(pin))
    }

    /// The `range` of a shared vector, kept alive by it. `None` when it is out of bounds.
    pub fn of_vector(buffer: &Arc<Vec<u8>>, range: Range<usize>) -> Option<Self> {
        let bytes = buffer.get(range)?;
        let owner: Arc<dyn Pin> = Arc::<Vec<u8>>::clone(buffer);
        // SAFETY: nobody gets at a vector mutably while a second handle to it lives, and the owner
        // is one.
        Some(unsafe { Self::pinned(owner, bytes) })
    }

    /// The `range` of a shared buffer, kept alive by it, or copied if it is small. `None` when it is out of
    /// bounds.
    #[inline]
    pub fn of_shared<M: Send + Sync + 'static>(
        buffer: &SharedBytes<M>,
        range: Range<usize>,
    ) -> Option<Self> {
        let bytes = buffer.bytes().get(range)?;
        if let Some(small) = Self::small(bytes) {
            return Some(small);
        }
        // The bytes of a shared buffer stay as and where they are while there is a handle.
        let owner = Owner::Shared(buffer.erase());
        Some(Self::apart(bytes.as_ptr(), bytes.len(), owner))
    }

    /// Whether the bytes are in memory that something else shares.
    pub fn is_pinned(&self) -> bool {
        match &self.repr {
            Repr::Small { .. } => false,
            Repr::Apart { owner, .. } => !matches!(owner, Owner::Vec(_)),
        }
    }

    /// Shows the first `len` bytes only; nothing happens where there are no more. The owner keeps all of them.
    pub fn truncate(&mut self, len: usize) {
        match &mut self.repr {
            Repr::Small { len: own, .. } => *own = usize::from(*own).min(len) as u8,
            Repr::Apart { len: own, .. } => *own = len.min(*own),
        }
    }

    /// The bytes as a vector; copies only when they are small, pinned or a tail.
    pub fn into_vec(self) -> Vec<u8> {
        match self.repr {
            Repr::Apart {
                ptr,
                len,
                owner: Owner::Vec(mut bytes),
            } => {
                let skipped = ptr.addr() - bytes.as_ptr().addr();
                bytes.truncate(skipped + len);
                bytes.drain(..skipped);
                bytes
            }
            _ => self.to_vec(),
        }
    }
}

impl Default for PinnedSlice {
    /// No bytes.
    #[inline]
    fn default() -> Self {
        Self {
            repr: Repr::Small {
                len: 0,
                bytes: [0; SMALL_BYTES],
            },
        }
    }
}

/// Copies `from` to the front of `to` as its first and its last `N` bytes, if that is all of it.
#[inline]
fn copy_ends<const N: usize>(to: &mut [u8; SMALL_BYTES], from: &[u8]) -> bool {
    let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) else {
        return false;
    };
    let at = from.len() - N;
    let fits = at <= N;
    if let (true, Some(begin)) = (fits, to.first_chunk_mut::<N>()) {
        *begin = *first;
    }
    if let (true, Some(end)) = (fits, to.get_mut(at..at + N)) {
        end.copy_from_slice(last);
    }
    fits
}

impl Deref for PinnedSlice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.repr {
            Repr::Small { len, bytes } => bytes.split_at(usize::from(*len)).0,
            // SAFETY: `ptr` and `len` came from a valid slice whose owner is held by `self` and whose
            // bytes do not move or change while the owner lives. A `Vec`'s buffer stays where it is
            // when the `Vec` itself moves, and `self` never touches it.
            Repr::Apart { ptr, len, .. } => unsafe { std::slice::from_raw_parts(*ptr, *len) },
        }
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
    fn copies_in_place_are_whole_whatever_was_there() {
        let bytes: Vec<u8> = (0..130).map(|n| n as u8).collect();
        let mut slice = PinnedSlice::owned(vec![1; 1000]);
        for len in 0..=bytes.len() {
            let from = &bytes[bytes.len() - len..];
            let before = slice.to_vec();
            let is_copied = slice.copy_small(from);
            assert_eq!(is_copied, len <= SMALL_BYTES);
            assert_eq!(&*slice, if is_copied { from } else { &before[..] });
        }
    }

    #[test]
    fn pinned_bytes_outlive_the_handle_they_came_from() {
        for (len, is_pinned) in [(0, false), (126, false), (127, true), (500, true)] {
            let bytes: Vec<u8> = (0..600).map(|n| n as u8).collect();
            let buffer = SharedBytes::new(&bytes, ());
            let slice = PinnedSlice::of_shared(&buffer, 6..6 + len).unwrap();
            drop(buffer);
            assert_eq!(&*slice, &bytes[6..6 + len]);
            assert_eq!(slice.is_pinned(), is_pinned);
            assert_eq!(slice.into_vec(), &bytes[6..6 + len]);
        }
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

    #[test]
    fn a_truncated_slice_shows_its_first_bytes_however_it_holds_them() {
        let bytes: Vec<u8> = (0..200).collect();
        let shared = Arc::new(bytes.clone());
        let all = [
            PinnedSlice::small(&bytes[..100]).unwrap(),
            PinnedSlice::owned(bytes.clone()),
            PinnedSlice::tail([&b"head"[..], &bytes].concat(), 4).unwrap(),
            PinnedSlice::of_vector(&shared, 0..200).unwrap(),
        ];
        for mut slice in all {
            for len in [300, 99, 40, 60] {
                slice.truncate(len);
                assert_eq!(&*slice, &bytes[..slice.len().min(len)]);
            }
            assert_eq!(slice.len(), 40);
            assert_eq!(slice.into_vec(), &bytes[..40]);
        }
    }
}
