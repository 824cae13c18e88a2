//! The files that the database needs now, and what is known of each without reading it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use drumlin_base::{Result, SeqNo};

use crate::db::handle::Db;
use crate::family::column_family::ColumnFamily;
use crate::files::names;
use crate::version::FileMeta;
use crate::wal::tail::Front;

/// A table of a family's present version: RocksDB's `LiveFileMetaData`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveTable {
    /// The level it is in.
    pub level: usize,
    /// The number in its name.
    pub number: u64,
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// The smallest user key in it, range deletions included.
    pub smallest: Vec<u8>,
    /// The largest one; not in the table where a range deletion ends there.
    pub largest: Vec<u8>,
    /// The lowest sequence number in it; 0 where it is unknown.
    pub smallest_seqno: SeqNo,
    /// The highest one; 0 where it is unknown.
    pub largest_seqno: SeqNo,
    /// Unix seconds at which it was made; 0 where that is unknown.
    pub creation_time: u64,
    /// Entries in it, deletions too; `None` where the table was not open since the database was, nor counted
    /// ([`Db::count_tables`]).
    pub entries: Option<u64>,
    /// Those of them that delete.
    pub deletions: Option<u64>,
    /// Bytes of the keys of all entries, with eight of number and kind each.
    pub key_bytes: Option<u64>,
    /// Bytes of their values; of one in a blob file those of the reference.
    pub value_bytes: Option<u64>,
    /// Whether a compaction has it as an input now.
    pub being_compacted: bool,
}

/// The kind of a [`LiveFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LiveFileKind {
    /// A table.
    Table,
    /// Values kept apart from their tables.
    Blob,
    /// A model that tables share.
    Model,
    /// A part of the write-ahead log.
    Wal,
    /// The MANIFEST.
    Manifest,
    /// CURRENT.
    Current,
    /// The OPTIONS file.
    Options,
}

/// A file that the database needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveFile {
    /// Its kind.
    pub kind: LiveFileKind,
    /// Where it is.
    pub path: PathBuf,
    /// The family it belongs to; `None` for a WAL file or a model, which serve several.
    pub family: Option<String>,
    /// The size that the MANIFEST has of it, of a WAL file that of the file; `None` of a model.
    pub bytes: Option<u64>,
    /// The first sequence number in a WAL file; `None` of one that has nothing yet, and of other files.
    pub first_seqno: Option<SeqNo>,
}

impl Db {
    /// The tables of `family`, level by level; L0 from the newest to the oldest, deeper levels in the order of keys.
    /// Cost: of the tables; nothing is read.
    ///
    /// # Errors
    /// `InvalidArgument` for a family of another database; `Shutdown`.
    pub fn live_tables(&self, family: &ColumnFamily) -> Result<Vec<LiveTable>> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        let super_version = family.0.super_version.load_full();
        let tables = &family.0.reads.tables;
        let table = |(level, file): (usize, &Arc<FileMeta>)| {
            let counts = file.counts();
            LiveTable {
                level: match drumlin_base::bug!("table-levels-forgotten") {
                    true => 0,
                    false => level,
                },
                number: file.number,
                path: tables.path(file.number),
                bytes: file.size,
                smallest: file.smallest_user_key().to_vec(),
                largest: file.largest_user_key().to_vec(),
                smallest_seqno: file.smallest_seqno,
                largest_seqno: file.largest_seqno,
                creation_time: file.creation_time,
                entries: counts.map(|counts| counts.entries),
                deletions: counts.map(|counts| {
                    match drumlin_base::bug!("table-deletions-forgotten") {
                        true => 0,
                        false => counts.deletions,
                    }
                }),
                key_bytes: counts.map(|counts| counts.key_bytes),
                value_bytes: counts.map(|counts| counts.value_bytes),
                being_compacted: file.is_compacting(),
            }
        };
        Ok(super_version.version.files().map(table).collect())
    }

    /// Reads the properties of each table of `family` that was not open since the database was: [`Db::live_tables`] knows the
    /// counts of all of them after that. Cost: some five small reads a table; plain tables are opened.
    ///
    /// # Errors
    /// `InvalidArgument` for a family of another database; `Io` and `Corruption` of a table.
    pub fn count_tables(&self, family: &ColumnFamily) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        let super_version = family.0.super_version.load_full();
        for (_, file) in super_version.version.files() {
            family.0.reads.tables.counts_of(file)?;
        }
        Ok(())
    }

    /// Tables, blob files, models and WAL files of all families, each once. CURRENT, the MANIFEST and the OPTIONS file
    /// are not in it: [`Db::moment_files`] has them. Cost: of the files; of each WAL file the first record is read.
    ///
    /// # Errors
    /// `Shutdown`; `Io` and `Corruption` of a WAL file.
    pub fn live_files(&self) -> Result<Vec<LiveFile>> {
        let store = &self.engine.store;
        let _call = store.begin_call()?;
        let state = store.lock_state();
        let (mut found, mut models) = (Vec::new(), BTreeSet::new());
        for family in state.families.values() {
            let name = &family.family.name;
            let mut add = |kind, path, bytes| {
                found.push(LiveFile {
                    kind,
                    path,
                    family: Some(name.clone()),
                    bytes: Some(bytes),
                    first_seqno: None,
                });
            };
            for (_, file) in family.version.files() {
                models.extend(file.model());
                let path = family.family.reads.tables.path(file.number);
                add(LiveFileKind::Table, path, file.size);
            }
            for (number, blob) in family.version.blobs() {
                let path = names::blob(&store.id.dir, *number);
                add(LiveFileKind::Blob, path, blob.addition.file_bytes());
            }
        }
        let shared = |kind, path, bytes| LiveFile {
            kind,
            path,
            family: None,
            bytes,
            first_seqno: None,
        };
        let model = |id| shared(LiveFileKind::Model, names::model(&store.id.dir, id), None);
        found.extend(models.into_iter().map(model));
        let oldest = state.versions.min_log_number();
        let replayed = store.id.recovered().wals.iter().map(|(number, _)| *number);
        let wals: BTreeSet<u64> = replayed
            .chain(state.wals.range(oldest..).copied())
            .collect();
        let open = |number: u64| {
            let path = names::wal(&store.id.wal_dir, number);
            let file = store.id.env.files.open(&path)?;
            Ok((number, path, file))
        };
        // Open ones can be read when they were removed.
        let wals = wals.into_iter().map(open).collect::<Result<Vec<_>>>()?;
        drop(state);
        for (number, path, file) in wals {
            let bytes = file.size();
            let front = Front::read(file, number)?;
            let wal = shared(LiveFileKind::Wal, path, Some(bytes));
            found.push(LiveFile {
                first_seqno: front.map(|front| front.first),
                ..wal
            });
        }
        Ok(found)
    }
}
