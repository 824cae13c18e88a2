//! Keys that a command of a client comes to when their time is over, and before the worker of expiry does.

use std::collections::BTreeSet;

use drumlin::Health;
use drumlin_redis_store::{Expired, Keyspace, Mark};

use crate::state::ServerState;

/// Deletes the keys that a command of a client found expired, and counts them. Those of which replicas are to be told before they are
/// told of the command: of the others only if the command `has_changed` anything, as they may be what it changed.
pub(crate) fn settle(
    state: &mut ServerState,
    keys: &mut Keyspace<'_>,
    (mark, has_changed): (Mark, bool),
    may_write: bool,
) -> BTreeSet<(u16, Vec<u8>)> {
    let Expired {
        keys: seen, due, ..
    } = keys.take_expired();
    let mut gone = BTreeSet::new();
    // A round of reads shall not fail because of these.
    let takes_writes = || state.store.db().health() < Health::WriteStopped;
    if !due.is_empty() && may_write && state.deletes_expired() && takes_writes() {
        // One that needs the disk for it is left to the worker.
        gone = keys.expire_found(due, mark).unwrap_or_default();
        state.counters.counted.expired += gone.len() as u64;
        if drumlin_base::bug!("redis-found-expired-untold") {
            gone.clear();
        }
    }
    if has_changed {
        gone.extend(seen);
    }
    gone
}
