//! Changes that are no writes, told to those who follow: each takes a sequence number, is in the MANIFEST's edit that
//! makes it, and then in the WAL. All of it only where changes are kept, and with the lead.
//!
//! What was logged before is synced first: else a power cut could keep the change and lose writes before it.

use drumlin_base::{Result, SeqNo};

use crate::db::engine::Engine;
use crate::files::names;
use crate::maintenance::checkpoint::link_or_copy;
use crate::wal::change::{ChangeMark, WhatChanged};
use crate::write::commit::LogState;

/// Before a change is made.
///
/// # Errors
/// `Io`; the database is then poisoned.
pub(super) fn begin(engine: &Engine, log: &LogState) -> Result<()> {
    match engine.store.files.archive.is_on() {
        true => engine.writes.sync_logged(log),
        false => Ok(()),
    }
}

/// The change `what` of `family` as the next one; `None` where changes are not kept.
pub(super) fn next(
    engine: &Engine,
    log: &LogState,
    family: u32,
    what: impl FnOnce() -> WhatChanged,
) -> Option<ChangeMark> {
    engine.store.files.archive.is_on().then(|| ChangeMark {
        seqno: log.last_seqno + 1,
        family,
        what: what(),
    })
}

/// What the MANIFEST is told of `change`: its bytes, and its last number.
pub(super) fn told(change: &Option<ChangeMark>) -> Option<(Vec<u8>, SeqNo)> {
    let change = change.as_ref()?;
    Some((change.encode(), change.last()))
}

/// Keeps the tables that `change` takes in.
///
/// # Errors
/// `Io`, `NoSpace`.
pub(super) fn keep_tables(engine: &Engine, change: &Option<ChangeMark>) -> Result<()> {
    if let Some(WhatChanged::Ingested { wal, tables }) = change.as_ref().map(|it| &it.what) {
        let store = &engine.store;
        for table in tables {
            let kept = names::archived_table(&store.id.wal_dir, *wal, *table);
            link_or_copy(engine, &names::table(&store.id.dir, *table), &kept)?;
            store.files.archive.note_table(*wal, kept)?;
        }
    }
    Ok(())
}

/// After the MANIFEST has `change`: the WAL has it too, and readers see it.
///
/// # Errors
/// Why it could not be logged; the database is then poisoned.
pub(super) fn end(engine: &Engine, log: &mut LogState, change: &Option<ChangeMark>) -> Result<()> {
    match change {
        Some(change) => engine
            .writes
            .log_change(log, &change.encode(), change.last()),
        None => Ok(()),
    }
}
