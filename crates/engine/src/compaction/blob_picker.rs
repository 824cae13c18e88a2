//! Emptying blob files that hold much garbage: compactions for no other reason.
//!
//! Compactions that run anyway, below L0, move blobs out of the files chosen by the version
//! ([`crate::version::blob_garbage`]). Other blobs there would stay: so while there is too
//! much garbage, tables that refer to a chosen file are rewritten in place, one range at a time.
//! Each rewriting leaves tables that are known not to refer to the files, so this ends.
//!
//! Values that L0 overwrites or deletes below are not known to be garbage. Once no flush came for some seconds
//! and the background has nothing else to do, tables of L0 that refer to more than a 64th of all
//! blob bytes go down, where that rewrites little, or once nobody has written for a minute; the values they hid
//! are counted, and collected, from then on. Like compactions for reads it gives way to writes.

use super::for_reads;
use super::leveled::base_level;
use super::style::UniversalOptions;
use super::universal::Universal;
use super::{
    CompactionOptions, CompactionStyle, InFlight, Leveled, ManualRange, Moment, Plan, Work,
};
use crate::version::Version;
use crate::watch::reason::Reason;

/// One in so many of all blob bytes may be referred to from L0 in a store at rest.
const HIDING_MAX: u64 = 64;

/// The next table to be rewritten so that blob files can be emptied, or the tables of L0 that may hide
/// much garbage; `None` while there is little, or when every such table is in use.
pub(crate) fn pick(
    version: &Version,
    options: &CompactionOptions,
    moment: &Moment<'_>,
) -> Option<Plan> {
    empty_files(version, options, moment.in_flight).or_else(|| uncover(version, options, moment))
}

/// L0 taken down, when its tables refer to many blobs in a store that is not written.
fn uncover(version: &Version, options: &CompactionOptions, moment: &Moment<'_>) -> Option<Plan> {
    if !moment.has_space || !is_leveled(&options.style) || !for_reads::is_time(version, moment) {
        return None;
    }
    let upper = version.level(0);
    let named = |number| upper.iter().any(|table| table.may_refer_to(number));
    let blobs = version.blobs().iter();
    let bytes: u64 = blobs
        .filter(|&(&number, _)| named(number))
        .map(|(_, blob)| blob.live_bytes())
        .sum();
    if bytes <= version.blob_totals().blob_bytes / HIDING_MAX {
        return None;
    }
    let range = ManualRange {
        level: 0,
        output_level: base_level(version, options),
        begin: None,
        end: None,
    };
    let plan = Leveled.plan_manual(version, options, moment.in_flight, &range)?;
    // In a store that is written now and then, only where little is rewritten beside the garbage that may be found.
    let is_worth_it = bytes >= plan.input_bytes();
    (is_worth_it || for_reads::is_bounded(&plan, version, options, moment)).then_some(Plan {
        reason: Reason::Hidden,
        ..plan
    })
}

fn empty_files(
    version: &Version,
    options: &CompactionOptions,
    in_flight: &InFlight,
) -> Option<Plan> {
    let collection = version.collection()?;
    let idle = collection.tables.iter();
    idle.filter(|(_, file)| !file.is_compacting())
        .find_map(|(level, file)| {
            if let CompactionStyle::Universal(limits) = options.style
                && limits.levels_max == 1
            {
                return whole(limits, version, options, in_flight, collection.urgency);
            }
            // Merging runs of L0 is the other styles' own work; they come to these by themselves.
            if *level == 0 && (in_flight.empties_l0() || !is_leveled(&options.style)) {
                return None;
            }
            let range = ManualRange {
                level: *level,
                output_level: match level {
                    0 => base_level(version, options),
                    level => *level,
                },
                begin: Some(file.smallest_user_key()),
                end: Some(file.largest_user_key()),
            };
            let plan = Leveled.plan_manual(version, options, in_flight, &range)?;
            Some(Plan {
                reason: Reason::BlobGarbage,
                score: collection.urgency,
                work: Work::Rewrite,
                ..plan
            })
        })
}

/// All runs merged: where there is only L0, no table of it can be rewritten alone.
fn whole(
    limits: UniversalOptions,
    version: &Version,
    options: &CompactionOptions,
    in_flight: &InFlight,
    score: f64,
) -> Option<Plan> {
    let plan = Universal { limits }.plan_whole(version, options, in_flight)?;
    Some(Plan {
        reason: Reason::BlobGarbage,
        score,
        ..plan
    })
}

fn is_leveled(style: &CompactionStyle) -> bool {
    matches!(style, CompactionStyle::Auto | CompactionStyle::Leveled)
}
