//! Memory kept within its bounds, once a turn of the loop.
//!
//! Beyond what clients may have together the largest are cut off, as Redis does under `maxmemory-clients`; and a round ends
//! early, so that one turn cannot take much more than there is.

use drumlin_redis_store::Overlay;

use crate::hands::lend;
use crate::state::ServerState;
use crate::traffic;

/// Clients may always have so much more in one turn: one of them that cannot be cut off does not stop the others.
const TURN_BYTES_LEAST: usize = 8 << 20;
/// When some are cut off, others are until there is this part of the bound left.
const ROOM_SHARE: usize = 16;

/// From this part of the bound on, clients keep no memory for their next commands.
const DENSE_SHARE: usize = 4;

/// Whether clients have so much together that none keeps memory for its next command: many idle ones have room then.
pub(crate) fn is_dense(state: &ServerState) -> bool {
    state.net.crowd.bytes() > state.bounds.clients_bytes / DENSE_SHARE
}

/// Bytes up to which clients may come in this turn.
pub(crate) fn turn_bytes_max(state: &ServerState) -> usize {
    let least = state.net.crowd.bytes() + TURN_BYTES_LEAST;
    state.bounds.clients_bytes.max(least)
}

/// Cuts off the largest clients while all together have too much. Those of replication, which have bounds of their own, and
/// those that asked not to be are spared, and nobody else is cut off for what they have.
pub(crate) fn cut_largest(state: &mut ServerState) {
    let most = state.bounds.clients_bytes;
    if state.net.crowd.bytes() <= most {
        return;
    }
    // The largest may be away.
    lend::call_home(state);
    let may_go = |id: &u64| {
        let session = state.clients.get(*id);
        session.is_some_and(|it| !(it.no_evict || it.is_replica || it.is_primary))
    };
    let ios = state.net.ios.iter().filter(|(id, _)| may_go(id));
    let mut largest: Vec<(usize, u64)> = ios.map(|(id, io)| (io.counted, *id)).collect();
    largest.sort_unstable_by(|one, other| other.cmp(one));
    let mut bytes: usize = largest.iter().map(|(bytes, _)| bytes).sum();
    if bytes <= most {
        return;
    }
    for (of_one, id) in largest {
        if bytes <= most - most / ROOM_SHARE {
            break;
        }
        bytes -= of_one;
        state.counters.evicted_clients += 1;
        traffic::close(state, id);
    }
}

/// Charges what there is at the end of a turn.
pub(crate) fn charge(state: &ServerState) {
    let purse = &state.purse;
    purse.clients.set(state.net.crowd.bytes());
    purse.scripts.set(state.scripts.lua_bytes());
    purse.tracking.set(state.tracker.bytes());
    purse.replication.set(state.replicas.backlog.bytes());
    let spare = state.spare.borrow();
    purse
        .nodes
        .set(spare.as_ref().map_or(0, Overlay::nodes_bytes));
}
