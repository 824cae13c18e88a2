//! The oldest timestamp from which a family's history is whole.
//!
//! In a family whose keys end with timestamps a reader at a timestamp sees the newest version of each key that is not newer.
//! From time to time the oldest timestamp at which anybody still reads is raised: reads before it are refused from then on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use drumlin_base::{Error, Result};

use crate::db::engine::Engine;
use crate::db::handle::Db;
use crate::family::column_family::{ColumnFamily, Family};
use crate::version::VersionEdit;

impl Db {
    /// Says that nobody will read `family` at a timestamp below `low` any more. It is in the MANIFEST when this returns, and
    /// readers are told it by [`Db::full_history_ts_low`]; the engine's own reads know of no timestamps.
    ///
    /// # Errors
    /// `InvalidArgument` for a family whose keys have no timestamps, for one of another length, and for one below that which
    /// was said before; `Io`, `NoSpace`, `ReadOnly`, `Shutdown`.
    pub fn increase_full_history_ts_low(&self, family: &ColumnFamily, low: &[u8]) -> Result<()> {
        let _call = self.engine.store.begin_call()?;
        self.engine.store.check_own(&family.0)?;
        increase(&self.engine, &family.0, low)
    }

    /// The timestamp from which the history of `family` is whole; `None` where all of it is. Cheap.
    pub fn full_history_ts_low(&self, family: &ColumnFamily) -> Option<Arc<Vec<u8>>> {
        family.0.full_history_ts_low.load_full()
    }
}

fn increase(engine: &Engine, family: &Arc<Family>, low: &[u8]) -> Result<()> {
    let refuse = |why: String| Err(Error::invalid_argument(why));
    let order = &family.options.order;
    match order.timestamp_bytes() {
        0 => return refuse("Timestamp is not enabled in this column family".to_owned()),
        bytes if bytes != low.len() => {
            let found = low.len();
            return refuse(format!(
                "ts_low size mismatch: {found} bytes, of {bytes} in this column family"
            ));
        }
        _ => {}
    }
    engine.store.check_writable()?;
    let mut state = engine.store.lock_state();
    engine.store.check_open()?;
    family.check_alive()?;
    if let Some(before) = family.full_history_ts_low.load_full() {
        // Keys that are timestamps alone: the newer one comes first.
        if order.compare(low, &before).is_gt() {
            return refuse(format!(
                "Current full_history_ts_low: {} is higher than that, {}",
                low.escape_ascii(),
                before.escape_ascii()
            ));
        }
    }
    let edit = VersionEdit {
        full_history_ts_low: Some(low.to_vec()),
        ..VersionEdit::of_family(family.id)
    };
    engine.store.log_and_apply(&mut state, vec![edit])?;
    family
        .full_history_ts_low
        .store(Some(Arc::new(low.to_vec())));
    engine.store.changes.fetch_add(1, Ordering::Relaxed);
    Ok(())
}
