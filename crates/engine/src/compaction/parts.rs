//! Cutting a job into parts of about equal size, for as many threads.

use std::sync::Arc;

use drumlin_base::{KeyOrder, Result};

use super::plan::{CompactionOptions, Plan};
use crate::version::FileMeta;

/// A part should be worth a thread: fewer bytes than this many output tables are not.
const TABLES_PER_PART_MIN: u64 = 2;

/// Keys looked up inside a table that is large beside the parts.
const SAMPLES_MAX: usize = 32;

/// User keys between `threads_max` parts at most: each part ends before its border, the next begins
/// with it. Ascending; empty when one thread is to do it all.
///
/// Borders are first keys of input tables, and keys inside those that are large beside a part, which
/// `samples` gives: at most so many keys that cut a table into parts of about one size, ascending.
/// `bytes_of` is the work that a table is, in bytes.
pub(crate) fn borders(
    options: &CompactionOptions,
    plan: &Plan,
    threads_max: usize,
    bytes_of: impl Fn(&Arc<FileMeta>) -> Result<u64>,
    samples: impl Fn(&Arc<FileMeta>, usize) -> Result<Vec<Vec<u8>>>,
) -> Result<Vec<Vec<u8>>> {
    if threads_max < 2 {
        return Ok(Vec::new());
    }
    let order = &options.order;
    let part_min = options
        .target_file_bytes
        .saturating_mul(TABLES_PER_PART_MIN);
    let weigh = |(_, file)| Ok((file, bytes_of(file)?));
    let files: Vec<(&Arc<FileMeta>, u64)> = plan.files().map(weigh).collect::<Result<_>>()?;
    let total: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    let parts = (total / part_min.max(1)).min(threads_max as u64);
    if parts < 2 {
        return Ok(Vec::new());
    }
    // Where each piece of about known size begins.
    let mut pieces: Vec<(Vec<u8>, u64)> = Vec::new();
    for (file, all) in files {
        let is_large = all > total / parts / SAMPLES_MAX as u64;
        let cuts = match is_large {
            true => samples(file, SAMPLES_MAX)?,
            false => Vec::new(),
        };
        let bytes = all / (cuts.len() as u64 + 1);
        let first = std::iter::once(file.smallest_user_key().to_vec());
        pieces.extend(first.chain(cuts).map(|key| (key, bytes)));
    }
    pieces.sort_by(|a, b| order.compare(&a.0, &b.0));
    Ok(even_cuts(order, pieces, total, parts))
}

/// The keys among `pieces`, sorted, that cut `total` bytes into `parts` most evenly.
fn even_cuts(
    order: &KeyOrder,
    pieces: Vec<(Vec<u8>, u64)>,
    total: u64,
    parts: u64,
) -> Vec<Vec<u8>> {
    let mut borders: Vec<Vec<u8>> = Vec::new();
    let mut passed = 0u64;
    for (first, bytes) in pieces {
        let next = borders.len() as u64 + 1;
        let is_new = borders
            .last()
            .is_none_or(|last| order.compare(last, &first).is_lt());
        if next < parts && passed > 0 && is_new && passed + bytes / 2 >= total / parts * next {
            borders.push(first);
        }
        passed += bytes;
    }
    borders
}

#[cfg(test)]
mod tests {
    use drumlin_base::ValueKind;
    use drumlin_base::key::internal_key;

    use super::super::plan::{PlanInput, Work};
    use super::*;
    use crate::version::NewFile;
    use crate::watch::reason::Reason;

    fn plan(level: usize, sizes: &[u64]) -> Plan {
        let file = |(index, &size): (usize, &u64)| {
            let key = internal_key(&[b'a' + index as u8], 1, ValueKind::Value);
            Arc::new(FileMeta::new(NewFile {
                size,
                smallest: key.clone(),
                largest: key,
                ..NewFile::default()
            }))
        };
        Plan {
            level,
            output_level: 6,
            inputs: vec![PlanInput {
                level,
                files: sizes.iter().enumerate().map(file).collect(),
            }],
            grandparents: Vec::new(),
            work: Work::Rewrite,
            reason: Reason::LevelFull,
            score: 1.0,
        }
    }

    fn cut(level: usize, sizes: &[u64], threads_max: usize) -> String {
        let options = CompactionOptions {
            target_file_bytes: 5,
            ..CompactionOptions::new(KeyOrder::Bytewise)
        };
        // Inside, a table that begins with `a` has the keys `a1` to `a9`.
        let inside = |file: &Arc<FileMeta>, count_max: usize| {
            let key = |digit: u8| [file.smallest_user_key(), &[digit]].concat();
            Ok((b'1'..=b'9').take(count_max).map(key).collect())
        };
        let plan = plan(level, sizes);
        let size = |file: &Arc<FileMeta>| Ok(file.size);
        let borders = borders(&options, &plan, threads_max, size, inside).unwrap();
        String::from_utf8(borders.join(&b' ')).unwrap()
    }

    #[test]
    fn parts_have_about_the_same_size() {
        assert_eq!(cut(5, &[10, 10, 10, 10], 2), "c");
        assert_eq!(cut(5, &[10, 10, 10, 10], 4), "b c d");
        assert_eq!(cut(5, &[90, 10, 10, 10], 2), "a7");
    }

    #[test]
    fn tables_of_l0_alone_are_cut_inside() {
        assert_eq!(cut(0, &[100, 100], 4), "a5 b b5");
        assert_eq!(cut(0, &[400], 2), "a5");
    }

    #[test]
    fn small_jobs_stay_whole() {
        assert_eq!(cut(5, &[5, 5, 5], 4), "");
        assert_eq!(cut(5, &[100, 100], 1), "");
    }
}
