//! Builds blocks, one after the other, at the end of one growing buffer.
//!
//! The writer appends whole runs of finished blocks to the file, so a block is built where it will
//! be written from: an uncompressed block is never copied between the builder and the file.

use drumlin_base::coding::put_fixed32;

/// Appends prefix-compressed entries to a buffer that it owns.
///
/// Invariant: `buffer[..base]` are finished bytes that belong to the caller, `buffer[base..]` is the
/// block being built. Keys are added in ascending order (the caller checks).
#[derive(Debug)]
pub(crate) struct BlockBuilder {
    buffer: Vec<u8>,
    base: usize,
    restarts: Vec<u32>,
    restart_interval: usize,
    since_restart: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    /// A builder that stores every `restart_interval`th key whole.
    pub(crate) fn new(restart_interval: usize) -> Self {
        Self {
            buffer: Vec::new(),
            base: 0,
            restarts: vec![0],
            restart_interval: restart_interval.max(1),
            since_restart: 0,
            last_key: Vec::new(),
        }
    }

    /// Whether the present block has no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.len() == self.base
    }

    /// Where the present block begins in the buffer.
    pub(crate) fn start(&self) -> usize {
        self.base
    }

    /// Bytes in the buffer, of finished blocks and the present one.
    pub(crate) fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Size of the present block if it were finished now.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.buffer.len() - self.base + 4 * (self.restarts.len() + 1)
    }

    /// The key added last, to the present block or the one before.
    #[inline]
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Adds an entry.
    #[inline]
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) {
        let shared = self.start_entry(key, false);
        let unshared = own_bytes(key, shared);
        let (s, u, v) = (shared, unshared.len(), value.len());
        if (s | u | v) < 0x80 {
            self.buffer.extend_from_slice(&[s as u8, u as u8, v as u8]);
        } else {
            self.put_lengths(&[s, u, v]);
        }
        self.buffer.extend_from_slice(unshared);
        self.buffer.extend_from_slice(value);
        self.remember(shared, key);
    }

    /// Adds an entry without a value length, as index blocks of format version 4 and later have it:
    /// `full` is stored where the key is stored whole, `delta` where it shares bytes with the key
    /// before it. Without a delta the key is stored whole.
    pub(crate) fn add_index(&mut self, key: &[u8], full: &[u8], delta: Option<&[u8]>) {
        let shared = self.start_entry(key, delta.is_none());
        let unshared = own_bytes(key, shared);
        self.put_lengths(&[shared, unshared.len()]);
        self.buffer.extend_from_slice(unshared);
        let value = delta.filter(|_| shared > 0).unwrap_or(full);
        self.buffer.extend_from_slice(value);
        self.remember(shared, key);
    }

    /// Ends the present block: appends its restart points. Returns where it begins in the buffer.
    pub(crate) fn finish(&mut self) -> usize {
        assert!(!self.restarts.is_empty(), "a block has a restart point");
        debug_assert!(
            self.restarts.is_sorted_by(|a, b| a < b),
            "restart points ascend"
        );
        for restart in &self.restarts {
            put_fixed32(&mut self.buffer, *restart);
        }
        put_fixed32(&mut self.buffer, self.restarts.len() as u32);
        self.base
    }

    /// Begins the next block behind the bytes that the caller has appended to [`Self::buffer_mut`].
    pub(crate) fn start_next(&mut self) {
        self.base = self.buffer.len();
        self.restarts.clear();
        self.restarts.push(0);
        self.since_restart = 0;
    }

    /// The whole buffer. While no block is open the caller may take, compress and append.
    pub(crate) fn buffer_mut(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Takes a finished single block out, for builders that build only one.
    pub(crate) fn into_block(mut self) -> Vec<u8> {
        self.finish();
        self.buffer
    }

    /// Counts the entry and returns how many bytes it may share with the key before it.
    #[inline]
    fn start_entry(&mut self, key: &[u8], whole: bool) -> usize {
        if self.since_restart >= self.restart_interval {
            self.restarts.push((self.buffer.len() - self.base) as u32);
            self.since_restart = 0;
        }
        self.since_restart += 1;
        if whole || self.since_restart == 1 {
            return 0;
        }
        common_prefix(&self.last_key, key)
    }

    #[inline]
    fn remember(&mut self, shared: usize, key: &[u8]) {
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(own_bytes(key, shared));
    }

    #[inline(never)]
    fn put_lengths(&mut self, lengths: &[usize]) {
        for &length in lengths {
            drumlin_base::coding::put_varint64(&mut self.buffer, length as u64);
        }
    }
}

/// The bytes of `key` behind the `shared` bytes of the key before it.
#[inline]
fn own_bytes(key: &[u8], shared: usize) -> &[u8] {
    key.get(shared..)
        .expect("a key shares no more bytes than it has")
}

/// Length of the longest common prefix, eight bytes at a time.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut common = 0;
    for (x, y) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let (Ok(x), Ok(y)) = (x.try_into(), y.try_into()) else {
            break;
        };
        let differ = u64::from_le_bytes(x) ^ u64::from_le_bytes(y);
        if differ != 0 {
            return common + differ.trailing_zeros() as usize / 8;
        }
        common += 8;
    }
    let (a, b) = (
        a.get(common..).expect("whole chunks are common"),
        b.get(common..).expect("whole chunks are common"),
    );
    common + a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_prefix_agrees_with_the_byte_loop() {
        let mut rng = drumlin_base::rng::Rng::new(3);
        for _ in 0..2000 {
            let len = rng.below(40) as usize;
            let mut a = vec![7u8; len];
            let mut b = vec![7u8; rng.below(40) as usize];
            if rng.one_in(2)
                && let Some(byte) = a.last_mut()
            {
                *byte = 8;
            }
            if rng.one_in(2) && !b.is_empty() {
                let at = rng.below(b.len() as u64) as usize;
                b[at] = 9;
            }
            let naive = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
            assert_eq!(common_prefix(&a, &b), naive);
        }
    }

    #[test]
    fn blocks_are_built_one_behind_the_other() {
        let mut builder = BlockBuilder::new(2);
        for key in [&b"aa"[..], b"ab", b"b"] {
            builder.add(key, b"v");
        }
        assert_eq!(builder.size(), (5 + 1) + (4 + 1) + (4 + 1) + 12);
        assert_eq!(builder.finish(), 0);
        builder.start_next();
        assert!(builder.is_empty());
        builder.add(b"c", b"w");
        let base = builder.finish();
        assert_eq!(
            &builder.buffer_mut()[base..],
            b"\x00\x01\x01cw\0\0\0\0\x01\0\0\0"
        );
    }
}
