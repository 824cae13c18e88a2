//! Compactions that reads pay for.
//!
//! Over one sorted run a get asks one table, a seek stands once, a walk merges nothing. Each further
//! run costs every read something, and merging the runs costs once. So reads keep an account: their
//! losses to a table above older ones are charged to it (sampled, see `read::sampling`), in bytes
//! that are worth rewriting to spare them. When the tables of a plan were charged with as many bytes as
//! it would read, reads have lost about what it costs, and may be expected to lose that again.
//!
//! Writing is bounded: each read pays for so many bytes, no more. While the store is written as
//! well, nothing is done within some seconds of a flush nor while the next is near, so that at most one
//! begins between two flushes a minute apart, and only what rewrites no more for each byte
//! moved than levels cost anyway. A store that is not written any more ends as one run, without charges.
//!
//! Where flushes follow closer, the levels' own compactions come soon: beside 80,000 writes of 100 bytes a second,
//! the 1.1 GB over 50 M keys were rewritten for reads about as often as they were flushed, in time of the readers.

use super::plan::{CompactionOptions, Moment, Plan, Work};
use crate::version::Version;

/// Charges that are no reason yet, whatever the price: small ones are mostly the luck of sampling.
const CREDIT_MIN: u64 = 8 << 20;

/// Seconds after a flush in which nothing is done for reads: the next one may be near.
const SETTLED_SECONDS: u64 = 5;

/// Seconds before a flush in which nothing is done for reads: its table would soon be above the merged run.
const NEAR_SECONDS: u64 = 60;

/// Seconds after a flush until the store counts as not written.
const SILENT_SECONDS: u64 = 60;

/// The price of a plan, and the charge reads have paid for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    /// The loss of reads to the tables that would go down, in bytes worth rewriting.
    pub credit: u64,
    /// The bytes the plan would rewrite.
    pub price: u64,
}

impl Account {
    /// The account of `plan`.
    pub(crate) fn of(plan: &Plan) -> Self {
        let upper = plan.files().filter(|(level, _)| *level == plan.level);
        let price = match plan.work {
            Work::Rewrite => plan.input_bytes(),
            Work::Move | Work::Drop => 0,
        };
        Self {
            credit: upper.map(|(_, file)| file.read_charge()).sum(),
            price: price.max(CREDIT_MIN),
        }
    }

    /// Whether the price is paid.
    pub(crate) fn is_paid(&self) -> bool {
        self.credit >= self.price
    }

    /// The part of the price that is paid; 1 is all of it.
    pub(crate) fn share(&self) -> f64 {
        self.credit as f64 / self.price as f64
    }
}

/// Whether anything at all may be done for reads now.
pub(crate) fn is_time(version: &Version, moment: &Moment<'_>) -> bool {
    moment.is_quiet && seconds_since_flush(version, moment.now) >= SETTLED_SECONDS
}

/// Whether a run merged for reads now would stay so for a while.
pub(crate) fn is_lasting(moment: &Moment<'_>) -> bool {
    moment.flush_cf >= NEAR_SECONDS
}

/// Whether `plan` may be carried out for reads, if it is paid: always in a store that is not written,
/// else when it rewrites no more of the lower level than a table that goes down usually meets.
pub(crate) fn is_bounded(
    plan: &Plan,
    version: &Version,
    options: &CompactionOptions,
    moment: &Moment<'_>,
) -> bool {
    if seconds_since_flush(version, moment.now) >= SILENT_SECONDS {
        return true;
    }
    let upper = plan.files().filter(|(level, _)| *level == plan.level);
    let upper: u64 = upper.map(|(_, file)| file.size).sum();
    plan.input_bytes() - upper <= upper.saturating_mul(options.level_multiplier)
}

/// Seconds since the newest table of L0 was made; `u64::MAX` when there is none.
fn seconds_since_flush(version: &Version, now: u64) -> u64 {
    let tables = version.level(0).iter();
    // A clock set back must not silence this for as long.
    let ages = tables.map(|table| now.abs_diff(table.creation_time));
    ages.min().unwrap_or(u64::MAX)
}
