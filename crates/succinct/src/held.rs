//! Bytes that are held in memory and read at random: the blocks of a key index, a dictionary.
//!
//! On pages of 4 KiB nearly each read would miss the TLB too, which costs as much as the read itself. So
//! large contents are on huge pages.

use drumlin_base::bytes::{HUGE_PAGE_BYTES, ResidentBytes};
use drumlin_base::{Error, Result};

/// Fewer bytes stay in the allocator's memory: the last huge page is half empty on average.
const HUGE_FROM_BYTES: usize = 4 * HUGE_PAGE_BYTES;

/// Immutable bytes, shared by threads.
#[derive(Debug)]
pub struct HeldBytes(Memory);

#[derive(Debug)]
enum Memory {
    Few(Vec<u8>),
    Many(ResidentBytes),
}

impl HeldBytes {
    /// `len` bytes that `fill` writes; they are zeros before.
    ///
    /// # Errors
    /// Those of `fill`; `Io` when the system gives no memory.
    pub fn filled(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Self> {
        let mut fill = Some(fill);
        if len >= HUGE_FROM_BYTES {
            let many = ResidentBytes::filled(len, |room| match fill.take() {
                Some(fill) => fill(room),
                None => Ok(()),
            });
            if let Some(many) = many {
                return many.map(|many| Self(Memory::Many(many)));
            }
        }
        // Few, or the system has no room for a mapping, so that nothing was filled.
        let mut few = Vec::new();
        few.try_reserve_exact(len)
            .map_err(|_| Error::no_memory(len))?;
        few.resize(len, 0);
        if let Some(fill) = fill {
            fill(&mut few)?;
        }
        Ok(Self(Memory::Few(few)))
    }

    /// The bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.0 {
            Memory::Few(few) => few,
            Memory::Many(many) => many.bytes(),
        }
    }

    /// Bytes of memory they take.
    pub(crate) fn memory(&self) -> usize {
        match &self.0 {
            Memory::Few(few) => few.capacity(),
            Memory::Many(many) => many.own_bytes(),
        }
    }
}

impl From<Vec<u8>> for HeldBytes {
    /// Many bytes are copied to huge pages, where the system has some.
    fn from(mut bytes: Vec<u8>) -> Self {
        if bytes.len() < HUGE_FROM_BYTES {
            bytes.shrink_to_fit();
            return Self(Memory::Few(bytes));
        }
        let copied = Self::filled(bytes.len(), |room| {
            room.copy_from_slice(&bytes);
            Ok(())
        });
        copied.unwrap_or(Self(Memory::Few(bytes)))
    }
}

impl PartialEq for HeldBytes {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for HeldBytes {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_bytes_are_what_was_filled_in() {
        for len in [0, 1000, HUGE_FROM_BYTES + 5] {
            let bytes = HeldBytes::filled(len, |room| {
                assert!(room.iter().all(|&byte| byte == 0));
                room.fill(7);
                Ok(())
            });
            let bytes = bytes.expect("no error");
            assert!(bytes.bytes().len() == len && bytes.bytes().iter().all(|&byte| byte == 7));
            assert!((len..len + HUGE_PAGE_BYTES).contains(&bytes.memory()));
            assert_eq!(HeldBytes::from(vec![7; len]), bytes);
            let failed = HeldBytes::filled(len, |_| Err(Error::corruption("no")));
            assert!(failed.is_err());
        }
        let beyond = HeldBytes::filled(1 << 60, |_| Ok(()));
        assert_eq!(beyond.unwrap_err().kind(), drumlin_base::ErrorKind::Io);
    }
}
