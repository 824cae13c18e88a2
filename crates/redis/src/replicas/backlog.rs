//! The newest part of the stream.

use std::collections::VecDeque;

/// Bytes of a piece. All are full but the last.
const PIECE_BYTES: usize = 64 << 10;

/// See the module. An offset is the number of bytes of the stream before a place.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    pieces: VecDeque<Vec<u8>>,
    /// The offset of the first byte that is here, and of the next one that will be.
    first: u64,
    end: u64,
}

impl Backlog {
    /// Forgets all bytes; the next one has the offset `at`.
    pub(crate) fn restart(&mut self, at: u64) {
        self.pieces = VecDeque::new();
        self.first = at;
        self.end = at;
    }

    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.len() * PIECE_BYTES
    }

    /// Whether the stream can be read from `offset` on.
    pub(crate) fn has(&self, offset: u64) -> bool {
        (self.first..=self.end).contains(&offset)
    }

    /// Adds the next bytes.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        self.end += bytes.len() as u64;
        while !bytes.is_empty() {
            let room = match self.pieces.back() {
                Some(last) => PIECE_BYTES.saturating_sub(last.len()),
                None => 0,
            };
            if room == 0 {
                self.pieces.push_back(Vec::with_capacity(PIECE_BYTES));
                continue;
            }
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            if let Some(last) = self.pieces.back_mut() {
                last.extend_from_slice(now);
            }
            bytes = later;
        }
    }

    /// Appends up to about `most` bytes from `offset` on to `out`; how many.
    pub(crate) fn read(&self, offset: u64, most: usize, out: &mut Vec<u8>) -> usize {
        let from = usize::try_from(offset.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let (mut piece, mut at) = (from / PIECE_BYTES, from % PIECE_BYTES);
        let mut read = 0;
        while read < most
            && let Some(rest) = self.pieces.get(piece).and_then(|it| it.get(at..))
            && !rest.is_empty()
        {
            out.extend_from_slice(rest);
            read += rest.len();
            (piece, at) = (piece + 1, 0);
        }
        read
    }

    /// Forgets what is older than the newest `kept` bytes and before `needed`, in whole pieces.
    pub(crate) fn trim(&mut self, kept: u64, needed: u64) {
        let until = needed.min(self.end.saturating_sub(kept));
        while self.first + PIECE_BYTES as u64 <= until && self.pieces.len() > 1 {
            self.pieces.pop_front();
            self.first += PIECE_BYTES as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: whatever is kept is read as it was pushed. Method: pushes of all sizes, trims, and reads from every kept place.
    #[test]
    fn the_newest_bytes_are_read_as_they_were_pushed() {
        let mut backlog = Backlog::default();
        backlog.restart(1_000);
        let mut all = Vec::new();
        for size in [0, 1, 70_000, PIECE_BYTES, 3, 200_000, 5] {
            let bytes: Vec<u8> = (0..size).map(|at| ((all.len() + at) % 251) as u8).collect();
            all.extend_from_slice(&bytes);
            backlog.push(&bytes);
        }
        assert_eq!(backlog.end(), 1_000 + all.len() as u64);
        backlog.trim(100_000, u64::MAX);
        assert!(backlog.has(backlog.end() - 100_000) && !backlog.has(1_000));
        for at in (backlog.first()..=backlog.end()).step_by(997) {
            let mut out = Vec::new();
            while backlog.read(at + out.len() as u64, 10, &mut out) > 0 {}
            assert_eq!(out, all[(at - 1_000) as usize..]);
        }
        assert!(!backlog.has(backlog.end() + 1));
        backlog.trim(0, backlog.first());
        assert!(backlog.has(backlog.end() - 100_000), "a replica needs it");
    }
}
