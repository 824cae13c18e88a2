//! The keys that a round changed, in order: those who watch and wait are told of them.

/// See the module. A key may be there more than once.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// The keys, one after the other.
    bytes: Vec<u8>,
    /// Their databases, and where each of them ends.
    ends: Vec<(u16, usize)>,
}

impl Touched {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn push(&mut self, db: u16, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push((db, self.bytes.len()));
    }

    /// Those from the `first` on.
    pub(crate) fn since(&self, first: usize) -> impl Iterator<Item = (u16, &[u8])> {
        let mut from = self.end_of(first);
        let ends = self.ends.get(first..).unwrap_or(&[]);
        ends.iter().map(move |(db, end)| {
            let key = self.bytes.get(from..*end).unwrap_or(&[]);
            from = *end;
            (*db, key)
        })
    }

    /// Forgets all but the first ones.
    pub(crate) fn truncate(&mut self, kept: usize) {
        self.bytes.truncate(self.end_of(kept));
        self.ends.truncate(kept);
    }

    /// Where so many keys end.
    fn end_of(&self, keys: usize) -> usize {
        let last = keys.checked_sub(1).and_then(|at| self.ends.get(at));
        last.map_or(0, |(_, end)| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_order_and_the_last_ones_go() {
        let mut touched = Touched::default();
        for (db, key) in [(1, &b"one"[..]), (2, b""), (3, b"three")] {
            touched.push(db, key);
        }
        let all: Vec<_> = touched.since(1).collect();
        assert_eq!(all, [(2, &b""[..]), (3, b"three")]);
        touched.truncate(2);
        touched.push(4, b"four");
        let all: Vec<_> = touched.since(0).collect();
        assert_eq!(all, [(1, &b"one"[..]), (2, b""), (4, b"four")]);
        touched.truncate(0);
        assert_eq!((touched.len(), touched.since(0).count()), (0, 0));
        assert_eq!(touched.since(7).count(), 0);
    }
}
