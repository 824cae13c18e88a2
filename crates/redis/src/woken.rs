//! The command of a client that waits for a key, run again because the key changed.

use std::sync::Arc;

use drumlin_redis_store::{Failure, Keyspace, Kind, ReadFrom, Store};
use drumlin_resp::{Args, ReplyWriter};

use crate::facts::{Facts, TWO_KEYS};
use crate::permit;
use crate::ran;
use crate::round::{Round, Stage, run};
use crate::session::{Blocked, Session};
use crate::state::ServerState;
use crate::table::Table;

/// Runs the command, as `key` changed; whether it is answered now.
pub(crate) fn run_again(
    state: &mut ServerState,
    table: &Table,
    round: &mut Round,
    session: &mut Session,
    blocked: &Blocked,
    key: &[u8],
) -> bool {
    let (facts, args) = (&blocked.kept.facts, blocked.kept.args.args());
    if let Err(refusal) = facts
        .resolve(args)
        .and_then(|entry| permit::may_send(state, session, (entry, args)))
    {
        return refuse(state, session, (facts, args), &refusal);
    }
    let handler = table.get(&blocked.kept.facts).handler;
    let out = std::mem::take(&mut session.out);
    let mut reply = ReplyWriter::append_to(out, session.protocol);
    let store = Arc::clone(&state.store);
    state.replicas.unit.clear();
    let stage = Stage {
        store: &store,
        // The key was just written: its blocks are in memory but for a rare one.
        from: ReadFrom::Disk,
        limits: state.limits,
        may_wait: true,
        counts: facts.counts_lookups(),
        may_write: true,
        woken_by: Some(key),
        server: Some(state),
    };
    let outcome = run(handler, args, session, &mut reply, round, stage);
    let micros = state.observer.lap();
    let is_answered = match outcome {
        Ok(wait) => {
            if wait.is_none() {
                ran::ended(state, session, facts, args, (micros, false));
            }
            wait.is_none()
        }
        Err(failure) if is_told(&failure, &store, round, blocked) => {
            let text = failure.to_string();
            ran::ended(state, session, facts, args, (micros, true));
            ran::error(state, &text);
            reply.error(text.as_bytes());
            true
        }
        Err(_) => false,
    };
    session.out = reply.take();
    is_answered
}

/// Answers with an error, as the user of the client has lost the right meanwhile.
fn refuse(
    state: &mut ServerState,
    session: &mut Session,
    (facts, args): (&Facts, Args<'_>),
    refusal: &Failure,
) -> bool {
    let text = refusal.to_string();
    ran::refused(state, Some(*facts), args, &text);
    let out = std::mem::take(&mut session.out);
    let mut reply = ReplyWriter::append_to(out, session.protocol);
    reply.error(text.as_bytes());
    session.out = reply.take();
    true
}

/// Whether the client is told of the failure, and does not wait on.
fn is_told(failure: &Failure, store: &Store, round: &mut Round, blocked: &Blocked) -> bool {
    match failure {
        // The group or the stream that it waited for is gone.
        Failure::Refused(_) => true,
        // The target of a move is of another type. A source of another type is nothing to wake for.
        Failure::WrongType => has_list(store, round, blocked),
        Failure::Cold | Failure::Engine(_) => false,
    }
}

/// Whether a move waits, and its source has a list.
fn has_list(store: &Store, round: &mut Round, blocked: &Blocked) -> bool {
    let (overlay, now_ms, db) = (&mut round.overlay, round.now_ms, blocked.db);
    let keys = Keyspace::new(store, &round.view, overlay, db, now_ms, ReadFrom::Disk);
    let source = blocked.wait.keys.first();
    blocked.kept.facts.keys == TWO_KEYS
        && source.is_some_and(|key| matches!(keys.lookup_as(key, Kind::List), Ok(Some(_))))
}
