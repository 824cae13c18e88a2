//! Records in memory, stored back to back.

use std::collections::HashSet;

use drumlin_base::checksum::xxh3_64;

use super::set::DataSet;

/// Records in memory: 16 bytes each beside keys and values.
#[derive(Debug, Default)]
pub struct Arena {
    title: String,
    bytes: Vec<u8>,
    /// Where each record's value begins and ends; its key ends where its value begins.
    ends: Vec<(u64, u64)>,
    seen: HashSet<u64>,
}

impl Arena {
    /// No records yet.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }

    /// Adds a record, unless its key is there; whether it was added.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> bool {
        if !self.seen.insert(xxh3_64(key)) {
            return false;
        }
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len() as u64;
        self.bytes.extend_from_slice(value);
        self.ends.push((middle, self.bytes.len() as u64));
        true
    }

    /// Bytes of keys and values.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Frees the memory that only adding needs.
    #[must_use]
    pub fn finish(mut self) -> Self {
        self.seen = HashSet::new();
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
        self
    }

    fn place(&self, index: u64) -> (usize, usize, usize) {
        let at = |index: u64| {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            self.ends.get(index).copied().unwrap_or_default()
        };
        let start = index.checked_sub(1).map_or(0, |before| at(before).1);
        let (middle, end) = at(index);
        (start as usize, middle as usize, end as usize)
    }
}

impl DataSet for Arena {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    fn write_key(&self, index: u64, out: &mut Vec<u8>) {
        let (start, middle, _) = self.place(index);
        out.clear();
        out.extend_from_slice(self.bytes.get(start..middle).unwrap_or_default());
    }

    fn write_value(&self, index: u64, out: &mut Vec<u8>) {
        let (_, middle, end) = self.place(index);
        out.clear();
        out.extend_from_slice(self.bytes.get(middle..end).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::super::set::tests::check;
    use super::*;

    #[test]
    fn a_key_that_is_there_is_not_added_again() {
        let mut arena = Arena::new("three records");
        assert!(arena.push(b"a", b"one"));
        assert!(arena.push(b"", b""));
        assert!(!arena.push(b"a", b"two"));
        assert!(arena.push(b"bc", b""));
        let arena = arena.finish();
        check(&arena);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        arena.write_key(2, &mut key);
        arena.write_value(0, &mut value);
        assert_eq!(
            (&key[..], &value[..], arena.len()),
            (&b"bc"[..], &b"one"[..], 3)
        );
        assert_eq!(arena.bytes(), 6);
    }
}
