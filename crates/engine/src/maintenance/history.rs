//! Marking moments of the past that is kept.
//!
//! A moment is pinned, made to outlive a power cut, and told to the MANIFEST, with the last sequence number: then no write after
//! a power cut gets a number that the moment sees.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use drumlin_base::{Error, Result};

use crate::db::engine::Engine;
use crate::version::{PastMoment, VersionEdit};

/// Marks the present, unless nothing was written since the last moment, and lets go of those past the retention.
///
/// # Errors
/// `InvalidArgument` where no history is kept; `ReadOnly`, `Poisoned`, `NoSpace`, `Io`, `Shutdown`.
pub(crate) fn mark(engine: &Engine) -> Result<()> {
    let store = &engine.store;
    store.check_writable()?;
    let _one = store.history.marking.lock();
    let mut history = store.history.get();
    if !history.is_on() {
        let message = "no history is kept: Options::keep_history says for how long";
        return Err(Error::invalid_argument(message).with_file(&store.id.dir));
    }
    // The time first: what is seen is at least of then.
    let now = store.id.env.clock.unix_seconds();
    let newest = store.snapshots.take_current(|| store.visible_seqno());
    let before = history.clone();
    history.mark(PastMoment {
        unix_seconds: now,
        seqno: newest.seqno(),
    });
    history.expire(now);
    if history == before {
        return Ok(());
    }
    if !drumlin_base::bug!("moment-before-its-sync") {
        engine.sync_wal()?;
    }
    let edit = VersionEdit {
        history: Some(history.clone()),
        last_seqno: Some(newest.seqno()),
        ..VersionEdit::default()
    };
    store.log_and_apply(&mut store.lock_state(), vec![edit])?;
    store.history.set(history, newest);
    Ok(())
}

/// Starts the thread that marks moments, where history is kept and the store has threads. It ends when the store is closed.
pub(crate) fn start(engine: &Arc<Engine>) -> Result<()> {
    let kept = engine.store.history.get();
    if !kept.is_on() || engine.store.id.read_only || engine.store.runs_inline() {
        return Ok(());
    }
    let every = Duration::from_secs(kept.every_seconds);
    let body = Arc::clone(engine);
    let body = Box::new(move || keep(&body, every));
    let handle = engine.store.id.env.spawner.spawn("drumlin-history", body)?;
    engine.background.helpers.lock().push(handle);
    Ok(())
}

fn keep(engine: &Engine, every: Duration) {
    let store = &engine.store;
    loop {
        if let Err(error) = mark(engine)
            && !store.closing.load(Ordering::Acquire)
        {
            tracing::warn!(%error, "no moment could be marked");
            store.watch.report_error(&error);
        }
        store.watch.notices.deliver();
        let began = store.id.env.clock.monotonic();
        let mut state = store.lock_state();
        loop {
            if store.closing.load(Ordering::Acquire) {
                return;
            }
            let waited = store.id.env.clock.monotonic().saturating_sub(began);
            match every.checked_sub(waited) {
                None | Some(Duration::ZERO) => break,
                // Woken where the store is closed.
                Some(left) => state = store.retry.wait_for(state, left),
            }
        }
    }
}
