//! A connection that a hand has: the socket, and what plain reads ask of its client.

use drumlin_resp::Protocol;

use crate::io::Io;

/// See the module. One thread at a time has it.
#[derive(Debug)]
pub(crate) struct Lent {
    pub(super) id: u64,
    pub(super) io: Io,
    /// Replies that its socket has not taken: it goes home with them.
    pub(super) out: Vec<u8>,
    pub(super) db: u16,
    pub(super) protocol: Protocol,
    /// The newest command that a hand ran, and the second of that, by the wall clock.
    pub(super) last: Option<(&'static str, u64)>,
    /// It goes home because of a command that is the loop's.
    pub(super) wants_loop: bool,
}
