//! Messages that are compressed. What a length claims is not allocated: bytes are kept as they come out.

use std::io::Read;

use super::header::{HEADER_BYTES, Header, OP_COMPRESSED, OP_MSG};
use super::limits::MESSAGE_BYTES_MAX;

/// How a message is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compressor {
    None,
    Snappy,
    Zlib,
    Zstd,
}

impl Compressor {
    const ALL: [(Self, u8, &'static str); 4] = [
        (Self::None, 0, "noop"),
        (Self::Snappy, 1, "snappy"),
        (Self::Zlib, 2, "zlib"),
        (Self::Zstd, 3, "zstd"),
    ];

    /// Whether a client that offers `name` may use it.
    pub(crate) fn serves(name: &str) -> bool {
        Self::ALL
            .iter()
            .any(|(it, _, known)| *known == name && *it != Self::None)
    }

    fn of(id: u8) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known, _)| *known == id);
        found.map(|(compressor, _, _)| *compressor)
    }

    fn decompress(self, bytes: &[u8], len: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let most = u64::try_from(len).ok()? + 1;
        match self {
            Self::None => out.extend_from_slice(bytes),
            Self::Snappy => {
                // A byte stands for at most 64.
                let is_honest =
                    snap::raw::decompress_len(bytes).ok()? == len && len / 64 <= bytes.len();
                out = is_honest
                    .then(|| snap::raw::Decoder::new().decompress_vec(bytes).ok())
                    .flatten()?;
            }
            Self::Zlib => {
                let reader = flate2::read::ZlibDecoder::new(bytes);
                reader.take(most).read_to_end(&mut out).ok()?;
            }
            Self::Zstd => {
                let reader = zstd::stream::read::Decoder::new(bytes).ok()?;
                reader.take(most).read_to_end(&mut out).ok()?;
            }
        }
        let is_whole = out.len() == len || drumlin_base::bug!("mongo-declared-size-unchecked");
        is_whole.then_some(out)
    }

    fn compress(self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::None => Some(bytes.to_vec()),
            Self::Snappy => snap::raw::Encoder::new().compress_vec(bytes).ok(),
            Self::Zlib => {
                let level = flate2::Compression::default();
                let mut out = Vec::new();
                let mut reader = flate2::read::ZlibEncoder::new(bytes, level);
                reader.read_to_end(&mut out).ok()?;
                Some(out)
            }
            Self::Zstd => zstd::stream::encode_all(bytes, 0).ok(),
        }
    }
}

/// The message that is in a compressed one, with a header of its own, and how it was compressed.
///
/// # Errors
/// A sentence: the connection has to be closed.
pub(crate) fn open(header: Header, bytes: &[u8]) -> Result<(Vec<u8>, Compressor), String> {
    let body = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let number = |at: usize| {
        let bytes = body.get(at..).and_then(|rest| rest.first_chunk::<4>());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let (opcode, len) = (number(0), number(4) as usize);
    // A compressed message in another one would let a few bytes stand for any number.
    if opcode == OP_COMPRESSED {
        return Err("a compressed message within another one".to_owned());
    }
    if len > MESSAGE_BYTES_MAX - HEADER_BYTES {
        return Err(format!("a compressed message of {len} bytes"));
    }
    let id = body.get(8).copied().unwrap_or(u8::MAX);
    let compressor = Compressor::of(id).ok_or_else(|| format!("the unknown compressor {id}"))?;
    let inner = compressor.decompress(body.get(9..).unwrap_or_default(), len);
    let inner = inner.ok_or("a compressed message that is not what it says")?;
    let mut message = Vec::with_capacity(HEADER_BYTES + inner.len());
    let whole = u32::try_from(HEADER_BYTES + inner.len()).unwrap_or(u32::MAX);
    for field in [whole, header.request, 0, opcode] {
        message.extend_from_slice(&field.to_le_bytes());
    }
    message.extend_from_slice(&inner);
    Ok((message, compressor))
}

/// A reply, compressed.
pub(crate) fn close(reply: Vec<u8>, compressor: Compressor) -> Vec<u8> {
    let (Some(head), Some(body)) = (reply.get(..12), reply.get(HEADER_BYTES..)) else {
        return reply;
    };
    let Some(packed) = compressor.compress(body) else {
        return reply;
    };
    let id = Compressor::ALL
        .iter()
        .find(|(known, _, _)| *known == compressor);
    let mut out = Vec::with_capacity(HEADER_BYTES + 9 + packed.len());
    out.extend_from_slice(head);
    for field in [
        OP_COMPRESSED,
        OP_MSG,
        u32::try_from(body.len()).unwrap_or(u32::MAX),
    ] {
        out.extend_from_slice(&field.to_le_bytes());
    }
    out.push(id.map_or(0, |(_, id, _)| *id));
    out.extend_from_slice(&packed);
    let len = u32::try_from(out.len()).unwrap_or(u32::MAX);
    if let Some(place) = out.first_chunk_mut::<4>() {
        *place = len.to_le_bytes();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: &[u8]) -> Vec<u8> {
        let mut out = u32::try_from(16 + body.len())
            .expect("small")
            .to_le_bytes()
            .to_vec();
        for field in [7, 9, OP_MSG] {
            out.extend_from_slice(&u32::to_le_bytes(field));
        }
        [out, body.to_vec()].concat()
    }

    fn header(bytes: &[u8]) -> Header {
        Header::read(bytes).expect("a header").expect("whole")
    }

    #[test]
    fn messages_come_back_as_they_were() {
        let body: Vec<u8> = (0..5000u32).map(|n| (n % 7) as u8).collect();
        let whole = message(&body);
        for (compressor, _, _) in Compressor::ALL {
            let packed = close(whole.clone(), compressor);
            let (inner, by) = open(header(&packed), &packed).expect("a message");
            assert_eq!(by, compressor);
            assert_eq!(inner[16..], whole[16..]);
            assert_eq!(header(&inner).opcode, OP_MSG);
        }
    }

    #[test]
    fn what_is_not_what_it_says_is_refused() {
        for (compressor, _, _) in Compressor::ALL {
            let packed = close(message(&[5; 3000]), compressor);
            // The opcode within, the size, the compressor.
            for (at, value) in [(16, 0xDC), (20, 1), (20, 0xFF), (22, 0xFF), (24, 9)] {
                let mut wrong = packed.clone();
                wrong[at] = value;
                let is_other_opcode = at == 16 && value != (OP_COMPRESSED & 0xFF) as u8;
                assert!(
                    is_other_opcode || open(header(&packed), &wrong).is_err(),
                    "byte {at}"
                );
            }
            if compressor != Compressor::None {
                assert!(open(header(&packed), &packed[..packed.len() - 4]).is_err());
            }
        }
        let nested = close(message(&[0; 40]), Compressor::None);
        let mut nested = close(nested, Compressor::Snappy);
        nested[16..20].copy_from_slice(&OP_COMPRESSED.to_le_bytes());
        assert!(open(header(&nested), &nested).is_err());
    }
}
