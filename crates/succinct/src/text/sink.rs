//! Where decoded bytes go, and how many may.

use drumlin_base::{Error, Result};

/// Bytes a decoder may write without asking again.
pub(crate) const ROOM_BYTES: usize = 128;
/// Expected bytes that room is made for at once. Beyond, the vector grows with the decoded bytes:
/// the expected size of a large code, a guess from the sample, may be gigabytes too much.
const AT_ONCE_MAX: usize = 1 << 20;

/// Appends to a vector in steps: room is made first, then bytes are written in whole rows, then
/// counted. Until [`Sink::finish`] the vector is longer than the bytes written.
///
/// A sink that is dropped without it leaves meaningless bytes at the vector's end; the caller cuts
/// them off.
#[derive(Debug)]
pub struct Sink<'a> {
    out: &'a mut Vec<u8>,
    at: usize,
    limit: usize,
}

impl<'a> Sink<'a> {
    /// A sink that appends at most `bytes_max` bytes to `out`, probably about `expected`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, expected: usize, bytes_max: usize) -> Self {
        let at = out.len();
        let expected = expected.min(bytes_max).min(AT_ONCE_MAX);
        out.resize(at + expected + ROOM_BYTES, 0);
        Self {
            at,
            limit: at.saturating_add(bytes_max),
            out,
        }
    }

    /// At least [`ROOM_BYTES`] bytes to write to, from the first that is not counted yet.
    ///
    /// # Errors
    /// `Corruption` when more was written than may be.
    #[inline]
    pub(crate) fn room(&mut self) -> Result<&mut [u8]> {
        if self.out.len() - self.at < ROOM_BYTES {
            self.grow(ROOM_BYTES)?;
        }
        Ok(&mut self.out[self.at..])
    }

    /// Counts `bytes` more as written. Requires: they were written to the room that [`Sink::room`]
    /// returned.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        debug_assert!(self.at <= self.out.len());
    }

    /// Where in the vector the next byte goes.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The bytes written from `place` on.
    #[inline]
    pub(crate) fn written(&self, place: usize) -> &[u8] {
        self.out.get(place..self.at).unwrap_or_default()
    }

    /// Writes to four bytes at `place` how many bytes were written since, those four counted or not.
    ///
    /// # Errors
    /// `Corruption` when they are too many for four bytes.
    #[inline]
    pub(crate) fn count(&mut self, place: usize, counts_itself: bool) -> Result<()> {
        let written = self.at.saturating_sub(place);
        let counted = if counts_itself {
            written
        } else {
            written.saturating_sub(4)
        };
        let counted = u32::try_from(counted).map_err(|_| too_long())?;
        if let Some(room) = self.out.get_mut(place..place + 4) {
            room.copy_from_slice(&counted.to_le_bytes());
        }
        Ok(())
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    /// As [`Sink::finish`].
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) -> Result<()> {
        if self.out.len() - self.at < bytes.len() {
            self.grow(bytes.len())?;
        }
        let end = self.at + bytes.len();
        self.out[self.at..end].copy_from_slice(bytes);
        self.at = end;
        Ok(())
    }

    /// Makes the vector long enough for `bytes` more.
    #[cold]
    fn grow(&mut self, bytes: usize) -> Result<()> {
        let needed = self.at + bytes;
        if needed > self.limit.saturating_add(ROOM_BYTES) {
            return Err(too_long());
        }
        let doubled = self.out.len().saturating_mul(2);
        let len = doubled.min(self.limit.saturating_add(ROOM_BYTES));
        let len = len.max(needed);
        let more = len.saturating_sub(self.out.len());
        self.out
            .try_reserve(more)
            .map_err(|_| Error::no_memory(more))?;
        self.out.resize(len, 0);
        Ok(())
    }

    /// Cuts the vector to the bytes written.
    ///
    /// # Errors
    /// `Corruption` when that is more than the bound.
    #[inline]
    pub fn finish(self) -> Result<()> {
        if self.at > self.limit {
            return Err(too_long());
        }
        self.out.truncate(self.at);
        Ok(())
    }
}

#[cold]
fn too_long() -> Error {
    Error::corruption("a code decodes to more bytes than one of its length may")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_takes_no_memory_before_it_comes() {
        let mut out = Vec::new();
        let sink = Sink::new(&mut out, 1 << 30, 1 << 40);
        assert!(sink.out.capacity() <= 4 << 20);
        let mut sink = Sink::new(&mut out, 1 << 30, 1 << 40);
        let piece = [7; 100_000];
        (0..50).for_each(|_| sink.extend(&piece).expect("far from the limit"));
        assert!(sink.out.capacity() <= 16 << 20);
        sink.finish().expect("far from the limit");
        assert!(out.len() >= 5_000_000 && out.ends_with(&piece));
    }

    #[test]
    fn appends_up_to_its_limit() {
        let mut out = b"before".to_vec();
        let mut sink = Sink::new(&mut out, 0, 1000);
        for _ in 0..100 {
            sink.extend(b"ten bytes.").expect("within the limit");
        }
        sink.finish().expect("just the limit");
        assert_eq!(out.len(), 1006);
        let mut sink = Sink::new(&mut out, 10, 1000);
        let outcome = (0..1000).try_for_each(|_| sink.extend(b"ten bytes."));
        assert!(outcome.is_err());
        assert!(out.len() < 4000, "no memory far past the limit");
    }
}
