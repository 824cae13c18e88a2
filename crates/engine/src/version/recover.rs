//! The state that a MANIFEST describes, read from its first record to its last.
//!
//! Nothing on disk is changed. Every record is decoded, checked and applied in memory before any of
//! it is believed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::{Error, ErrorKind, KeyOrder, Result};
use drumlin_fs::FileSystem;

use super::family_versions::FamilyVersions;
use super::manifest_tail::{EditGroup, ManifestTail};
use super::{BlobFileAddition, History, Version, VersionBuilder, VersionEdit};
use crate::files::names;
use crate::wal::record::{Later, RecordReader, Verdict};

/// The family every database has.
pub const DEFAULT_FAMILY: &str = "default";
/// A family RocksDB keeps for itself and opens unasked.
const STATISTICS_FAMILY: &str = "___rocksdb_stats_history___";

/// How often a MANIFEST that grows while it is read is looked at again.
const GROWTHS_MAX: usize = 64;

/// Everything a MANIFEST says.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) families: BTreeMap<u32, FamilyVersions>,
    pub(super) numbers: RecordedNumbers,
    pub(super) verdict: Verdict,
    pub(super) unopened: Vec<String>,
    /// Where reading goes on.
    pub(super) tail: ManifestTail,
}

/// The database's own numbers, each as the last record that spoke of it left it.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedNumbers {
    pub(super) db_id: Option<String>,
    pub(super) log_number: Option<u64>,
    pub(super) prev_log_number: u64,
    pub(super) next_file_number: Option<u64>,
    pub(super) last_seqno: Option<u64>,
    pub(super) max_family: u32,
    pub(super) min_log_number_to_keep: u64,
    pub(super) wals: BTreeMap<u64, Option<u64>>,
    /// The last change that is no write, where the WAL may lack it.
    pub(super) change: Option<Vec<u8>>,
    /// The WAL files that are needed for sections of two-phase commit alone.
    pub(super) section_wals: Vec<u64>,
    /// The past that is kept.
    pub(super) history: History,
}

impl RecordedNumbers {
    pub(super) fn apply(&mut self, edit: &VersionEdit) {
        if edit.db_id.is_some() {
            self.db_id.clone_from(&edit.db_id);
        }
        self.log_number = edit.log_number.or(self.log_number);
        self.prev_log_number = edit.prev_log_number.unwrap_or(self.prev_log_number);
        self.next_file_number = edit.next_file_number.max(self.next_file_number);
        self.last_seqno = edit.last_seqno.max(self.last_seqno);
        self.max_family = self
            .max_family
            .max(edit.max_column_family.unwrap_or(0))
            .max(edit.column_family);
        self.min_log_number_to_keep = self
            .min_log_number_to_keep
            .max(edit.min_log_number_to_keep.unwrap_or(0));
        self.wals.extend(edit.wal_additions.iter().copied());
        if let Some(below) = edit.wals_deleted_below {
            self.wals = self.wals.split_off(&below);
        }
        if let Some(change) = &edit.change {
            self.change = Some(change.clone()).filter(|change| !change.is_empty());
        }
        if let Some(wals) = &edit.section_wals {
            self.section_wals.clone_from(wals);
        }
        if let Some(history) = &edit.history {
            self.history.clone_from(history);
        }
    }
}

/// A family while its records are read.
#[derive(Debug)]
struct Reading {
    name: String,
    /// The name of the order it was written in.
    stored_order: Option<String>,
    /// `None` when the caller did not name the family.
    order: Option<KeyOrder>,
    builder: VersionBuilder,
    log_number: u64,
    full_history_ts_low: Option<Vec<u8>>,
    cursors: BTreeMap<u32, Vec<u8>>,
}

/// Gives the key order of a family by its name and that of the order it was written in, where the MANIFEST names one.
pub type OrderOf<'a> = &'a dyn Fn(&str, Option<&str>) -> Result<KeyOrder>;

/// The key orders of the families to be opened.
#[derive(Clone, Copy)]
pub(super) enum Orders<'a> {
    /// Of these; the others stay closed.
    Named(&'a [(String, KeyOrder)]),
    /// Of all.
    Found(OrderOf<'a>),
}

/// Reads MANIFEST `number` of `dir`. `orders` gives the key order of every family to be opened.
///
/// # Errors
/// `Corruption`, `NotSupported`, `Io`; `InvalidArgument` when a family was written under another
/// order than `orders` gives it.
pub(super) fn read_manifest(
    files: &dyn FileSystem,
    dir: &Path,
    number: u64,
    orders: Orders<'_>,
) -> Result<Recovered> {
    let path = names::manifest(dir, number);
    let mut replay = Replay::new(orders);
    let (verdict, reader) = replay
        .read_all(files, &path)
        .map_err(|error| error.with_file(&path))?;
    replay
        .finish(verdict, reader)
        .map_err(|error| error.with_file(&path))
}

/// The families in MANIFEST `number` of `dir`, by id: each one's name and the name of its order.
///
/// # Errors
/// `Corruption`, `NotSupported`, `Io`.
pub(super) fn read_families(
    files: &dyn FileSystem,
    dir: &Path,
    number: u64,
) -> Result<Vec<(String, Option<String>)>> {
    let path = names::manifest(dir, number);
    let mut replay = Replay::new(Orders::Named(&[]));
    replay
        .read_all(files, &path)
        .map_err(|error| error.with_file(&path))?;
    Ok(replay
        .families
        .into_values()
        .map(|family| (family.name, family.stored_order))
        .collect())
}

struct Replay<'a> {
    orders: Orders<'a>,
    families: BTreeMap<u32, Reading>,
    numbers: RecordedNumbers,
    /// Edits of an atomic group that is not complete yet.
    group: EditGroup,
}

impl<'a> Replay<'a> {
    fn new(orders: Orders<'a>) -> Self {
        let mut replay = Self {
            orders,
            families: BTreeMap::new(),
            numbers: RecordedNumbers::default(),
            group: EditGroup::default(),
        };
        let default = replay.start_family(DEFAULT_FAMILY, 0);
        replay.families.insert(0, default);
        replay
    }

    fn start_family(&self, name: &str, log_number: u64) -> Reading {
        let named = match self.orders {
            Orders::Named(named) => named,
            Orders::Found(_) => &[],
        };
        let given = named.iter().find(|(given, _)| given == name);
        let order = given.map(|(_, order)| order.clone());
        let order = order.or_else(|| (name == STATISTICS_FAMILY).then_some(KeyOrder::Bytewise));
        Reading {
            name: name.to_owned(),
            stored_order: None,
            order,
            builder: VersionBuilder::new(Arc::new(Version::empty())),
            log_number,
            full_history_ts_low: None,
            cursors: BTreeMap::new(),
        }
    }

    fn read_all(&mut self, files: &dyn FileSystem, path: &Path) -> Result<(Verdict, RecordReader)> {
        let mut reader = RecordReader::new(files.open(path)?, 0);
        for _ in 0..GROWTHS_MAX {
            while let Some(record) = reader.read()? {
                let offset = record.offset;
                VersionEdit::decode(record.payload)
                    .and_then(|edit| self.take(edit))
                    .map_err(|error| error.with_offset(offset))?;
            }
            // Another process may write it: files that it named while it was read have not gone yet.
            if !reader.go_on(files.open(path)?) {
                break;
            }
        }
        // Records are synced before the next are written: a record after an unreadable one proves
        // that it was readable once, unless the two were written together and the power failed
        // before they were synced. A group cut short was never promised.
        let synced_from = |payload: &[u8]| VersionEdit::decode(payload).ok()?.synced_from;
        let verdict = reader
            .judge(Later::Batches(synced_from))?
            .refuse_corruption()?;
        Ok((verdict, reader))
    }

    /// Applies an edit, or keeps it until its atomic group is complete.
    fn take(&mut self, edit: VersionEdit) -> Result<()> {
        let complete = self.group.take(edit)?;
        complete
            .iter()
            .flatten()
            .try_for_each(|edit| self.apply(edit))
    }

    fn apply(&mut self, edit: &VersionEdit) -> Result<()> {
        let id = edit.column_family;
        if let Some(name) = &edit.add_family {
            let family = self.start_family(name, edit.log_number.unwrap_or(0));
            if self.families.values().any(|other| other.name == *name)
                || self.families.insert(id, family).is_some()
            {
                return Err(Error::corruption(format!("family {name:?} is added twice")));
            }
        }
        if edit.drop_family {
            if id == 0 || self.families.remove(&id).is_none() {
                return Err(Error::corruption(format!(
                    "family {id} is dropped but not there"
                )));
            }
        } else if let Some(family) = self.families.get_mut(&id) {
            family.apply(edit)?;
        } else {
            return Err(Error::corruption(format!(
                "an edit concerns the unknown family {id}"
            )));
        }
        self.numbers.apply(edit);
        Ok(())
    }

    fn finish(self, verdict: Verdict, reader: RecordReader) -> Result<Recovered> {
        let missing = [
            (self.numbers.log_number.is_none(), "log number"),
            (self.numbers.next_file_number.is_none(), "next file number"),
            (self.numbers.last_seqno.is_none(), "last sequence number"),
        ];
        if let Some((_, what)) = missing.iter().find(|(is_missing, _)| *is_missing) {
            return Err(Error::corruption(format!(
                "the MANIFEST never gives a {what}"
            )));
        }
        let newest = self.numbers.history.marked.last().map(|it| it.seqno);
        if newest > self.numbers.last_seqno {
            // What is written next would be seen in it.
            let message = "the MANIFEST has a moment of history past its last sequence number";
            return Err(Error::corruption(message));
        }
        let mut families = BTreeMap::new();
        let mut unopened = Vec::new();
        for (id, mut family) in self.families {
            let name = family.name.clone();
            if let Orders::Found(order_of) = self.orders {
                family.order = Some(order_of(&name, family.stored_order.as_deref())?);
            }
            match family.finish(id)? {
                Some(family) => {
                    families.insert(id, family);
                }
                None => unopened.push(name),
            }
        }
        Ok(Recovered {
            families,
            numbers: self.numbers,
            verdict,
            unopened,
            tail: ManifestTail::new(reader, self.group),
        })
    }
}

impl Reading {
    fn apply(&mut self, edit: &VersionEdit) -> Result<()> {
        if let (Some(stored), Some(order)) = (&edit.comparator, &self.order)
            && stored != order.name()
        {
            let message = format!(
                "family {:?} was written in the order of {stored}, not of {}",
                self.name,
                order.name()
            );
            return Err(Error::invalid_argument(message));
        }
        if edit.comparator.is_some() {
            self.stored_order.clone_from(&edit.comparator);
        }
        // Writers were seen to let it go back, and readers to pass over that.
        self.log_number = self.log_number.max(edit.log_number.unwrap_or(0));
        if edit.full_history_ts_low.is_some() {
            self.full_history_ts_low
                .clone_from(&edit.full_history_ts_low);
        }
        self.cursors.extend(edit.compact_cursors.iter().cloned());
        self.builder.apply(edit).map_err(|error| self.named(error))
    }

    fn named(&self, error: Error) -> Error {
        error.context(format_args!("family {:?}", self.name))
    }

    fn finish(self, id: u32) -> Result<Option<FamilyVersions>> {
        let Some(order) = self.order else {
            return Ok(None);
        };
        let context = format!("family {:?}", self.name);
        let (current, next_epoch) = self
            .builder
            .build_recovered(&order)
            .map_err(|error| error.context(context))?;
        Ok(Some(FamilyVersions {
            id,
            name: self.name,
            order,
            log_number: self.log_number,
            current,
            next_epoch,
            full_history_ts_low: self.full_history_ts_low,
            cursors: self.cursors,
        }))
    }
}

/// Checks that every table and blob file the versions hold is in `dir`, with the size that follows
/// from the MANIFEST.
///
/// # Errors
/// `Corruption` naming the table; `Io`.
pub(super) fn check_tables(
    files: &dyn FileSystem,
    dir: &Path,
    families: &BTreeMap<u32, FamilyVersions>,
) -> Result<()> {
    for family in families.values() {
        let tables = family.current.files().map(|(_, table)| table.number);
        refuse_all_missing(files, dir, &family.name, tables)?;
    }
    let tables = families.values().flat_map(|family| family.current.files());
    for (_, table) in tables {
        check_table(files, dir, (table.number, table.size))?;
    }
    let blobs = families.values().map(|family| family.current.blobs());
    blobs
        .flat_map(BTreeMap::values)
        .try_for_each(|blob| check_blob_file(files, dir, &blob.addition))
}

/// Checks that the table `number` is in `dir`, with `size` bytes.
pub(super) fn check_table(
    files: &dyn FileSystem,
    dir: &Path,
    (number, size): (u64, u64),
) -> Result<()> {
    let (path, info) = find_table(files, dir, number)?;
    if info.size != size {
        let message = format!(
            "the table has {} bytes, the MANIFEST says {size}",
            info.size
        );
        return Err(Error::corruption(message).with_file(&path));
    }
    Ok(())
}

/// Refuses a family none of whose `tables` is in `dir`, though it has some. A single other data path
/// shows in nothing else: tables there are called of path 0, too.
pub(super) fn refuse_all_missing(
    files: &dyn FileSystem,
    dir: &Path,
    family: &str,
    tables: impl Iterator<Item = u64>,
) -> Result<()> {
    let mut missing = 0;
    for table in tables {
        match find_table(files, dir, table) {
            Err(error) if error.is_corruption() => missing += 1,
            found => return found.map(|_| ()),
        }
    }
    match missing {
        0 => Ok(()),
        _ => Err(Error::not_supported(format!(
            "the directory has none of the {missing} tables of family {family:?}: a data path elsewhere \
             (db_paths, cf_paths) is not supported; bring its tables here"
        ))
        .with_file(dir)),
    }
}

pub(super) fn check_blob_file(
    files: &dyn FileSystem,
    dir: &Path,
    blob: &BlobFileAddition,
) -> Result<()> {
    let path = names::blob(dir, blob.number);
    let info = match files.info(&path) {
        Err(error) if error.is_not_found() => {
            let error = error.with_kind(ErrorKind::Corruption);
            return Err(error.context("a blob file of the database is missing"));
        }
        info => info?,
    };
    if info.size != blob.file_bytes() {
        let (found, expected) = (info.size, blob.file_bytes());
        let message = format!("the blob file has {found} bytes, the MANIFEST says {expected}");
        return Err(Error::corruption(message).with_file(&path));
    }
    Ok(())
}

/// The path of table `number` under either engine's name.
///
/// # Errors
/// `Corruption` when it is missing under both; `Io`.
pub fn find_table(
    files: &dyn FileSystem,
    dir: &Path,
    number: u64,
) -> Result<(PathBuf, drumlin_fs::FileInfo)> {
    let path = names::table(dir, number);
    match files.info(&path) {
        Err(error) if error.is_not_found() => {
            let leveldb = names::leveldb_table(dir, number);
            match files.info(&leveldb) {
                Err(second) if second.is_not_found() => Err(error
                    .with_kind(ErrorKind::Corruption)
                    .context("a table of the database is missing")),
                found => Ok((leveldb, found?)),
            }
        }
        found => Ok((path, found?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_group(remaining: u32) -> VersionEdit {
        VersionEdit {
            atomic_group_remaining: Some(remaining),
            ..VersionEdit::of_family(0)
        }
    }

    #[test]
    fn a_group_that_does_not_count_down_is_corruption() {
        for next in [0, 2, 3, u32::MAX] {
            let mut replay = Replay::new(Orders::Named(&[]));
            replay.take(of_group(2)).unwrap();
            assert!(replay.take(of_group(next)).unwrap_err().is_corruption());
        }
        let mut replay = Replay::new(Orders::Named(&[]));
        for remaining in [2, 1, 0] {
            replay.take(of_group(remaining)).unwrap();
        }
        assert!(replay.group.edits.is_empty());
    }
}
