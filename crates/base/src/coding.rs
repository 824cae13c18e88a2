//! Little-endian fixed and variable-length integers, as LevelDB and RocksDB write them.
//!
//! A [`Reader`] walks untrusted bytes: each step returns `None` past the end instead of panicking.

/// Longest varint of 32 bits.
pub const VARINT32_BYTES_MAX: usize = 5;
/// Longest varint of 64 bits.
pub const VARINT64_BYTES_MAX: usize = 10;

/// Appends `value` as four little-endian bytes.
#[inline]
pub fn put_fixed32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends `value` as eight little-endian bytes.
#[inline]
pub fn put_fixed64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends `value` as a varint of at most five bytes.
#[inline]
pub fn put_varint32(out: &mut Vec<u8>, value: u32) {
    put_varint64(out, u64::from(value));
}

/// Appends `value` as a varint of at most ten bytes: seven bits a byte, lowest first, the high bit
/// set on all but the last.
#[inline]
pub fn put_varint64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the length of `bytes` as a varint, then `bytes`.
///
/// # Panics
/// When `bytes` is 4 GiB or longer; callers check their limits first.
#[inline]
pub fn put_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u32::try_from(bytes.len()).expect("limits keep every slice below 4 GiB");
    put_varint32(out, len);
    out.extend_from_slice(bytes);
}

/// Bytes [`put_varint64`] takes for `value`.
#[inline]
pub const fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Maps signed to unsigned so that small magnitudes stay short.
#[inline]
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Undoes [`zigzag`].
#[inline]
pub const fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// Decodes a varint of at most 32 bits at `at`; the value and the offset past it.
#[inline]
pub fn varint32_at(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((u32::from(first), at + 1));
    }
    let (value, next) = varint64_at(bytes, at)?;
    if next - at > VARINT32_BYTES_MAX {
        return None;
    }
    Some((u32::try_from(value).ok()?, next))
}

/// Decodes a varint of at most 64 bits at `at`; the value and the offset past it.
#[inline]
pub fn varint64_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (index, &byte) in bytes.get(at..)?.iter().take(VARINT64_BYTES_MAX).enumerate() {
        let bits = u64::from(byte & 0x7F);
        let shift = 7 * index as u32;
        if shift == 63 && bits > 1 {
            return None; // More than 64 bits.
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some((value, at + index + 1));
        }
    }
    None
}

/// The `u32` stored little-endian at `at`.
#[inline]
pub fn fixed32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let end = at.checked_add(4)?;
    bytes.get(at..end)?.try_into().ok().map(u32::from_le_bytes)
}

/// The `u64` stored little-endian at `at`.
#[inline]
pub fn fixed64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let end = at.checked_add(8)?;
    bytes.get(at..end)?.try_into().ok().map(u64::from_le_bytes)
}

/// Walks untrusted bytes front to back.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// The next `n` bytes.
    #[inline]
    pub fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(taken)
    }

    /// Four bytes, little-endian.
    #[inline]
    pub fn fixed32(&mut self) -> Option<u32> {
        let (taken, rest) = self.rest.split_first_chunk::<4>()?;
        self.rest = rest;
        Some(u32::from_le_bytes(*taken))
    }

    /// Eight bytes, little-endian.
    #[inline]
    pub fn fixed64(&mut self) -> Option<u64> {
        let (taken, rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*taken))
    }

    /// A varint of at most 32 bits.
    #[inline]
    pub fn varint32(&mut self) -> Option<u32> {
        let (value, next) = varint32_at(self.rest, 0)?;
        self.rest = self.rest.get(next..)?;
        Some(value)
    }

    /// A varint of at most 64 bits.
    #[inline]
    pub fn varint64(&mut self) -> Option<u64> {
        let (value, next) = varint64_at(self.rest, 0)?;
        self.rest = self.rest.get(next..)?;
        Some(value)
    }

    /// A length-prefixed slice.
    #[inline]
    pub fn slice(&mut self) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let len = ahead.varint32()?;
        let taken = ahead.bytes(len as usize)?;
        *self = ahead;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_at_every_length() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut out = Vec::new();
                put_varint64(&mut out, value);
                assert_eq!(out.len(), varint_len(value));
                assert_eq!(varint64_at(&out, 0), Some((value, out.len())));
                let short = &out[..out.len() - 1];
                assert_eq!(varint64_at(short, 0), None, "a cut varint is refused");
            }
        }
    }

    #[test]
    fn overlong_and_oversized_varints_are_refused() {
        assert_eq!(varint64_at(&[0xFF; 11], 0), None);
        let mut too_big = vec![0xFF; 9];
        too_big.push(0x02);
        assert_eq!(varint64_at(&too_big, 0), None);
        assert_eq!(varint32_at(&[0xFF, 0xFF, 0xFF, 0xFF, 0x1F], 0), None);
        assert_eq!(
            varint32_at(&[0xFF, 0xFF, 0xFF, 0xFF, 0x0F], 0),
            Some((u32::MAX, 5))
        );
    }

    #[test]
    fn zigzag_round_trips() {
        for value in [0, 1, -1, 63, -64, i64::MAX, i64::MIN] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
    }

    #[test]
    fn a_reader_never_reads_past_the_end() {
        let mut reader = Reader::new(&[5, b'a', b'b']);
        assert_eq!(reader.slice(), None);
        assert_eq!(
            reader.rest(),
            &[5, b'a', b'b'],
            "a failed read consumes nothing"
        );
        assert_eq!(reader.bytes(3), Some(&[5, b'a', b'b'][..]));
        assert_eq!(reader.u8(), None);
        assert_eq!(reader.fixed32(), None);
    }
}
