//! MT19937-64, the generator db_bench draws its keys from.
//!
//! Matsumoto and Nishimura, "Mersenne Twister" (ACM TOMACS 8, 1998), in its 64-bit form (2000);
//! the C++ standard fixes the constants ([rand.predef]). Used here, and only here, because the
//! same seed must give the same keys as the peer's benchmark.

const N: usize = 312;
const M: usize = 156;
const MATRIX: u64 = 0xb502_6f5a_a966_19e9;
const UPPER: u64 = 0xffff_ffff_8000_0000;
const LOWER: u64 = 0x7fff_ffff;

/// The generator: 2.5 KB of state, about 3 ns a draw.
#[derive(Clone, Debug)]
pub struct Mersenne64 {
    state: [u64; N],
    next: usize,
}

impl Mersenne64 {
    /// A generator whose sequence follows from `seed`.
    pub fn new(seed: u64) -> Self {
        let mut state = [0; N];
        let mut word = seed;
        for (index, slot) in state.iter_mut().enumerate() {
            if index > 0 {
                word = (word ^ (word >> 62))
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(index as u64);
            }
            *slot = word;
        }
        Self { state, next: N }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        if self.next >= N {
            self.refill();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= (word >> 29) & 0x5555_5555_5555_5555;
        word ^= (word << 17) & 0x71d6_7fff_eda6_0000;
        word ^= (word << 37) & 0xfff7_eee0_0000_0000;
        word ^ (word >> 43)
    }

    fn refill(&mut self) {
        for index in 0..N {
            let joined = (self.state[index] & UPPER) | (self.state[(index + 1) % N] & LOWER);
            let twist = if joined & 1 == 0 { 0 } else { MATRIX };
            self.state[index] = self.state[(index + M) % N] ^ (joined >> 1) ^ twist;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ten_thousandth_draw_is_the_one_the_standard_names() {
        let mut generator = Mersenne64::new(5489);
        let last = (0..10_000).map(|_| generator.next_u64()).last();
        assert_eq!(last, Some(9_981_545_732_273_789_042));
    }
}
