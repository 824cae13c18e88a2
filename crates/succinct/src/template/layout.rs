//! Records of one length whose bytes are numbers at fixed places: binary structs.
//!
//! The places of the numbers are not known. Each place is tried as the start of a number of 1, 2, 4
//! or 8 bytes in both byte orders, by the bits it would take over the sample; the cheapest row of
//! numbers that covers the record is the layout.
//!
//! Bits: the numbers in order, each as its excess over its base. A record is exactly as long as all of
//! them together.

use drumlin_base::coding::{Reader, put_varint32, put_varint64};
use drumlin_base::{Error, Result};

use super::typing::narrowest;
use crate::bits::{BitWriter, Bits};
use crate::text::Sink;

/// The longest record that has a layout.
const LAYOUT_BYTES_MAX: usize = 256;
/// Records that a layout is learned from.
const LEARNED_MAX: usize = 2000;
/// Records in a hundred that must have one length.
const ALIKE_PERCENT: usize = 95;
/// Bits that a number costs beyond its own, so that fewer and wider ones win.
const NUMBER_BITS: u64 = 1;

/// One number of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number {
    /// 1, 2, 4 or 8 bytes.
    bytes: u8,
    /// Whether the highest byte comes first.
    big: bool,
    base: u64,
    /// 0 to 64.
    bits: u8,
}

impl Number {
    /// The number at the front of `record`; none when it is too short.
    fn read(&self, record: &[u8]) -> Option<u64> {
        let bytes = record.get(..usize::from(self.bytes))?;
        let push = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.big {
            bytes.iter().fold(0, push)
        } else {
            bytes.iter().rev().fold(0, push)
        })
    }

    /// The bits that its bytes have. Numbers count modulo these, so that -1 is next to 0.
    fn mask(&self) -> u64 {
        u64::MAX >> (64 - 8 * u32::from(self.bytes.clamp(1, 8)))
    }

    /// The bytes of `number`, at the front of eight.
    #[inline]
    fn written(&self, number: u64) -> [u8; 8] {
        if self.big {
            let unused = 64 - 8 * u32::from(self.bytes.clamp(1, 8));
            (number << unused).to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    }
}

/// Where the numbers of a record are, and their ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    numbers: Vec<Number>,
}

impl Layout {
    /// The layout that takes the fewest bits for `sample`; none when its records are not of one length.
    pub fn learn(sample: &[&[u8]]) -> Option<Self> {
        let step = sample.len().div_ceil(LEARNED_MAX).max(1);
        let sample: Vec<&[u8]> = sample.iter().step_by(step).copied().collect();
        let mut lengths: Vec<usize> = sample.iter().map(|record| record.len()).collect();
        lengths.sort_unstable();
        let len = *lengths.get(lengths.len() / 2)?;
        let alike = lengths.iter().filter(|&&other| other == len).count();
        let suits = (1..=LAYOUT_BYTES_MAX).contains(&len);
        if !suits || alike * 100 < sample.len() * ALIKE_PERCENT {
            return None;
        }
        let records = sample.into_iter().filter(|record| record.len() == len);
        let records: Vec<&[u8]> = records.collect();
        // By place: the least cost from there to the end, and the number to take.
        let mut best: Vec<(u64, Option<Number>)> = vec![(0, None); len + 1];
        for at in (0..len).rev() {
            let choices = [1, 2, 4, 8].into_iter().flat_map(|bytes| {
                let end = at + usize::from(bytes);
                let behind = best.get(end).map(|(cost, _)| *cost);
                let orders = [false, true]
                    .into_iter()
                    .filter(move |big| bytes > 1 || !big);
                let records = &records;
                orders.filter_map(move |big| {
                    let (cost, number) = number(records, at, bytes, big);
                    Some((cost.saturating_add(behind?), Some(number)))
                })
            });
            let least = choices.min_by_key(|(cost, _)| *cost);
            best[at] = least?;
        }
        let (mut numbers, mut at) = (Vec::new(), 0);
        while let Some((_, Some(number))) = best.get(at) {
            numbers.push(*number);
            at += usize::from(number.bytes);
        }
        Some(Self { numbers })
    }

    /// Bits of a record.
    pub fn bits(&self) -> usize {
        self.numbers
            .iter()
            .map(|number| usize::from(number.bits))
            .sum()
    }

    /// How many numbers a record has.
    pub fn numbers(&self) -> usize {
        self.numbers.len()
    }

    /// Bytes of a record.
    pub fn bytes(&self) -> usize {
        self.numbers
            .iter()
            .map(|number| usize::from(number.bytes))
            .sum()
    }

    /// Bytes it takes in memory.
    pub fn memory(&self) -> usize {
        self.numbers.len() * size_of::<Number>()
    }

    /// Appends the bits of `record`; whether it has this layout. If not, bits may have been written all
    /// the same.
    pub fn encode(&self, record: &[u8], writer: &mut BitWriter<'_>) -> bool {
        let mut rest = record;
        for number in &self.numbers {
            let above = |found: u64| found.wrapping_sub(number.base) & number.mask();
            let stored = number.read(rest).map(above);
            let bits = u32::from(number.bits);
            let fits = |stored: &u64| stored.checked_shr(bits).unwrap_or(0) == 0;
            let Some(stored) = stored.filter(fits) else {
                return false;
            };
            writer.put_wide(stored, bits);
            let behind = rest.get(usize::from(number.bytes)..);
            rest = behind.expect("a number that was read has all of its bytes");
        }
        rest.is_empty()
    }

    /// Decodes a record whose bits begin at `at` into `sink`.
    ///
    /// # Errors
    /// `Corruption` when there are too few bits.
    pub fn decode(&self, bits: &Bits<'_>, at: usize, sink: &mut Sink<'_>) -> Result<()> {
        if at + self.bits() > bits.len() {
            return Err(Error::corruption("a record's numbers are cut off"));
        }
        let mut at = at;
        for number in &self.numbers {
            let stored = bits.field_wide(at, u32::from(number.bits));
            at += usize::from(number.bits);
            let bytes = number.written(number.base.wrapping_add(stored));
            if let Some(room) = sink.room()?.first_chunk_mut() {
                *room = bytes;
            }
            sink.advance(usize::from(number.bytes));
        }
        Ok(())
    }

    /// Appends the layout as it is stored.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_varint32(out, self.numbers.len() as u32);
        for number in &self.numbers {
            let kind = number.bytes | u8::from(number.big) << 7;
            out.extend_from_slice(&[kind, number.bits]);
            put_varint64(out, number.base);
        }
    }

    /// Reads a layout from the bytes of [`Layout::write`].
    ///
    /// # Errors
    /// `Corruption` when it is damaged.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let damaged = || Error::corruption("a damaged layout");
        let count = reader.varint32().ok_or_else(damaged)? as usize;
        if count > LAYOUT_BYTES_MAX {
            return Err(damaged());
        }
        let mut numbers = Vec::with_capacity(count);
        for _ in 0..count {
            let kind = reader.u8().ok_or_else(damaged)?;
            let bits = reader.u8().ok_or_else(damaged)?;
            let base = reader.varint64().ok_or_else(damaged)?;
            let bytes = kind & 0x7F;
            if !matches!(bytes, 1 | 2 | 4 | 8) || bits > 64 {
                return Err(damaged());
            }
            numbers.push(Number {
                bytes,
                big: kind >> 7 == 1,
                base,
                bits,
            });
        }
        let layout = Self { numbers };
        if layout.bytes() > LAYOUT_BYTES_MAX {
            return Err(damaged());
        }
        Ok(layout)
    }
}

/// The number of so many bytes at `at`, and its cost over `records`.
fn number(records: &[&[u8]], at: usize, bytes: u8, big: bool) -> (u64, Number) {
    let mut number = Number {
        bytes,
        big,
        base: 0,
        bits: 0,
    };
    let unused = 64 - 8 * u32::from(bytes);
    let values = records.iter().map(|record| {
        let read = number.read(record.get(at..)?)?;
        Some(((read << unused) as i64) >> unused)
    });
    let (cost, (base, bits)) = narrowest(values);
    number.base = base as u64;
    number.bits = bits as u8;
    let each = NUMBER_BITS * records.len() as u64;
    (cost.saturating_add(each), number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumlin_base::rng::Rng;

    /// A struct of: time in little-endian, id in big-endian, a small signed number, flags.
    fn record(rng: &mut Rng, time: &mut u64) -> Vec<u8> {
        *time += rng.below(1000);
        let mut record = time.to_le_bytes().to_vec();
        record.extend_from_slice(&(70_000 + rng.below(60_000) as u32).to_be_bytes());
        record.extend_from_slice(&(rng.below(64) as i16 - 32).to_le_bytes());
        record.extend_from_slice(&[0, rng.below(2) as u8]);
        record
    }

    #[test]
    fn structs_are_found_and_come_back() {
        let (mut rng, mut time) = (Rng::new(2), 1_700_000_000_000u64);
        let records: Vec<Vec<u8>> = (0..1500).map(|_| record(&mut rng, &mut time)).collect();
        let sample: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        let layout = Layout::learn(&sample).expect("one length");
        let mut bytes = Vec::new();
        layout.write(&mut bytes);
        assert_eq!(
            Layout::read(&mut Reader::new(&bytes)).expect("its own"),
            layout
        );
        for cut in 0..bytes.len() {
            assert!(Layout::read(&mut Reader::new(&bytes[..cut])).is_err());
        }
        // 20 bits of time, 16 of id, 6 of the signed number, 1 flag.
        assert!(layout.bits() <= 46, "{layout:?}");
        for record in &records {
            let mut code = Vec::new();
            let mut writer = BitWriter::new(&mut code);
            assert!(layout.encode(record, &mut writer));
            writer.finish();
            let mut out = Vec::new();
            let mut sink = Sink::new(&mut out, 0, 1000);
            layout
                .decode(&Bits::new(&code), 0, &mut sink)
                .expect("sound");
            sink.finish().expect("short");
            assert_eq!(out, *record);
            assert!(
                layout
                    .decode(&Bits::new(&code[1..]), 0, &mut Sink::new(&mut out, 0, 1000))
                    .is_err()
            );
        }
        let mut code = Vec::new();
        let longer = [&records[0][..], b"x"].concat();
        for other in [&b""[..], &records[0][1..], &longer, &[0xFF; 16]] {
            assert!(!layout.encode(other, &mut BitWriter::new(&mut code)));
        }
    }

    #[test]
    fn records_of_many_lengths_have_no_layout() {
        let texts = ["a", "bb", "ccc", "dddd"].map(str::as_bytes);
        assert_eq!(Layout::learn(&texts), None);
        assert_eq!(Layout::learn(&[]), None);
        assert_eq!(Layout::learn(&[b""]), None);
    }
}
