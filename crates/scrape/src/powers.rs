//! A distribution in buckets that end at powers of two.

/// Buckets: the last of them takes all that is larger.
const BUCKETS: usize = 25;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Powers {
    counts: [u64; BUCKETS],
    sum: u64,
}

impl Powers {
    /// Notes a value.
    pub fn record(&mut self, value: u64) {
        // The bucket of 2^n ends with it.
        let bits = u64::BITS - value.saturating_sub(1).leading_zeros();
        let bucket = (bits as usize).min(BUCKETS - 1);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum += value;
    }

    /// The ends of the buckets but the last, and how many values were at most that.
    pub fn up_to(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut seen = 0;
        let ended = self.counts.iter().take(BUCKETS - 1).enumerate();
        ended.map(move |(bucket, count)| {
            seen += count;
            (1 << bucket, seen)
        })
    }

    /// How many values there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// All of them together.
    pub fn sum(&self) -> u64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::Powers;

    /// Goal: a value is in the bucket that it does not exceed. Method: values at the ends of buckets and beyond the last.
    #[test]
    fn a_value_is_in_the_bucket_that_it_does_not_exceed() {
        let mut powers = Powers::default();
        for value in [0, 1, 2, 3, 4, 5, u64::from(u32::MAX)] {
            powers.record(value);
        }
        let first: Vec<_> = powers.up_to().take(4).collect();
        assert_eq!(first, [(1, 2), (2, 3), (4, 5), (8, 6)]);
        assert_eq!(powers.up_to().last(), Some((1 << 23, 6)));
        assert_eq!(
            (powers.count(), powers.sum()),
            (7, 15 + u64::from(u32::MAX))
        );
    }
}
