//! Writes gathered for one transaction.
//!
//! An engine whose every commit rewrites a path of pages (LMDB, redb) is not measured at one put a
//! commit: that would measure the file system. Its sessions gather puts here and commit
//! [`PUTS_A_COMMIT`] at once; every report says so.

/// Puts gathered before they are committed.
pub(crate) const PUTS_A_COMMIT: usize = 1000;

/// Reads served by one read transaction before it is renewed, so that a reader beside a writer
/// neither pins old pages for ever nor pays for a transaction each read.
pub(crate) const READS_A_TRANSACTION: usize = 1000;

/// Puts and deletions in the order given, their bytes one after the other.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    bytes: Vec<u8>,
    writes: Vec<Write>,
}

/// Position of one write: `bytes[..key_end]` from the previous write's end, then the value.
#[derive(Clone, Copy, Debug)]
struct Write {
    key_end: usize,
    value_end: usize,
    is_deletion: bool,
}

impl Pending {
    /// Adds a put.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) {
        self.push(key, value, false);
    }

    /// Adds a deletion.
    pub(crate) fn delete(&mut self, key: &[u8]) {
        self.push(key, &[], true);
    }

    fn push(&mut self, key: &[u8], value: &[u8], is_deletion: bool) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.writes.push(Write {
            key_end,
            value_end: self.bytes.len(),
            is_deletion,
        });
    }

    /// Writes gathered.
    pub(crate) fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Each write in order: its key, and its value unless it is a deletion.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let mut start = 0;
        self.writes.iter().map(move |write| {
            let key = &self.bytes[start..write.key_end];
            let value = &self.bytes[write.key_end..write.value_end];
            start = write.value_end;
            (key, (!write.is_deletion).then_some(value))
        })
    }

    /// Forgets them; keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.writes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_come_back_in_order_with_deletions_told_from_empty_values() {
        let mut pending = Pending::default();
        pending.put(b"a", b"1");
        pending.delete(b"bb");
        pending.put(b"", b"");
        let all: Vec<_> = pending.iter().collect();
        let expected: [(&[u8], Option<&[u8]>); 3] =
            [(b"a", Some(b"1")), (b"bb", None), (b"", Some(b""))];
        assert_eq!(all, expected);
        pending.clear();
        assert!(pending.is_empty() && pending.iter().next().is_none());
    }
}
