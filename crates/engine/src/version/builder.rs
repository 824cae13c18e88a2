//! Applies edits to a version and checks that the result keeps the invariants.
//!
//! Edits come from this process, where a violation is a bug, and from a MANIFEST, where it is
//! damage; both are reported as `Corruption` and nothing is installed.
//!
//! Cost: of the levels that the edits touch.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use drumlin_base::key::compare_internal;
use drumlin_base::limits::LEVELS;
use drumlin_base::{Error, KeyOrder, Result};

use super::blob_file::BlobFile;
use super::{BlobFileAddition, FileMeta, NewFile, Version, VersionEdit};

/// A version and the edits since.
#[derive(Debug)]
pub struct VersionBuilder {
    base: Arc<Version>,
    levels: [Changes; LEVELS],
    /// Tables the edits removed and may add again elsewhere: a move keeps the one in memory.
    removed: BTreeMap<u64, Arc<FileMeta>>,
    blobs: Option<BTreeMap<u64, BlobFile>>,
}

#[derive(Debug, Default)]
struct Changes {
    removed: HashSet<u64>,
    added: BTreeMap<u64, Arc<FileMeta>>,
}

impl Changes {
    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }
}

/// The output of a builder.
#[derive(Debug)]
pub struct Built {
    /// The new version.
    pub version: Arc<Version>,
    /// Tables of the base that the new version has no more.
    pub removed: Vec<Arc<FileMeta>>,
    /// Blob files of the base that the new version has no more.
    pub removed_blobs: Vec<Arc<BlobFileAddition>>,
}

impl VersionBuilder {
    /// A builder on top of `base`.
    pub fn new(base: Arc<Version>) -> Self {
        Self {
            base,
            levels: Default::default(),
            removed: BTreeMap::new(),
            blobs: None,
        }
    }

    /// Applies one edit: first what it removes, then what it adds.
    ///
    /// # Errors
    /// `Corruption` when it removes a table that is not there or adds one that is.
    pub fn apply(&mut self, edit: &VersionEdit) -> Result<()> {
        for &(level, number) in &edit.deleted_files {
            self.remove(level, number)?;
        }
        for (level, file) in &edit.new_files {
            self.add(*level, file)?;
        }
        if !edit.blob_additions.is_empty() || !edit.blob_garbage.is_empty() {
            self.apply_blobs(edit)?;
        }
        Ok(())
    }

    fn remove(&mut self, level: u32, number: u64) -> Result<()> {
        let missing = || {
            let message = format!("an edit removes table {number}, which level {level} has not");
            Error::corruption(message)
        };
        let changes = self.levels.get_mut(level as usize).ok_or_else(missing)?;
        if let Some(file) = changes.added.remove(&number) {
            self.removed.insert(number, file);
            return Ok(());
        }
        let in_base = self.base.level_of(number) == Some(level as usize);
        if !in_base || !changes.removed.insert(number) {
            return Err(missing());
        }
        let files = self.base.level(level as usize);
        let file = files.iter().find(|file| file.number == number);
        let file = Arc::clone(file.ok_or_else(missing)?);
        self.removed.insert(number, file);
        Ok(())
    }

    fn add(&mut self, level: u32, file: &NewFile) -> Result<()> {
        let number = file.number;
        let there = self
            .levels
            .iter()
            .any(|changes| changes.added.contains_key(&number))
            || self.base.level_of(number).is_some_and(|level| {
                let changes = self.levels.get(level);
                changes.is_none_or(|changes| !changes.removed.contains(&number))
            });
        let Some(changes) = self.levels.get_mut(level as usize) else {
            return Err(Error::corruption(format!("there is no level {level}")));
        };
        if there {
            let message = format!("an edit adds table {number}, which is there already");
            return Err(Error::corruption(message));
        }
        let kept = self.removed.remove(&number);
        let meta = kept.filter(|kept| kept.described() == file);
        let meta = meta.unwrap_or_else(|| Arc::new(FileMeta::new(file.clone())));
        changes.added.insert(number, meta);
        Ok(())
    }

    fn apply_blobs(&mut self, edit: &VersionEdit) -> Result<()> {
        let base = &self.base;
        let blobs = self.blobs.get_or_insert_with(|| base.blobs().clone());
        for addition in &edit.blob_additions {
            let file = BlobFile {
                addition: Arc::new(addition.clone()),
                ..BlobFile::default()
            };
            if blobs.insert(addition.number, file).is_some() {
                let message = format!("an edit adds blob file {} twice", addition.number);
                return Err(Error::corruption(message));
            }
        }
        for garbage in &edit.blob_garbage {
            let Some(file) = blobs.get_mut(&garbage.number) else {
                let message = format!("an edit counts garbage in blob file {}", garbage.number);
                return Err(Error::corruption(message));
            };
            file.garbage_count = file.garbage_count.saturating_add(garbage.garbage_count);
            file.garbage_bytes = file.garbage_bytes.saturating_add(garbage.garbage_bytes);
            if file.garbage_count > file.addition.blob_count
                || file.garbage_bytes > file.addition.blob_bytes
            {
                let message = format!("blob file {} has more garbage than blobs", garbage.number);
                return Err(Error::corruption(message));
            }
        }
        Ok(())
    }

    /// The version that the edits lead to.
    ///
    /// # Errors
    /// `Corruption` when it breaks an invariant.
    pub fn build(self, order: &KeyOrder) -> Result<Built> {
        let mut changed: [Option<Vec<Arc<FileMeta>>>; LEVELS] = Default::default();
        for (n, (changes, slot)) in self.levels.iter().zip(&mut changed).enumerate() {
            if !changes.is_empty() {
                *slot = Some(changed_level(order, n, self.base.level(n), changes)?);
            }
        }
        let version = self.base.with_levels(order, changed);
        let (version, removed_blobs) = settle_blobs(version, self.blobs, &self.base);
        let removed = self
            .removed
            .into_values()
            .filter(|file| self.base.level_of(file.number).is_some())
            .collect();
        Ok(Built {
            version: Arc::new(version),
            removed,
            removed_blobs,
        })
    }

    /// The version that a whole MANIFEST leads to, and the epoch for the next table of L0. Tables
    /// of writers that knew no epochs get theirs from their sequence numbers.
    ///
    /// # Errors
    /// As [`VersionBuilder::build`].
    pub fn build_recovered(mut self, order: &KeyOrder) -> Result<(Arc<Version>, u64)> {
        debug_assert_eq!(self.base.files_total(), 0, "recovery starts from nothing");
        let added = || self.levels.iter().flat_map(|level| level.added.values());
        let mut next_epoch = 1 + added().map(|file| file.epoch).max().unwrap_or(0);
        if added().any(|file| file.epoch == 0) {
            next_epoch = infer_epochs(&mut self.levels)?;
        }
        Ok((self.build(order)?.version, next_epoch))
    }
}

fn changed_level(
    order: &KeyOrder,
    n: usize,
    base: &[Arc<FileMeta>],
    changes: &Changes,
) -> Result<Vec<Arc<FileMeta>>> {
    let kept = base
        .iter()
        .filter(|file| !changes.removed.contains(&file.number));
    let mut files: Vec<_> = kept.chain(changes.added.values()).cloned().collect();
    for file in changes.added.values() {
        // Of a table with one key the order need not be asked: it is the program's.
        let has_one = file.smallest == file.largest;
        if !has_one && compare_internal(order, &file.smallest, &file.largest).is_gt() {
            let message = format!(
                "the smallest key of table {} is past its largest",
                file.number
            );
            return Err(Error::corruption(message));
        }
    }
    if n == 0 {
        files.sort_by_key(|file| Reverse(l0_age(file)));
        check_l0(order, &files)?;
    } else {
        files.sort_by(|a, b| compare_internal(order, &a.smallest, &b.smallest));
        check_disjoint(order, n, &files)?;
    }
    Ok(files)
}

/// Sorts the tables of L0 from old to new.
fn l0_age(file: &FileMeta) -> (u64, u64, u64, u64) {
    (
        file.epoch,
        file.largest_seqno,
        file.smallest_seqno,
        file.number,
    )
}

/// Requires: `files` are sorted from new to old.
fn check_l0(order: &KeyOrder, files: &[Arc<FileMeta>]) -> Result<()> {
    for same_epoch in files.chunk_by(|a, b| a.epoch == b.epoch) {
        for (at, a) in same_epoch.iter().enumerate() {
            let others = same_epoch.get(at + 1..).expect("an index of the tables");
            if let Some(b) = others.iter().find(|b| ranges_overlap(order, a, b)) {
                let message = format!(
                    "tables {} and {} of L0 overlap and are equally old (epoch {})",
                    a.number, b.number, a.epoch
                );
                return Err(Error::corruption(message));
            }
        }
    }
    Ok(())
}

fn ranges_overlap(order: &KeyOrder, a: &FileMeta, b: &FileMeta) -> bool {
    let ends_before = |a: &FileMeta, b: &FileMeta| {
        order.compare(a.largest_user_key(), b.smallest_user_key()) == Ordering::Less
    };
    !ends_before(a, b) && !ends_before(b, a)
}

/// Requires: `files` are sorted by smallest key.
fn check_disjoint(order: &KeyOrder, n: usize, files: &[Arc<FileMeta>]) -> Result<()> {
    for (a, b) in files.iter().zip(files.iter().skip(1)) {
        if compare_internal(order, &a.largest, &b.smallest).is_ge() {
            let message = format!("tables {} and {} of level {n} overlap", a.number, b.number);
            return Err(Error::corruption(message));
        }
    }
    Ok(())
}

/// Gives every table an epoch, from the deepest level up, then L0 from old to new; the next epoch.
///
/// # Errors
/// `Corruption` when the sequence numbers of L0 do not show which table is newer.
fn infer_epochs(levels: &mut [Changes; LEVELS]) -> Result<u64> {
    let mut next = 1;
    let with_epoch = |file: &Arc<FileMeta>, epoch: u64| {
        let mut described = file.described().clone();
        described.epoch = epoch;
        Arc::new(FileMeta::new(described))
    };
    let (l0, deeper) = levels.split_at_mut(1);
    for level in deeper.iter_mut().rev() {
        if level.added.is_empty() {
            continue;
        }
        for file in level.added.values_mut() {
            *file = with_epoch(file, next);
        }
        next += 1;
    }
    for level in l0 {
        let mut files: Vec<_> = level.added.values().cloned().collect();
        files.sort_by_key(|file| (file.largest_seqno, file.smallest_seqno, file.number));
        for (older, newer) in files.iter().zip(files.iter().skip(1)) {
            check_told_apart(older, newer)?;
        }
        for file in files {
            level.added.insert(file.number, with_epoch(&file, next));
            next += 1;
        }
    }
    Ok(next)
}

/// Writers without epochs kept the sequence numbers of L0's tables apart, but for ingested tables,
/// which have a single one, and for LevelDB, which records none.
fn check_told_apart(older: &FileMeta, newer: &FileMeta) -> Result<()> {
    let single = older.smallest_seqno == older.largest_seqno;
    let told_apart = match single {
        true => older.largest_seqno < newer.largest_seqno || older.largest_seqno == 0,
        false => older.smallest_seqno < newer.smallest_seqno,
    };
    if told_apart || newer.smallest_seqno == newer.largest_seqno {
        return Ok(());
    }
    let message = format!(
        "the sequence numbers of tables {} and {} of L0 overlap",
        older.number, newer.number
    );
    Err(Error::corruption(message))
}

/// Drops blob files that nothing refers to any more: those below the oldest that a table names,
/// and those that are garbage throughout and that no table names.
fn settle_blobs(
    version: Version,
    blobs: Option<BTreeMap<u64, BlobFile>>,
    base: &Version,
) -> (Version, Vec<Arc<BlobFileAddition>>) {
    if blobs.is_none() && base.blobs().is_empty() {
        return (version, Vec::new());
    }
    let mut blobs = blobs.unwrap_or_else(|| base.blobs().clone());
    let named: HashSet<u64> = version
        .files()
        .map(|(_, file)| file.oldest_blob_file)
        .filter(|&number| number != 0)
        .collect();
    let oldest = named.iter().copied().min().unwrap_or(u64::MAX);
    blobs.retain(|number, file| {
        let all_garbage = file.garbage_count >= file.addition.blob_count;
        *number >= oldest && (!all_garbage || named.contains(number))
    });
    let gone = base.blobs().iter();
    let gone = gone.filter(|(number, _)| !blobs.contains_key(number));
    let gone = gone.map(|(_, file)| Arc::clone(&file.addition)).collect();
    (version.with_blobs(blobs), gone)
}
