//! A version: the tables of one family at one moment, by level.
//!
//! Invariants: L0 is newest first (epoch, then largest seqno, then number, all descending) and its
//! tables may overlap; L1 and deeper are ascending by smallest key and their tables share no user
//! key's entry (a user key may end one table and begin the next only with older entries). A version
//! never changes; readers share it through an `Arc` without a lock.
//!
//! The search for the one table of a level that may hold a key is on the path of every point read,
//! so each level keeps, beside its tables, the first eight bytes of every largest key (after what
//! all of them share) in one compact array: the binary search runs over that array, and touches a
//! table's own key only to break ties.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use drumlin_base::KeyOrder;
use drumlin_base::key::{compare_internal, user_key, user_key_prefix};
use drumlin_base::limits::LEVELS;

use super::FileMeta;
use super::blob_file::{BlobFile, BlobTotals};
use super::blob_garbage::Collection;

/// The tables of one family at one moment. See the module's text for the invariants.
pub struct Version {
    levels: [Level; LEVELS],
    blobs: Arc<BTreeMap<u64, BlobFile>>,
    blob_totals: BlobTotals,
    /// Made when first asked for: it is a function of the rest.
    collection: OnceLock<Option<Collection>>,
}

/// One level. All parts are shared with the versions before and after that have the same tables.
#[derive(Clone, Default)]
struct Level {
    files: Arc<[Arc<FileMeta>]>,
    prefixes: KeyPrefixes,
    bytes: u64,
    /// The numbers of the tables, ascending.
    numbers: Arc<[u64]>,
}

impl Level {
    fn new(order: &KeyOrder, n: usize, files: Vec<Arc<FileMeta>>) -> Self {
        let mut numbers: Vec<u64> = files.iter().map(|file| file.number).collect();
        numbers.sort_unstable();
        let prefixes = match n {
            0 => KeyPrefixes::default(),
            _ => KeyPrefixes::of(order, &files),
        };
        Self {
            prefixes,
            bytes: files.iter().map(|file| file.size).sum(),
            numbers: numbers.into(),
            files: files.into(),
        }
    }
}

impl Version {
    /// A version without tables.
    pub fn empty() -> Self {
        Self {
            levels: Default::default(),
            blobs: Arc::default(),
            blob_totals: BlobTotals::default(),
            collection: OnceLock::new(),
        }
    }

    /// A version of `levels`, each in the order the module's text asks for.
    ///
    /// Requires: the invariants hold; the builder checks them on the way here.
    pub fn new(order: &KeyOrder, levels: [Vec<Arc<FileMeta>>; LEVELS]) -> Self {
        Self::empty().with_levels(order, levels.map(Some))
    }

    /// This version with other tables in the levels that are given.
    ///
    /// Requires: as [`Version::new`]. Cost: of the levels given only.
    pub fn with_levels(
        &self,
        order: &KeyOrder,
        changed: [Option<Vec<Arc<FileMeta>>>; LEVELS],
    ) -> Self {
        let mut levels = self.levels.clone();
        for (n, (level, changed)) in levels.iter_mut().zip(changed).enumerate() {
            if let Some(files) = changed {
                *level = Level::new(order, n, files);
            }
        }
        Self {
            levels,
            blobs: Arc::clone(&self.blobs),
            blob_totals: self.blob_totals,
            collection: OnceLock::new(),
        }
    }

    /// This version with other blob files.
    pub fn with_blobs(mut self, blobs: BTreeMap<u64, BlobFile>) -> Self {
        self.blob_totals = BlobTotals::of(&blobs);
        self.blobs = Arc::new(blobs);
        self.collection = OnceLock::new();
        self
    }

    /// The blob files, by number.
    pub fn blobs(&self) -> &BTreeMap<u64, BlobFile> {
        &self.blobs
    }

    /// The blob files, added up.
    pub fn blob_totals(&self) -> BlobTotals {
        self.blob_totals
    }

    /// The collection due for garbage in the blob files; `None` while there is little.
    ///
    /// Cost: of all tables and blob files, once a version.
    pub fn collection(&self) -> Option<&Collection> {
        self.collection
            .get_or_init(|| Collection::of(&self.blob_totals, &self.blobs, self.files()))
            .as_ref()
    }

    /// The level that holds table `number`.
    pub fn level_of(&self, number: u64) -> Option<usize> {
        self.levels
            .iter()
            .position(|level| level.numbers.binary_search(&number).is_ok())
    }

    /// The tables of level `n`; none when there is no such level.
    #[inline]
    pub fn level(&self, n: usize) -> &[Arc<FileMeta>] {
        self.levels.get(n).map_or(&[], |level| &level.files)
    }

    /// Bytes of the tables of level `n`.
    pub fn level_bytes(&self, n: usize) -> u64 {
        self.levels.get(n).map_or(0, |level| level.bytes)
    }

    /// Tables in all levels.
    pub fn files_total(&self) -> usize {
        self.levels.iter().map(|level| level.files.len()).sum()
    }

    /// Bytes of the tables of all levels.
    pub fn bytes_total(&self) -> u64 {
        self.levels.iter().map(|level| level.bytes).sum()
    }

    /// The deepest level with a table; `None` when there is none.
    pub fn deepest_level(&self) -> Option<usize> {
        self.levels
            .iter()
            .rposition(|level| !level.files.is_empty())
    }

    /// Every table with its level.
    pub fn files(&self) -> impl Iterator<Item = (usize, &Arc<FileMeta>)> {
        self.levels
            .iter()
            .enumerate()
            .flat_map(|(n, level)| level.files.iter().map(move |file| (n, file)))
    }

    /// The index in level `n` of the first table whose largest key is at or after `internal_key`.
    /// That table may still begin after it. `None` when every table ends before it.
    ///
    /// Requires: `n` is 1 or more and `order` is the one the version was made with.
    /// Cost: a binary search over eight bytes a table.
    #[inline]
    pub fn find_file(&self, order: &KeyOrder, n: usize, internal_key: &[u8]) -> Option<usize> {
        debug_assert!(n > 0, "the tables of L0 are not sorted by key");
        let level = self.levels.get(n)?;
        let range = level
            .prefixes
            .narrow(user_key(internal_key), level.files.len());
        let within = level.files.get(range.clone())?;
        let at = range.start
            + within.partition_point(|file| {
                compare_internal(order, &file.largest, internal_key) == Ordering::Less
            });
        (at < level.files.len()).then_some(at)
    }

    /// The tables of level `n` that may hold a user key in `begin..=end`; `None` is unbounded.
    ///
    /// In L0 the result is closed under overlap: a table that overlaps one of the returned
    /// is returned too, so that compacting them moves no older entry above a newer one. Tables keep
    /// the level's order.
    pub fn overlapping(
        &self,
        order: &KeyOrder,
        n: usize,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Vec<Arc<FileMeta>> {
        let files = self.level(n);
        if n == 0 {
            return overlapping_closed(order, files, begin, end);
        }
        let first = begin.map_or(0, |begin| {
            files.partition_point(|file| order.compare(file.largest_user_key(), begin).is_lt())
        });
        files
            .get(first..)
            .expect("the search ends within the level")
            .iter()
            .take_while(|file| {
                end.is_none_or(|end| order.compare(file.smallest_user_key(), end).is_le())
            })
            .cloned()
            .collect()
    }

    /// Whether any table of level `n` may hold a user key in `begin..=end`.
    pub fn overlaps(
        &self,
        order: &KeyOrder,
        n: usize,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> bool {
        let files = self.level(n);
        let touches = |file: &Arc<FileMeta>| {
            begin.is_none_or(|begin| order.compare(file.largest_user_key(), begin).is_ge())
                && end.is_none_or(|end| order.compare(file.smallest_user_key(), end).is_le())
        };
        if n == 0 {
            return files.iter().any(touches);
        }
        let first = begin.map_or(0, |begin| {
            files.partition_point(|file| order.compare(file.largest_user_key(), begin).is_lt())
        });
        files.get(first).is_some_and(touches)
    }
}

/// Widens `begin..=end` by every table it touches until nothing more is touched.
fn overlapping_closed<'a>(
    order: &KeyOrder,
    files: &'a [Arc<FileMeta>],
    mut begin: Option<&'a [u8]>,
    mut end: Option<&'a [u8]>,
) -> Vec<Arc<FileMeta>> {
    let mut taken = vec![false; files.len()];
    loop {
        let mut grew = false;
        for (file, taken) in files.iter().zip(&mut taken) {
            let (smallest, largest) = (file.smallest_user_key(), file.largest_user_key());
            let outside = begin.is_some_and(|begin| order.compare(largest, begin).is_lt())
                || end.is_some_and(|end| order.compare(smallest, end).is_gt());
            if *taken || outside {
                continue;
            }
            *taken = true;
            grew = true;
            begin = begin.map(|begin| min(order, begin, smallest));
            end = end.map(|end| max(order, end, largest));
        }
        if !grew {
            break;
        }
    }
    let chosen = files.iter().zip(taken);
    chosen
        .filter(|&(_, taken)| taken)
        .map(|(file, _)| Arc::clone(file))
        .collect()
}

fn min<'a>(order: &KeyOrder, a: &'a [u8], b: &'a [u8]) -> &'a [u8] {
    if order.compare(b, a).is_lt() { b } else { a }
}

fn max<'a>(order: &KeyOrder, a: &'a [u8], b: &'a [u8]) -> &'a [u8] {
    if order.compare(b, a).is_gt() { b } else { a }
}

/// The largest keys of a level, eight bytes each, in the order of the level.
///
/// `shared` is the common start of all the largest user keys; `prefixes` are the eight bytes after it,
/// big-endian and padded with zeros, turned round for the reverse order, so that comparing two as
/// numbers never contradicts comparing the keys: a lower key prefix means a lower key, an equal key prefix says
/// nothing. An order of the user's own has no key prefixes.
#[derive(Clone, Default)]
struct KeyPrefixes {
    flip: u64,
    shared: Arc<[u8]>,
    prefixes: Arc<[u64]>,
}

impl KeyPrefixes {
    fn of(order: &KeyOrder, files: &[Arc<FileMeta>]) -> Self {
        let flip = match order {
            KeyOrder::Bytewise => 0,
            KeyOrder::ReverseBytewise => u64::MAX,
            KeyOrder::Custom(_) => return Self::default(),
        };
        let (Some(first), Some(last)) = (files.first(), files.last()) else {
            return Self::default();
        };
        // Sorted either way, so what the outermost two share all share.
        let (first, last) = (first.largest_user_key(), last.largest_user_key());
        let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let shared = first
            .get(..common)
            .expect("the common prefix is part of the key");
        let prefixes = files
            .iter()
            .map(|file| {
                flip ^ user_key_prefix(
                    file.largest_user_key()
                        .get(common..)
                        .expect("the common prefix is part of each key"),
                )
            })
            .collect();
        Self {
            flip,
            shared: shared.into(),
            prefixes,
        }
    }

    /// The indices among which the first largest key at or after `key` is, or the index after
    /// them; everything before the range is lower than `key`.
    #[inline]
    fn narrow(&self, key: &[u8], len: usize) -> std::ops::Range<usize> {
        if self.prefixes.len() != len {
            return 0..len;
        }
        let (begins, rest) = match key.split_at_checked(self.shared.len()) {
            Some((begins, rest)) => (begins.cmp(&self.shared), rest),
            // Too short to hold the shared part: it is lower than, higher than, or a prefix of it.
            None => (key.cmp(&self.shared), &[][..]),
        };
        let begins = if self.flip == 0 {
            begins
        } else {
            begins.reverse()
        };
        match begins {
            Ordering::Less => 0..0,
            Ordering::Greater => len..len,
            Ordering::Equal => {
                let prefix = self.flip ^ user_key_prefix(rest);
                let first = self.prefixes.partition_point(|&other| other < prefix);
                let ties = self
                    .prefixes
                    .get(first..)
                    .expect("the search ends within the prefixes");
                // Ties are rare: most often the very next key prefix is already higher.
                let tied = ties.iter().take_while(|&&other| other == prefix).count();
                first..first + tied
            }
        }
    }
}

impl fmt::Display for Version {
    /// One line a level that has tables: `L1 2 tables 4096 B: 7[a..f] 9[g..k]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, level) in self.levels.iter().enumerate() {
            if level.files.is_empty() {
                continue;
            }
            write!(f, "L{n} {} tables {} B:", level.files.len(), level.bytes)?;
            for file in level.files.iter() {
                let smallest = file.smallest_user_key().escape_ascii();
                let largest = file.largest_user_key().escape_ascii();
                write!(f, " {}[{smallest}..{largest}]", file.number)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version {{\n{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use drumlin_base::ValueKind;
    use drumlin_base::key::{internal_key, seek_key};
    use drumlin_base::rng::Rng;

    use super::*;
    use crate::version::NewFile;

    fn table(number: u64, smallest: &[u8], largest: &[u8]) -> Arc<FileMeta> {
        Arc::new(FileMeta::new(NewFile {
            number,
            size: 10,
            smallest: internal_key(smallest, 9, ValueKind::Value),
            largest: internal_key(largest, 3, ValueKind::Value),
            epoch: number,
            ..NewFile::default()
        }))
    }

    fn version(order: &KeyOrder, n: usize, files: Vec<Arc<FileMeta>>) -> Version {
        let mut levels: [Vec<_>; LEVELS] = Default::default();
        levels[n] = files;
        Version::new(order, levels)
    }

    fn numbers(files: &[Arc<FileMeta>]) -> Vec<u64> {
        files.iter().map(|file| file.number).collect()
    }

    #[derive(Debug)]
    struct Bytewise;

    impl drumlin_base::Comparator for Bytewise {
        fn name(&self) -> &'static str {
            "bytewise of the user"
        }
        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            a.cmp(b)
        }
    }

    #[test]
    fn find_file_agrees_with_a_walk_for_every_order_and_shape_of_key() {
        let mut rng = Rng::new(1);
        let orders = [
            KeyOrder::Bytewise,
            KeyOrder::ReverseBytewise,
            KeyOrder::Custom(Arc::new(Bytewise)),
        ];
        for round in 0..300 {
            let order = &orders[round % 3];
            // Few letters and short tails make ties, prefixes and shared beginnings common.
            let prefix = ["", "user", "a long common prefix/"][round % 7 % 3];
            let mut key = || {
                let mut key = prefix.as_bytes().to_vec();
                key.extend((0..rng.below(14)).map(|_| [0, b'a', 0xFF][rng.below(3) as usize]));
                key
            };
            let mut keys: Vec<_> = (0..40).map(|_| key()).collect();
            keys.sort_by(|a, b| order.compare(a, b));
            keys.dedup();
            let files: Vec<_> = (1..)
                .zip(keys.chunks_exact(2))
                .map(|(number, pair)| table(number, &pair[0], &pair[1]))
                .collect();
            let version = version(order, 1, files.clone());
            for probe in (0..40).map(|_| key()).chain(keys) {
                for seqno in [0, 3, 9] {
                    let target = seek_key(&probe, seqno);
                    let walked = files
                        .iter()
                        .position(|file| compare_internal(order, &file.largest, &target).is_ge());
                    assert_eq!(version.find_file(order, 1, &target), walked);
                }
            }
            for outside in [&b""[..], b"u", b"zzzzzzzzzz", b"a long common pre"] {
                let target = seek_key(outside, 5);
                let walked = files
                    .iter()
                    .position(|file| compare_internal(order, &file.largest, &target).is_ge());
                assert_eq!(version.find_file(order, 1, &target), walked);
            }
        }
    }

    #[test]
    fn overlap_in_l0_is_closed_and_in_deeper_levels_exact() {
        let order = KeyOrder::Bytewise;
        let files = vec![
            table(5, b"a", b"c"),
            table(4, b"k", b"m"),
            table(3, b"c", b"e"),
            table(2, b"e", b"g"),
        ];
        let l0 = version(&order, 0, files);
        let found = l0.overlapping(&order, 0, Some(b"b"), Some(b"b"));
        assert_eq!(numbers(&found), [5, 3, 2], "each one touches the next");
        assert_eq!(numbers(&l0.overlapping(&order, 0, Some(b"l"), None)), [4]);
        assert!(l0.overlapping(&order, 0, Some(b"h"), Some(b"j")).is_empty());

        let files = vec![
            table(1, b"a", b"c"),
            table(2, b"d", b"f"),
            table(3, b"g", b"i"),
        ];
        let l1 = version(&order, 1, files);
        let exact =
            |begin: &[u8], end: &[u8]| numbers(&l1.overlapping(&order, 1, Some(begin), Some(end)));
        assert_eq!(exact(b"c", b"d"), [1, 2]);
        assert_eq!(exact(b"e", b"e"), [2]);
        assert_eq!(exact(b"j", b"z"), [0; 0]);
        assert_eq!(numbers(&l1.overlapping(&order, 1, None, None)), [1, 2, 3]);
        assert!(l1.overlaps(&order, 1, Some(b"f"), Some(b"f")));
        assert!(!l1.overlaps(&order, 1, Some(b"ca"), Some(b"cz")));
    }

    #[test]
    fn the_picture_shows_a_line_for_each_level_with_tables() {
        let order = KeyOrder::Bytewise;
        let version = version(
            &order,
            2,
            vec![table(7, b"a", b"c\n"), table(9, b"d", b"f")],
        );
        assert_eq!(
            version.to_string(),
            "L2 2 tables 20 B: 7[a..c\\n] 9[d..f]\n"
        );
        assert_eq!(version.deepest_level(), Some(2));
        assert_eq!((version.level_of(9), version.level_of(8)), (Some(2), None));
        assert_eq!((version.files_total(), version.bytes_total()), (2, 20));
    }
}
