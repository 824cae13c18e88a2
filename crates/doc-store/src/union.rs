//! What the parts of an `$or` look at, put together.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::index::Index;
use crate::plan::{Access, Range};

/// The accesses of all parts as one: those of one index, and those of `_id`, are joined, without what they share. `None`
/// where one of them is none that can be joined, or where there are more than `ranges_max` ranges and keys in all.
pub(crate) fn united(parts: impl Iterator<Item = Access>, ranges_max: usize) -> Option<Access> {
    let mut ids = BTreeSet::new();
    let mut of_collection: Vec<Range> = Vec::new();
    let mut of_indexes: Vec<(Arc<Index>, Vec<Range>)> = Vec::new();
    for part in parts.flat_map(flat) {
        match part {
            Access::Ids(keys) => ids.extend(keys),
            Access::Collection(ranges) => of_collection.extend(ranges),
            Access::Index(index, ranges) => {
                match of_indexes
                    .iter_mut()
                    .find(|(of, _)| of.ident == index.ident)
                {
                    Some((_, all)) => all.extend(ranges),
                    None => of_indexes.push((index, ranges)),
                }
            }
            Access::Near(..) | Access::Union(_) => return None,
        }
        let ranges = of_indexes.iter().map(|(_, ranges)| ranges.len());
        if ranges.sum::<usize>() + ids.len() + of_collection.len() > ranges_max {
            return None;
        }
    }
    let ids = (!ids.is_empty()).then(|| Access::Ids(ids.into_iter().collect()));
    let of_collection =
        (!of_collection.is_empty()).then(|| Access::Collection(joined(of_collection)));
    let of_indexes = of_indexes
        .into_iter()
        .map(|(index, ranges)| Access::Index(index, joined(ranges)));
    let mut all: Vec<_> = ids
        .into_iter()
        .chain(of_collection)
        .chain(of_indexes)
        .collect();
    match all.len() {
        1 => all.pop(),
        _ => Some(Access::Union(all)),
    }
}

fn flat(access: Access) -> Vec<Access> {
    match access {
        Access::Union(parts) => parts,
        other => vec![other],
    }
}

/// The ranges in order, those that touch as one.
fn joined(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort();
    let mut joined: Vec<Range> = Vec::with_capacity(ranges.len());
    for (low, high) in ranges {
        match joined.last_mut().filter(|last| low <= last.1) {
            Some(last) => last.1 = high.max(std::mem::take(&mut last.1)),
            None => joined.push((low, high)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(low: u8, high: u8) -> Range {
        (vec![low], vec![high])
    }

    #[test]
    fn ranges_that_touch_are_one() {
        let ranges = vec![
            range(7, 9),
            range(1, 3),
            range(2, 6),
            range(3, 4),
            range(9, 9),
        ];
        assert_eq!(joined(ranges), [range(1, 6), range(7, 9)]);
    }

    #[test]
    fn parts_of_one_kind_are_joined() {
        let ids = |keys: &[u8]| Access::Ids(keys.iter().map(|&key| vec![key]).collect());
        let parts = || [ids(&[3, 1]), Access::Union(vec![ids(&[1, 2])])].into_iter();
        match united(parts(), 10) {
            Some(Access::Ids(keys)) => assert_eq!(keys, [[1], [2], [3]]),
            other => panic!("{other:?}"),
        }
        assert!(united(parts(), 2).is_none());
        let range = Access::Collection(vec![range(1, 2)]);
        match united(parts().chain([range]), 10) {
            Some(Access::Union(parts)) => assert_eq!(parts.len(), 2),
            other => panic!("{other:?}"),
        }
    }
}
