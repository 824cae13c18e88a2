//! The choice of the next record.

use drumlin_base::rng::Rng;
use drumlin_base::{Error, Result};

use crate::distributions::{Exponential, Hotspot, ScrambledZipfian, Zipfian};
use crate::properties::Properties;

/// A request distribution over the records that are there; one for each thread.
#[derive(Clone, Debug)]
pub(crate) enum Chooser {
    /// Each as often.
    Uniform {
        /// Records when the run began.
        records: u64,
    },
    /// Some far more often, anywhere.
    Zipfian(ScrambledZipfian),
    /// The newest most often.
    Latest(Box<Zipfian>),
    /// A part of the records in most requests.
    Hotspot(Hotspot),
    /// The newest most often, falling off exponentially.
    Exponential(Exponential),
    /// One after the other.
    Sequential {
        /// The next.
        next: u64,
        /// Records when the run began.
        records: u64,
    },
}

impl Chooser {
    /// The chooser of `properties`, over `records` records to which `added` may come.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown distribution.
    pub(crate) fn new(properties: &Properties, records: u64, added: u64) -> Result<Self> {
        let name = properties.text("requestdistribution", "uniform");
        Ok(match name.as_str() {
            "uniform" => Self::Uniform { records },
            "zipfian" => Self::Zipfian(ScrambledZipfian::new(records + added)),
            "latest" => Self::Latest(Box::new(Zipfian::new(records, 0.99))),
            "hotspot" => Self::Hotspot(Hotspot::new(
                records,
                properties.number("hotspotdatafraction", 0.2)?,
                properties.number("hotspotopnfraction", 0.8)?,
            )),
            "exponential" => {
                let percentile = properties.number("exponential.percentile", 95.0)?;
                let part = properties.number("exponential.frac", 0.857_142_857_1)?;
                Self::Exponential(Exponential::new(percentile, records as f64 * part))
            }
            "sequential" => Self::Sequential { next: 0, records },
            _ => {
                let message = format!(
                    "requestdistribution={name}: there is uniform, zipfian, latest, hotspot, \
                     exponential and sequential"
                );
                return Err(Error::invalid_argument(message));
            }
        })
    }

    /// The next record's number, at most `last`, the last that is there.
    pub(crate) fn next(&mut self, last: u64, rng: &mut Rng) -> u64 {
        match self {
            Self::Uniform { records } => rng.below(*records),
            // Numbers beyond are of records still to be added.
            Self::Zipfian(zipfian) => loop {
                let number = zipfian.next(rng);
                if number <= last {
                    return number;
                }
            },
            Self::Latest(zipfian) => {
                zipfian.grow(last + 1);
                last - zipfian.next(rng).min(last)
            }
            Self::Hotspot(hotspot) => hotspot.next(rng),
            Self::Exponential(exponential) => loop {
                if let Some(number) = last.checked_sub(exponential.next(rng)) {
                    return number;
                }
            },
            Self::Sequential { next, records } => {
                let number = *next % (*records).max(1);
                *next += 1;
                number
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chooser(distribution: &str) -> Result<Chooser> {
        let mut properties = Properties::default();
        properties.set("requestdistribution", distribution);
        Chooser::new(&properties, 1000, 50)
    }

    #[test]
    fn no_distribution_asks_for_a_record_that_is_not_there() {
        let mut rng = Rng::new(3);
        for name in [
            "uniform",
            "zipfian",
            "latest",
            "hotspot",
            "exponential",
            "sequential",
        ] {
            let mut chooser = chooser(name).expect(name);
            for round in 0..20_000 {
                let last = 999 + round % 50;
                assert!(chooser.next(last, &mut rng) <= last, "{name}");
            }
        }
        assert!(chooser("normal").is_err());
    }

    #[test]
    fn the_newest_record_is_asked_for_most() {
        let mut rng = Rng::new(4);
        for (name, from) in [("latest", 0.12), ("exponential", 0.003)] {
            let mut chooser = chooser(name).expect(name);
            let hits = (0..10_000)
                .filter(|_| chooser.next(1020, &mut rng) == 1020)
                .count();
            assert!(hits as f64 / 10_000.0 > from, "{name}: {hits}");
        }
    }
}
