//! References to blobs, counted by file: those that went into a job and those that came out of it.
//!
//! Every reference that a job reads and does not write again stands for a blob that nothing refers
//! to any more, whatever the reason it was dropped for (hidden, deleted, covered by a range
//! deletion, filtered, merged into another value, moved to another file). So garbage is not noted
//! where entries are dropped, of which there are many places, but is the difference between the two
//! counts, taken at the only two doors. Invariant: no more comes out than went in.

use std::collections::BTreeMap;

use drumlin_base::{Error, Result};
use drumlin_table::blob::BlobIndex;

use crate::version::BlobFileGarbage;

/// How many references to each file were seen, and the bytes of their records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlobTally {
    files: BTreeMap<u64, Count>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    blobs: u64,
    bytes: u64,
}

impl BlobTally {
    /// Counts the reference of `user_key`.
    pub(crate) fn add(&mut self, user_key: &[u8], index: &BlobIndex) {
        let bytes = index.record_bytes(user_key);
        let count = self.files.entry(index.file).or_default();
        count.blobs += 1;
        // Saturating: a damaged reference may claim any size, and is found out when it is compared
        // with the content of its file.
        count.bytes = count.bytes.saturating_add(bytes);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Adds the counts of `other`.
    pub(crate) fn append(&mut self, other: &Self) {
        for (&file, count) in &other.files {
            let sum = self.files.entry(file).or_default();
            sum.blobs += count.blobs;
            sum.bytes = sum.bytes.saturating_add(count.bytes);
        }
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// The files referred to, ascending.
    pub(crate) fn files(&self) -> impl Iterator<Item = u64> {
        self.files.keys().copied()
    }

    /// References to `file` and the bytes of their records.
    pub(crate) fn of(&self, file: u64) -> (u64, u64) {
        let count = self.files.get(&file).copied().unwrap_or_default();
        (count.blobs, count.bytes)
    }

    /// References counted.
    pub(crate) fn blobs(&self) -> u64 {
        self.files.values().map(|count| count.blobs).sum()
    }

    /// Bytes of all records referred to.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The garbage made by a job that read the references `self` and wrote those of `kept` again.
    ///
    /// # Errors
    /// `Corruption` when more was written than read: the job made references up.
    pub(crate) fn garbage(&self, kept: &Self) -> Result<Vec<BlobFileGarbage>> {
        if let Some(file) = kept.files().find(|file| !self.files.contains_key(file)) {
            return Err(more_than_read(file));
        }
        let mut garbage = Vec::new();
        for (&number, read) in &self.files {
            let (blobs, bytes) = kept.of(number);
            let left = (read.blobs.checked_sub(blobs), read.bytes.checked_sub(bytes));
            let (Some(garbage_count), Some(garbage_bytes)) = left else {
                return Err(more_than_read(number));
            };
            if garbage_count > 0 {
                garbage.push(BlobFileGarbage {
                    number,
                    garbage_count,
                    garbage_bytes,
                });
            }
        }
        Ok(garbage)
    }

    #[cfg(test)]
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.files.clear();
        self.bytes = 0;
    }
}

#[cold]
fn more_than_read(file: u64) -> Error {
    Error::corruption(format!(
        "a job wrote more references to blob file {file} than it read"
    ))
}

#[cfg(test)]
mod tests {
    use drumlin_table::Codec;

    use super::*;

    fn index(file: u64, size: u64) -> BlobIndex {
        BlobIndex {
            file,
            offset: 100,
            size,
            codec: Codec::None,
        }
    }

    #[test]
    fn garbage_is_what_went_in_and_did_not_come_out() {
        let (mut read, mut kept) = (BlobTally::default(), BlobTally::default());
        for (file, size) in [(5, 10), (5, 20), (7, 1), (9, 3)] {
            read.add(b"key", &index(file, size));
        }
        kept.add(b"key", &index(5, 20));
        kept.add(b"key", &index(7, 1));
        let garbage = |number, garbage_bytes| BlobFileGarbage {
            number,
            garbage_count: 1,
            garbage_bytes,
        };
        let found = read.garbage(&kept).unwrap();
        assert_eq!(found, [garbage(5, 32 + 3 + 10), garbage(9, 32 + 3 + 3)]);
        assert!(read.garbage(&read).unwrap().is_empty());
    }

    #[test]
    fn references_made_up_are_found_out() {
        let (mut read, mut kept) = (BlobTally::default(), BlobTally::default());
        read.add(b"key", &index(5, 10));
        kept.add(b"key", &index(5, 11));
        assert!(read.garbage(&kept).unwrap_err().is_corruption());
        kept.clear();
        kept.add(b"key", &index(6, 10));
        assert!(read.garbage(&kept).unwrap_err().is_corruption());
    }

    #[test]
    fn counts_of_parts_add_up() {
        let (mut a, mut b) = (BlobTally::default(), BlobTally::default());
        a.add(b"k", &index(1, 10));
        b.add(b"k", &index(1, 20));
        b.add(b"k", &index(2, 30));
        a.append(&b);
        assert_eq!((a.of(1), a.of(2), a.of(3)), ((2, 96), (1, 63), (0, 0)));
        assert_eq!(a.bytes(), 159);
        assert_eq!(a.files().collect::<Vec<_>>(), [1, 2]);
    }
}
