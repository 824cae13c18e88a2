//! The expected content of a database: ordered maps, a rule for merging, nothing of the engine.
//!
//! A [`Model`] is cheap to clone: families share their rows until one of the clones changes them, so
//! a test may keep the state after each of its steps. Keys of a descending family are kept in
//! ascending order and walked backward; nothing here is shared with the engine under test, not even
//! the comparison.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// The family that is always there.
const DEFAULT: &str = "default";

/// Keys and values.
pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The rule that merges a value and an operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergeRule {
    /// There are no merges.
    #[default]
    None,
    /// The operand is appended, after a comma.
    Append,
    /// Little-endian numbers of eight bytes are added, wrapping; anything else counts as 0.
    Add,
}

/// The properties of a family that never change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Whether keys go from the greatest to the least.
    pub descending: bool,
    /// How operands are merged.
    pub merge: MergeRule,
}

/// One change of one key or range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets a key.
    Put(Vec<u8>, Vec<u8>),
    /// Removes a key.
    Delete(Vec<u8>),
    /// Removes a key that was put once since it was last removed.
    SingleDelete(Vec<u8>),
    /// Adds an operand to a key.
    Merge(Vec<u8>, Vec<u8>),
    /// Removes the keys from the first up to, not including, the second, in the family's order.
    DeleteRange(Vec<u8>, Vec<u8>),
}

/// The expected rows of one family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FamilyModel {
    rules: Rules,
    rows: Arc<Rows>,
}

impl FamilyModel {
    /// A family without rows.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            rows: Arc::default(),
        }
    }

    /// Its rules.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// Its rows, ascending under any order of the family.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.rows.get(key).map(Vec::as_slice)
    }

    /// Applies `change`.
    ///
    /// # Panics
    /// For a merge in a family without a rule for it, which the test itself ruled out.
    pub fn apply(&mut self, change: &Change) {
        let rules = self.rules;
        let rows = Arc::make_mut(&mut self.rows);
        match change {
            Change::Put(key, value) => {
                rows.insert(key.clone(), value.clone());
            }
            Change::Delete(key) | Change::SingleDelete(key) => {
                rows.remove(key);
            }
            Change::Merge(key, operand) => {
                let merged = merged(rules.merge, rows.get(key).map(Vec::as_slice), operand);
                rows.insert(key.clone(), merged);
            }
            Change::DeleteRange(begin, end) => rows.retain(|key, _| match rules.descending {
                false => key < begin || key >= end,
                true => key > begin || key <= end,
            }),
        }
    }

    /// A walk over the rows there are now, from `lower` up to, not including, `upper`, both in the
    /// family's order. It goes on seeing these rows.
    pub fn cursor(&self, lower: Option<Vec<u8>>, upper: Option<Vec<u8>>) -> Cursor {
        Cursor {
            rows: Arc::clone(&self.rows),
            descending: self.rules.descending,
            lower,
            upper,
            at: None,
        }
    }
}

fn merged(rule: MergeRule, existing: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
    match (rule, existing) {
        (MergeRule::None, _) => panic!("a merge in a family that has none"),
        (MergeRule::Append, None) => operand.to_vec(),
        (MergeRule::Append, Some(value)) => {
            let mut longer = value.to_vec();
            longer.push(b',');
            longer.extend_from_slice(operand);
            longer
        }
        (MergeRule::Add, value) => {
            let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
            let sum = number(value.unwrap_or_default()).wrapping_add(number(operand));
            sum.to_le_bytes().to_vec()
        }
    }
}

/// The expected rows of every family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    families: BTreeMap<String, FamilyModel>,
}

impl Model {
    /// An empty database, whose default family follows `rules`.
    pub fn new(rules: Rules) -> Self {
        let default = (DEFAULT.to_owned(), FamilyModel::new(rules));
        Self {
            families: BTreeMap::from([default]),
        }
    }

    /// The family called `name`.
    pub fn family(&self, name: &str) -> Option<&FamilyModel> {
        self.families.get(name)
    }

    /// The names of all families, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.families.keys().map(String::as_str)
    }

    /// Makes a family; false when there is one of that name.
    pub fn create(&mut self, name: &str, rules: Rules) -> bool {
        if self.families.contains_key(name) {
            return false;
        }
        let family = FamilyModel::new(rules);
        self.families.insert(name.to_owned(), family);
        true
    }

    /// Drops a family and returns its rows, or `None` when it is the default one or absent.
    pub fn drop_family(&mut self, name: &str) -> Option<FamilyModel> {
        match name {
            DEFAULT => None,
            _ => self.families.remove(name),
        }
    }

    /// Applies `change` to `family`.
    ///
    /// # Panics
    /// When there is no such family; as [`FamilyModel::apply`].
    pub fn apply(&mut self, family: &str, change: &Change) {
        let family = self.families.get_mut(family);
        family.expect("a family that was made").apply(change);
    }

    /// The value of `key` in `family`; `None` also when there is no such family.
    pub fn get(&self, family: &str, key: &[u8]) -> Option<&[u8]> {
        self.families.get(family)?.get(key)
    }
}

/// A walk over one family as of one moment, with the moves of a database's iterator: it stands on a
/// row or nowhere, and from nowhere only the seeks lead back.
#[derive(Clone, Debug)]
pub struct Cursor {
    rows: Arc<Rows>,
    descending: bool,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    at: Option<Vec<u8>>,
}

impl Cursor {
    /// The row it stands on.
    pub fn row(&self) -> Option<(&[u8], &[u8])> {
        let key = self.at.as_deref()?;
        self.rows.get_key_value(key).map(|(k, v)| (&k[..], &v[..]))
    }

    /// Stands on the first row.
    pub fn seek_to_first(&mut self) {
        let from = self.lower.clone().map_or(Bound::Unbounded, Bound::Included);
        self.land(self.at_or_after(from));
    }

    /// Stands on the last row.
    pub fn seek_to_last(&mut self) {
        let from = self.upper.clone().map_or(Bound::Unbounded, Bound::Excluded);
        self.land(self.at_or_before(from));
    }

    /// Stands on the first row at or after `key`.
    pub fn seek(&mut self, key: &[u8]) {
        match &self.lower {
            Some(lower) if self.is_before(key, lower) => self.seek_to_first(),
            _ => self.land(self.at_or_after(Bound::Included(key.to_vec()))),
        }
    }

    /// Stands on the last row at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        match &self.upper {
            Some(upper) if !self.is_before(key, upper) => self.seek_to_last(),
            _ => self.land(self.at_or_before(Bound::Included(key.to_vec()))),
        }
    }

    /// Moves to the next row.
    pub fn next(&mut self) {
        if let Some(at) = self.at.take() {
            self.land(self.at_or_after(Bound::Excluded(at)));
        }
    }

    /// Moves to the row before.
    pub fn prev(&mut self) {
        if let Some(at) = self.at.take() {
            self.land(self.at_or_before(Bound::Excluded(at)));
        }
    }

    /// The same walk over the present rows of `family`, not positioned.
    #[must_use]
    pub fn renewed(&self, family: &FamilyModel) -> Self {
        family.cursor(self.lower.clone(), self.upper.clone())
    }

    fn is_before(&self, a: &[u8], b: &[u8]) -> bool {
        match self.descending {
            false => a < b,
            true => a > b,
        }
    }

    fn at_or_after(&self, from: Bound<Vec<u8>>) -> Option<Vec<u8>> {
        let found = match self.descending {
            false => self.rows.range((from, Bound::Unbounded)).next(),
            true => self.rows.range((Bound::Unbounded, from)).next_back(),
        };
        found.map(|(key, _)| key.clone())
    }

    fn at_or_before(&self, from: Bound<Vec<u8>>) -> Option<Vec<u8>> {
        let found = match self.descending {
            false => self.rows.range((Bound::Unbounded, from)).next_back(),
            true => self.rows.range((from, Bound::Unbounded)).next(),
        };
        found.map(|(key, _)| key.clone())
    }

    /// Stands on `key` if it is within the bounds, else nowhere.
    fn land(&mut self, key: Option<Vec<u8>>) {
        let within = |key: &Vec<u8>| {
            let low = self.lower.as_ref().is_none_or(|l| !self.is_before(key, l));
            low && self.upper.as_ref().is_none_or(|u| self.is_before(key, u))
        };
        self.at = key.filter(within);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(descending: bool) -> FamilyModel {
        let merge = MergeRule::Append;
        let mut family = FamilyModel::new(Rules { descending, merge });
        for key in [b"a", b"c", b"e", b"g"] {
            family.apply(&Change::Put(key.to_vec(), key.to_vec()));
        }
        family
    }

    fn walk(cursor: &mut Cursor, step: fn(&mut Cursor)) -> Vec<u8> {
        let mut keys = Vec::new();
        while let Some((key, _)) = cursor.row() {
            keys.extend_from_slice(key);
            step(cursor);
        }
        keys
    }

    #[test]
    fn walks_stay_within_their_bounds_in_either_order() {
        let mut up = family(false).cursor(Some(b"b".to_vec()), Some(b"g".to_vec()));
        up.seek_to_first();
        assert_eq!(walk(&mut up, Cursor::next), b"ce");
        up.seek_to_last();
        assert_eq!(walk(&mut up, Cursor::prev), b"ec");
        up.seek(b"");
        assert_eq!(up.row().map(|row| row.0), Some(&b"c"[..]));
        up.seek_for_prev(b"z");
        assert_eq!(up.row().map(|row| row.0), Some(&b"e"[..]));
        let mut down = family(true).cursor(Some(b"g".to_vec()), Some(b"a".to_vec()));
        down.seek_to_first();
        assert_eq!(walk(&mut down, Cursor::next), b"gec");
        down.seek(b"d");
        assert_eq!(walk(&mut down, Cursor::next), b"c");
        down.seek_for_prev(b"d");
        assert_eq!(walk(&mut down, Cursor::prev), b"eg");
    }

    #[test]
    fn what_was_cloned_or_is_walked_over_stays_as_it_was() {
        let mut model = Model::new(Rules::default());
        let put = |key: &[u8]| Change::Put(key.to_vec(), b"v".to_vec());
        model.apply("default", &put(b"a"));
        let before = model.clone();
        let mut cursor = model.family("default").unwrap().cursor(None, None);
        model.apply("default", &put(b"b"));
        model.apply("default", &Change::Delete(b"a".to_vec()));
        cursor.seek_to_first();
        assert_eq!(walk(&mut cursor, Cursor::next), b"a");
        assert_eq!(before.get("default", b"a"), Some(&b"v"[..]));
        assert_eq!(model.get("default", b"a"), None);
        assert_eq!(model.names().collect::<Vec<_>>(), ["default"]);
    }

    #[test]
    fn ranges_follow_the_order_and_merges_their_rule() {
        for (descending, left) in [(false, &b"aeg"[..]), (true, b"aeg")] {
            let mut family = family(descending);
            let (a, b) = (b"b".to_vec(), b"d".to_vec());
            let (begin, end) = if descending { (b, a) } else { (a, b) };
            family.apply(&Change::DeleteRange(begin, end));
            let keys: Vec<u8> = family.rows().keys().flatten().copied().collect();
            assert_eq!(keys, left);
        }
        let mut family = family(false);
        family.apply(&Change::Merge(b"a".to_vec(), b"x".to_vec()));
        family.apply(&Change::Merge(b"b".to_vec(), b"x".to_vec()));
        assert_eq!(family.get(b"a"), Some(&b"a,x"[..]));
        assert_eq!(family.get(b"b"), Some(&b"x"[..]));
        let sum = merged(MergeRule::Add, Some(b"short"), &7u64.to_le_bytes());
        assert_eq!(sum, 7u64.to_le_bytes());
    }
}
