//! The record at the end of a log that one bit, turned back, makes whole.
//!
//! One wrong bit has two causes. A medium rotted: then the record was written, perhaps synced and
//! promised, and must not be dropped without a word. Or a write was torn over the bytes of the log
//! that had the file before, and those differed from the new ones in that bit alone: then nothing
//! was promised, and refusing the directory would be wrong. Nobody can tell which; but in either
//! case all bits but this one are the writer's, so the record with the bit turned back is the one
//! that was written. Keeping it is right for both: synced writes are not lost, and unsynced ones may
//! be there.
//!
//! A third cause must be unlikely: a write torn in many bits of which, by chance, one more turned over
//! has the same checksum. Each bit tried has a chance of 2^-32, so no more than [`MENDED_BYTES_MAX`]
//! bytes are tried: one such write in a million at most, and the caller also asks whether the record
//! can be decoded and goes on where the one before ended. A longer record is refused as before.
//! So is one without a log number: where no log had the file before, unwritten bytes are zeros,
//! which [`super::bitflip::is_unwritten`] knows.

use super::fragment::{Found, Place, parse};

/// Most bytes of a fragment that is mended: 4,096 bits have together a chance of 2^-20.
pub(super) const MENDED_BYTES_MAX: usize = 512;

/// A record whose one wrong bit was turned back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// The appended bytes.
    pub payload: Vec<u8>,
    /// Where in the file the record begins.
    pub offset: u64,
    /// Where in the file it ends.
    pub end: u64,
}

/// The record whose last fragment is at the front of `rest`, the rest of a block at `offset`, with
/// one bit turned back; `None` unless that makes it a short enough fragment of the log `log_number`.
/// `begun` holds the earlier part of the record: where it began, and its bytes.
pub(super) fn mend(
    rest: &[u8],
    offset: u64,
    log_number: u32,
    begun: Option<(u64, &[u8])>,
) -> Option<Mended> {
    let ends = match begun {
        None => Place::Full,
        Some(_) => Place::Last,
    };
    let (begun_at, front) = begun.unwrap_or((offset, &[]));
    let mut trial = rest.get(..rest.len().min(MENDED_BYTES_MAX))?.to_vec();
    for at in 0..trial.len() {
        for bit in 0..8u8 {
            *trial.get_mut(at)? ^= 1 << bit;
            if let Found::Fragment {
                place,
                recyclable: true,
                header,
                size,
            } = parse(&trial, log_number, false)
                && place == ends
            {
                return Some(Mended {
                    payload: [front, trial.get(header..size)?].concat(),
                    offset: begun_at,
                    end: offset + size as u64,
                });
            }
            *trial.get_mut(at)? ^= 1 << bit;
        }
    }
    None
}
