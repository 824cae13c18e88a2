//! Random numbers in YCSB's distributions.
//!
//! Each is the definition of the original, its off-by-ones included, so that the share of requests
//! that a key gets is the same. The generator underneath is ours.

use drumlin_base::rng::Rng;

use crate::keys::hash;

/// The skew that YCSB uses unless told otherwise.
pub const ZIPFIAN_CONSTANT: f64 = 0.99;
/// Items of the distribution that is scrambled, and its zeta.
const SCRAMBLED_ITEMS: u64 = 10_000_000_000;
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// Numbers, the smaller the more frequent: number `i` has a share in proportion to `1 / (i +
/// 1)^theta` (Gray and others: Quickly Generating Billion-Record Synthetic Databases, SIGMOD 1994).
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    theta: f64,
    zeta: f64,
    /// Of two items.
    zeta_2: f64,
    alpha: f64,
    eta: f64,
}

impl Zipfian {
    /// Numbers below `items`. Cost: a power for each item.
    pub fn new(items: u64, theta: f64) -> Self {
        let items = items.max(1);
        Self::with_zeta(items, theta, zeta(0, items, theta, 0.0))
    }

    fn with_zeta(items: u64, theta: f64, zeta_items: f64) -> Self {
        let mut made = Self {
            items,
            theta,
            zeta: zeta_items,
            zeta_2: zeta(0, 2, theta, 0.0),
            alpha: 1.0 / (1.0 - theta),
            eta: 0.0,
        };
        made.eta = made.eta();
        made
    }

    fn eta(&self) -> f64 {
        (1.0 - (2.0 / self.items as f64).powf(1.0 - self.theta)) / (1.0 - self.zeta_2 / self.zeta)
    }

    /// Numbers below `items` from now on. Cost: a power for each item more; with fewer items the
    /// distribution stays as it was, as in the original.
    pub fn grow(&mut self, items: u64) {
        if items > self.items {
            self.zeta = zeta(self.items, items, self.theta, self.zeta);
            self.items = items;
            self.eta = self.eta();
        }
    }

    /// The next number.
    pub fn next(&self, rng: &mut Rng) -> u64 {
        let u = rng.unit();
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5f64.powf(self.theta) {
            return 1;
        }
        let share = (self.eta * u - self.eta + 1.0).powf(self.alpha);
        ((self.items as f64 * share) as u64).min(self.items - 1)
    }
}

/// `sum` and the terms from `from` to `to` of the generalized harmonic series.
fn zeta(from: u64, to: u64, theta: f64, sum: f64) -> f64 {
    (from..to).fold(sum, |sum, item| sum + 1.0 / ((item + 1) as f64).powf(theta))
}

/// Zipfian over ten thousand million items, hashed onto fewer: the popular ones are anywhere, and stay
/// where they are when records are added.
#[derive(Clone, Debug)]
pub struct ScrambledZipfian {
    zipfian: Zipfian,
    items: u64,
}

impl ScrambledZipfian {
    /// Numbers up to and including `last`.
    pub fn new(last: u64) -> Self {
        Self {
            zipfian: Zipfian::with_zeta(SCRAMBLED_ITEMS, ZIPFIAN_CONSTANT, SCRAMBLED_ZETA),
            items: last.saturating_add(1),
        }
    }

    /// The next number.
    pub fn next(&self, rng: &mut Rng) -> u64 {
        hash(self.zipfian.next(rng)) % self.items
    }
}

/// Numbers of a part of the range for a part of the draws, each of the two uniform.
#[derive(Clone, Copy, Debug)]
pub struct Hotspot {
    items: u64,
    hot_items: u64,
    hot_share: f64,
}

impl Hotspot {
    /// Numbers below `items`: the first `hot_part` of them make `hot_share` of the draws.
    pub fn new(items: u64, hot_part: f64, hot_share: f64) -> Self {
        let items = items.max(1);
        Self {
            items,
            hot_items: (items as f64 * hot_part.clamp(0.0, 1.0)) as u64,
            hot_share: hot_share.clamp(0.0, 1.0),
        }
    }

    /// The next number.
    pub fn next(&self, rng: &mut Rng) -> u64 {
        let cold = self.items - self.hot_items;
        if self.hot_items > 0 && (cold == 0 || rng.unit() < self.hot_share) {
            return rng.below(self.hot_items);
        }
        self.hot_items + rng.below(cold)
    }
}

/// Numbers whose frequency falls by the same factor from one to the next.
#[derive(Clone, Copy, Debug)]
pub struct Exponential {
    gamma: f64,
}

impl Exponential {
    /// `percentile` percent of the draws are below `range`.
    pub fn new(percentile: f64, range: f64) -> Self {
        let beyond = (1.0 - percentile / 100.0).clamp(1e-12, 1.0);
        Self {
            gamma: -beyond.ln() / range.max(1.0),
        }
    }

    /// The next number; there is no greatest.
    pub fn next(&self, rng: &mut Rng) -> u64 {
        (-(1.0 - rng.unit()).ln() / self.gamma) as u64
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the draws have the distribution of the definition. Method: Pearson's chi-square of many
    //! draws against the shares the definition gives; bounds are far beyond the quantile of one in a
    //! million, for the seeds are fixed.

    use super::*;

    const DRAWS: u64 = 400_000;

    /// Chi-square over its degrees of freedom.
    fn chi_square(counts: &[u64], shares: &[f64]) -> f64 {
        let sum: f64 = shares.iter().sum();
        let draws = counts.iter().sum::<u64>() as f64;
        let terms = counts.iter().zip(shares).map(|(count, share)| {
            let expected = draws * share / sum;
            (*count as f64 - expected).powi(2) / expected
        });
        terms.sum::<f64>() / (counts.len() - 1) as f64
    }

    fn count(items: usize, mut draw: impl FnMut() -> u64) -> Vec<u64> {
        let mut counts = vec![0; items];
        for _ in 0..DRAWS {
            counts[draw() as usize] += 1;
        }
        counts
    }

    #[test]
    fn zipfian_numbers_have_their_shares() {
        // The generator is exact for the first two items and an approximation beyond (Gray and others),
        // so those two are held to the definition, and the tail to the distribution's own integral.
        for (items, theta) in [(100u64, 0.99), (1000, 0.99), (1000, 0.5)] {
            let zipfian = Zipfian::new(items, theta);
            let mut rng = Rng::new(11);
            let counts = count(items as usize, || zipfian.next(&mut rng));
            let total: f64 = (1..=items).map(|i| (i as f64).powf(-theta)).sum();
            let first = counts[0] as f64 / DRAWS as f64 * total;
            let second = counts[1] as f64 / DRAWS as f64 * total;
            assert!((0.97..1.03).contains(&first), "{first}");
            assert!(
                (0.95..1.05).contains(&(second * 2f64.powf(theta))),
                "{second}"
            );
            // Number i is drawn when u is between the values at which the formula gives i and i + 1.
            let u =
                |i: f64| ((i / items as f64).powf(1.0 - theta) - 1.0 + zipfian.eta) / zipfian.eta;
            let start = (1.0 + 0.5f64.powf(theta)) / zipfian.zeta;
            let shares: Vec<f64> = (2..items)
                .map(|i| u(i as f64 + 1.0).min(1.0) - u(i as f64).max(start))
                .collect();
            let tail = &counts[2..];
            let chi = chi_square(
                tail,
                &shares
                    .iter()
                    .map(|share| share.max(1e-9))
                    .collect::<Vec<_>>(),
            );
            assert!(chi < 1.5, "{items} {theta}: {chi}");
        }
    }

    #[test]
    fn growing_is_the_same_as_beginning_large() {
        let mut grown = Zipfian::new(10, 0.99);
        grown.grow(5000);
        grown.grow(400);
        let large = Zipfian::new(5000, 0.99);
        assert!((grown.zeta - large.zeta).abs() < 1e-9 && (grown.eta - large.eta).abs() < 1e-9);
    }

    #[test]
    fn the_constant_of_the_scrambled_distribution_is_right() {
        // zeta(n) - n^(1-theta)/(1-theta) converges; two sizes tell the constant of the third.
        let rest = |n: u64| zeta(0, n, 0.99, 0.0) - (n as f64).powf(0.01) / 0.01;
        let expected = rest(1_000_000) + (SCRAMBLED_ITEMS as f64).powf(0.01) / 0.01;
        assert!((expected - SCRAMBLED_ZETA).abs() < 1e-3, "{expected}");
    }

    #[test]
    fn scrambled_numbers_are_spread_and_the_hottest_is_the_hash_of_zero() {
        let scrambled = ScrambledZipfian::new(999);
        let mut rng = Rng::new(12);
        let counts = count(1000, || scrambled.next(&mut rng));
        let hottest = counts
            .iter()
            .enumerate()
            .max_by_key(|(_, count)| **count)
            .map(|(item, _)| item);
        assert_eq!(hottest, Some((hash(0) % 1000) as usize));
        let share = counts[hottest.unwrap_or(0)] as f64 / DRAWS as f64;
        assert!(
            (1.0 / SCRAMBLED_ZETA..1.0 / SCRAMBLED_ZETA + 0.003).contains(&share),
            "{share}"
        );
        assert!(counts.iter().all(|count| *count > 0));
    }

    #[test]
    fn hotspots_and_the_rest_are_uniform() {
        let hotspot = Hotspot::new(50, 0.2, 0.8);
        let mut rng = Rng::new(13);
        let counts = count(50, || hotspot.next(&mut rng));
        let shares: Vec<f64> = (0..50).map(|i| if i < 10 { 0.08 } else { 0.005 }).collect();
        let chi = chi_square(&counts, &shares);
        assert!(chi < 2.5, "{chi}");
        for (part, share) in [(0.0, 0.8), (1.0, 0.0)] {
            let hotspot = Hotspot::new(50, part, share);
            let chi = chi_square(&count(50, || hotspot.next(&mut rng)), &[1.0; 50]);
            assert!(chi < 2.5, "{part}: {chi}");
        }
    }

    #[test]
    fn exponential_numbers_fall_off() {
        let exponential = Exponential::new(95.0, 200.0);
        let mut rng = Rng::new(14);
        let counts = count(2000, || exponential.next(&mut rng).min(1999));
        let below = counts[..200].iter().sum::<u64>() as f64 / DRAWS as f64;
        assert!((0.949..0.951).contains(&below), "{below}");
        let at = |i: f64| (-exponential.gamma * i).exp();
        let shares: Vec<f64> = (0..300)
            .map(|i| at(f64::from(i)) - at(f64::from(i) + 1.0))
            .collect();
        let chi = chi_square(&counts[..300], &shares);
        assert!(chi < 1.6, "{chi}");
    }
}
