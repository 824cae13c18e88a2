//! Scopes: the keys that begin alike, whose records may be of another kind than their neighbours'.
//!
//! A family that holds many collections, each under a prefix, learns little from all of them together. Where a job
//! has much of a scope, the scope gets tables and a model of its own; what is little goes with its neighbours.
//!
//! Nothing on disk says which scope a model is for: it is that of the tables that name it.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin_base::SEQNO_MAX;
use drumlin_base::key::{after_prefix, split_internal, tag_seqno};
use drumlin_table::Table;

use crate::version::FileMeta;

/// Keys looked at in a table, to see how much of it is in a scope.
const SAMPLES: usize = 64;
/// And at most this many, where a scope of a few bytes counts in a large table.
const SAMPLES_MAX: u64 = 4096;
/// A scope is seen by this many samples at least.
const SAMPLES_OF_LEAST: u64 = 8;

/// The keys with one prefix.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Scope(Vec<u8>);

/// Which of a family's keys are meant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Within<'a> {
    /// All: the family has no scopes.
    All,
    /// Those of one scope.
    Scope(&'a Scope),
    /// Those of none of these, which ascend.
    Outside(&'a [Scope]),
}

impl Scope {
    /// The scope of `key`; `None` for a key that is shorter than a prefix.
    fn of(key: &[u8], prefix_bytes: usize) -> Option<Self> {
        key.get(..prefix_bytes).map(|prefix| Self(prefix.to_vec()))
    }

    /// Its first key.
    pub(crate) fn first(&self) -> &[u8] {
        &self.0
    }

    /// The first key behind it; `None` where there is none.
    pub(crate) fn limit(&self) -> Option<Vec<u8>> {
        after_prefix(&self.0)
    }

    fn has(&self, key: &[u8]) -> bool {
        key.starts_with(&self.0)
    }
}

impl Within<'_> {
    pub(super) fn has(&self, key: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Scope(scope) => scope.has(key),
            Self::Outside(scopes) => {
                let behind = scopes.partition_point(|scope| scope.first() <= key);
                let before = behind.checked_sub(1).and_then(|at| scopes.get(at));
                !before.is_some_and(|scope| scope.has(key))
            }
        }
    }

    /// Where its keys begin, if not with the first there is.
    pub(super) fn first(&self) -> Option<&[u8]> {
        match self {
            Self::Scope(scope) => Some(scope.first()),
            Self::All | Self::Outside(_) => None,
        }
    }

    /// About how much of `table` is in it, 0 to 1.
    pub(super) fn share_of(&self, table: &Table) -> f64 {
        if matches!(self, Self::All) {
            return 1.0;
        }
        let keys = table.key_samples(SAMPLES);
        let inside = keys.iter().filter(|key| self.has(key)).count();
        match keys.len() {
            0 => 1.0, // Too small a table to say.
            all => inside as f64 / all as f64,
        }
    }
}

/// The prefix of the scope in which all keys of `file` are.
pub(super) fn prefix_around(file: &FileMeta, prefix_bytes: usize) -> Option<&[u8]> {
    let prefix = file.smallest_user_key().get(..prefix_bytes)?;
    let (last, tag) = split_internal(&file.largest)?;
    // A range deletion may end where the scope does.
    let ends_there =
        || tag_seqno(tag) == SEQNO_MAX && after_prefix(prefix).as_deref() == Some(last);
    (last.starts_with(prefix) || ends_there()).then_some(prefix)
}

/// The scopes that `inputs` hold `bytes_min` of values of, ascending, each with about how many that is; and the one scope in
/// which all of them are, however little it is.
pub(crate) fn large_scopes(
    inputs: &[(&FileMeta, &Arc<Table>)],
    prefix_bytes: usize,
    bytes_min: u64,
) -> Vec<(Scope, u64)> {
    let mut held: BTreeMap<Option<Scope>, u64> = BTreeMap::new();
    for (file, table) in inputs {
        let bytes = table.properties().raw_value_size;
        if let Some(prefix) = prefix_around(file, prefix_bytes) {
            *held.entry(Some(Scope(prefix.to_vec()))).or_default() += bytes;
            continue;
        }
        let piece = (bytes_min / SAMPLES_OF_LEAST).max(1);
        let cuts = table.key_samples((bytes / piece).clamp(1, SAMPLES_MAX) as usize);
        let part = bytes / (cuts.len() as u64 + 1);
        let first = std::iter::once(file.smallest_user_key());
        for key in first.chain(cuts.iter().map(Vec::as_slice)) {
            *held.entry(Scope::of(key, prefix_bytes)).or_default() += part;
        }
    }
    let is_one = held.len() == 1;
    let scopes = held.into_iter();
    let scopes = scopes.filter_map(|(scope, bytes)| Some((scope?, bytes)));
    scopes
        .filter(|(_, bytes)| is_one || *bytes >= bytes_min)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_what_begins_with_it() {
        let scope = Scope(vec![0, 0xFF]);
        assert_eq!(scope.limit(), Some(vec![1]));
        assert!(scope.has(&[0, 0xFF]) && scope.has(&[0, 0xFF, 9]));
        assert!(!scope.has(&[1]) && !scope.has(&[0]));
        assert_eq!(Scope(vec![0xFF]).limit(), None);
        assert_eq!(Scope::of(b"a", 2), None);
    }

    #[test]
    fn what_is_outside_is_in_none_of_them() {
        let scopes = [b"bb", b"dd"].map(|prefix| Scope(prefix.to_vec()));
        let outside = Within::Outside(&scopes);
        for key in ["a", "b", "bc", "c", "dc", "de", "z"] {
            assert!(outside.has(key.as_bytes()), "{key}");
        }
        for key in ["bb", "bbz", "dd", "dd0"] {
            assert!(!outside.has(key.as_bytes()), "{key}");
        }
        assert!(Within::All.has(b"bb"));
    }
}
