//! Append-only files: the manifest of a multi-part one, and the commands of a part.
//!
//! Redis 7 keeps a directory with a manifest, one base file and the increments since. A base is an RDB file (`.rdb`)
//! or commands; older versions have one file, which may begin with an RDB file. [`begins_as_rdb`] distinguishes
//! them; after it [`Commands`] goes on with [`crate::Reader::rest`].
//!
//! # Cut tails
//!
//! Only the last file of all may be cut, as a killed server leaves it: in the middle of a command, or between MULTI
//! and EXEC. [`Commands::finish`] returns the number of bytes to keep. An earlier file that is cut, and any damage
//! that is not a cut, is an error.

mod commands;
mod manifest;

pub use commands::{Command, Commands, Tail};
pub use manifest::{Manifest, Part};

/// Whether an append-only file that begins with `head` has an RDB file in front. None while fewer than five bytes
/// are there that would all fit.
pub fn begins_as_rdb(head: &[u8]) -> Option<bool> {
    const MAGIC: &[u8] = b"REDIS";
    if head.len() < MAGIC.len() && MAGIC.starts_with(head) {
        return None;
    }
    Some(head.starts_with(MAGIC))
}
