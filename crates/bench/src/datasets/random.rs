//! Records that no codec makes smaller: bytes of SplitMix64, seeded by the record's number.

use drumlin_base::rng::Rng;

use super::set::DataSet;

/// Keys of 16 and values of `value_bytes` random bytes.
#[derive(Clone, Copy, Debug)]
pub struct RandomSet {
    records: u64,
    value_bytes: usize,
    seed: u64,
}

impl RandomSet {
    /// `records` records.
    pub fn new(records: u64, value_bytes: usize, seed: u64) -> Self {
        Self {
            records,
            value_bytes,
            seed,
        }
    }

    fn rng(&self, index: u64) -> Rng {
        Rng::new(self.seed ^ index.wrapping_mul(0xd6e8_feb8_6659_fd93))
    }
}

impl DataSet for RandomSet {
    fn title(&self) -> String {
        format!(
            "random bytes, values of {}, seed {}",
            self.value_bytes, self.seed
        )
    }

    fn len(&self) -> u64 {
        self.records
    }

    fn write_key(&self, index: u64, out: &mut Vec<u8>) {
        out.clear();
        // The second half is the index spread by an odd factor: two keys cannot be the same.
        out.extend_from_slice(&self.rng(index).next_u64().to_be_bytes());
        let spread = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.seed;
        out.extend_from_slice(&spread.to_be_bytes());
    }

    fn write_value(&self, index: u64, out: &mut Vec<u8>) {
        let mut rng = self.rng(index);
        rng.next_u64();
        out.clear();
        out.resize(self.value_bytes, 0);
        rng.fill(out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::set::tests::check;
    use super::super::set::totals;
    use super::*;

    #[test]
    fn records_are_fixed_by_their_seed() {
        let set = RandomSet::new(500, 37, 7);
        check(&set);
        let sums = totals(&set);
        assert_eq!((sums.key_bytes, sums.value_bytes), (8000, 18_500));
        assert_ne!(sums, totals(&RandomSet::new(500, 37, 8)));
    }
}
