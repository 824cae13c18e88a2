//! Reviews of products, in the shape of the well-known movie reviews: eight fields, the first three of
//! which are the key.

use std::sync::Arc;

use drumlin_base::rng::Rng;

use super::markov::Chain;
use super::set::DataSet;

/// Reviews one product has on average, and one user writes.
const REVIEWS_PER_PRODUCT: u64 = 31;
const REVIEWS_PER_USER: u64 = 9;
/// Letters and digits of product numbers.
const SIGNS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const NAMES: [&str; 24] = [
    "Alex", "Anna", "Ben", "Carla", "Chris", "Dana", "David", "Ellen", "Frank", "Grace", "Henry",
    "Irene", "J.", "Karen", "L.", "Maria", "Nathan", "Olga", "Paul", "R.", "Sam", "Teresa",
    "Victor", "Wendy",
];
/// How many in a hundred give one to five stars.
const STARS: [u64; 5] = [8, 6, 11, 21, 54];
/// Median length of a text in bytes, and how far lengths spread (sigma of their logarithm).
const TEXT_BYTES: f64 = 640.0;
const TEXT_SPREAD: f64 = 0.95;
const TEXT_BYTES_MAX: f64 = 30_000.0;

/// Reviews, each made of its number alone.
///
/// The key is productId, userId and profileName with a blank between them; the value helpfulness, score,
/// time, summary and text with a TAB between them. Few products have most of the reviews (the number
/// of a product is drawn with the density of the square of a uniform number).
#[derive(Debug)]
pub struct Reviews {
    chain: Arc<Chain>,
    records: u64,
    seed: u64,
}

impl Reviews {
    /// `records` reviews written by `chain`.
    pub fn new(chain: Arc<Chain>, records: u64, seed: u64) -> Self {
        Self {
            chain,
            records,
            seed,
        }
    }

    /// As many reviews as come to about `bytes`.
    pub fn sized(chain: Arc<Chain>, bytes: u64, seed: u64) -> Self {
        let probe = Self::new(Arc::clone(&chain), 512, seed);
        let (mut key, mut value, mut sum) = (Vec::new(), Vec::new(), 0);
        for index in 0..probe.records {
            probe.write_key(index, &mut key);
            probe.write_value(index, &mut value);
            sum += (key.len() + value.len()) as u64;
        }
        let records = u128::from(bytes) * u128::from(probe.records) / u128::from(sum.max(1));
        let records = u64::try_from(records).unwrap_or(u64::MAX).max(1);
        Self::new(chain, records, seed)
    }

    fn rng(&self, index: u64) -> Rng {
        Rng::new(self.seed.rotate_left(17) ^ index.wrapping_mul(0xa076_1d64_78bd_642f))
    }
}

impl DataSet for Reviews {
    fn title(&self) -> String {
        let Self {
            records,
            seed,
            chain,
        } = self;
        let words = chain.words();
        format!("{records} reviews by a Markov chain over {words} words, seed {seed}")
    }

    fn len(&self) -> u64 {
        self.records
    }

    fn write_key(&self, index: u64, out: &mut Vec<u8>) {
        let mut rng = self.rng(index);
        let products = (self.records / REVIEWS_PER_PRODUCT).max(1);
        let users = (self.records / REVIEWS_PER_USER).max(1);
        let skewed = rng.unit();
        let product = (skewed * skewed * products as f64) as u64;
        let user = rng.below(users);
        out.clear();
        out.push(b'B');
        push_signs(product.wrapping_mul(1_000_003), 9, out);
        out.extend_from_slice(b" A");
        // The number of the review in the user's: one user may review one product twice.
        push_signs(user.wrapping_mul(0x9e37_79b1) ^ (index << 32), 13, out);
        out.push(b' ');
        // A user has one name.
        let mut rng = Rng::new(user ^ self.seed);
        let name = |rng: &mut Rng| {
            NAMES
                .get(rng.below(NAMES.len() as u64) as usize)
                .copied()
                .unwrap_or_default()
        };
        out.extend_from_slice(name(&mut rng).as_bytes());
        if !rng.one_in(3) {
            out.push(b' ');
            out.extend_from_slice(name(&mut rng).as_bytes());
        }
        if rng.one_in(4) {
            out.extend_from_slice(format!(" \"{}\"", name(&mut rng)).as_bytes());
        }
    }

    fn write_value(&self, index: u64, out: &mut Vec<u8>) {
        let mut rng = self.rng(index).fork();
        out.clear();
        let voters = if rng.one_in(2) {
            0
        } else {
            (rng.unit().powi(3) * 60.0) as u64
        };
        let helpful = rng.below(voters + 1);
        let mut draw = rng.below(100);
        let mut stars = 1;
        for (share, number) in STARS.iter().zip(1..) {
            stars = number;
            if draw < *share {
                break;
            }
            draw -= share;
        }
        let time = 872_000_000 + rng.below(479_000_000) / 86_400 * 86_400;
        out.extend_from_slice(format!("{helpful}/{voters}\t{stars}.0\t{time}\t").as_bytes());
        let summary = 12 + rng.below(30) as usize;
        self.chain.append(summary, &mut rng, out);
        out.push(b'\t');
        let length =
            (TEXT_BYTES * (TEXT_SPREAD * normal(&mut rng)).exp()).clamp(40.0, TEXT_BYTES_MAX);
        self.chain.append(length as usize, &mut rng, out);
    }
}

/// A draw from the standard normal distribution (Box and Muller, 1958).
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.unit()).cos()
}

/// `count` signs for `number`, the lowest last.
fn push_signs(number: u64, count: usize, out: &mut Vec<u8>) {
    let from = out.len();
    let mut rest = number;
    for _ in 0..count {
        out.push(SIGNS[(rest % 36) as usize]);
        rest /= 36;
    }
    out[from..].reverse();
}

#[cfg(test)]
mod tests {
    use super::super::set::tests::check;
    use super::super::set::totals;
    use super::*;

    fn chain() -> Arc<Chain> {
        let text = "The film was good. The actors were good and the end was sad! I saw it twice.";
        Arc::new(Chain::new([text].into_iter()).expect("a text"))
    }

    #[test]
    fn a_review_has_three_fields_in_its_key_and_five_in_its_value() {
        let set = Reviews::new(chain(), 3000, 4);
        check(&set);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for index in 0..set.len() {
            set.write_key(index, &mut key);
            set.write_value(index, &mut value);
            let (key, value) = (
                String::from_utf8_lossy(&key),
                String::from_utf8_lossy(&value),
            );
            assert!(key.splitn(3, ' ').count() == 3 && key.len() >= 26, "{key}");
            assert_eq!(value.split('\t').count(), 5, "{value}");
        }
    }

    #[test]
    fn reviews_come_to_the_bytes_asked_for_and_to_a_kilobyte_each() {
        let set = Reviews::sized(chain(), 2_000_000, 9);
        let sums = totals(&set);
        let bytes = sums.key_bytes + sums.value_bytes;
        assert!((1_700_000..2_300_000).contains(&bytes), "{sums:?}");
        let each = bytes / sums.records;
        assert!((850..1300).contains(&each), "{each}");
        assert_ne!(sums, totals(&Reviews::sized(chain(), 2_000_000, 10)));
    }
}
