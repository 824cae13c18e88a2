//! Recovery: WALs are replayed into tables, and all of it is installed by one atomic group of edits.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin_base::{Error, Result, SEQNO_MAX, SeqNo};
use drumlin_memtable::Memtable;

use crate::compaction::flush::Flushed;
use crate::db::engine::Engine;
use crate::db::identity::{stored_identity, write_identity_file};
use crate::db::ttl;
use crate::family::column_family::Family;
use crate::files::names;
use crate::options::stored as stored_options;
use crate::store::identity::Recovered;
use crate::store::state::State;
use crate::version::VersionEdit;
use crate::wal::change::stored_change;
use crate::wal::replay::{FlushedFamily, WalReplay};
use crate::watch::events::RecoveryReport;
use crate::write::admission::check_timestamp;
use crate::write::batch::{BatchPart, BatchRecord, BatchView, WriteBatch};
use crate::write::commit::LogState;

/// The writes of transactions that were prepared and have no end yet, by name.
pub(super) type Sections = BTreeMap<Arc<[u8]>, WriteBatch>;

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
    let (mut recovered, recovered_sections) =
        replay_exclusively(engine, log, (wals, &[]), needed_from, Some(&mut tables))?;
    let mut state = engine.store.lock_state();
    let replayed = tables
        .iter()
        .filter_map(|(id, flushed)| Some((*id, flushed.file.as_ref()?)));
    ttl::check_values(engine, &state, replayed)?;
    engine.writes.env.switch_wal(log, &mut state)?;
    let wal = log.wal.number();
    if let Some(&from) = wals.first()
        && (engine.store.files.archive.is_on() || !recovered_sections.is_empty())
    {
        log.wal.begin_again(from);
    }
    let is_logged = log_begin(engine, log, state.versions.last_change())?;
    carry_sections(engine, log, recovered_sections)?;
    let mut edits: BTreeMap<u32, VersionEdit> = BTreeMap::new();
    for (&id, family) in &mut state.families {
        family.mutable_oldest_wal = wal;
        family.mutable_since = log.last_seqno;
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
    if let (true, Some(edit)) = (is_logged, edits.get_mut(&0)) {
        edit.change = Some(Vec::new()); // The WAL has it now.
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
        stored_options::write_options(&engine.store, &state, &stored_options::Proposed::default())?;
    }
    // Everything replayed is in tables now.
    engine.writes.note_durable(log.last_seqno);
    recovered.report.files_removed = engine.store.remove_leftovers(&mut state)?;
    recovered.wals.clear();
    Ok(recovered)
}

/// Replays `wals` into memtables, for a store that is only read. It gives the WALs, each with the bytes of it that
/// were replayed.
pub(super) fn replay(
    engine: &Engine,
    wals: (&[u64], &[u64]),
    needed_from: u64,
) -> Result<Recovered> {
    engine
        .writes
        .run_exclusive(|log| replay_exclusively(engine, log, wals, needed_from, None))
        .map(|(recovered, sections)| {
            for (name, writes) in sections {
                engine.store.prepared.add(&name, &Arc::new(writes), 0);
            }
            recovered
        })
}

/// Where changes are kept, begins the live WAL with a record that shows where it goes on: files that were given up have
/// that number too. The change that the MANIFEST tells of, `last_change`, is logged with it where it may be in no WAL.
/// Returns whether there is one.
fn log_begin(engine: &Engine, log: &mut LogState, last_change: Option<&[u8]>) -> Result<bool> {
    if !engine.store.files.archive.is_on() {
        return Ok(last_change.is_some());
    }
    let mut record = WriteBatch::new();
    log.wal.put_mark(&mut record)?;
    if let Some(stored) = last_change {
        let change = stored_change(stored, &engine.store.id.dir)?;
        // What came after it came into the WAL after it, too.
        if change.last() == log.last_seqno && !drumlin_base::bug!("lost-change-not-logged-again") {
            record.put_log_data(stored)?;
        }
    }
    record.set_seqno(log.last_seqno + 1);
    log.wal.append(record.bytes())?;
    log.wal.sync_handle().run()?;
    Ok(last_change.is_some())
}

/// Logs what is prepared anew in the live WAL and syncs it, so that no older one is needed. One record gives up each
/// section and begins it again, so that a reader of both files meets it once.
fn carry_sections(engine: &Engine, log: &mut LogState, sections: Sections) -> Result<()> {
    if sections.is_empty() || drumlin_base::bug!("prepared-not-carried-over") {
        return Ok(());
    }
    let wal = log.wal.number();
    let mut record = WriteBatch::new();
    for (name, writes) in sections {
        record.clear();
        log.wal.put_mark(&mut record)?;
        record.put_rollback(&name)?;
        record.put_prepared(&name, &writes)?;
        record.set_seqno(log.last_seqno + 1);
        log.wal.append(record.bytes())?;
        engine.store.prepared.add(&name, &Arc::new(writes), wal);
    }
    log.wal.sync_handle().run()
}

/// Replays `wals` into memtables, or, when full (and at the end), from there into `tables`. With the
/// report it gives the WALs, each with the bytes of it that were replayed.
fn replay_exclusively(
    engine: &Engine,
    log: &mut LogState,
    (wals, ahead): (&[u64], &[u64]),
    needed_from: u64,
    mut tables: Option<&mut Vec<(u32, Flushed)>>,
) -> Result<(Recovered, Sections)> {
    let first_seqno = engine.store.visible_seqno();
    let replay = WalReplay {
        env: &engine.store.id.env,
        dir: &engine.store.id.wal_dir,
        point_in_time: engine.store.id.options.point_in_time_recovery,
        keep_damaged: tables.is_some(),
        needed_from,
        ahead,
        flushed: FlushedFamily::all(&engine.store.lock_state().versions),
    };
    let mut sections = Sections::new();
    let replayed = replay.run(wals, |wal, batch| {
        let taken = apply_recovered(engine, (wal, batch), None, &mut sections)?;
        let last = batch.seqno() + taken;
        set_last_seqno(
            engine,
            log,
            first_seqno.max(last.saturating_sub(1)).max(log.last_seqno),
        );
        if let Some(tables) = &mut tables {
            flush_recovered(engine, tables, false)?;
        }
        Ok(taken)
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
        prepared: sections.len(),
    };
    let wals = replayed.wals;
    Ok((Recovered { report, wals }, sections))
}

/// Applies what `batch` of the WAL `wal` makes, and keeps in `sections` what waits for its commit. The sequence numbers
/// it took, which nobody sees yet. Families up to the id `families_max` may be written to: those of the versions where
/// that is not given.
pub(super) fn apply_recovered(
    engine: &Engine,
    (wal, batch): (u64, &BatchView<'_>),
    families_max: Option<u32>,
    sections: &mut Sections,
) -> Result<u64> {
    let named = |error: Error| error.with_file(&names::wal(&engine.store.id.wal_dir, wal));
    let mut state = engine.store.lock_state();
    let target = Target {
        wal,
        families_max: families_max.unwrap_or(state.versions.max_family_id()),
        is_followed: engine.store.id.follows,
    };
    let mut seqno = batch.seqno();
    for part in batch.parts() {
        match part? {
            BatchPart::Record(record) => {
                target.add(&mut state, seqno, &record).map_err(named)?;
                seqno += 1;
            }
            BatchPart::Prepared(section) => {
                let writes = WriteBatch::of_section(&section);
                if sections.insert(section.name.into(), writes).is_some() {
                    let name = section.name.escape_ascii();
                    let message = format!("the WAL prepares the transaction \"{name}\" twice");
                    return Err(named(Error::corruption(message)));
                }
            }
            BatchPart::Commit(name) => {
                // What is not there was committed into tables, and its WAL let go.
                let Some(writes) = sections.remove(name) else {
                    continue;
                };
                if u64::from(writes.count()) > SEQNO_MAX - seqno {
                    let message =
                        "a prepared transaction is committed past the last sequence number";
                    return Err(named(Error::corruption(message)));
                }
                for record in writes.iter() {
                    target.add(&mut state, seqno, &record?).map_err(named)?;
                    seqno += 1;
                }
            }
            BatchPart::LogData(_) => {}
            BatchPart::Rollback(name) => {
                if !drumlin_base::bug!("rolled-back-comes-back") {
                    sections.remove(name);
                }
            }
        }
    }
    Ok(seqno - batch.seqno())
}

/// Where records of a WAL go.
struct Target {
    wal: u64,
    families_max: u32,
    /// Each memtable is to hold the writes of one WAL: flushes elsewhere end it as one.
    is_followed: bool,
}

impl Target {
    /// Adds `record` to its memtable.
    fn add(&self, state: &mut State, seqno: SeqNo, record: &BatchRecord<'_>) -> Result<()> {
        let Some(family) = state.families.get_mut(&record.family) else {
            if record.family > self.families_max {
                let message = format!("the WAL writes to the unknown family {}", record.family);
                return Err(Error::corruption(message));
            }
            return Ok(()); // It was dropped, or is not opened.
        };
        // Older WAL files hold what this family's tables already have.
        if self.wal >= family.mutable_oldest_wal {
            if self.is_followed {
                family.begin_wal(self.wal);
            }
            check_timestamp(record, &family.family.options.order)?;
            let BatchRecord {
                kind, key, value, ..
            } = *record;
            family.mutable.add(seqno, kind, key, value);
        }
        Ok(())
    }
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
