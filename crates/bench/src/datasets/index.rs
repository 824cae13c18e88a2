//! An index of loaded records: it holds enough to ask for each record and to verify the answer.

use drumlin_base::checksum::xxh3_64;

/// Keys, and lengths and fingerprints of values: a key's bytes and 20 more a record, so that the data
/// set itself need not stay in memory while it is read back.
#[derive(Clone, Debug, Default)]
pub struct RecordIndex {
    keys: Vec<u8>,
    records: Vec<Record>,
    value_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    key_end: u64,
    fingerprint: u64,
    value_len: u32,
}

impl RecordIndex {
    /// Adds a record.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.keys.extend_from_slice(key);
        self.value_bytes += value.len() as u64;
        self.records.push(Record {
            key_end: self.keys.len() as u64,
            fingerprint: xxh3_64(value),
            value_len: u32::try_from(value.len()).unwrap_or(u32::MAX),
        });
    }

    /// Gives back memory that was reserved for more records.
    pub fn shrink_to_fit(&mut self) {
        self.keys.shrink_to_fit();
        self.records.shrink_to_fit();
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Bytes of all keys and values.
    pub fn data_bytes(&self) -> u64 {
        self.keys.len() as u64 + self.value_bytes
    }

    /// Memory the index takes, without capacity that its vectors have reserved and not touched.
    pub fn resident_bytes(&self) -> u64 {
        (self.keys.len() + self.records.len() * size_of::<Record>()) as u64
    }

    /// The key of record `index`; empty past the end.
    pub fn key(&self, index: usize) -> &[u8] {
        let end = |index: usize| self.records.get(index).map_or(0, |record| record.key_end);
        let start = index.checked_sub(1).map_or(0, end);
        let range = start as usize..end(index) as usize;
        self.keys.get(range).unwrap_or_default()
    }

    /// Whether `value` is that of record `index`, byte for byte but for a chance of 2^-64.
    #[inline]
    pub fn is_value(&self, index: usize, value: &[u8]) -> bool {
        self.records.get(index).is_some_and(|record| {
            record.value_len as usize == value.len() && record.fingerprint == xxh3_64(value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_of_a_value_is_noticed() {
        let mut index = RecordIndex::default();
        index.push(b"one", b"first");
        index.push(b"", b"second");
        index.push(b"three", b"");
        assert_eq!((index.len(), index.data_bytes()), (3, 19));
        assert_eq!(
            (index.key(0), index.key(1), index.key(2)),
            (&b"one"[..], &b""[..], &b"three"[..])
        );
        assert!(index.is_value(0, b"first") && index.is_value(2, b""));
        for at in 0..6 {
            let mut value = b"second".to_vec();
            value[at] ^= 1;
            assert!(!index.is_value(1, &value));
        }
        assert!(!index.is_value(1, b"secon") && !index.is_value(3, b""));
        assert_eq!(index.key(3), b"");
    }
}
