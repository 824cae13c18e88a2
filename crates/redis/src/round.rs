//! One round of commands: they see one moment of the store and each other's changes, and are written together.

use drumlin::View;
use drumlin_redis_store::{Failure, Keyspace, LookUps, Outcome, Overlay, ReadFrom, Store};
use drumlin_resp::{Args, ReplyWriter};

use crate::call::Call;
use crate::command::Handler;
use crate::found_expired::settle;
use crate::limits::Limits;
use crate::session::{Kept, Session};
use crate::state::ServerState;
use crate::wait::Wait;

/// See the module.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) view: View,
    pub(crate) overlay: Overlay,
    pub(crate) now_ms: u64,
    /// Look-ups that count, of commands that ran without the server.
    pub(crate) looked_up: LookUps,
}

impl Round {
    /// A round at the present moment of `store`.
    pub(crate) fn new(store: &Store, clock_ms: u64) -> Self {
        Self {
            view: store.view(),
            overlay: Overlay::new(),
            now_ms: store.now_ms(clock_ms),
            looked_up: LookUps::default(),
        }
    }

    /// The next round of the server, at the time of `state`. What the last one has left in memory is there.
    pub(crate) fn next(state: &ServerState) -> Self {
        let mut overlay = state.spare.take().unwrap_or_default();
        overlay.bound_nodes(state.bounds.nodes_bytes);
        Self {
            view: state.store.view(),
            overlay,
            now_ms: state.store.now_ms(state.now_micros / 1_000),
            looked_up: LookUps::default(),
        }
    }
}

/// The conditions of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Whether commands may read from the disk here and now.
    pub(crate) from: ReadFrom,
    /// Whether the engine has taken the changes of earlier rounds.
    pub(crate) may_write: bool,
}

/// Commands that need the disk; none of them has run.
#[derive(Debug)]
pub(crate) struct Cold {
    pub(crate) kept: Vec<Kept>,
    pub(crate) db: u16,
    /// They are parts of an EXEC or of a script, which is run again whole.
    pub(crate) is_part: bool,
}

/// What a command is run with besides its client and its arguments.
pub(crate) struct Stage<'a> {
    pub(crate) store: &'a Store,
    pub(crate) from: ReadFrom,
    pub(crate) limits: Limits,
    pub(crate) may_wait: bool,
    /// Whether the keys that it looks up are counted as found or missed.
    pub(crate) counts: bool,
    /// Whether the engine takes changes now: keys that are found expired are deleted.
    pub(crate) may_write: bool,
    /// The key for which a command that waited is run again.
    pub(crate) woken_by: Option<&'a [u8]>,
    /// `None` on a thread that reads from the disk.
    pub(crate) server: Option<&'a mut ServerState>,
}

/// Runs a command: its reply is appended to `reply`, or its wait returned. After an error nothing of it is left, neither
/// changes nor a part of a reply; keys that it found expired are deleted all the same.
pub(crate) fn run(
    handler: Handler,
    args: Args<'_>,
    session: &mut Session,
    reply: &mut ReplyWriter,
    round: &mut Round,
    mut stage: Stage<'_>,
) -> Outcome<Option<Wait>> {
    let mark = round.overlay.mark();
    let written = reply.bytes().len();
    let (store, from) = (stage.store, stage.from);
    let overlay = &mut round.overlay;
    let mut keys = Keyspace::new(store, &round.view, overlay, session.db, round.now_ms, from);
    // The primary decides what has expired: its commands see all that it has not deleted.
    if session.is_primary {
        keys.keep_expired();
    }
    let server = stage.server.as_ref();
    keys.tell_new(server.is_some_and(|it| it.notify.has_new()));
    keys.tell_events(server.is_some_and(|it| !it.notify.is_empty()));
    let collects = server.is_some_and(|it| it.replicas.collects) && !session.is_primary;
    if server.is_some() && !session.is_primary {
        keys.note_expired();
    }
    let db = session.db;
    let mut call = Call {
        args,
        keys: &mut keys,
        reply,
        session,
        limits: stage.limits,
        may_wait: stage.may_wait,
        woken_by: stage.woken_by,
        wait: None,
        collects,
        effects: None,
        server: stage.server.as_deref_mut(),
    };
    let outcome = handler(&mut call);
    let Call { wait, effects, .. } = call;
    if outcome.is_err() {
        reply.buffer_mut().truncate(written);
        keys.overlay().undo(mark);
    }
    if stage.counts && !matches!(outcome, Err(Failure::Cold)) {
        match &mut stage.server {
            Some(server) => server.counters.counted.looked_up += keys.looked_up(),
            None => round.looked_up += keys.looked_up(),
        }
    }
    if let (Some(server), false) = (stage.server, matches!(outcome, Err(Failure::Cold))) {
        let has_changed = keys.overlay().has_changed_since(mark);
        let expired = settle(server, &mut keys, (mark, has_changed), stage.may_write);
        if collects {
            let is_over = outcome.is_ok() && wait.is_none();
            let effects = if is_over { effects } else { None };
            let replicas = &mut server.replicas;
            replicas.ran((db, args), effects, &expired, is_over && has_changed);
        }
    }
    outcome.map(|()| wait)
}
