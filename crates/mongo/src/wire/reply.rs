//! What clients get.

use super::header::{HEADER_BYTES, Header, OP_MSG, OP_QUERY, OP_REPLY};

/// Has the last four bytes of a message be a checksum.
const CHECKSUM: u32 = 1;
/// Another reply follows, to this one.
const MORE_TO_COME: u32 = 2;

/// Marks a reply as one that another one follows, and gives it the number that this one is for.
pub(crate) fn more_to_come(reply: &mut [u8], number: u32) {
    let parts = [(4, number), (HEADER_BYTES, MORE_TO_COME)];
    for (at, value) in parts {
        let place = reply.get_mut(at..).and_then(|it| it.first_chunk_mut::<4>());
        if let Some(place) = place {
            *place = value.to_le_bytes();
        }
    }
}

/// The reply of `document` to the request with that header, in its kind.
pub(crate) fn write(header: Header, document: &[u8], has_checksum: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES + 32 + document.len());
    let opcode = if header.opcode == OP_QUERY {
        OP_REPLY
    } else {
        OP_MSG
    };
    for number in [0, 0, header.request, opcode] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    if opcode == OP_REPLY {
        // Flags (the server can wait), the cursor, its place, how many documents.
        out.extend_from_slice(&8u32.to_le_bytes());
        out.extend_from_slice(&[0; 8 + 4]);
        out.extend_from_slice(&1u32.to_le_bytes());
    } else {
        let flags = if has_checksum { CHECKSUM } else { 0 };
        out.extend_from_slice(&flags.to_le_bytes());
        out.push(0);
    }
    out.extend_from_slice(document);
    let len = out.len() + if has_checksum { 4 } else { 0 };
    if let Some(place) = out.first_chunk_mut::<4>() {
        *place = u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes();
    }
    if has_checksum {
        let sum = drumlin_base::checksum::crc32c(&out);
        out.extend_from_slice(&sum.to_le_bytes());
    }
    out
}
