//! Data sets by name: a spec says kind, size and seed, and makes the set.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use drumlin_base::{Error, Result};
use drumlin_fs::Env;

use super::english::english;
use super::markov::Chain;
use super::packages::{contents, packages};
use super::random::RandomSet;
use super::reviews::Reviews;
use super::rows::LineItemSet;
use super::set::DataSet;

/// Bytes of English text that the chain of reviews is made of.
const CHAIN_BYTES: u64 = 24 << 20;
/// Documentation that is there on most machines.
const DOCUMENTATION: &str = "/usr/share/doc";
/// Bytes of a random record's value.
const RANDOM_BYTES: usize = 400;

/// The kind of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TPC-H rows, comments from a pool in proportion to the data.
    LineItem,
    /// TPC-H rows with text that never repeats.
    LineItemFresh,
    /// English prose.
    English,
    /// Debian's package index.
    Packages,
    /// Paths and the packages that have them.
    Contents,
    /// Product reviews.
    Reviews,
    /// Bytes that do not compress.
    Random,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::LineItem,
        Self::LineItemFresh,
        Self::English,
        Self::Packages,
        Self::Contents,
        Self::Reviews,
        Self::Random,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::LineItem => "lineitem",
            Self::LineItemFresh => "lineitem-fresh",
            Self::English => "english",
            Self::Packages => "packages",
            Self::Contents => "contents",
            Self::Reviews => "reviews",
            Self::Random => "random",
        }
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::invalid_argument(format!("there is no data set '{text}'; there is {names}"))
        })
    }
}

/// A data set: its kind, its size, and its source.
#[derive(Clone, Debug)]
pub struct DataSpec {
    /// The kind.
    pub kind: Kind,
    /// About how many bytes of keys and values, at most; sets taken from the machine may have less.
    pub bytes: u64,
    /// Changes the generated data.
    pub seed: u64,
    /// Directory of documentation, for English text and the chain of reviews.
    pub docs: Option<PathBuf>,
}

impl DataSpec {
    /// `kind` with `bytes` bytes, seed 0.
    pub fn new(kind: Kind, bytes: u64) -> Self {
        Self {
            kind,
            bytes,
            seed: 0,
            docs: None,
        }
    }

    /// Makes it. Cost: sets taken from the machine are read whole, and lineitem rows are generated
    /// once; the others are made record by record when asked for.
    ///
    /// # Errors
    /// `NotFound` when the machine lacks the source; `InvalidArgument` for sizes that cannot be
    /// made; `Io`.
    pub fn make(&self, env: &Env) -> Result<Arc<dyn DataSet>> {
        let bytes = self.bytes.max(1);
        Ok(match self.kind {
            Kind::LineItem => Arc::new(LineItemSet::sized(bytes, false, self.seed)?),
            Kind::LineItemFresh => Arc::new(LineItemSet::sized(bytes, true, self.seed)?),
            Kind::English => Arc::new(english(&self.docs(), bytes, env)?),
            Kind::Packages => Arc::new(packages(bytes)?),
            Kind::Contents => Arc::new(contents(bytes, env)?),
            Kind::Reviews => {
                let chain = self.chain(env)?;
                Arc::new(Reviews::sized(Arc::new(chain), bytes, self.seed))
            }
            Kind::Random => {
                let records = bytes / (RANDOM_BYTES as u64 + 16);
                Arc::new(RandomSet::new(records.max(1), RANDOM_BYTES, self.seed))
            }
        })
    }

    fn docs(&self) -> PathBuf {
        self.docs
            .clone()
            .unwrap_or_else(|| PathBuf::from(DOCUMENTATION))
    }

    fn chain(&self, env: &Env) -> Result<Chain> {
        let prose = english(&self.docs(), CHAIN_BYTES, env)?;
        let mut text = Vec::new();
        let mut value = Vec::new();
        for index in 0..prose.len() {
            prose.write_value(index, &mut value);
            text.extend_from_slice(&value);
            text.push(b'\n');
        }
        Chain::new(String::from_utf8_lossy(&text).split('\n'))
    }
}

#[cfg(test)]
mod tests {
    use super::super::set::tests::check;
    use super::*;

    #[test]
    fn every_data_set_has_a_name_that_is_understood() {
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse::<Kind>().ok(), Some(kind));
        }
        let error = "wine".parse::<Kind>().expect_err("no such set").to_string();
        assert!(error.contains("lineitem-fresh"), "{error}");
    }

    #[test]
    fn what_needs_nothing_of_the_machine_can_always_be_made() {
        for kind in [Kind::LineItem, Kind::LineItemFresh, Kind::Random] {
            let spec = DataSpec::new(kind, 100_000);
            check(&*spec.make(&Env::system()).expect("made"));
        }
    }
}
