//! What the tables of a family are.

use std::path::{Path, PathBuf};

use drumlin_base::Result;

use crate::db::handle::Db;
use crate::family::column_family::ColumnFamily;
use crate::files::names;

/// A table of a family, as it was when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableInfo {
    /// The name of its file in the database's directory.
    pub file: String,
    /// The level it is on.
    pub level: usize,
    /// The size of its file.
    pub bytes: u64,
    /// The first user key in it.
    pub smallest: Vec<u8>,
    /// The last user key in it, or where a deleted range ends.
    pub largest: Vec<u8>,
    /// Entries in it, deletions among them.
    pub entries: u64,
    /// Deletions in it.
    pub deletions: u64,
}

impl Db {
    /// The tables of `family`, by level; in L0 newest first.
    ///
    /// Cost: opens each table that was not open since the database was, once.
    ///
    /// # Errors
    /// `InvalidArgument` for a family of another database; `Io` and `Corruption` of a table that has to be opened.
    pub fn tables(&self, family: &ColumnFamily) -> Result<Vec<TableInfo>> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        let super_version = family.0.super_version.load_full();
        let mut tables = Vec::new();
        for (level, file) in super_version.version.files() {
            if file.counts().is_none() {
                family.0.reads.tables.find(file)?;
            }
            let counts = file.counts();
            tables.push(TableInfo {
                file: name_of(names::table(Path::new(""), file.number)),
                level: match drumlin_base::bug!("table-levels-forgotten") {
                    true => 0,
                    false => level,
                },
                bytes: file.size,
                smallest: file.smallest_user_key().to_vec(),
                largest: file.largest_user_key().to_vec(),
                entries: counts.map_or(0, |counts| counts.entries),
                deletions: counts.map_or(0, |counts| {
                    match drumlin_base::bug!("table-deletions-forgotten") {
                        true => 0,
                        false => counts.deletions,
                    }
                }),
            });
        }
        Ok(tables)
    }
}

fn name_of(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}
