//! Bytes on their way from one end of a connection in memory to the other.
//!
//! Invariant: bytes arrive in the order they were written, and the end after all of them.

use std::collections::VecDeque;
use std::time::Duration;

#[derive(Debug)]
struct Piece {
    arrives: Duration,
    bytes: VecDeque<u8>,
}

/// One direction of a connection. Times are the network's.
#[derive(Debug)]
pub(super) struct Stream {
    pieces: VecDeque<Piece>,
    len: usize,
    capacity: usize,
    /// Arrival of the last piece, or of the end.
    last: Duration,
    /// Arrival of the end.
    end: Option<Duration>,
}

impl Stream {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            pieces: VecDeque::new(),
            len: 0,
            capacity,
            last: Duration::ZERO,
            end: None,
        }
    }

    /// The most bytes that may be unread.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The number of bytes that can still be written.
    pub(super) fn room(&self) -> usize {
        self.capacity - self.len
    }

    /// Whether all was read that was written.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sends `bytes`, which arrive at `arrives`, but not before those sent earlier.
    ///
    /// Requires: there is room, and the end was not sent.
    pub(super) fn push(&mut self, bytes: impl Iterator<Item = u8>, arrives: Duration) {
        debug_assert!(self.end.is_none(), "nothing follows the end");
        self.last = self.last.max(arrives);
        let bytes: VecDeque<u8> = bytes.collect();
        self.len += bytes.len();
        debug_assert!(self.len <= self.capacity, "there was room");
        self.pieces.push_back(Piece {
            arrives: self.last,
            bytes,
        });
    }

    /// Sends the end, once.
    pub(super) fn finish(&mut self, arrives: Duration) {
        if self.end.is_none() {
            self.last = self.last.max(arrives);
            self.end = Some(self.last);
        }
    }

    /// Moves bytes that have arrived by `now` to the front of `buffer`, and returns their number.
    pub(super) fn pull(&mut self, buffer: &mut [u8], now: Duration) -> usize {
        let mut count = 0;
        while let Some(piece) = self.pieces.front_mut() {
            if piece.arrives > now || count == buffer.len() {
                break;
            }
            let taken = piece.bytes.len().min(buffer.len() - count);
            let target = &mut buffer[count..count + taken];
            for (to, from) in target.iter_mut().zip(piece.bytes.drain(..taken)) {
                *to = from;
            }
            count += taken;
            if piece.bytes.is_empty() {
                self.pieces.pop_front();
            }
        }
        self.len -= count;
        count
    }

    /// Arrival, past or to come, of the next byte, or else of the end.
    pub(super) fn next_arrival(&self) -> Option<Duration> {
        let front = self.pieces.front().map(|piece| piece.arrives);
        front.or(self.end)
    }

    /// Whether the end is all that is left, and has arrived.
    pub(super) fn is_at_end(&self, now: Duration) -> bool {
        self.pieces.is_empty() && self.end.is_some_and(|end| end <= now)
    }

    /// Loses all but the first `kept` bytes, and the end.
    pub(super) fn cut(&mut self, kept: usize) {
        let mut left = kept.min(self.len);
        self.len = left;
        for piece in &mut self.pieces {
            piece.bytes.truncate(left);
            left -= piece.bytes.len();
        }
        self.pieces.retain(|piece| !piece.bytes.is_empty());
        self.end = None;
    }

    /// Loses the bytes that have not arrived by `now`.
    pub(super) fn cut_late(&mut self, now: Duration) {
        self.pieces.retain(|piece| piece.arrives <= now);
        self.len = self.pieces.iter().map(|piece| piece.bytes.len()).sum();
        self.end = self.end.filter(|end| *end <= now);
    }

    /// The number of bytes that a read would get.
    pub(super) fn arrived(&self, now: Duration) -> usize {
        let pieces = self.pieces.iter();
        let arrived = pieces.take_while(|piece| piece.arrives <= now);
        arrived.map(|piece| piece.bytes.len()).sum()
    }

    /// The number of unread bytes, those on their way included.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn bytes_arrive_in_order_and_the_end_last() {
        let mut stream = Stream::new(10);
        stream.push(b"abcd".iter().copied(), at(9));
        stream.push(b"ef".iter().copied(), at(1));
        stream.finish(at(2));
        let mut buffer = [0; 5];
        assert_eq!(stream.pull(&mut buffer, at(8)), 0);
        assert_eq!((stream.next_arrival(), stream.room()), (Some(at(9)), 4));
        assert_eq!(stream.pull(&mut buffer, at(9)), 5);
        assert_eq!(&buffer, b"abcde");
        assert!(!stream.is_at_end(at(9)));
        assert_eq!(stream.pull(&mut buffer, at(9)), 1);
        assert!(stream.is_empty() && stream.is_at_end(at(9)) && !stream.is_at_end(at(8)));
    }

    #[test]
    fn a_cut_keeps_the_front() {
        let mut stream = Stream::new(10);
        stream.push(b"abcd".iter().copied(), at(0));
        stream.push(b"ef".iter().copied(), at(0));
        stream.finish(at(0));
        stream.cut(5);
        let mut buffer = [0; 9];
        assert_eq!((stream.len(), stream.pull(&mut buffer, at(0))), (5, 5));
        assert_eq!(&buffer[..5], b"abcde");
        assert_eq!(stream.next_arrival(), None);
    }
}
