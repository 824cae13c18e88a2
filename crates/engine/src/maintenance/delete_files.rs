//! Whole tables within a range, taken out by one edit.

use drumlin_base::key::ParsedKey;
use drumlin_base::{InternalIterator, Result, ValueKind};
use drumlin_table::TableReadOptions;
use drumlin_table::blob::BlobIndex;

use crate::caches::table_cache::TableCache;
use crate::compaction::Plan;
use crate::compaction::blob_tally::BlobTally;
use crate::compaction::within;
use crate::db::engine::Engine;
use crate::db::handle::Db;
use crate::family::column_family::ColumnFamily;
use crate::store::store::Store;
use crate::version::{BlobFileGarbage, Version, VersionEdit};

/// The tables that [`Db::delete_files_in_range`] took out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletedFiles {
    /// How many.
    pub tables: u64,
    /// Their bytes, without those of values in blob files.
    pub bytes: u64,
}

impl Db {
    /// Takes out every table all of whose keys are from `begin` to `end` (both included; `None` is unbounded), with
    /// everything in it: the fastest way to be rid of much data, for nothing is written but one edit, and space is free
    /// at once. What is in memtables, in L0, in tables under compaction, and in tables that reach beyond the range stays;
    /// so does a table that hides something in one that stays, and nothing deleted or overwritten comes back. Follow it by
    /// [`Db::delete_range_cf`] for the rest. Snapshots do not keep the data, iterators that are open do.
    ///
    /// Costs a look at the tables' bounds; tables that refer to blob files are read.
    ///
    /// # Errors
    /// `Corruption`, `Io` of a table that refers to blob files; `Poisoned`, `NoSpace`, `ReadOnly`, `Shutdown`.
    pub fn delete_files_in_range(
        &self,
        family: &ColumnFamily,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<DeletedFiles> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        delete_files(&self.engine, family, |version| {
            Ok(within::plan(version, family.order(), (begin, end)))
        })
    }

    /// Takes out the table `number` of `family` ([`Db::live_tables`]) with everything in it: one of the last level that has tables, or
    /// the oldest of L0 where no deeper level has any. Snapshots do not keep the data, iterators that are open do.
    ///
    /// # Errors
    /// `InvalidArgument` of a table that is not there, or may hide what is in older ones; `Aborted` of one that is being compacted;
    /// as [`Db::delete_files_in_range`].
    pub fn delete_table(&self, family: &ColumnFamily, number: u64) -> Result<DeletedFiles> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        delete_files(&self.engine, family, |version| {
            within::plan_one(version, number).map(Some)
        })
    }
}

fn delete_files(
    engine: &Engine,
    family: &ColumnFamily,
    choose: impl FnOnce(&Version) -> Result<Option<Plan>>,
) -> Result<DeletedFiles> {
    let store = &engine.store;
    store.check_writable()?;
    let _pending = store.begin_job()?;
    let claimed = {
        let mut state = store.lock_state();
        let version = &state.family_mut(family.id())?.version;
        choose(version)?
            .filter(Plan::claim)
            .map(|plan| Claimed { store, plan })
    };
    let Some(claimed) = claimed else {
        return Ok(DeletedFiles::default());
    };
    let plan = &claimed.plan;
    let edit = VersionEdit {
        column_family: family.id(),
        deleted_files: plan.deleted_files(),
        blob_garbage: garbage_of(store, &family.0.reads.tables, plan)?,
        ..VersionEdit::default()
    };
    let deleted = DeletedFiles {
        tables: plan.files().count() as u64,
        bytes: plan.input_bytes(),
    };
    let mut state = store.lock_state();
    store.check_open()?;
    state.family_mut(family.id())?;
    store.log_and_apply(&mut state, vec![edit])?;
    drop(state);
    drop(claimed);
    store.remove_obsolete(&mut store.lock_state());
    store.changed.notify_all();
    Ok(deleted)
}

/// Gives the tables back when it is dropped.
struct Claimed<'a> {
    store: &'a Store,
    plan: Plan,
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        let _state = self.store.lock_state(); // Pickers look at claims under it.
        self.plan.release_claims();
    }
}

/// What becomes garbage in blob files when the tables of `plan` go.
fn garbage_of(store: &Store, tables: &TableCache, plan: &Plan) -> Result<Vec<BlobFileGarbage>> {
    let mut referred = BlobTally::default();
    for (_, file) in plan.files().filter(|(_, file)| file.oldest_blob_file != 0) {
        let mut cursor = tables.find(file)?.iter(TableReadOptions {
            fill_cache: false,
            ..TableReadOptions::default()
        });
        cursor.seek_to_first();
        while cursor.valid() {
            let key = ParsedKey::parse(cursor.key())?;
            if key.kind == ValueKind::BlobIndex {
                store.check_open()?;
                referred.add(key.user_key, &BlobIndex::decode(cursor.value())?);
            }
            cursor.next();
        }
        cursor.status()?;
    }
    match drumlin_base::bug!("garbage-of-dropped-tables-lost") {
        true => Ok(Vec::new()),
        false => referred.garbage(&BlobTally::default()),
    }
}
