//! Creating and dropping column families.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use drumlin_base::{Error, Result, limits};

use crate::db::engine::Engine;
use crate::family::column_family::Family;
use crate::family::super_version::SuperVersion;
use crate::maintenance::change_log;
use crate::options::settings::FamilyOptions;
use crate::options::stored as stored_options;
use crate::options::stored::Proposed;
use crate::store::install::current_version;
use crate::store::state::{FamilyState, State};
use crate::store::store::Store;
use crate::wal::change::WhatChanged;

pub(crate) fn create_family(
    engine: &Engine,
    name: &str,
    options: FamilyOptions,
) -> Result<Arc<Family>> {
    check_new(engine, name, &options)?;
    engine.writes.run_exclusive(|log| {
        engine.store.check_open()?;
        change_log::begin(engine, log)?;
        let mut state = engine.store.lock_state();
        let wal = log.wal.number();
        let order = options.order.clone();
        let from = wal + u64::from(drumlin_base::bug!("family-begins-a-wal-late"));
        let change = change_log::next(engine, log, state.versions.max_family_id() + 1, || {
            let (name, order) = (name.to_owned(), order.name().to_owned());
            WhatChanged::Created { name, order }
        });
        let id = engine.store.edit_manifest(&mut state, |set| {
            set.with_change(change_log::told(&change), |set| {
                set.add_family(name, order, from)
            })
        })?;
        let family = show_new(engine, &mut state, (id, name), options, wal)?;
        drop(state);
        change_log::end(engine, log, &change)?;
        Ok(family)
    })
}

/// Refuses a family that cannot be made, before anything is changed.
///
/// # Errors
/// `InvalidArgument`, `NotSupported`; `ReadOnly`, `Poisoned`.
pub(super) fn check_new(engine: &Engine, name: &str, options: &FamilyOptions) -> Result<()> {
    if engine.store.id.leveldb {
        return Err(Error::not_supported(
            "column families in a LevelDB directory",
        ));
    }
    engine.store.check_writable()?;
    if name.is_empty() || name.len() > limits::NAME_BYTES_MAX {
        return Err(Error::invalid_argument(
            "a column family needs a name of 1 to 65536 bytes",
        ));
    }
    options.validate()
}

/// Shows the family `id`, which the MANIFEST has by now and whose first write will be in `wal`, and tells the OPTIONS file
/// of it. With the lead.
pub(super) fn show_new(
    engine: &Engine,
    state: &mut State,
    (id, name): (u32, &str),
    options: FamilyOptions,
    wal: u64,
) -> Result<Arc<Family>> {
    let family = make_family(&engine.store, id, name, options);
    let version = current_version(&state.versions, id)?;
    let mut new = FamilyState::new(Arc::clone(&family), version, wal);
    new.mutable_since = engine.store.visible_seqno();
    state.families.insert(id, new);
    engine.store.publish_families(state);
    let told = stored_options::add_family(&engine.store, state, &family);
    report_untold(engine, told);
    Ok(family)
}

pub(crate) fn drop_family(engine: &Engine, family: &Arc<Family>) -> Result<()> {
    if family.id == 0 {
        return Err(Error::invalid_argument(
            "the default family cannot be dropped",
        ));
    }
    engine.writes.run_exclusive(|log| {
        engine.store.check_open()?;
        family.check_alive()?;
        change_log::begin(engine, log)?;
        let change = change_log::next(engine, log, family.id, || WhatChanged::Dropped);
        let mut state = engine.store.lock_state();
        engine.store.edit_manifest(&mut state, |set| {
            set.with_change(change_log::told(&change), |set| {
                set.drop_family(family.id, log.last_seqno)
            })
        })?;
        family.dropped.store(true, Ordering::Release);
        // Walks that wait there own the family.
        if !drumlin_base::bug!("dropped-walks-kept") {
            family.reads.walks.close();
        }
        engine.writes.env.full.remove(family.id);
        state.families.remove(&family.id);
        engine.store.publish_families(&state);
        let told = stored_options::write_options(&engine.store, &state, &Proposed::default());
        report_untold(engine, told);
        engine.store.changed.notify_all();
        drop(state);
        change_log::end(engine, log, &change)
    })
}

/// Reports that the OPTIONS file could not be told of the families there are now. The MANIFEST has been written, so
/// that is no failure of the operation.
fn report_untold(engine: &Engine, told: Result<()>) {
    if let Err(error) = told {
        tracing::warn!(%error, "the OPTIONS file does not tell of the present families");
        engine.store.watch.report_error(&error);
    }
}

/// The state that all handles of a new family share.
pub(crate) fn make_family(
    store: &Store,
    id: u32,
    name: &str,
    mut options: FamilyOptions,
) -> Arc<Family> {
    options.keep_to(store.id.vintage, &store.id.options.tuning);
    let tables = store
        .caches
        .table_cache
        .for_family(options.order.clone(), options.prefix_extractor.clone());
    let super_version = SuperVersion::empty(options.order.clone());
    Family::new(
        (id, name),
        options,
        &store.id.options,
        (tables, &store.caches.blob_cache),
        (store.id.number, &store.caches.budget, &store.caches.moments),
        super_version,
    )
}
