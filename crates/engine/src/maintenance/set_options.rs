//! Options that change while the store runs, by name: the OPTIONS file first, then what the next job or write goes by.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use drumlin_base::{Error, Result};

use crate::db::engine::Engine;
use crate::db::handle::Db;
use crate::family::column_family::{ColumnFamily, Family};
use crate::family::settings::FamilySettings;
use crate::family::ttl::whole_seconds;
use crate::options::by_name::{self, DatabaseChange};
use crate::options::settings::FamilyOptions;
use crate::options::stored::{Proposed, write_options};
use crate::store::state::State;

impl Db {
    /// Sets options of `family` by RocksDB's names, such as `[("write_buffer_size", "64M"), ("disable_auto_compactions",
    /// "true")]`: all or none. The next flush, compaction or write goes by them, and the OPTIONS file has them when this
    /// returns; a database that is opened again has its caller's, as in RocksDB. Options that only say how RocksDB does
    /// something are recorded there and change nothing. `docs/options.md` lists them.
    ///
    /// # Errors
    /// `InvalidArgument` that begins with RocksDB's words: `Could not find option: : NAME`, `Option not changeable: NAME`,
    /// `Error parsing NAME:`. `Io`, `NoSpace` when the OPTIONS file cannot be written: nothing has changed then, though
    /// the file may be there. `ReadOnly`, `Shutdown`.
    pub fn set_options(&self, family: &ColumnFamily, options: &[(&str, &str)]) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        set_family(&self.engine, &family.0, options)
    }

    /// Has what is in `family` live for `ttl` since it was written; zero is for ever. For what is there, too, as far as no
    /// compaction has dropped it. The OPTIONS file has it when this returns; an open that gives none takes it from there.
    ///
    /// # Errors
    /// `InvalidArgument` for a family without a time to live (see [`crate::FamilyOptions::ttl`]), and one that is too long;
    /// `Io`, `NoSpace` when the OPTIONS file cannot be written; `ReadOnly`, `Shutdown`.
    pub fn set_ttl(&self, family: &ColumnFamily, ttl: Duration) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        let Some(times) = &family.0.reads.ttl else {
            let message = format!(
                "column family {:?} has no times behind its values",
                family.name()
            );
            return Err(Error::invalid_argument(message));
        };
        FamilyOptions {
            ttl: Some(ttl),
            ..FamilyOptions::default()
        }
        .validate()?;
        change_settings(&self.engine, &family.0, |next| {
            next.ttl_seconds = whole_seconds(ttl);
            Ok(())
        })?;
        times.set(ttl);
        Ok(())
    }

    /// Sets options of the database by RocksDB's names: all or none. `max_background_jobs` is the number of background
    /// threads (of a database that has some), `max_total_wal_size` the bound of WAL files, `max_open_files` the open
    /// tables; `memory_budget`, which RocksDB does not have, the bytes of [`crate::Options::memory_budget`], and is in no
    /// OPTIONS file. The others are recorded.
    ///
    /// # Errors
    /// As [`Db::set_options`]; `NotFound` for a name that is none, as RocksDB has it.
    pub fn set_db_options(&self, options: &[(&str, &str)]) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        set_database(&self.engine, options)
    }
}

fn set_family(engine: &Engine, family: &Arc<Family>, options: &[(&str, &str)]) -> Result<()> {
    let format = family.options.table_format.unwrap_or_default();
    change_settings(engine, family, |next| {
        if drumlin_base::bug!("options-set-one-by-one") {
            for option in options {
                by_name::change_family(next, format, &[*option])?;
                next.derive(engine.store.caches.budget.limit_bytes());
                family.set_settings(next.clone());
            }
        }
        by_name::change_family(next, format, options)?;
        if !engine.store.id.vintage.has_blob_files() && next.tuning.blob_from(format) < usize::MAX {
            let message = "Error parsing enable_blob_files:the directory is of a RocksDB that does not read blob files";
            return Err(Error::invalid_argument(message));
        }
        Ok(())
    })
}

/// Changes the family's settings, in the OPTIONS file first.
fn change_settings(
    engine: &Engine,
    family: &Arc<Family>,
    change: impl FnOnce(&mut FamilySettings) -> Result<()>,
) -> Result<()> {
    let store = &engine.store;
    store.check_writable()?;
    let state = store.lock_state();
    store.check_open()?;
    family.check_alive()?;
    let mut next = (*family.settings()).clone();
    change(&mut next)?;
    next.derive(store.caches.budget.limit_bytes());
    let proposed = Proposed {
        family: Some((family.id, &next)),
        ..Proposed::default()
    };
    write(engine, &state, &proposed)?;
    family.set_settings(next);
    tell(engine);
    Ok(())
}

fn set_database(engine: &Engine, options: &[(&str, &str)]) -> Result<()> {
    let store = &engine.store;
    store.check_writable()?;
    let change = by_name::change_database(options)?;
    if change.threads.is_some() && store.runs_inline() {
        // They would come between a caller and the run that depends on it alone.
        let message =
            "Option not changeable: max_background_jobs, for the database was opened with none";
        return Err(Error::invalid_argument(message));
    }
    // First: it alone may fail, and is undone where the file cannot be written.
    let before = store.settings.threads();
    if let Some(count) = change.threads {
        engine.background.set_threads(count)?;
    }
    let written = write_database(engine, &change);
    if let (Err(_), Some(_)) = (&written, change.threads) {
        engine.background.set_threads(before)?;
    }
    written
}

fn write_database(engine: &Engine, change: &DatabaseChange) -> Result<()> {
    let store = &engine.store;
    let mut state = store.lock_state();
    store.check_open()?;
    let mut named = state.named.clone();
    named.take(&change.named);
    let proposed = Proposed {
        database: Some(&named),
        ..Proposed::default()
    };
    write(engine, &state, &proposed)?;
    state.named = named;
    if let Some(bytes) = change.wal_bytes_max {
        store.settings.set_wal_bytes_max(bytes);
    }
    if let Some(count) = change.open_files {
        store.caches.table_cache.set_open_max(count);
    }
    tell(engine);
    drop(state);
    // Without the lock: the holders of memory are asked to give some back.
    if let Some(bytes) = change.memory_budget {
        store.caches.budget.set_limit_bytes(bytes);
    }
    Ok(())
}

/// Writes the OPTIONS file; LevelDB's directories have none.
fn write(engine: &Engine, state: &State, proposed: &Proposed<'_>) -> Result<()> {
    if engine.store.id.leveldb || drumlin_base::bug!("set-options-unwritten") {
        return Ok(());
    }
    write_options(&engine.store, state, proposed)
        .map_err(|error| error.context("the OPTIONS file could not be written"))
}

/// Has the background look anew at what is due.
fn tell(engine: &Engine) {
    engine.store.changes.fetch_add(1, Ordering::Relaxed);
    engine.store.changed.notify_all();
}
