//! Values, byte for byte as db_bench's `RandomGenerator` cuts them.
//!
//! A buffer of 1 MiB (or one value, if larger) is filled with pieces of 100 bytes whose first
//! `ratio` is random printable text, repeated to fill the piece. Values are cut from it one after
//! the other, starting again where the next would not fit.

const PIECE_BYTES: usize = 100;
const BUFFER_BYTES_MIN: usize = 1 << 20;

/// The Lehmer generator of Park and Miller (CACM 31, 1988) that the pieces are drawn from.
struct Lehmer {
    seed: u64,
}

impl Lehmer {
    const MODULUS: u64 = (1 << 31) - 1;

    fn next(&mut self) -> u64 {
        self.seed = self.seed * 16_807 % Self::MODULUS;
        self.seed
    }
}

/// Cuts values from a buffer of known compressibility. One per thread.
#[derive(Debug)]
pub struct Values {
    buffer: Vec<u8>,
    position: usize,
}

impl Values {
    /// Values of at most `value_bytes_max` that shrink to about `ratio` of their size.
    pub fn new(ratio: f64, value_bytes_max: usize) -> Self {
        let wanted = BUFFER_BYTES_MIN.max(value_bytes_max);
        let raw_bytes = ((PIECE_BYTES as f64 * ratio) as usize).clamp(1, PIECE_BYTES);
        let mut random = Lehmer { seed: 301 };
        let mut buffer = Vec::with_capacity(wanted + PIECE_BYTES);
        while buffer.len() < wanted {
            let raw: Vec<u8> = (0..raw_bytes)
                .map(|_| b' ' + (random.next() % 95) as u8)
                .collect();
            buffer.extend(raw.iter().cycle().take(PIECE_BYTES));
        }
        Self {
            buffer,
            position: 0,
        }
    }

    /// The next value of `bytes` bytes.
    ///
    /// # Panics
    /// When `bytes` is more than the buffer was made for.
    #[inline]
    pub fn next(&mut self, bytes: usize) -> &[u8] {
        debug_assert!(bytes <= self.buffer.len());
        if self.position + bytes > self.buffer.len() {
            self.position = 0;
        }
        let start = self.position;
        self.position += bytes;
        &self.buffer[start..self.position]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_ones_db_bench_writes() {
        // From a database that db_bench 7.8.3 filled with --value_size=60, read with ldb.
        let mut values = Values::new(0.5, 60);
        assert_eq!(
            values.next(60),
            b"^{Vhz\"!/%wMZ;'a F/REZJ4Tw@%NXxy2?.ArVCZ2B6[jnUd)4 ^{Vhz\"!/%w"
        );
        assert_eq!(&values.next(60)[..10], b"MZ;'a F/RE");
    }

    #[test]
    fn a_value_larger_than_the_buffer_makes_the_buffer_larger() {
        let mut values = Values::new(0.5, 3 << 20);
        assert_eq!(values.next(3 << 20).len(), 3 << 20);
        assert_eq!(values.next(3 << 20).len(), 3 << 20);
    }
}
