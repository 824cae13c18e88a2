//! `math.random` with the numbers that Redis gives, on every machine the same.

/// The congruential generator of 48 bits of the `rand48` functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random {
    state: u64,
}

const MASK: u64 = (1 << 48) - 1;
const LOW: u64 = 0x330e;

impl Default for Random {
    fn default() -> Self {
        Self {
            state: 0x1234_abcd_330e,
        }
    }
}

impl Random {
    /// Starts the sequence of `seed`.
    pub(crate) fn reseed(&mut self, seed: i32) {
        self.state = u64::from(seed.cast_unsigned()) << 16 | LOW;
    }

    /// The next number: 0 or more, below 2^31.
    pub(crate) fn next(&mut self) -> u32 {
        self.state = self.state.wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & MASK;
        (self.state >> 17) as u32
    }

    /// The next fraction, below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        const MOST: u32 = i32::MAX as u32;
        f64::from(self.next() % MOST) / f64::from(MOST)
    }
}
