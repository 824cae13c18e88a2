//! The FIFO picker: the oldest tables are dropped, and nothing is rewritten.
//!
//! Tables of L0 go from the oldest on, so that no older version of a key comes to light again. Tables that
//! another style left in deeper levels are older still: they go first, the deepest level before the
//! others, in key order, because they do not record their age.

use std::sync::Arc;

use super::intra_l0;
use super::plan::{CompactionOptions, Moment, Picker, Plan, PlanInput, Work};
use super::style::FifoOptions;
use crate::version::{FileMeta, Version};
use crate::watch::reason::Reason;

/// The FIFO picker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fifo {
    /// Its limits.
    pub limits: FifoOptions,
}

impl Picker for Fifo {
    fn pick(
        &self,
        version: &Version,
        options: &CompactionOptions,
        moment: &Moment<'_>,
    ) -> Option<Plan> {
        let level = version.deepest_level()?;
        let files: Vec<&Arc<FileMeta>> = match level {
            0 => version.level(0).iter().rev().collect(),
            _ => version.level(level).iter().collect(),
        };
        let surplus = self.over_size(version.bytes_total(), &files);
        let expired = files
            .iter()
            .take_while(|file| self.is_expired(file, moment));
        let count = surplus.max(expired.count());
        let doomed = files
            .get(..count)
            .expect("the count was taken of the files");
        if !doomed.is_empty() {
            // An input that is being merged holds everything newer back as well.
            let idle = doomed.iter().take_while(|file| !file.is_compacting());
            let mut files: Vec<_> = idle.map(|file| Arc::clone(file)).collect();
            if level == 0 {
                files.reverse();
            }
            return dropping(level, files);
        }
        if !self.limits.merge_small || version.level(0).len() < options.l0_trigger {
            return None;
        }
        let price = intra_l0::Price {
            bytes_max: options.plan_bytes_max(),
            bytes_per_table_max: options.target_file_bytes,
        };
        let reason = Reason::RunsMany;
        intra_l0::pick(version, options, moment.in_flight, price, reason)
    }
}

impl Fifo {
    /// How many of `files`, oldest first, must go for the rest of `bytes` to be within the limit.
    fn over_size(&self, mut bytes: u64, files: &[&Arc<FileMeta>]) -> usize {
        let mut count = 0;
        for file in files {
            if bytes <= self.limits.table_bytes_max {
                break;
            }
            bytes = bytes.saturating_sub(file.size);
            count += 1;
        }
        count
    }

    /// Whether even the newest entry of `file` is too old: all are older than the file. One that
    /// does not record when it was made does not expire.
    fn is_expired(&self, file: &FileMeta, moment: &Moment<'_>) -> bool {
        let Some(ttl) = self.limits.ttl_seconds else {
            return false;
        };
        file.creation_time > 0 && file.creation_time.saturating_add(ttl) <= moment.now
    }
}

fn dropping(level: usize, files: Vec<Arc<FileMeta>>) -> Option<Plan> {
    if files.is_empty() {
        return None;
    }
    Some(Plan {
        level,
        output_level: level,
        inputs: vec![PlanInput { level, files }],
        grandparents: Vec::new(),
        work: Work::Drop,
        reason: Reason::Expired,
        score: 1.0,
    })
}
