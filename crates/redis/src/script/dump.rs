//! All libraries as one payload: FUNCTION DUMP and FUNCTION RESTORE.

use drumlin_rdb::crc64::crc64;
use drumlin_rdb::lzf;

use super::library::Libraries;

/// In front of each library, as in RDB files; and the one of release candidates.
const FUNCTION: u8 = 245;
const FUNCTION_UNRELEASED: u8 = 246;
/// The version of RDB whose payloads Redis 7.0 writes, the newest that it reads.
const VERSION: u16 = 10;
/// Version and checksum, at the end.
const TAIL_BYTES: usize = 10;
/// Longest library that a payload may hold.
const CODE_BYTES_MAX: usize = 64 << 20;

/// The payload of all libraries.
pub(crate) fn dump(libraries: &Libraries) -> Vec<u8> {
    let mut out = Vec::new();
    for library in libraries.all() {
        out.push(FUNCTION);
        let len = library.code.len();
        match len {
            0..64 => out.push(len as u8),
            64..16_384 => out.extend([0x40 | (len >> 8) as u8, len as u8]),
            _ => {
                out.push(0x80);
                out.extend((len as u32).to_be_bytes());
            }
        }
        out.extend_from_slice(&library.code);
    }
    out.extend(VERSION.to_le_bytes());
    let sum = crc64(&out);
    out.extend(sum.to_le_bytes());
    out
}

/// The codes of the libraries in a payload.
///
/// # Errors
/// The error's text.
pub(crate) fn restore(payload: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    const WRONG: &str = "DUMP payload version or checksum are wrong";
    let end = payload.len().checked_sub(TAIL_BYTES).ok_or(WRONG)?;
    let (body, tail) = payload.split_at_checked(end).ok_or(WRONG)?;
    let (version, sum) = tail.split_first_chunk::<2>().ok_or(WRONG)?;
    let signed = payload.get(..end + 2).unwrap_or_default();
    // As Redis: a sum of 0 is not compared.
    let is_sound = sum == [0; 8] || sum == crc64(signed).to_le_bytes();
    if u16::from_le_bytes(*version) > VERSION || !is_sound {
        return Err(WRONG.into());
    }
    let mut codes = Vec::new();
    let mut rest = body;
    while let Some((kind, after)) = rest.split_first() {
        match *kind {
            FUNCTION => {}
            FUNCTION_UNRELEASED => return Err("Pre-release function format not supported.".into()),
            _ => return Err("given type is not a function".into()),
        }
        rest = after;
        let code = string(&mut rest).ok_or("Failed loading library code")?;
        codes.push(code);
    }
    Ok(codes)
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(taken)
}

fn number(rest: &mut &[u8], len: usize) -> Option<usize> {
    let bytes = take(rest, len)?;
    let number = bytes
        .iter()
        .fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    usize::try_from(number).ok()
}

fn length(rest: &mut &[u8]) -> Option<usize> {
    let first = number(rest, 1)?;
    match first >> 6 {
        0 => Some(first),
        1 => Some((first & 0x3f) << 8 | number(rest, 1)?),
        _ if first == 0x80 => number(rest, 4),
        _ if first == 0x81 => number(rest, 8),
        _ => None,
    }
}

fn string(rest: &mut &[u8]) -> Option<Vec<u8>> {
    const COMPRESSED: u8 = 0xc3;
    if rest.first() != Some(&COMPRESSED) {
        let len = length(rest)?;
        return take(rest, len).map(<[u8]>::to_vec);
    }
    take(rest, 1)?;
    let (packed, len) = (length(rest)?, length(rest)?);
    let packed = take(rest, packed)?;
    let fits = len <= CODE_BYTES_MAX && len <= packed.len().saturating_mul(lzf::RATIO_MAX);
    fits.then(|| lzf::decompress(packed, len).ok()).flatten()
}
