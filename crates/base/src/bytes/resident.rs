//! A whole file's bytes in memory, mapped or copied, and values pinned in them.
//!
//! All values of a file share one owner, so pins are counted as a [`StripedPin`] counts them: each thread on
//! a line of its own.
//!
//! Thread safety: the bytes are immutable; pins are taken and dropped by any thread. The memory is freed with
//! the last of its pins and the [`ResidentBytes`], on whichever thread that happens.

use std::fmt;
use std::ops::Range;

use super::pages::Pages;
use super::pinned::PinnedSlice;
use super::prefetch::prefetch;
use super::striped_pin::StripedPin;

/// Memory whose bytes neither move nor change.
///
/// # Safety
/// As long as the value lives, wherever it is moved, `stable_bytes` gives the same address and
/// length, and nobody changes the bytes.
pub unsafe trait StableBytes: Send + Sync + 'static {
    /// The bytes.
    fn stable_bytes(&self) -> &[u8];
    /// Bytes of this process's own memory that it takes; none for a mapping of the system's page
    /// cache.
    fn own_bytes(&self) -> usize;
}

/// Immutable bytes of a file, all of them in memory.
pub struct ResidentBytes {
    start: *const u8,
    len: usize,
    memory: StripedPin<Box<dyn StableBytes>>,
}

// SAFETY: the bytes are immutable while the memory lives, which is held here and is Send + Sync.
unsafe impl Send for ResidentBytes {}
// SAFETY: as above.
unsafe impl Sync for ResidentBytes {}

impl ResidentBytes {
    /// The bytes of `memory`.
    pub fn new(memory: impl StableBytes) -> Self {
        let memory: StripedPin<Box<dyn StableBytes>> = StripedPin::new(Box::new(memory));
        let bytes = memory.stable_bytes();
        Self {
            start: bytes.as_ptr(),
            len: bytes.len(),
            memory,
        }
    }

    /// `len` bytes of own memory, on huge pages where the system has them, filled by `fill`. `None`
    /// when there is no memory.
    ///
    /// # Errors
    /// Those of `fill`.
    pub fn filled<E>(
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Option<Result<Self, E>> {
        let mut pages = Pages::map(len)?;
        Some(fill(pages.bytes_mut()).map(|()| Self::new(pages)))
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: address and length are those of the memory, which neither moves nor changes
        // (contract of `StableBytes`) while it is held here.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    /// Bytes of this process's own memory that the file takes.
    pub fn own_bytes(&self) -> usize {
        self.memory.own_bytes()
    }

    /// The `range`, with the memory kept alive, or copied if it is small. `None` when it is out of bounds.
    #[inline]
    pub fn pin(&self, range: Range<usize>) -> Option<PinnedSlice> {
        let bytes = self.bytes().get(range)?;
        // SAFETY: the bytes are in the memory that is kept, which neither moves nor changes.
        Some(unsafe { self.memory.slice(bytes) })
    }

    /// Prefetches `lines` cache lines from the one of byte `at` on.
    #[inline]
    pub fn prefetch(&self, at: usize, lines: usize) {
        prefetch(self.start.wrapping_add(at), lines);
    }
}

impl fmt::Debug for ResidentBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResidentBytes({} bytes)", self.len)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn counting(len: usize) -> ResidentBytes {
        let made = ResidentBytes::filled(len, |bytes| {
            for (at, byte) in bytes.iter_mut().enumerate() {
                *byte = at as u8;
            }
            Ok::<(), ()>(())
        });
        made.expect("there is memory").expect("filling cannot fail")
    }

    #[test]
    fn pins_keep_the_memory_whoever_took_them() {
        for len in [1, 4096, (2 << 20) + 17] {
            let bytes = counting(len);
            assert_eq!(bytes.bytes().len(), len);
            assert!(bytes.own_bytes() >= len);
            let last = bytes.pin(len - 1..len).unwrap();
            let others: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..3)
                    .map(|_| scope.spawn(|| bytes.pin(0..len).unwrap()))
                    .collect();
                threads.into_iter().map(|t| t.join().unwrap()).collect()
            });
            assert!(bytes.pin(len..len + 1).is_none());
            drop(bytes);
            assert_eq!(*last, [(len - 1) as u8]);
            for pin in others {
                assert!(pin.iter().enumerate().all(|(at, byte)| *byte == at as u8));
            }
        }
    }

    #[test]
    fn an_error_while_filling_is_told_and_nothing_kept() {
        let made = ResidentBytes::filled(100, |_| Err("no"));
        assert_eq!(made.unwrap().unwrap_err(), "no");
        let none = ResidentBytes::filled(0, |_| Ok::<(), ()>(()))
            .unwrap()
            .unwrap();
        assert!(none.bytes().is_empty());
    }
}
