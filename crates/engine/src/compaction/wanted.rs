//! Tables that ask to be compacted for their own sake, at any size of their level.
//!
//! - Tables dense in tombstones: their writer marked them, their properties show it, or walks have
//!   wasted time in them. They go down until nothing is left that their tombstones could hide.
//! - Tables with nothing below them that keep what only a snapshot protected: their writer marked
//!   them. They are rewritten where they are once no snapshot is older than their newest entry.
//! - Tables whose oldest data is old: they go down, so that deleted data is dropped at last. With a
//!   compaction filter, those at the bottom are rewritten, so that the filter sees everything in time.
//!
//! Every rewriting takes the reason away or moves the table one level down, so all of this ends.

use super::plan::{CompactionOptions, Moment};
use crate::version::{FileMeta, Version};
use crate::watch::reason::Reason;

/// The compaction a table asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To go to the next level.
    Down(Reason),
    /// To be rewritten where it is.
    InPlace(Reason),
}

/// The wish of `file` in `level`; `None` for nearly all tables, at the cost of a few loads.
pub(crate) fn wish(
    version: &Version,
    options: &CompactionOptions,
    moment: &Moment<'_>,
    level: usize,
    file: &FileMeta,
) -> Option<Wish> {
    let is_marked = file.marked_for_compaction || file.is_wasteful();
    let is_marked = is_marked || (level > 0 && file.is_mostly_tombstones());
    let reached = |time: u64| {
        let age_max = options.age_max_seconds;
        time > 0 && age_max.is_some_and(|age| time.saturating_add(age) <= moment.now)
    };
    let is_old = reached(file.oldest_ancestor_time);
    let is_due = options.filters && reached(file.creation_time);
    if !is_marked && !is_old && !is_due {
        return None;
    }
    if level == 0 || has_older_below(version, options, level, file) {
        let reason = if is_marked {
            Reason::Marked
        } else {
            Reason::Aged
        };
        return Some(Wish::Down(reason));
    }
    // When every reader sees all of it, only the newest versions need to be kept; and once that was
    // done, all sequence numbers are zero.
    let can_shed = file.largest_seqno != 0 && file.largest_seqno <= moment.oldest_snapshot;
    match (is_marked && can_shed, is_due) {
        (true, _) => Some(Wish::InPlace(Reason::Marked)),
        (false, true) => Some(Wish::InPlace(Reason::Aged)),
        (false, false) => None,
    }
}

/// Whether a deeper level has tables in the file's range.
fn has_older_below(
    version: &Version,
    options: &CompactionOptions,
    level: usize,
    file: &FileMeta,
) -> bool {
    let (first, last) = (file.smallest_user_key(), file.largest_user_key());
    let deepest = version.deepest_level().unwrap_or(0);
    (level + 1..=deepest)
        .any(|deeper| version.overlaps(&options.order, deeper, Some(first), Some(last)))
}
