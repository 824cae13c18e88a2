//! Cutting a job into parts of about equal size, for as many threads.

use drumlin_base::KeyOrder;

use super::plan::{CompactionOptions, Plan};

/// A part should be worth a thread: fewer bytes than this many output tables are not.
const TABLES_PER_PART_MIN: u64 = 2;

/// User keys between `threads_max` parts at most: each part ends before its border, the next begins
/// with it. Ascending; empty when one thread is to do it all.
///
/// Borders are first keys of input tables, so that no table but those of L0 is read by two parts.
/// Tables of L0 alone give none: they tend to cover everything.
pub fn borders(
    order: &KeyOrder,
    options: &CompactionOptions,
    plan: &Plan,
    threads_max: usize,
) -> Vec<Vec<u8>> {
    let part_min = options
        .target_file_bytes
        .saturating_mul(TABLES_PER_PART_MIN);
    let worthwhile = plan.input_bytes() / part_min.max(1);
    let parts = worthwhile.min(threads_max as u64);
    let mut tables: Vec<(&[u8], u64)> = plan
        .files()
        .filter(|(level, _)| *level > 0)
        .map(|(_, file)| (file.smallest_user_key(), file.size))
        .collect();
    tables.sort_by(|a, b| order.compare(a.0, b.0));
    let total: u64 = tables.iter().map(|(_, size)| size).sum();
    let mut borders: Vec<Vec<u8>> = Vec::new();
    let mut passed = 0u64;
    for (first, size) in tables {
        let next = borders.len() as u64 + 1;
        let is_new = borders
            .last()
            .is_none_or(|last| order.compare(last, first).is_lt());
        if next < parts && passed > 0 && is_new && passed + size / 2 >= total / parts * next {
            borders.push(first.to_vec());
        }
        passed += size;
    }
    borders
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use drumlin_base::ValueKind;
    use drumlin_base::key::internal_key;

    use super::super::plan::{PlanInput, Reason, Work};
    use super::*;
    use crate::version::{FileMeta, NewFile};

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
        let order = KeyOrder::Bytewise;
        let options = CompactionOptions {
            target_file_bytes: 5,
            ..CompactionOptions::new(order.clone())
        };
        let borders = borders(&order, &options, &plan(level, sizes), threads_max);
        String::from_utf8(borders.concat()).unwrap()
    }

    #[test]
    fn parts_have_about_the_same_size() {
        assert_eq!(cut(5, &[10, 10, 10, 10], 2), "c");
        assert_eq!(cut(5, &[10, 10, 10, 10], 4), "bcd");
        assert_eq!(cut(5, &[10, 10, 10, 90], 2), "d");
        assert_eq!(cut(5, &[90, 10, 10, 10], 2), "b");
    }

    #[test]
    fn small_jobs_and_tables_of_l0_alone_stay_whole() {
        assert_eq!(cut(5, &[5, 5, 5], 4), "");
        assert_eq!(cut(5, &[100, 100], 1), "");
        assert_eq!(cut(0, &[100, 100], 4), "");
    }
}
