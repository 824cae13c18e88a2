//! The deletion of keys whose time has come.

use drumlin_redis_store::{Event, Expired, Keyspace, ReadFrom, Store};

use crate::dispatch::tell;
use crate::round::Round;
use crate::session::Session;
use crate::state::ServerState;

/// Due expiries taken in one look.
const EXPIRE_STEP: usize = 2_000;

/// Takes some of what is due into the round; whether there is more.
pub(crate) fn expire_due(state: &mut ServerState, store: &Store, round: &mut Round) -> bool {
    let tells = !state.notify.is_empty()
        || !state.watching.is_empty()
        || !state.waiting.is_empty()
        || state.tracker.is_on()
        || state.replicas.collects;
    let mark = round.overlay.mark();
    let (overlay, now_ms) = (&mut round.overlay, round.now_ms);
    // Due entries are the lowest of their family and in memory as a rule.
    let from = ReadFrom::Disk;
    let mut keys = Keyspace::new(store, &round.view, overlay, 0, now_ms, from);
    if state.replicas.collects {
        keys.note_expired();
    }
    match keys.expire_due(EXPIRE_STEP, tells) {
        Ok(step) => {
            let expired = keys.take_expired();
            state.counters.counted.expired += step.expired;
            if state.replicas.collects {
                tell_replicas(state, round.overlay.events_since(mark), &expired);
            }
            let mut nobody = Session::default();
            tell(state, &mut nobody, round, mark);
            step.more
        }
        // The next look tries again; reads hide what has expired.
        Err(_) => {
            round.overlay.undo(mark);
            false
        }
    }
}

/// Tells replicas which keys are gone, and which fields of hashes: each by itself.
fn tell_replicas(state: &mut ServerState, events: &[Event], expired: &Expired) {
    let replicas = &mut state.replicas;
    replicas.unit.clear();
    for (db, key, fields) in &expired.fields {
        let words = [b"HDEL".as_slice(), key].into_iter();
        let words = words.chain(fields.iter().map(Vec::as_slice));
        replicas.unit.push(*db, words.collect());
        replicas.keep_unit();
    }
    let gone = events.iter().filter(|event| event.name == "expired");
    for event in gone {
        replicas.delete(event.db, &event.key);
        replicas.keep_unit();
    }
}
