//! The interface of a data set, and its totals.

use std::fmt::Debug;

use drumlin_base::checksum::Xxh3;

/// Numbered records with distinct keys. Immutable, shared by threads.
pub trait DataSet: Send + Sync + Debug {
    /// Content and origin, in a line.
    fn title(&self) -> String;

    /// How many records there are.
    fn len(&self) -> u64;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Replaces `out` by the key of record `index`. Requires: `index < len()`.
    fn write_key(&self, index: u64, out: &mut Vec<u8>);

    /// Replaces `out` by the value of record `index`. Requires: `index < len()`.
    fn write_value(&self, index: u64, out: &mut Vec<u8>);
}

/// The size of a data set and a checksum of all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Records.
    pub records: u64,
    /// Bytes of all keys.
    pub key_bytes: u64,
    /// Bytes of all values.
    pub value_bytes: u64,
    /// XXH3 over each record's lengths (4 bytes each, little-endian), key and value, in order.
    pub checksum: u64,
}

/// Adds up `set`. Cost: every record is made once.
pub fn totals(set: &dyn DataSet) -> Totals {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut sum = Totals {
        records: set.len(),
        ..Totals::default()
    };
    let mut checksum = Xxh3::new();
    for index in 0..set.len() {
        set.write_key(index, &mut key);
        set.write_value(index, &mut value);
        sum.key_bytes += key.len() as u64;
        sum.value_bytes += value.len() as u64;
        add_record(&mut checksum, &key, &value);
    }
    sum.checksum = checksum.finish();
    sum
}

/// Takes a record in, as [`Totals::checksum`] has it.
pub fn add_record(checksum: &mut Xxh3, key: &[u8], value: &[u8]) {
    for bytes in [key, value] {
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        checksum.update(&len.to_le_bytes());
    }
    checksum.update(key);
    checksum.update(value);
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Every data set promises distinct keys, and the same records in any order of requests.
    pub(in super::super) fn check(set: &dyn DataSet) {
        assert!(!set.is_empty());
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut keys = HashSet::new();
        let mut values = Vec::new();
        for index in 0..set.len() {
            set.write_key(index, &mut key);
            set.write_value(index, &mut value);
            assert!(keys.insert(key.clone()), "key {index} was there before");
            values.push(value.clone());
        }
        for (index, expected) in values.iter().enumerate().rev() {
            set.write_value(index as u64, &mut value);
            assert_eq!(&value, expected);
        }
        assert_eq!(totals(set), totals(set));
        assert!(set.title().len() > 5);
    }
}
