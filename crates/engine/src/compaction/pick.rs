//! The picker of each style, behind one door.

use super::blob_picker;
use super::fifo::Fifo;
use super::for_reads::Account;
use super::leveled::{self, Leveled};
use super::plan::{CompactionOptions, InFlight, Moment, Picker, Plan};
use super::style::CompactionStyle;
use super::universal::{self, Universal};
use crate::version::Version;

/// The most urgent plan of the family's style that conflicts with none in flight; `None` when
/// nothing is due, and always for the manual style.
pub(crate) fn pick(
    version: &Version,
    options: &CompactionOptions,
    moment: &Moment<'_>,
) -> Option<Plan> {
    let by_shape = match options.style {
        CompactionStyle::Auto | CompactionStyle::Leveled => Leveled.pick(version, options, moment),
        CompactionStyle::Universal(limits) => Universal { limits }.pick(version, options, moment),
        CompactionStyle::Fifo(limits) => return Fifo { limits }.pick(version, options, moment),
        CompactionStyle::Manual => return None,
    };
    let garbage = blob_picker::pick(version, options, moment);
    let plans = by_shape.into_iter().chain(garbage);
    plans.max_by(|a, b| a.score.total_cmp(&b.score))
}

/// The charge reads have paid for the compaction they are nearest to getting, and its price; `None`
/// when they paid nothing, or the style does nothing for them.
pub(crate) fn read_account(
    version: &Version,
    options: &CompactionOptions,
    in_flight: &InFlight,
) -> Option<Account> {
    match options.style {
        CompactionStyle::Auto | CompactionStyle::Leveled => {
            Leveled.read_account(version, options, in_flight)
        }
        _ => None,
    }
}

/// Whether the flushed tables that no job has are so many that the style will compact them.
pub(crate) fn l0_is_due(version: &Version, options: &CompactionOptions) -> bool {
    match &options.style {
        CompactionStyle::Auto | CompactionStyle::Leveled => {
            let idle = version.level(0).iter().filter(|file| !file.is_compacting());
            idle.count() >= options.l0_trigger
        }
        CompactionStyle::Universal(limits) => universal::pending_bytes(version, limits) > 0,
        CompactionStyle::Fifo(_) | CompactionStyle::Manual => false,
    }
}

/// Bytes that compactions will have to write until the tree is in the style's shape: the measure that
/// slows writers.
pub(crate) fn pending_bytes(version: &Version, options: &CompactionOptions) -> u64 {
    match &options.style {
        CompactionStyle::Auto | CompactionStyle::Leveled => {
            leveled::pending_compaction_bytes(version, options)
        }
        CompactionStyle::Universal(limits) => universal::pending_bytes(version, limits),
        CompactionStyle::Fifo(_) | CompactionStyle::Manual => 0,
    }
}
