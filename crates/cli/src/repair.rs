//! repair: what can be read of a damaged directory, as a new database.
//!
//! The damaged directory is not changed. Which tables are live is taken from the MANIFEST if that
//! is sound; else every table file counts, under the family its properties name, and entries that a
//! compaction had already dropped may come back. Within a family the newest version of each key
//! wins, by sequence number; deletions hold. Logs are replayed past what the tables hold. Of a
//! damaged table the entries before the damage are saved, of a damaged log the records before it.
//! Everything left out is named.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin::batch::{BatchRecord, BatchView, WriteBatch};
use drumlin::iter::merging::MergingIterator;
use drumlin::names::FileName;
use drumlin::record::{Later, RecordReader, Verdict};
use drumlin::{ColumnFamily, Db, Options, WriteOptions};
use drumlin_base::key::ParsedKey;
use drumlin_base::{InternalIterator, KeyOrder, RangeTombstone, Result, SeqNo, ValueKind};
use drumlin_fs::Env;
use drumlin_table::{Table, TableIter, TableReadOptions};

use crate::args::Place;
use crate::failure::{Failure, Outcome};
use crate::manifest::Tree;
use crate::output::Output;
use crate::{inspect, tables, units};

const BATCH_BYTES: usize = 1 << 20;

/// A family to be saved.
#[derive(Debug, Default)]
struct Lost {
    name: String,
    tables: Vec<Arc<Table>>,
}

/// Saves what is in `--db` into a new database at `target`.
pub(crate) fn repair(place: &Place, target: &Path, out: &mut Output) -> Outcome {
    let env = Env::system();
    let dir = place.dir()?;
    if env.files.exists(target)? {
        let text = format!(
            "{} is there already; name a new directory",
            target.display()
        );
        return Err(Failure::Usage(text));
    }
    let families = gather(&env, dir, out)?;
    let options = Options {
        error_if_exists: true,
        ..Options::default()
    };
    let db = Db::open(target, options)?;
    let mut rescue = Rescue {
        db: &db,
        batch: WriteBatch::new(),
        left_out: 0,
    };
    let mut saved = BTreeMap::new();
    for (id, lost) in &families {
        let family = rescue.family(lost)?;
        let newest = rescue.save_tables(&family, lost, out)?;
        saved.insert(*id, (family, newest));
    }
    for log in inspect::logs(&env, dir)? {
        rescue.replay(&env, &log, &saved, out)?;
    }
    rescue.write()?;
    let left_out = rescue.left_out;
    db.close()?;
    if left_out > 0 {
        let left_out = units::count(left_out);
        out.text(format!(
            "{left_out} entries of kinds that cannot be saved were left out"
        ))?;
    }
    out.text(format!(
        "what could be read is in {}; check it before use",
        target.display()
    ))
}

/// The families of `dir`, by id, with their readable tables.
fn gather(env: &Env, dir: &Path, out: &mut Output) -> Outcome<BTreeMap<u32, Lost>> {
    let mut families = BTreeMap::new();
    let tree = match Tree::read(env, dir) {
        Ok(tree) => Some(tree),
        Err(failure) => {
            out.text(format!(
                "the MANIFEST cannot be used ({failure}); every table counts"
            ))?;
            None
        }
    };
    for (number, path) in table_files(env, dir)? {
        let owner = tree.as_ref().map(|tree| owner(tree, number));
        if owner == Some(None) {
            continue; // Obsolete: a compaction replaced it.
        }
        let table = match tables::open(env, &path) {
            Ok(table) => table,
            Err(failure) => {
                out.text(format!("left out: {}: {failure}", path.display()))?;
                continue;
            }
        };
        let (id, name) = owner.flatten().unwrap_or_else(|| named_by(&table));
        let lost: &mut Lost = families.entry(id).or_default();
        lost.name = name;
        lost.tables.push(table);
    }
    for (id, family) in tree.iter().flat_map(|tree| &tree.families) {
        families
            .entry(*id)
            .or_default()
            .name
            .clone_from(&family.name);
    }
    let default = families.entry(0).or_default();
    "default".clone_into(&mut default.name);
    Ok(families)
}

/// The family that holds table `number`.
fn owner(tree: &Tree, number: u64) -> Option<(u32, String)> {
    let mut families = tree.families.iter();
    let holds = |levels: &BTreeMap<u32, BTreeMap<u64, _>>| {
        levels.values().any(|files| files.contains_key(&number))
    };
    let found = families.find(|(_, family)| holds(&family.levels));
    found.map(|(id, family)| (*id, family.name.clone()))
}

/// The family a table's properties name; LevelDB's tables name none.
fn named_by(table: &Table) -> (u32, String) {
    let known = table.properties();
    match u32::try_from(known.column_family_id) {
        Ok(id) if !known.column_family_name.is_empty() => (id, known.column_family_name.clone()),
        _ => (0, "default".to_owned()),
    }
}

fn table_files(env: &Env, dir: &Path) -> Outcome<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for name in env.files.list(dir)? {
        if let Some(FileName::Table(number)) = FileName::parse(&name) {
            files.push((number, dir.join(name)));
        }
    }
    files.sort();
    Ok(files)
}

/// Writes what was found into the new database.
struct Rescue<'d> {
    db: &'d Db,
    batch: WriteBatch,
    /// Entries whose kind cannot be written here.
    left_out: u64,
}

impl Rescue<'_> {
    fn family(&self, lost: &Lost) -> Outcome<ColumnFamily> {
        Ok(match self.db.family(&lost.name) {
            Some(family) => family,
            None => self
                .db
                .create_family(&lost.name, Options::default().family)?,
        })
    }

    /// Saves the newest version of every key in the tables of `lost`; the highest sequence number
    /// seen.
    fn save_tables(
        &mut self,
        family: &ColumnFamily,
        lost: &Lost,
        out: &mut Output,
    ) -> Outcome<SeqNo> {
        let tombstones: Vec<RangeTombstone> = lost
            .tables
            .iter()
            .flat_map(|table| table.range_tombstones().iter().cloned())
            .collect();
        let mut newest = tombstones
            .iter()
            .map(|tombstone| tombstone.seqno)
            .max()
            .unwrap_or(0);
        let walks = lost.tables.iter().map(Walk::new).collect();
        let mut entries = MergingIterator::new(KeyOrder::Bytewise, walks);
        let mut versions = Versions::default();
        let mut count = 0u64;
        entries.seek_to_first();
        while entries.valid() {
            let key = ParsedKey::parse(entries.key())?;
            newest = newest.max(key.seqno);
            if key.user_key != versions.key {
                count += u64::from(versions.save(family.id(), self)?);
                versions.begin(key.user_key);
            }
            versions.add(&key, entries.value(), &tombstones);
            entries.next();
        }
        count += u64::from(versions.save(family.id(), self)?);
        for walk in entries.children() {
            if let Err(error) = walk.entries.status() {
                out.text(format!("left out, from the damage on: {error}"))?;
            }
        }
        let tables = lost.tables.len();
        let count = units::count(count);
        out.text(format!(
            "family {}: {count} entries from {tables} tables",
            lost.name
        ))?;
        Ok(newest)
    }

    /// Replays the records of a log that are newer than the tables of their family.
    fn replay(
        &mut self,
        env: &Env,
        path: &Path,
        saved: &BTreeMap<u32, (ColumnFamily, SeqNo)>,
        out: &mut Output,
    ) -> Outcome {
        let mut reader = RecordReader::new(env.files.open(path)?, inspect::log_number(path));
        let mut count = 0u64;
        while let Some(record) = reader.read()? {
            let batch = match BatchView::new(record.payload) {
                Ok(batch) => batch,
                Err(error) => {
                    let offset = record.offset;
                    out.text(format!(
                        "left out: {}, from {offset} on: {error}",
                        path.display()
                    ))?;
                    return Ok(());
                }
            };
            for (entry, seqno) in batch.iter().zip(batch.seqno()..) {
                let entry = entry?;
                match saved.get(&entry.family) {
                    Some((_, newest)) if seqno <= *newest => {}
                    Some((family, _)) => {
                        self.add(family.id(), &entry)?;
                        count += 1;
                    }
                    None => self.left_out += 1,
                }
            }
        }
        if let Verdict::Corrupt { offset, reason } = reader.judge(Later::Marks)? {
            out.text(format!(
                "left out: {}, from {offset} on: {reason}",
                path.display()
            ))?;
        }
        if count > 0 {
            out.text(format!(
                "{}: {} writes replayed",
                path.display(),
                units::count(count)
            ))?;
        }
        Ok(())
    }

    fn add(&mut self, family: u32, entry: &BatchRecord<'_>) -> Result<()> {
        match entry.kind {
            ValueKind::Value => self.batch.put_cf(family, entry.key, entry.value)?,
            ValueKind::Merge => self.batch.merge_cf(family, entry.key, entry.value)?,
            ValueKind::Deletion => self.batch.delete_cf(family, entry.key)?,
            ValueKind::SingleDeletion => self.batch.single_delete_cf(family, entry.key)?,
            ValueKind::RangeDeletion => {
                self.batch.delete_range_cf(family, entry.key, entry.value)?;
            }
            ValueKind::BlobIndex | ValueKind::WideColumnEntity => self.left_out += 1,
        }
        if self.batch.len() >= BATCH_BYTES {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let full = std::mem::replace(&mut self.batch, WriteBatch::with_capacity(BATCH_BYTES));
        let unlogged = WriteOptions {
            no_wal: true,
            ..WriteOptions::default()
        };
        self.db.write(full, &unlogged)
    }
}

/// What is known of the present key, newest version first.
#[derive(Debug, Default)]
struct Versions {
    key: Vec<u8>,
    /// Operands since the value below them.
    operands: Vec<Vec<u8>>,
    value: Option<Vec<u8>>,
    left_out: u64,
    /// Older versions no longer matter.
    settled: bool,
}

impl Versions {
    fn begin(&mut self, key: &[u8]) {
        *self = Self {
            key: key.to_vec(),
            ..Self::default()
        };
    }

    fn add(&mut self, key: &ParsedKey<'_>, value: &[u8], tombstones: &[RangeTombstone]) {
        if self.settled {
            return;
        }
        let covered = |tombstone: &RangeTombstone| {
            tombstone.seqno > key.seqno
                && tombstone.begin.as_slice() <= key.user_key
                && key.user_key < tombstone.end.as_slice()
        };
        if tombstones.iter().any(covered) {
            self.settled = true;
            return;
        }
        match key.kind {
            ValueKind::Merge => self.operands.push(value.to_vec()),
            ValueKind::Value => self.value = Some(value.to_vec()),
            ValueKind::BlobIndex | ValueKind::WideColumnEntity => self.left_out += 1,
            ValueKind::Deletion | ValueKind::SingleDeletion | ValueKind::RangeDeletion => {}
        }
        self.settled = key.kind != ValueKind::Merge;
    }

    /// Writes what the key has; whether it has anything.
    fn save(&self, family: u32, rescue: &mut Rescue<'_>) -> Result<bool> {
        rescue.left_out += self.left_out;
        let entry = |kind, value| BatchRecord {
            family,
            kind,
            key: &self.key,
            value,
        };
        if let Some(value) = &self.value {
            rescue.add(family, &entry(ValueKind::Value, value))?;
        }
        for operand in self.operands.iter().rev() {
            rescue.add(family, &entry(ValueKind::Merge, operand))?;
        }
        Ok(self.value.is_some() || !self.operands.is_empty())
    }
}

/// A walk over a table that ends at the first damage instead of failing.
struct Walk {
    entries: TableIter,
}

impl Walk {
    fn new(table: &Arc<Table>) -> Self {
        let options = TableReadOptions {
            fill_cache: false,
            ..TableReadOptions::default()
        };
        Self {
            entries: table.iter(options),
        }
    }
}

impl InternalIterator for Walk {
    fn valid(&self) -> bool {
        self.entries.valid()
    }
    fn seek_to_first(&mut self) {
        self.entries.seek_to_first();
    }
    fn seek_to_last(&mut self) {
        self.entries.seek_to_last();
    }
    fn seek(&mut self, target: &[u8]) {
        self.entries.seek(target);
    }
    fn seek_for_prev(&mut self, target: &[u8]) {
        self.entries.seek_for_prev(target);
    }
    fn next(&mut self) {
        self.entries.next();
    }
    fn prev(&mut self) {
        self.entries.prev();
    }
    fn key(&self) -> &[u8] {
        self.entries.key()
    }
    fn value(&self) -> &[u8] {
        self.entries.value()
    }
    fn status(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use drumlin_base::key::internal_key;

    use super::*;

    /// The versions of key `k`, newest first, as they settle.
    fn settle(entries: &[(SeqNo, ValueKind, &[u8])], tombstones: &[RangeTombstone]) -> Versions {
        let mut versions = Versions::default();
        versions.begin(b"k");
        for (seqno, kind, value) in entries {
            let internal = internal_key(b"k", *seqno, *kind);
            let key = ParsedKey::parse(&internal).expect("a sound key");
            versions.add(&key, value, tombstones);
        }
        versions
    }

    #[test]
    fn the_newest_version_wins_and_deletions_hold() {
        let versions = settle(
            &[(9, ValueKind::Value, b"new"), (3, ValueKind::Value, b"old")],
            &[],
        );
        assert_eq!(versions.value.as_deref(), Some(&b"new"[..]));
        let versions = settle(
            &[(9, ValueKind::Deletion, b""), (3, ValueKind::Value, b"old")],
            &[],
        );
        assert_eq!(versions.value, None);
    }

    #[test]
    fn operands_are_kept_down_to_the_value_below_them() {
        let versions = settle(
            &[
                (9, ValueKind::Merge, b"c"),
                (8, ValueKind::Merge, b"b"),
                (7, ValueKind::Value, b"a"),
                (6, ValueKind::Merge, b"too old"),
            ],
            &[],
        );
        assert_eq!(versions.operands, [b"c", b"b"]);
        assert_eq!(versions.value.as_deref(), Some(&b"a"[..]));
    }

    #[test]
    fn a_newer_range_tombstone_hides_what_it_covers() {
        let tombstone = RangeTombstone {
            begin: b"a".to_vec(),
            end: b"z".to_vec(),
            seqno: 5,
        };
        let older = settle(
            &[(4, ValueKind::Value, b"v")],
            std::slice::from_ref(&tombstone),
        );
        assert_eq!(older.value, None);
        let newer = settle(
            &[(6, ValueKind::Value, b"v")],
            std::slice::from_ref(&tombstone),
        );
        assert_eq!(newer.value.as_deref(), Some(&b"v"[..]));
    }
}
