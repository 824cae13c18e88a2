//! One fragment from the bytes of a block. Nothing is believed before its CRC fits.

use drumlin_base::Error;
use drumlin_base::checksum::{crc32c, mask};
use drumlin_base::coding::{Reader, fixed32_at};

use super::{COVERED_FROM, HEADER_BYTES, RECYCLABLE_HEADER_BYTES};

/// A fragment's place in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Full,
    First,
    Middle,
    Last,
}

/// The fragment, or its absence, at the front of a block's rest.
#[derive(Debug)]
pub(super) enum Found {
    /// A sound fragment: `header` bytes of header, then payload, `size` bytes together.
    Fragment {
        place: Place,
        recyclable: bool,
        header: usize,
        size: usize,
    },
    /// A sound fragment of a type that may be passed over.
    Ignorable { size: usize },
    /// The rest of the block, too short for a fragment.
    Trailer,
    /// Zeros where a header should be.
    Zeros,
    /// A fragment of the log that had the file before.
    OtherLog,
    /// Damage, or the end of the written bytes.
    Bad(&'static str),
    /// A sound fragment that cannot be served.
    NotSupported(Error),
}

/// A header, believed for as long as nothing depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) crc: u32,
    pub(super) length: usize,
    pub(super) kind: u8,
}

impl Header {
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::new(bytes);
        let crc = from.fixed32()?;
        let length = from.bytes(2)?.first_chunk::<2>().copied()?;
        Some(Self {
            crc,
            length: usize::from(u16::from_le_bytes(length)),
            kind: from.u8()?,
        })
    }

    /// Bytes of the whole fragment.
    pub(super) fn size(self) -> usize {
        header_bytes(self.kind) + self.length
    }
}

/// Bytes of the header of a fragment of type `kind`.
pub(super) fn header_bytes(kind: u8) -> usize {
    match kind {
        5..=8 | 11 | 131 => RECYCLABLE_HEADER_BYTES,
        _ => HEADER_BYTES,
    }
}

/// Whether the CRC in the header of `fragment`, a fragment's whole bytes, fits.
pub(super) fn is_sound(fragment: &[u8]) -> bool {
    match (fixed32_at(fragment, 0), fragment.get(COVERED_FROM..)) {
        (Some(stored), Some(covered)) => stored == mask(crc32c(covered)),
        _ => false,
    }
}

/// The fragment at the front of `rest`, the rest of a block. `file_ends` says that nothing
/// follows the block.
pub(super) fn parse(rest: &[u8], log_number: u32, file_ends: bool) -> Found {
    if rest.len() < RECYCLABLE_HEADER_BYTES && rest.iter().all(|&byte| byte == 0) {
        return Found::Trailer;
    }
    let Some(header) = Header::decode(rest) else {
        return match file_ends {
            true => Found::Bad("the file ends inside a header"),
            false => Found::Bad("the end of a block is not zeros"),
        };
    };
    if header.kind == 0 && header.length == 0 {
        return Found::Zeros;
    }
    let header_bytes = header_bytes(header.kind);
    let recyclable = header_bytes == RECYCLABLE_HEADER_BYTES;
    if recyclable && fixed32_at(rest, HEADER_BYTES).is_some_and(|number| number != log_number) {
        return Found::OtherLog;
    }
    let Some(fragment) = rest.get(..header.size()) else {
        return match file_ends {
            true => Found::Bad("the file ends inside a record"),
            false => Found::Bad("a record's length passes the end of its block"),
        };
    };
    if !is_sound(fragment) {
        return Found::Bad("a record's checksum does not fit");
    }
    let size = fragment.len();
    let place = match header.kind {
        1 | 5 => Place::Full,
        2 | 6 => Place::First,
        3 | 7 => Place::Middle,
        4 | 8 => Place::Last,
        0 => return Found::Bad("a record has type 0"),
        9 => return not_supported("compressed WAL records", 9),
        10 | 11 => return not_supported("user-defined timestamp sizes", header.kind),
        128.. => return Found::Ignorable { size },
        other => return not_supported("an unknown record type", other),
    };
    Found::Fragment {
        place,
        recyclable,
        header: header_bytes,
        size,
    }
}

fn not_supported(feature: &str, kind: u8) -> Found {
    let message = format!("the log uses {feature} (record type {kind})");
    Found::NotSupported(Error::not_supported(message))
}
