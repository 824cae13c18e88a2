//! Entries by number: keys as db_bench shapes them with values it cuts, or the records of a file.

use crate::flags::Flags;
use crate::keygen::KeyShape;
use crate::records::Records;
use crate::values::Values;

/// The key of each number.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    shape: KeyShape,
    records: Option<&'a Records>,
    extra_bytes: usize,
}

impl<'a> Keys<'a> {
    /// The keys of `records`, or those that `flags` describe; `extra_bytes` longer than the keys
    /// written.
    pub fn new(flags: &Flags, records: Option<&'a Records>, extra_bytes: usize) -> Self {
        Self {
            shape: KeyShape::new(flags, extra_bytes),
            records,
            extra_bytes,
        }
    }

    /// A buffer for [`Keys::write`].
    pub fn buffer(&self) -> Vec<u8> {
        self.shape.buffer()
    }

    /// [`Keys::write`] of each of `numbers`. Records are scattered over memory; all are prefetched before the first
    /// is read: waiting for them is not the store's work.
    pub fn write_each(&self, numbers: &[u64], keys: &mut [Vec<u8>]) {
        if let Some(records) = self.records {
            numbers
                .iter()
                .for_each(|&number| records.prefetch_place(number));
            numbers
                .iter()
                .for_each(|&number| records.prefetch_bytes(number));
        }
        for (key, &number) in keys.iter_mut().zip(numbers) {
            self.write(number, key);
        }
    }

    /// Makes `key`, a buffer from [`Keys::buffer`], key number `number`.
    #[inline]
    pub fn write(&self, number: u64, key: &mut Vec<u8>) {
        let Some(records) = self.records else {
            return self.shape.write(number, key);
        };
        let last = records.count().saturating_sub(1);
        key.clear();
        key.extend_from_slice(records.get(number.min(last)).0);
        key.resize(key.len() + self.extra_bytes, b'0');
    }
}

/// The value of each number.
#[derive(Debug)]
pub struct EntryValues<'a> {
    cut: Values,
    value_bytes: usize,
    records: Option<&'a Records>,
}

impl<'a> EntryValues<'a> {
    /// The values of `records`, or those that `flags` describe.
    pub fn new(flags: &Flags, records: Option<&'a Records>) -> Self {
        Self {
            cut: Values::new(flags.compression_ratio, flags.value_size),
            value_bytes: flags.value_size,
            records,
        }
    }

    /// The value to write under key number `number`.
    #[inline]
    pub fn next(&mut self, number: u64) -> &[u8] {
        match self.records {
            Some(records) => records.get(number).1,
            None => self.cut.next(self.value_bytes),
        }
    }
}
