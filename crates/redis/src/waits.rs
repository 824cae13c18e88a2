//! Clients that begin to wait for keys, and waits that end without one.

use std::time::Duration;

use drumlin_resp::ReplyWriter;

use crate::ran;
use crate::session::{Blocked, Kept};
use crate::state::ServerState;
use crate::traffic::unblock;
use crate::wait::{TimeoutReply, Wait};

/// Has a client wait with its command.
pub(crate) fn begin(state: &mut ServerState, id: u64, (kept, wait): (Kept, Wait), now: Duration) {
    let Some(session) = state.clients.get_mut(id) else {
        return;
    };
    let until = wait.timeout.map(|timeout| now.saturating_add(timeout));
    let db = session.db;
    for key in &wait.keys {
        state.waiting.add(db, key, id);
    }
    if let Some(until) = until {
        state.net.timers.insert((until, id));
    }
    session.blocked = Some(Blocked {
        kept,
        db,
        wait,
        until,
    });
}

/// Ends the waits whose time is over.
pub(crate) fn end(state: &mut ServerState, now: Duration) {
    while let Some((until, id)) = state.net.timers.first().copied() {
        if until > now {
            break;
        }
        state.net.timers.pop_first();
        give_up(state, id, None);
    }
}

/// Ends a wait for keys: with the reply of a timeout, or with an error.
pub(crate) fn give_up(state: &mut ServerState, id: u64, error: Option<&str>) {
    let Some(mut session) = state.clients.begin(id) else {
        return;
    };
    if let Some(blocked) = unblock(state, &mut session) {
        let out = std::mem::take(&mut session.out);
        let mut reply = ReplyWriter::append_to(out, session.protocol);
        let (facts, args) = (&blocked.kept.facts, blocked.kept.args.args());
        let stats = &mut state.observer.stats;
        stats.gave_up(facts, args, error.is_some());
        match (error, blocked.wait.on_timeout) {
            (Some(error), _) => {
                ran::error(state, error);
                reply.error(error.as_bytes());
            }
            (None, TimeoutReply::NullArray) => reply.null_array(),
            (None, TimeoutReply::Null) => reply.null(),
            (None, TimeoutReply::Replicas { offset, .. }) => {
                reply.integer(state.replicas.acked(offset) as i64);
            }
        }
        session.out = reply.take();
        state.net.participants.push(id);
    }
    state.clients.end(session);
}
