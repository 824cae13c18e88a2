//! Keys by number, and their expected values.
//!
//! Readers ask for records while one thread loads more. Neither waits for the other: records are handed
//! over in segments that are set once and never change.

use std::sync::OnceLock;

use drumlin_bench::Flags;
use drumlin_bench::datasets::RecordIndex;
use drumlin_bench::keygen::KeyShape;
use drumlin_bench::values::Values;

/// Bytes that values are cut from.
const POOL_BYTES: usize = 1 << 20;

/// db_bench's keys, and a value for each that follows from its number.
#[derive(Debug)]
pub(super) struct Numbers {
    shape: KeyShape,
    count: u64,
    value_bytes: usize,
    pool: Vec<u8>,
}

impl Numbers {
    pub(super) fn new(flags: &Flags) -> Self {
        let pool_bytes = POOL_BYTES.max(flags.value_size * 2);
        let mut values = Values::new(flags.compression_ratio, pool_bytes);
        Self {
            shape: KeyShape::new(flags, 0),
            count: flags.num.max(1),
            value_bytes: flags.value_size,
            pool: values.next(pool_bytes).to_vec(),
        }
    }

    /// How many keys.
    pub(super) fn len(&self) -> u64 {
        self.count
    }

    /// The value of key `number`: a stretch of the pool, so that writing it and comparing it cost next
    /// to nothing.
    #[inline]
    pub(super) fn value(&self, number: u64) -> &[u8] {
        let room = (self.pool.len() - self.value_bytes) as u64;
        let spread = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 32;
        let start = ((spread * room) >> 32) as usize;
        self.pool
            .get(start..start + self.value_bytes)
            .unwrap_or_default()
    }
}

/// Records of a segment; a power of two, so that finding one is a shift.
pub(super) const SEGMENT_RECORDS: usize = 2048;

/// The records of a file, as far as they were loaded.
#[derive(Debug)]
pub(super) struct Loaded {
    /// Full in order; the last may hold fewer records.
    segments: Box<[OnceLock<RecordIndex>]>,
}

impl Loaded {
    /// Room for `records`.
    pub(super) fn new(records: u64) -> Self {
        let segments = records.div_ceil(SEGMENT_RECORDS as u64);
        Self {
            segments: (0..segments).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Hands `records` over as the segment that begins at record `first`; false where there is no room.
    pub(super) fn publish(&self, first: u64, mut records: RecordIndex) -> bool {
        records.shrink_to_fit();
        let place = self.segments.get(first as usize / SEGMENT_RECORDS);
        place.is_some_and(|place| place.set(records).is_ok())
    }

    /// The segment of record `number` and its place in there.
    #[inline]
    fn at(&self, number: u64) -> Option<(&RecordIndex, usize)> {
        let number = number as usize;
        let segment = self.segments.get(number / SEGMENT_RECORDS)?.get()?;
        Some((segment, number % SEGMENT_RECORDS))
    }

    /// Memory of the loaded records.
    pub(super) fn resident_bytes(&self) -> u64 {
        let loaded = self.segments.iter().filter_map(OnceLock::get);
        loaded.map(RecordIndex::resident_bytes).sum()
    }
}

/// The keys of a store and their values.
#[derive(Debug)]
pub(super) enum Source {
    /// Numbered keys.
    Numbers(Numbers),
    /// Records of a file.
    Records(Loaded),
}

impl Source {
    /// Replaces `key` by key `number`, which must have been loaded; else it is emptied. The buffer must
    /// be given back as it was.
    #[inline]
    pub(super) fn write_key(&self, number: u64, key: &mut Vec<u8>) {
        match self {
            Self::Numbers(numbers) => {
                if key.len() != numbers.shape.key_bytes() {
                    *key = numbers.shape.buffer();
                }
                numbers.shape.write(number, key);
            }
            Self::Records(loaded) => {
                key.clear();
                if let Some((segment, index)) = loaded.at(number) {
                    key.extend_from_slice(segment.key(index));
                }
            }
        }
    }

    /// Whether `value` is that of key `number`.
    #[inline]
    pub(super) fn is_value(&self, number: u64, value: &[u8]) -> bool {
        match self {
            Self::Numbers(numbers) => numbers.value(number) == value,
            Self::Records(loaded) => loaded
                .at(number)
                .is_some_and(|(segment, index)| segment.is_value(index, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_number_is_its_own_and_always_the_same() {
        let flags = Flags::parse(&["--num=1000", "--value_size=64"]).expect("sound flags");
        let (one, other) = (Source::Numbers(Numbers::new(&flags)), Numbers::new(&flags));
        for number in 0..1000 {
            assert_eq!(other.value(number).len(), 64);
            assert!(one.is_value(number, other.value(number)));
            assert!(!one.is_value(number, other.value(number + 1)), "{number}");
        }
        let (mut key, expected) = (Vec::new(), b"\0\0\0\0\0\0\0\x0b00000000");
        one.write_key(11, &mut key);
        assert_eq!(key, expected);
    }

    #[test]
    fn records_are_found_in_their_segments_once_they_were_handed_over() {
        let loaded = Loaded::new(SEGMENT_RECORDS as u64 + 1);
        let record = |number: usize| (number.to_le_bytes(), (number * 7).to_le_bytes());
        let index = |numbers: std::ops::Range<usize>| {
            let mut index = RecordIndex::default();
            for (key, value) in numbers.map(record) {
                index.push(&key, &value);
            }
            index
        };
        let last = SEGMENT_RECORDS;
        assert!(loaded.publish(last as u64, index(last..last + 1)));
        assert!(!loaded.publish(last as u64, index(0..1)), "set once");
        assert!(!loaded.publish(2 * last as u64, index(0..1)), "no room");
        let source = Source::Records(loaded);
        let mut key = vec![1];
        source.write_key(5, &mut key);
        assert!(key.is_empty() && !source.is_value(5, &record(5).1));
        source.write_key(last as u64, &mut key);
        assert_eq!(key, record(last).0);
        assert!(source.is_value(last as u64, &record(last).1));
    }
}
