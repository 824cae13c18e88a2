//! The memory of all clients together: what they sent, what they are to get, and themselves.
//!
//! It is counted as it changes, so that a look at it costs nothing.

/// A client without anything sent or to be sent.
pub(crate) const CLIENT_BYTES: usize = 4 << 10;
/// Beside it, one over TLS.
pub(crate) const TLS_BYTES: usize = 16 << 10;
/// A sum of counts that change.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    bytes: usize,
}

impl Crowd {
    /// Bytes of all.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A part of the sum changes from `counted`, which takes it over, to `now`.
    pub(crate) fn count(&mut self, counted: &mut usize, now: usize) {
        self.bytes = self.bytes - *counted + now;
        *counted = now;
    }
}
