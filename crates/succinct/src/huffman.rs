//! Canonical Huffman codes whose symbols are ranks.
//!
//! Symbols are numbered by falling frequency, so lengths never fall from one symbol to the next, and
//! the number of codes of each length determines the code. Only these numbers are stored. Codes of one
//! length are consecutive numbers in symbol order.
//!
//! Decoding relies on the same order. As lengths rise with the code's value, all codes that begin
//! with the same twelve bits have one length, except at most one such prefix at the end of each
//! length. So a table of 4096 lengths, which stays in the first cache, gives the length even of
//! codes of 20 bits, and symbol = code + a constant of its length. The few prefixes with two lengths
//! compare further.
//!
//! A code is complete: every row of bits decodes. Its last code is all ones and at least eight bits
//! long ([`Code::new`] requires it). So the up to seven ones that fill a row's last byte are no whole
//! code, and a text needs no end mark.

use drumlin_base::coding::{Reader, put_varint32};
use drumlin_base::{Error, Result};

/// The longest code.
pub const LENGTH_MAX: usize = 20;
/// The shortest that the longest code of a set may be; see the file's text.
const LAST_LENGTH_MIN: usize = 8;
/// Bits that the table of lengths looks at.
const PREFIX_BITS: u32 = 12;
/// The most symbols a code may have.
pub const SYMBOLS_MAX: usize = 1 << 17;
const UNIT: u64 = 1 << LENGTH_MAX;

/// How many codes of each length a code has: all that is to be known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lengths([u32; LENGTH_MAX + 1]);

impl Lengths {
    /// The lengths that cost least for symbols of these frequencies, which must not rise.
    ///
    /// Requires: at least 256 of them (so that the longest code has eight bits), at most
    /// [`SYMBOLS_MAX`].
    ///
    /// # Panics
    /// When there are fewer or more.
    pub fn for_frequencies(falling: &[u64]) -> Self {
        assert!((1 << LAST_LENGTH_MIN..=SYMBOLS_MAX).contains(&falling.len()));
        debug_assert!(falling.is_sorted_by(|a, b| a >= b));
        let mut lengths = unlimited(falling);
        limit(&mut lengths);
        let mut counts = [0; LENGTH_MAX + 1];
        for length in lengths {
            let count = counts.get_mut(length as usize);
            *count.expect("`limit` leaves no longer code") += 1;
        }
        Self(counts)
    }

    /// All symbols with the same length, or with two neighbouring ones.
    ///
    /// # Panics
    /// As [`Lengths::for_frequencies`].
    pub fn even(symbols: usize) -> Self {
        Self::for_frequencies(&vec![1; symbols])
    }

    /// How many symbols have codes.
    pub fn symbols(&self) -> usize {
        self.0.iter().map(|&count| count as usize).sum()
    }

    /// Appends the counts as varints.
    pub fn write(&self, out: &mut Vec<u8>) {
        for &count in self.0.iter().skip(1) {
            put_varint32(out, count);
        }
    }

    /// Reads the lengths from the bytes of [`Lengths::write`].
    ///
    /// # Errors
    /// `Corruption` when the counts are not those of a complete code with a last code that is long
    /// enough.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut counts = [0; LENGTH_MAX + 1];
        for count in counts.iter_mut().skip(1) {
            *count = reader
                .varint32()
                .ok_or_else(|| Error::corruption("a code's lengths are cut off"))?;
        }
        let lengths = Self(counts);
        let kraft: u64 = (counts.iter().enumerate())
            .map(|(length, &count)| u64::from(count) << (LENGTH_MAX - length))
            .sum();
        let last = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
        if kraft != UNIT || last < LAST_LENGTH_MIN || lengths.symbols() > SYMBOLS_MAX {
            return Err(Error::corruption("lengths that make no code"));
        }
        Ok(lengths)
    }

    /// The length of each symbol's code, in symbol order.
    fn each(&self) -> impl Iterator<Item = u32> {
        let counts = self.0.iter().enumerate();
        counts.flat_map(|(length, &count)| std::iter::repeat_n(length as u32, count as usize))
    }
}

/// Code lengths without a limit, in the order of `falling` (Moffat and Katajainen, In-Place
/// Calculation of Minimum-Redundancy Codes, 1995).
fn unlimited(falling: &[u64]) -> Vec<u32> {
    let n = falling.len();
    // Rising frequencies; then parents; then depths.
    let mut a: Vec<u64> = falling.iter().rev().map(|&count| count.max(1)).collect();
    let (mut leaf, mut root) = (0, 0);
    for next in 0..n - 1 {
        let mut sum = 0;
        for _ in 0..2 {
            if leaf >= n || (root < next && a[root] < a[leaf]) {
                sum += a[root];
                a[root] = next as u64;
                root += 1;
            } else {
                sum += a[leaf];
                leaf += 1;
            }
        }
        a[next] = sum;
    }
    a[n - 2] = 0;
    for node in (0..n - 2).rev() {
        a[node] = a[a[node] as usize] + 1;
    }
    // Leaves take the places of each depth that inner nodes do not.
    let (mut depth, mut room, mut inner) = (0, 1u64, n as isize - 2);
    let mut lengths = Vec::with_capacity(n);
    while lengths.len() < n {
        let mut used = 0;
        while inner >= 0 && a[inner as usize] == depth {
            used += 1;
            inner -= 1;
        }
        let leaves = (room - used) as usize;
        lengths.extend(std::iter::repeat_n(depth as u32, leaves));
        room = 2 * used;
        depth += 1;
    }
    lengths
}

/// Cuts lengths to [`LENGTH_MAX`]: code space that this overdraws comes from the rarest symbols
/// with shorter codes, and space then left over goes to the most frequent.
fn limit(lengths: &mut [u32]) {
    let cost = |length: u32| UNIT >> length;
    for length in lengths.iter_mut() {
        *length = (*length).min(LENGTH_MAX as u32);
    }
    let mut kraft: u64 = lengths.iter().map(|&length| cost(length)).sum();
    while kraft > UNIT {
        for length in lengths.iter_mut().rev() {
            if kraft > UNIT && *length < LENGTH_MAX as u32 {
                *length += 1;
                kraft -= cost(*length);
            }
        }
    }
    while kraft < UNIT {
        for length in lengths.iter_mut() {
            if *length > 1 && cost(*length) <= UNIT - kraft {
                kraft += cost(*length);
                *length -= 1;
            }
        }
    }
}

/// The codes of all symbols, for encoding.
#[derive(Debug)]
pub struct Codes(Vec<u32>);

impl Codes {
    /// The codes that `lengths` say.
    pub fn new(lengths: &Lengths) -> Self {
        let (mut codes, mut next, mut last) = (Vec::with_capacity(lengths.symbols()), 0u32, 0);
        for length in lengths.each() {
            next <<= length - last;
            last = length;
            codes.push(next << 5 | length);
            next += 1;
        }
        Self(codes)
    }

    /// The code of `symbol` and its length in bits.
    ///
    /// # Panics
    /// When there is no such symbol.
    #[inline]
    pub fn of(&self, symbol: usize) -> (u32, u32) {
        let packed = self.0[symbol];
        (packed >> 5, packed & 31)
    }

    /// Bytes it takes in memory.
    pub fn memory(&self) -> usize {
        self.0.len() * size_of::<u32>()
    }
}

/// A code, for decoding.
#[derive(Debug)]
pub struct Code {
    /// The length of all codes that begin with these bits, or 0 when they have several.
    of_prefix: Box<[u8; 1 << PREFIX_BITS]>,
    /// By length: the difference of a symbol and its code, modulo 2^32.
    offset: [u32; 32],
    /// By length: the first code past those of this length or less, as [`LENGTH_MAX`] bits.
    end: [u32; LENGTH_MAX + 1],
}

impl Code {
    /// The code that `lengths` say.
    pub fn new(lengths: &Lengths) -> Self {
        let mut code = Self {
            of_prefix: Box::new([0; 1 << PREFIX_BITS]),
            offset: [0; 32],
            end: [0; LENGTH_MAX + 1],
        };
        let (mut next, mut symbol) = (0u32, 0u32);
        for (length, &count) in lengths.0.iter().enumerate() {
            let unit_log = LENGTH_MAX - length;
            code.offset[length] = symbol.wrapping_sub(next >> unit_log);
            let end = next + (count << unit_log);
            let shift = LENGTH_MAX - PREFIX_BITS as usize;
            // Only the prefixes all of whose codes are in this length's range.
            let whole = (next as usize).div_ceil(1 << shift)..end as usize >> shift;
            if let Some(prefixes) = code.of_prefix.get_mut(whole) {
                prefixes.fill(length as u8);
            }
            code.end[length] = end;
            next = end;
            symbol += count;
        }
        code
    }

    /// The symbol whose code is at the top of `window`, and the length of that code in bits. There
    /// always is one, of a symbol that [`Lengths`] counts.
    #[inline]
    pub fn decode(&self, window: u64) -> (usize, u32) {
        let prefix = (window >> (64 - PREFIX_BITS)) as usize;
        let mut length = u32::from(self.of_prefix[prefix]);
        if length == 0 {
            length = self.compare(window);
        }
        let code = (window >> (64 - length)) as u32;
        let symbol = code.wrapping_add(self.offset[(length & 31) as usize]);
        (symbol as usize, length)
    }

    /// The length of the code at the top of `window`, found by comparing with where lengths end.
    #[cold]
    fn compare(&self, window: u64) -> u32 {
        let top = (window >> (64 - LENGTH_MAX)) as u32;
        let shorter = self.end.iter().filter(|&&end| end <= top).count();
        (shorter as u32).clamp(1, LENGTH_MAX as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::{BitWriter, Bits};
    use drumlin_base::rng::Rng;

    /// Frequencies that fall like powers, with ties and with extremes.
    fn frequencies(rng: &mut Rng) -> Vec<u64> {
        let symbols = 256 + rng.below(3000) as usize;
        let steep = rng.unit() * 6.0;
        let scale = (1u64 << rng.below(50)) as f64;
        let weight = |rank: usize| (scale / (rank as f64 + 1.0).powf(steep)) as u64;
        (0..symbols).map(weight).collect()
    }

    #[test]
    fn symbols_come_back() {
        let mut rng = Rng::new(11);
        for _ in 0..40 {
            let counts = frequencies(&mut rng);
            let lengths = Lengths::for_frequencies(&counts);
            assert_eq!(lengths.symbols(), counts.len());
            let (codes, code) = (Codes::new(&lengths), Code::new(&lengths));
            let symbols: Vec<usize> = (0..counts.len())
                .chain((0..500).map(|_| rng.below(counts.len() as u64) as usize))
                .collect();
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            for &symbol in &symbols {
                let (value, width) = codes.of(symbol);
                writer.put(value, width);
            }
            writer.finish();
            let (bits, mut at) = (Bits::new(&bytes), 0);
            for &symbol in &symbols {
                let (found, width) = code.decode(bits.window(at));
                assert_eq!(found, symbol);
                at += width as usize;
            }
            let (_, width) = code.decode(bits.window(at) | (u64::MAX >> 8));
            assert!(width as usize > bits.len() - at, "the filling is no code");
        }
    }

    #[test]
    fn lengths_are_close_to_the_entropy() {
        let counts: Vec<u64> = (1..4000u64).map(|rank| 1_000_000 / rank).collect();
        let total: u64 = counts.iter().sum();
        let lengths = Lengths::for_frequencies(&counts);
        let bits: u64 = (lengths.each().zip(&counts))
            .map(|(length, count)| u64::from(length) * count)
            .sum();
        let entropy: f64 = (counts.iter())
            .map(|&count| count as f64 * (total as f64 / count as f64).log2())
            .sum();
        assert!((bits as f64) < entropy * 1.02, "{bits} {entropy}");
    }

    #[test]
    fn lengths_read_back_and_hostile_ones_are_refused() {
        let lengths = Lengths::for_frequencies(&frequencies(&mut Rng::new(5)));
        let mut bytes = Vec::new();
        lengths.write(&mut bytes);
        let back = Lengths::read(&mut Reader::new(&bytes)).expect("its own bytes");
        assert_eq!(back, lengths);
        for cut in 0..bytes.len() {
            assert!(Lengths::read(&mut Reader::new(&bytes[..cut])).is_err());
        }
        let mut rng = Rng::new(6);
        for _ in 0..2000 {
            let mut hostile = bytes.clone();
            let at = rng.below(hostile.len() as u64) as usize;
            hostile[at] = rng.next_u64() as u8;
            if let Ok(read) = Lengths::read(&mut Reader::new(&hostile)) {
                let code = Code::new(&read);
                for _ in 0..50 {
                    let (symbol, _) = code.decode(rng.next_u64());
                    assert!(symbol < read.symbols());
                }
            }
        }
    }

    #[test]
    fn two_short_codes_are_refused() {
        // One bit each: the filling of the last byte would be read as symbols.
        let mut bytes = vec![2];
        bytes.extend([0; LENGTH_MAX - 1]);
        assert!(Lengths::read(&mut Reader::new(&bytes)).is_err());
    }
}
