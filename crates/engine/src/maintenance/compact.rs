//! Compactions that a user asks for.

use std::sync::atomic::Ordering;

use drumlin_base::Result;
use drumlin_table::TableFormat;

use crate::compaction::{CancelToken, CompactionStyle, ManualWork};
use crate::db::engine::Engine;
use crate::family::column_family::ColumnFamily;

/// Compacts everything between `begin` and `end`, level by level, into the deepest one; returns
/// when it is done.
pub(crate) fn compact_range(
    engine: &Engine,
    family: &ColumnFamily,
    (begin, end): (Option<&[u8]>, Option<&[u8]>),
    cancel: Option<&CancelToken>,
) -> Result<()> {
    let id = family.id();
    engine.flush_family(id)?;
    if matches!(family.0.settings().style, CompactionStyle::Fifo(_)) {
        return Ok(()); // Its tables stay as they are until they are dropped.
    }
    let request = {
        let mut state = engine.store.lock_state();
        let family = state.family_mut(id)?;
        let settings = family.family.settings();
        let work = ManualWork::new(&family.version, &settings.compaction, begin, end);
        state.manual.push(id, work, cancel.cloned())
    };
    engine.store.changes.fetch_add(1, Ordering::Relaxed);
    engine.store.changed.notify_all();
    let outcome = engine.background.wait_for_manual(request, cancel);
    // The inputs of the last piece are obsolete now, and nothing else may come by for long.
    engine.store.remove_obsolete(&mut engine.store.lock_state());
    outcome
}

/// Writes all of the family anew, in the family's format; searchable tables under one model,
/// learned from all of them if that pays.
///
/// # Errors
/// As a compaction of everything; as learning a model.
pub(crate) fn recode(
    engine: &Engine,
    family: &ColumnFamily,
    cancel: Option<&CancelToken>,
) -> Result<()> {
    engine.flush_family(family.id())?;
    let appointed = match family.0.options.table_format {
        Some(TableFormat::Searchable) if !engine.store.id.leveldb => {
            engine.background.appoint_model(family)?
        }
        _ => None,
    };
    let outcome = compact_range(engine, family, (None, None), cancel);
    drop(appointed);
    outcome
}
