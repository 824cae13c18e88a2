//! Recovery: WALs are replayed into tables, and all of it is installed by one atomic group of edits.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin_base::{Error, Result, SeqNo};
use drumlin_memtable::Memtable;

use crate::compaction::flush::Flushed;
use crate::db::engine::Engine;
use crate::db::identity::{stored_identity, write_identity_file};
use crate::family::column_family::Family;
use crate::files::names;
use crate::options::stored as stored_options;
use crate::store::identity::Recovered;
use crate::version::VersionEdit;
use crate::wal::replay::{FlushedFamily, WalReplay};
use crate::watch::events::RecoveryReport;
use crate::write::batch::BatchView;
use crate::write::commit::LogState;

/// Replays `wals` into tables, then begins a fresh WAL, installs all of it with one atomic
/// group of edits and removes what it replaces.
pub(super) fn recover(engine: &Engine, wals: &[u64], needed_from: u64) -> Result<Recovered> {
    engine
        .writes
        .run_exclusive(|log| recover_exclusively(engine, log, wals, needed_from))
}

fn recover_exclusively(
    engine: &Engine,
    log: &mut LogState,
    wals: &[u64],
    needed_from: u64,
) -> Result<Recovered> {
    let _pending = engine.store.files.numbers.begin_job();
    let mut tables = Vec::new();
    let mut recovered = replay_exclusively(engine, log, wals, needed_from, Some(&mut tables))?;
    let mut state = engine.store.lock_state();
    engine.writes.env.switch_wal(log, &mut state)?;
    let wal = log.wal.number();
    let mut edits: BTreeMap<u32, VersionEdit> = BTreeMap::new();
    for (&id, family) in &mut state.families {
        family.mutable_oldest_wal = wal;
        edits.insert(
            id,
            VersionEdit {
                column_family: id,
                log_number: Some(wal),
                prev_log_number: Some(0),
                ..VersionEdit::default()
            },
        );
    }
    for (id, flushed) in tables {
        if let Some(edit) = edits.get_mut(&id) {
            edit.new_files.extend(flushed.file.map(|table| (0, table)));
            edit.blob_additions.extend(flushed.blob_files);
        }
    }
    engine
        .store
        .log_and_apply(&mut state, edits.into_values().collect())?;
    if !engine.store.id.leveldb {
        if stored_identity(&engine.store.id.env, &engine.store.id.dir)?.is_none() {
            write_identity_file(
                &engine.store.id.env,
                &engine.store.id.dir,
                &engine.store.id.db_id,
            )?;
        }
        stored_options::write_options(&engine.store, &state)?;
    }
    // Everything replayed is in tables now.
    engine.writes.note_durable(log.last_seqno);
    recovered.report.files_removed = engine.store.remove_leftovers(&mut state)?;
    recovered.wals.clear();
    Ok(recovered)
}

/// Replays `wals` into memtables, for a store that is only read. It gives the WALs, each with the bytes of it that
/// were replayed.
pub(super) fn replay(engine: &Engine, wals: &[u64], needed_from: u64) -> Result<Recovered> {
    engine
        .writes
        .run_exclusive(|log| replay_exclusively(engine, log, wals, needed_from, None))
}

/// Replays `wals` into memtables, or, when full (and at the end), from there into `tables`. With the
/// report it gives the WALs, each with the bytes of it that were replayed.
fn replay_exclusively(
    engine: &Engine,
    log: &mut LogState,
    wals: &[u64],
    needed_from: u64,
    mut tables: Option<&mut Vec<(u32, Flushed)>>,
) -> Result<Recovered> {
    let first_seqno = engine.store.visible_seqno();
    let replay = WalReplay {
        env: &engine.store.id.env,
        dir: &engine.store.id.wal_dir,
        point_in_time: engine.store.id.options.point_in_time_recovery,
        keep_damaged: tables.is_some(),
        needed_from,
        flushed: FlushedFamily::all(&engine.store.lock_state().versions),
    };
    let replayed = replay.run(wals, |wal, batch| {
        apply_recovered(engine, log, wal, batch)?;
        tables
            .as_mut()
            .map_or(Ok(()), |tables| flush_recovered(engine, tables, false))
    })?;
    set_last_seqno(engine, log, first_seqno.max(replayed.last_seqno));
    if let Some(tables) = tables {
        flush_recovered(engine, tables, true)?;
    }
    let report = RecoveryReport {
        batches_replayed: replayed.batches,
        entries_replayed: replayed.entries,
        cut: replayed.cut,
        mended: replayed.mended,
        files_removed: 0,
        leveldb: engine.store.id.leveldb,
    };
    Ok(Recovered {
        report,
        wals: replayed.wals,
    })
}

fn apply_recovered(
    engine: &Engine,
    log: &mut LogState,
    wal: u64,
    batch: &BatchView<'_>,
) -> Result<()> {
    let state = engine.store.lock_state();
    let mut seqno = batch.seqno();
    for record in batch.iter() {
        let record = record?;
        if let Some(family) = state.families.get(&record.family) {
            // Older WAL files hold what this family's tables already have.
            if wal >= family.mutable_oldest_wal {
                family
                    .mutable
                    .add(seqno, record.kind, record.key, record.value);
            }
        } else if record.family > state.versions.max_family_id() {
            let message = format!("the WAL writes to the unknown family {}", record.family);
            return Err(
                Error::corruption(message).with_file(&names::wal(&engine.store.id.wal_dir, wal))
            );
        }
        seqno += 1;
    }
    drop(state);
    set_last_seqno(
        engine,
        log,
        engine.store.visible_seqno().max(seqno.saturating_sub(1)),
    );
    Ok(())
}

/// Writes recovered memtables that are full (or all of them) to tables, which are installed
/// only when all is recovered: a crash before that finds the WAL files and no trace of them.
fn flush_recovered(engine: &Engine, tables: &mut Vec<(u32, Flushed)>, all: bool) -> Result<()> {
    let due: Vec<(Arc<Family>, Arc<Memtable>)> = {
        let mut state = engine.store.lock_state();
        let full = state.families.values_mut().filter(|family| {
            !family.mutable.is_empty()
                && (all || family.mutable.bytes() >= family.family.write_buffer())
        });
        full.map(|family| {
            let fresh = family.family.fresh_memtable();
            let old = std::mem::replace(&mut family.mutable, fresh);
            family.install();
            (Arc::clone(&family.family), old)
        })
        .collect()
    };
    for (family, memtable) in due {
        let flushed = engine
            .background
            .write_memtables(&family, &[memtable], Arc::default())?;
        tables.push((family.id, flushed));
    }
    Ok(())
}

/// Goes on from the sequence number `last`, which readers see.
fn set_last_seqno(engine: &Engine, log: &mut LogState, last: SeqNo) {
    log.last_seqno = last;
    engine.store.published.set(last);
}
