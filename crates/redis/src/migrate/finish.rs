//! The end of a migration: keys that the target has are deleted here, and the client is answered.

use drumlin::Result;
use drumlin_redis_store::{EventClass, Keyspace, ReadFrom};
use drumlin_resp::ReplyWriter;

use super::state::{Delivered, Running};
use crate::dispatch::tell;
use crate::io::Hold;
use crate::ran;
use crate::round::Round;
use crate::state::ServerState;
use crate::traffic::unblock;

/// The reply where a key was changed on its way.
const CHANGED: &str = "IOERR a key was changed here while it was sent: it is here still, and the target has it as it was";

/// Finishes the migrations that have ended, before any command of the round runs.
///
/// # Errors
/// A panic of a thread.
pub(crate) fn finish(state: &mut ServerState, round: &mut Option<Round>) -> Result<()> {
    for (running, delivered) in state.migrations.take_ended()? {
        if !running.is_abandoned {
            let round = round.get_or_insert_with(|| Round::next(state));
            end(state, round, &running, delivered);
        }
        release(state);
    }
    Ok(())
}

/// Commands that waited for the keys may run.
fn release(state: &mut ServerState) {
    for (id, io) in &mut state.net.ios {
        if io.hold == Hold::Later {
            io.hold = Hold::None;
            state.net.participants.push(*id);
        }
    }
}

fn end(state: &mut ServerState, round: &mut Round, running: &Running, delivered: Delivered) {
    let mark = round.overlay.mark();
    let id = running.request.client;
    let found_none = delivered.found_none;
    let micros = delivered.micros;
    let error = delete(state, round, running, delivered);
    let found = state.clients.begin(id);
    let is_there = found.is_some();
    // A client that is gone is missed by nobody.
    let mut session = found.unwrap_or_default();
    if let Some(blocked) = unblock(state, &mut session) {
        let written = session.out.len();
        let out = std::mem::take(&mut session.out);
        let mut reply = ReplyWriter::append_to(out, session.protocol);
        match &error {
            Some(error) => reply.error(error.as_bytes()),
            None if found_none => reply.simple(b"NOKEY"),
            None => reply.ok(),
        }
        session.out = reply.take();
        let (facts, args) = (&blocked.kept.facts, blocked.kept.args.args());
        ran::ended(state, &session, facts, args, (micros, error.is_some()));
        if let Some(error) = &error {
            ran::error(state, error);
        }
        answered(state, id, written);
    }
    if state.replicas.collects {
        state.replicas.unit.clear();
        for (db, key) in round.overlay.touched_since(mark) {
            state.replicas.delete(db, key);
        }
    }
    tell(state, &mut session, round, mark);
    if is_there {
        state.clients.end(session);
    }
}

/// Notes that the client has a reply of this round, which tells of a write.
fn answered(state: &mut ServerState, id: u64, written: usize) {
    if let Some(io) = state.net.ios.get_mut(&id) {
        if io.round_replies == 0 {
            io.round_from = written;
            state.net.participants.push(id);
        }
        io.round_replies += 1;
        io.round_wrote = true;
    }
}

/// Deletes the keys that the target has taken; the error that the client is told, if any.
fn delete(
    state: &ServerState,
    round: &mut Round,
    running: &Running,
    delivered: Delivered,
) -> Option<String> {
    let request = &running.request;
    let mut error = delivered.error;
    if request.copies {
        return error;
    }
    let (now_ms, db) = (round.now_ms, request.db);
    let (view, overlay) = (&round.view, &mut round.overlay);
    let mut keys = Keyspace::new(&state.store, view, overlay, db, now_ms, ReadFrom::Disk);
    for place in delivered.taken {
        let Some(key) = request
            .keys
            .get(place)
            .filter(|_| running.claims.has(place))
        else {
            continue;
        };
        if running.claims.is_changed(place) {
            // One that has expired meanwhile does so there.
            let has_expired = running
                .claims
                .expire_ms(place)
                .is_some_and(|ms| ms < now_ms);
            if !has_expired {
                error.get_or_insert_with(|| CHANGED.to_owned());
            }
            continue;
        }
        match keys.lookup(key) {
            Ok(Some(record)) => {
                keys.remove(key, &record);
                keys.event(EventClass::Generic, "del", key);
            }
            Ok(None) => {}
            Err(failure) => error = Some(failure.to_string()),
        }
    }
    error
}
