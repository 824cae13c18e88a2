//! One entry as it is stored in the arena: lengths, internal key, value.
//!
//! ```text
//! short form   u32 key_bytes | value_bytes << 12     then internal key, value
//! long form    u32 0xFFFF_FFFF, u32 key_bytes, u32 value_bytes, then internal key, value
//! ```
//!
//! `key_bytes` counts the internal key (user key and tag). With a header of four bytes the common entry, a 16-byte key
//! and a 100-byte value, takes 128 bytes: two cache lines. An entry is written whole before a pointer to it is
//! published and never changes afterwards, so its bytes are read without atomics.

use std::marker::PhantomData;
use std::ptr::NonNull;

use drumlin_base::key::TAG_BYTES;

use crate::arena::Arena;

/// Bits of the short header that hold the key's length.
const KEY_BITS: u32 = 12;
/// Marks the long form; a short form never has all bits set.
const LONG_FORM: u32 = u32::MAX;
const SHORT_BYTES: usize = 4;
const LONG_BYTES: usize = 12;

/// The address of one entry. `'a` is a time for which its arena is alive.
///
/// Invariant: points at bytes written by [`Entry::write`], in an arena that is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    start: NonNull<u8>,
    arena: PhantomData<&'a [u8]>,
}

/// An entry taken apart: pointers and lengths.
#[derive(Clone, Copy)]
struct Parts {
    key: *const u8,
    key_bytes: usize,
    value_bytes: usize,
}

impl<'a> Entry<'a> {
    /// Writes an entry into `arena`.
    ///
    /// Requires: key and value within the limits of `drumlin_base::limits`.
    pub(crate) fn write(arena: &'a Arena, user_key: &[u8], tag: u64, value: &[u8]) -> Self {
        let key_bytes = user_key.len() + TAG_BYTES;
        let short = key_bytes < (1 << KEY_BITS) - 1 && value.len() < (1 << (32 - KEY_BITS));
        let header = if short { SHORT_BYTES } else { LONG_BYTES };
        let start = arena.allocate(header + key_bytes + value.len());
        let mut out = Cursor { at: start };
        if short {
            let packed = key_bytes as u32 | (value.len() as u32) << KEY_BITS;
            out.put(&packed.to_le_bytes());
        } else {
            let length = |bytes| u32::try_from(bytes).expect("limits keep lengths below 4 GiB");
            out.put(&LONG_FORM.to_le_bytes());
            out.put(&length(key_bytes).to_le_bytes());
            out.put(&length(value.len()).to_le_bytes());
        }
        out.put(user_key);
        out.put(&tag.to_le_bytes());
        out.put(value);
        let entry = Self {
            start,
            arena: PhantomData,
        };
        let end = start.as_ptr().addr() + header + key_bytes + value.len();
        debug_assert_eq!(
            out.at.as_ptr().addr(),
            end,
            "all of the allocation is written"
        );
        debug_assert_eq!(
            entry.user_key_and_tag(),
            (user_key, tag),
            "the key reads back"
        );
        debug_assert_eq!(entry.value(), value, "the value reads back");
        entry
    }

    /// The entry `pointer` leads to; `None` for null.
    ///
    /// # Safety
    /// `pointer` must be null or come from [`Entry::pointer`], of an entry whose arena is alive for
    /// `'a` and whose writing happens before this call.
    #[inline]
    pub(crate) unsafe fn from_pointer(pointer: *mut u8) -> Option<Self> {
        NonNull::new(pointer).map(|start| Self {
            start,
            arena: PhantomData,
        })
    }

    /// The pointer to publish.
    #[inline]
    pub(crate) fn pointer(self) -> *mut u8 {
        self.start.as_ptr()
    }

    #[inline]
    fn word(self, index: usize) -> u32 {
        // SAFETY: callers ask only for words inside the header that is there.
        let at = unsafe { self.start.add(index * size_of::<u32>()) };
        // SAFETY: `at` is inside the header, initialized by `write`; the read needs no alignment.
        u32::from_le(unsafe { at.cast::<u32>().read_unaligned() })
    }

    #[inline]
    fn parts(self) -> Parts {
        let packed = self.word(0);
        debug_assert!(
            packed != 0,
            "an entry has a tag at least, so its header is not zero"
        );
        let (header, key_bytes, value_bytes) = if packed == LONG_FORM {
            (LONG_BYTES, self.word(1) as usize, self.word(2) as usize)
        } else {
            let key_bytes = packed & ((1 << KEY_BITS) - 1);
            (
                SHORT_BYTES,
                key_bytes as usize,
                (packed >> KEY_BITS) as usize,
            )
        };
        // SAFETY: the key follows the header, inside the entry's allocation.
        let key = unsafe { self.start.add(header) }.as_ptr();
        Parts {
            key,
            key_bytes,
            value_bytes,
        }
    }

    /// The internal key.
    #[inline]
    pub(crate) fn key(self) -> &'a [u8] {
        let parts = self.parts();
        // SAFETY: `key_bytes` bytes were written there by `write`, and never change; the arena
        // lives for `'a`.
        unsafe { std::slice::from_raw_parts(parts.key, parts.key_bytes) }
    }

    /// The value.
    #[inline]
    pub(crate) fn value(self) -> &'a [u8] {
        let parts = self.parts();
        // SAFETY: the value follows the key, inside the entry's allocation.
        let value = unsafe { parts.key.add(parts.key_bytes) };
        // SAFETY: `value_bytes` bytes were written there by `write`, and never change; the arena
        // lives for `'a`.
        unsafe { std::slice::from_raw_parts(value, parts.value_bytes) }
    }

    /// User key and tag.
    #[inline]
    pub(crate) fn user_key_and_tag(self) -> (&'a [u8], u64) {
        let key = self.key();
        drumlin_base::key::split_internal(key).expect("`write` stores a tag behind every user key")
    }
}

/// Fills fresh arena memory front to back.
struct Cursor {
    at: NonNull<u8>,
}

impl Cursor {
    /// Requires: the allocation has room for `bytes`.
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        // SAFETY: the allocation was sized for all that is put, it is this thread's alone until
        // it is published, and it cannot overlap a borrowed slice.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at.as_ptr(), bytes.len());
        }
        // SAFETY: stays inside the allocation or one past its end, as above.
        self.at = unsafe { self.at.add(bytes.len()) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn entries_of_every_form_read_back_what_was_written() {
        let arena = Arena::new(1);
        for key_bytes in [0usize, 1, 16, 4085, 4086, 4087, 4088, 5000] {
            for value_bytes in [0usize, 100, (1 << 20) - 1, 1 << 20, 3 << 20] {
                let (key, value) = (vec![7; key_bytes], vec![9; value_bytes]);
                let entry = Entry::write(&arena, &key, 0x1234_5601, &value);
                assert_eq!(entry.user_key_and_tag(), (&key[..], 0x1234_5601));
                assert_eq!(entry.value(), &value[..]);
            }
        }
    }
}
