//! A fuzzer's bytes, taken apart from the front.

/// Takes small values from a fuzzer's bytes. Values past the end are zero or empty, so every input
/// means something.
#[derive(Debug)]
pub(crate) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Everything not taken yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn byte(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((&byte, rest)) => {
                self.rest = rest;
                byte
            }
            None => 0,
        }
    }

    /// A number in `0..bound`, from one byte. Requires: `bound > 0`.
    pub(crate) fn below(&mut self, bound: u8) -> u8 {
        self.byte() % bound
    }

    pub(crate) fn u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        for slot in &mut bytes {
            *slot = self.byte();
        }
        u64::from_le_bytes(bytes)
    }

    /// The next `len` bytes, or as many as there are.
    pub(crate) fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// A key of few letters and at most `len_max` bytes, so that keys meet often.
    pub(crate) fn key(&mut self, len_max: u8) -> Vec<u8> {
        let len = usize::from(self.below(len_max + 1));
        let letters = [b'a', b'b', b'c', 0x00, 0xFF];
        let picked = self.take(len).iter();
        picked
            .map(|byte| letters[usize::from(*byte) % letters.len()])
            .collect()
    }
}
