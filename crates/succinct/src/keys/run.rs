//! Keys one after the other in one buffer.

/// A list of keys without an allocation for each.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyRun {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl KeyRun {
    /// Appends `key`.
    #[inline]
    pub(super) fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// The last key.
    #[inline]
    pub(super) fn last(&self) -> Option<&[u8]> {
        self.ends.len().checked_sub(1).map(|last| self.get(last))
    }

    /// Removes the first `count` keys.
    pub(super) fn remove_front(&mut self, count: usize) {
        let bytes = count.checked_sub(1).and_then(|last| self.ends.get(last));
        let bytes = bytes.copied().unwrap_or(0);
        self.bytes.drain(..bytes);
        self.ends.drain(..count);
        self.ends.iter_mut().for_each(|end| *end -= bytes);
    }

    /// Empties the list and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Number of keys.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all keys.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory it holds.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    /// The key at `index`; empty past the end.
    #[inline]
    pub(super) fn get(&self, index: usize) -> &[u8] {
        let end = self.ends.get(index).copied().unwrap_or(0);
        let before = index.checked_sub(1);
        let start = before.and_then(|before| self.ends.get(before).copied());
        self.bytes.get(start.unwrap_or(0)..end).unwrap_or(&[])
    }

    /// The keys from `from` up to, not including, `until`.
    pub(super) fn range(
        &self,
        from: usize,
        until: usize,
    ) -> impl Iterator<Item = &[u8]> + Clone + '_ {
        (from..until.min(self.len())).map(|index| self.get(index))
    }

    /// The buffer to decode keys into, with the ends of those that are in it.
    pub(super) fn parts_mut(&mut self) -> (&mut Vec<u8>, &mut Vec<usize>) {
        (&mut self.bytes, &mut self.ends)
    }
}
