//! Outcomes of reads and writes.

use std::io::IoSlice;

/// The most slices that the system takes in one call.
const SLICES_MAX: usize = 1024;

/// Those of `slices` that one write looks at, and how many bytes they hold.
pub(super) fn taken_at_once<'a, 'b>(slices: &'a [IoSlice<'b>]) -> (&'a [IoSlice<'b>], usize) {
    let slices = slices.get(..SLICES_MAX).unwrap_or(slices);
    (slices, slices.iter().map(|slice| slice.len()).sum())
}

/// The outcome of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// That many bytes, in the front of the buffer. Fewer than its length does not mean that there are no more.
    Bytes(usize),
    /// The peer will send nothing more.
    End,
    /// Nothing has arrived.
    NotNow,
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It took that many bytes from the front.
    Bytes(usize),
    /// There is no room.
    NotNow,
}
