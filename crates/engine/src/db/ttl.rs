//! Families with a time to live, as the store meets them: what is written gets its time, and what an open finds is looked at.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use drumlin_base::key::{split_internal, tag_kind};
use drumlin_base::{Error, InternalIterator, Result, ValueKind};
use drumlin_table::{Table, TableReadOptions};

use crate::db::engine::Engine;
use crate::family::column_family::Family;
use crate::family::ttl::Ttl;
use crate::options::settings::WriteOptions;
use crate::options::stored as stored_options;
use crate::store::state::State;
use crate::store::store::Store;
use crate::version::NewFile;
use crate::write::batch::WriteBatch;
use crate::write::two_phase::{Phase, TwoPhase};

/// Tables of a family that an open looks into for values without times.
const TABLES_LOOKED_INTO: usize = 8;

/// Entries of a table that are looked at for the first value.
const ENTRIES_LOOKED_AT: usize = 64;

/// Writes `batch`, with the time behind values of families that have times. The batch is whole when this returns, with its
/// sequence number once it was logged.
///
/// # Errors
/// As [`crate::Db::write`].
#[inline]
pub(super) fn write(engine: &Engine, batch: &mut WriteBatch, options: &WriteOptions) -> Result<()> {
    // Pairs with the store's `Release`.
    match engine.store.has_times.load(Ordering::Acquire) {
        false => engine.writes.write(batch, options),
        true => write_stamped(engine, batch, options),
    }
}

fn write_stamped(engine: &Engine, batch: &mut WriteBatch, options: &WriteOptions) -> Result<()> {
    let Some(mut stamped) = stamped(&engine.store, batch)? else {
        return engine.writes.write(batch, options);
    };
    let written = engine.writes.write(&mut stamped, options);
    batch.set_seqno(stamped.seqno());
    written
}

/// Puts times behind what a transaction prepares: it lives from then on. A commit has `batch` written as it was prepared.
///
/// # Errors
/// As [`TwoPhase::new`]; `InvalidArgument` where the clock shows a time that cannot be stored.
pub(super) fn stamp_step(store: &Store, step: &mut TwoPhase, batch: &mut WriteBatch) -> Result<()> {
    if !store.has_times.load(Ordering::Acquire) {
        return Ok(());
    }
    match &step.phase {
        Phase::Prepare(writes) => {
            if let Some(stamped) = stamped(store, writes)? {
                *step = TwoPhase::new(&step.name, Phase::Prepare(Arc::new(stamped)))?;
            }
        }
        Phase::Commit => {
            if let Some(prepared) = store.prepared.writes_of(&step.name) {
                batch.clone_from(&prepared);
            }
        }
        Phase::Rollback => {}
    }
    Ok(())
}

/// `batch` with times; `None` where nothing of it gets one.
fn stamped(store: &Store, batch: &WriteBatch) -> Result<Option<WriteBatch>> {
    let families = store.families.load();
    let ttl = |id: u32| {
        families
            .get(&id)
            .and_then(|family| family.reads.ttl.as_deref())
    };
    let mut timed = batch.iter().filter_map(|record| {
        let record = record.ok()?;
        let is_value = matches!(record.kind, ValueKind::Value | ValueKind::Merge);
        ttl(record.family).filter(|_| is_value)
    });
    match timed.next() {
        None => Ok(None),
        Some(first) => {
            let time = first.stamp()?;
            batch.stamped(&time, |id| ttl(id).is_some()).map(Some)
        }
    }
}

/// Refuses an open that gives a time to live to a family whose values have no times. Where the OPTIONS file has told of them
/// there is no doubt; else values are looked at, since RocksDB opens its own such stores without, and forgets them then.
/// `replayed` are the tables of what recovery found in WALs.
///
/// # Errors
/// `InvalidArgument`; `Io`, `Corruption` of a table.
pub(super) fn check_values<'a>(
    engine: &Engine,
    state: &State,
    replayed: impl Iterator<Item = (u32, &'a NewFile)> + Clone,
) -> Result<()> {
    let store = &engine.store;
    if state
        .families
        .values()
        .all(|family| family.family.reads.ttl.is_none())
    {
        return Ok(());
    }
    let stored = stored_options::read(&store.id.dir, &store.id.options)?;
    for (id, found) in &state.families {
        let family = &found.family;
        let section = stored.as_ref().and_then(|file| file.family(&family.name));
        let Some(ttl) = &family.reads.ttl else {
            continue;
        };
        if section.is_some_and(|section| section.ttl().is_some()) {
            continue;
        }
        let tables = &family.reads.tables;
        let own = found.version.files().map(|(_, file)| tables.find(file));
        let new = replayed.clone().filter(|(of, _)| of == id);
        let new = new.map(|(_, file)| tables.open_unnumbered(file.number, file.size));
        for table in new.chain(own).take(TABLES_LOOKED_INTO) {
            if let Some(key) = without_time(ttl, &*table?)? {
                return Err(holds_others(family, &key));
            }
        }
    }
    Ok(())
}

/// The key of the first value in `table`, if that is none with a time behind it.
///
/// # Errors
/// `Corruption`, `Io` of the table.
pub(crate) fn without_time(ttl: &Ttl, table: &Table) -> Result<Option<Vec<u8>>> {
    let mut cursor = table.iter(TableReadOptions::default());
    cursor.seek_to_first();
    for _ in 0..ENTRIES_LOOKED_AT {
        let Some((key, tag)) = split_internal(cursor.key()).filter(|_| cursor.valid()) else {
            break;
        };
        let kind = ValueKind::from_byte(tag_kind(tag))?;
        if matches!(kind, ValueKind::Value | ValueKind::Merge) {
            let is_timed = ttl.is_plausible(cursor.value());
            return Ok((!is_timed).then(|| key.to_vec()));
        }
        cursor.next();
    }
    cursor.status().map(|()| None)
}

fn holds_others(family: &Family, key: &[u8]) -> Error {
    Error::invalid_argument(format!(
        "column family {:?} cannot have a time to live: it holds values without times, such as that of the key \"{}\"",
        family.name,
        key.escape_ascii()
    ))
}
