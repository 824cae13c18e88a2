//! The payloads of `DUMP` and `RESTORE`: `type u8 · body · version u16 · CRC-64 of all before`, little-endian.

use drumlin_base::{Error, Result};

use crate::collect::Collector;
use crate::crc64::crc64;
use crate::cursor::{Cursor, Stop};
use crate::decode::body::Body;
use crate::decode::reader::VERSION_READ_MAX;
use crate::encode::{Encoding, Version, write_value};
use crate::lzf::Compressor;
use crate::value::Value;

const CHECKSUM_BYTES: usize = 8;
const VERSION_BYTES: usize = 2;

/// The value in `payload`, which may take about `memory_bytes_max` bytes.
///
/// # Errors
/// Corruption for damage, an empty collection, a name that comes twice or bytes that are left over; NotSupported for
/// newer versions and values of modules; TooLarge for values that take too much memory.
pub fn decode(payload: &[u8], memory_bytes_max: usize) -> Result<Value> {
    let (code, bytes) = sealed(payload)?.split_first().ok_or_else(short)?;
    let mut body = Body::new(*code)?;
    let mut collector = Collector::new(body.kind(), memory_bytes_max);
    let mut input = Cursor::new(bytes, Some(0));
    while !body.is_done() {
        match body.step(&mut input, memory_bytes_max) {
            Ok(item) => item.map_or(Ok(()), |item| collector.push(item))?,
            Err(Stop::Bad(error)) => return Err(error.with_offset(1 + input.taken() as u64)),
            Err(Stop::Short(_)) => return Err(short()),
        }
    }
    if input.taken() != bytes.len() {
        return Err(Error::corruption("a DUMP payload goes on behind its value"));
    }
    let value = collector.finish()?;
    value.ok_or_else(|| Error::corruption("a DUMP payload holds an empty collection"))
}

/// Whether the version of `payload` is read and its checksum fits. Redis tells a client of this apart from other damage.
pub fn is_sealed(payload: &[u8]) -> bool {
    sealed(payload).is_ok()
}

fn short() -> Error {
    Error::corruption("a DUMP payload is too short")
}

/// The type and the value in `payload`, whose version and checksum are right.
fn sealed(payload: &[u8]) -> Result<&[u8]> {
    let (covered, checksum) = payload
        .split_last_chunk::<CHECKSUM_BYTES>()
        .ok_or_else(short)?;
    let (typed, version) = covered
        .split_last_chunk::<VERSION_BYTES>()
        .ok_or_else(short)?;
    let version = u16::from_le_bytes(*version);
    if version > VERSION_READ_MAX {
        let message = format!("version {version} of DUMP payloads is not read");
        return Err(Error::not_supported(message));
    }
    if u64::from_le_bytes(*checksum) != crc64(covered) && !drumlin_base::bug!("dump-crc-unread") {
        return Err(Error::corruption(
            "the checksum of a DUMP payload does not fit",
        ));
    }
    Ok(typed)
}

/// The payload of `value` in `encoding`.
///
/// # Errors
/// InvalidArgument for values that no payload can hold (an empty collection, a NaN), NotSupported for those
/// that its version cannot, TooLarge for an entry of a stream over 4 GiB.
pub fn encode(value: &Value, encoding: &Encoding) -> Result<Vec<u8>> {
    let mut out = vec![0];
    let code = write_value(&mut out, value, encoding, &mut Compressor::new())?;
    if let Some(first) = out.first_mut() {
        *first = code;
    }
    out.extend_from_slice(&encoding.version.number().to_le_bytes());
    let checksum = crc64(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    Ok(out)
}

/// The payload of `value` that the most servers take: of the oldest version that holds all of it, with nothing packed
/// but small sets of integers.
///
/// Everything but streams and hashes with expiring fields is for Redis 6.2 and later. So is a stream whose
/// counters an older version would compute correctly.
///
/// # Errors
/// As [`encode`].
pub fn encode_for_most(value: &Value) -> Result<Vec<u8>> {
    encode(value, &Encoding::plain(Version::oldest_for(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of redis-server 7.0.15 to `SET k 10` and `DUMP k`.
    const TEN: [u8; 13] = [
        0, 0xc0, 10, 10, 0, 0x6e, 0x9f, 0x57, 0x45, 0x0e, 0xae, 0x63, 0xbb,
    ];

    fn sealed(body: &[u8], version: u16) -> Vec<u8> {
        let mut out = [body, &version.to_le_bytes()].concat();
        let checksum = crc64(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    #[test]
    fn a_wrong_checksum_is_found_at_every_bit() {
        let sound = sealed(&[0, 0xc0, 10], 10);
        assert_eq!(decode(&sound, 1000).unwrap(), Value::String(b"10".to_vec()));
        for at in 0..sound.len() {
            for bit in 0..8 {
                let mut damaged = sound.clone();
                damaged[at] ^= 1 << bit;
                assert!(decode(&damaged, 1000).is_err(), "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn a_payload_of_redis_reads_and_is_written_alike() {
        assert_eq!(decode(&TEN, 1000).unwrap(), Value::String(b"10".to_vec()));
        let written = encode(
            &Value::String(b"10".to_vec()),
            &Encoding::plain(Version::V10),
        );
        assert_eq!(written.unwrap(), TEN);
    }

    #[test]
    fn what_redis_refuses_is_refused() {
        let bodies: [(&str, &[u8]); 12] = [
            ("an empty list", &[1, 0]),
            ("a NaN", &[5, 1, 1, b'a', 0, 0, 0, 0, 0, 0, 0xf8, 0x7f]),
            ("a NaN as text", &[3, 1, 1, b'a', 253]),
            ("a member twice", &[2, 2, 1, b'a', 1, b'a']),
            ("a field twice", &[4, 2, 1, b'a', 0, 1, b'a', 0]),
            ("a scored member twice", &[3, 2, 1, b'a', 254, 1, b'a', 255]),
            ("bytes left over", &[0, 1, b'a', 0]),
            ("a cut string", &[0, 2, b'a']),
            (
                "more elements than bytes",
                &[1, 0x81, 1, 0, 0, 0, 0, 0, 0, 0],
            ),
            ("an empty node of a list", &[18, 1, 1, 0]),
            ("a node of an unknown kind", &[18, 1, 3, 1, b'a']),
            ("no type", &[8, 0]),
        ];
        for (what, body) in bodies {
            let error = decode(&sealed(body, 10), 1 << 20).unwrap_err();
            assert!(error.is_corruption(), "{what}: {error}");
        }
        assert!(
            decode(&sealed(&[0, 0xc0, 10], 13), 1000).is_err(),
            "a newer version"
        );
        assert!(decode(&[], 1000).is_err());
    }
}
