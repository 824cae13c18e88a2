//! The loop's side: replicas are answered, fed, and given up.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use drumlin::Result;
use drumlin_fs::net::Token;

use super::dump::{Dump, Form, Order};
use super::history::new_id;
use super::member::{Filled, Request, Stage};
use crate::replica::state::Phase;
use crate::state::ServerState;
use crate::traffic;

const SECOND: Duration = Duration::from_secs(1);
/// Pieces that a replica gets in one turn.
const PIECES_MAX: usize = 32;
/// Replicas that get all data at the same time. Others wait.
const DUMPS_MAX: usize = 4;

/// Looks after the replicas at the end of a turn. `is_written` if no changes wait for the engine.
pub(crate) fn tend(state: &mut ServerState, is_written: bool, now: Duration) {
    if state.replicas.members.is_empty() && !state.replicas.is_active {
        return;
    }
    state.replicas.ending.retain(|dump| !dump.stop());
    if is_written {
        answer(state);
        if std::mem::take(&mut state.replicas.asks_acks) && !state.replication.is_replica() {
            state.replicas.say(&["REPLCONF", "GETACK", "*"]);
        }
    }
    if now >= state.replicas.look_due {
        state.replicas.look_due = now + SECOND;
        look(state, is_written, now);
    }
    let ids: Vec<u64> = state.replicas.members.keys().copied().collect();
    for id in ids {
        limit(state, id, now);
        pump(state, id);
    }
    let replicas = &mut state.replicas;
    let members = replicas.members.values().filter(|it| it.needs_stream());
    let needed = members.map(|it| it.sent).min();
    let kept = replicas.backlog_bytes;
    replicas.backlog.trim(kept, needed.unwrap_or(u64::MAX));
}

/// Closes the connections of all replicas: they come again, and learn of what has changed.
pub(crate) fn disconnect(state: &mut ServerState) {
    let ids: Vec<u64> = state.replicas.members.keys().copied().collect();
    for id in ids {
        // One whose command runs is closed after it.
        if !state.clients.kill(id) {
            state.replicas.forget(id);
        }
    }
}

/// Answers those who ask for the stream.
fn answer(state: &mut ServerState) {
    let members = state.replicas.members.iter();
    let asking = members.filter_map(|(id, member)| match &member.stage {
        Stage::Asks(request) => Some((*id, request.clone())),
        _ => None,
    });
    let asking: Vec<(u64, Request)> = asking.collect();
    for (id, request) in asking {
        let goes_on = goes_on(state, &request);
        if let Request::From { .. } = request {
            match goes_on {
                true => state.replicas.syncs.partial += 1,
                false => state.replicas.syncs.refused += 1,
            }
        }
        match request {
            Request::From { offset, .. } if goes_on => go_on(state, id, offset),
            _ if dumps(state) >= DUMPS_MAX => wait(state, id, &request),
            _ => {
                if let Err(error) = send_all(state, id, matches!(request, Request::Old)) {
                    state.last_error = Some(error.to_string());
                    state.clients.kill(id);
                    traffic::flush(state, id);
                }
            }
        }
    }
}

/// Whether the stream can be sent from where the replica is.
fn goes_on(state: &ServerState, request: &Request) -> bool {
    let replicas = &state.replicas;
    match request {
        Request::From { id, offset } => {
            replicas.is_active
                && replicas.history.knows(id, *offset)
                && replicas.backlog.has(*offset)
        }
        Request::Old | Request::All => false,
    }
}

fn dumps(state: &ServerState) -> usize {
    let members = state.replicas.members.values();
    let dumps = members.filter(|it| matches!(it.stage, Stage::Dump(_)));
    dumps.count()
}

/// Has a replica wait for its turn. It asks for all data from now on.
fn wait(state: &mut ServerState, id: u64, request: &Request) {
    if let (Request::From { .. }, Some(member)) = (request, state.replicas.members.get_mut(&id)) {
        member.stage = Stage::Asks(Request::All);
    }
}

fn go_on(state: &mut ServerState, id: u64, offset: u64) {
    let (now_seconds, replicas) = (state.now_seconds, &mut state.replicas);
    let (Some(member), Some(session)) = (replicas.members.get_mut(&id), state.clients.get_mut(id))
    else {
        return;
    };
    member.stage = Stage::Online;
    member.sent = offset;
    member.acked_seconds = now_seconds;
    let line = match member.greeting.takes_new_name {
        true => format!("+CONTINUE {}\r\n", replicas.history.id),
        false => "+CONTINUE\r\n".to_owned(),
    };
    session.out.extend_from_slice(line.as_bytes());
}

/// Begins to send all data as of now.
fn send_all(state: &mut ServerState, id: u64, is_old: bool) -> Result<()> {
    let is_replica = state.replication.is_replica();
    state.replicas.begin_stream(&mut state.random, is_replica);
    // A replica has no way to know what is selected now: the next change tells it.
    state.replicas.selected = None;
    let offset = state.replicas.backlog.end();
    let Some(member) = state.replicas.members.get(&id) else {
        return Ok(());
    };
    let form = match member.greeting.takes_mark {
        true => Form::Mark(new_id(&mut state.random)),
        false => {
            let dir = Path::new(state.config.get("dir"));
            Form::Length(dir.join(format!("replica-{id}.rdb")))
        }
    };
    let libraries = state.scripts.libraries.all();
    let of_primary = state.replication.place.as_ref().map(|place| place.db);
    let order = Order {
        env: state.replication.env.clone(),
        store: Arc::clone(&state.store),
        view: state.store.view(),
        libraries: libraries.map(|it| it.code.clone()).collect(),
        stream_db: of_primary.filter(|_| is_replica),
        form,
    };
    let dump = Dump::begin(order, state.net.poller.waker())?;
    state.replicas.syncs.full += 1;
    let id_of_stream = state.replicas.history.id.clone();
    let (Some(member), Some(session)) = (
        state.replicas.members.get_mut(&id),
        state.clients.get_mut(id),
    ) else {
        return Ok(());
    };
    member.stage = Stage::Dump(dump);
    member.sent = offset;
    if !is_old {
        let line = format!("+FULLRESYNC {id_of_stream} {offset}\r\n");
        session.out.extend_from_slice(line.as_bytes());
    }
    Ok(())
}

/// Looks once a second at who is there: signs of life, and silence.
fn look(state: &mut ServerState, is_written: bool, now: Duration) {
    let period = Duration::from_secs(state.config.number("repl-ping-replica-period").max(1));
    let is_replica = state.replication.is_replica();
    let has_any = !state.replicas.members.is_empty();
    // In a failover nothing may come behind what the replica is to have.
    let may_say = is_written && !is_replica && state.failover.is_none();
    // The first sign of life of a stream comes a period after its first replica.
    let due = has_any.then(|| state.replicas.ping_due.unwrap_or(now + period));
    state.replicas.ping_due = due;
    if may_say && due.is_some_and(|due| now >= due) {
        state.replicas.ping_due = Some(now + period);
        state.replicas.say(&["PING"]);
    }
    let timeout = state.config.number("repl-timeout").max(1);
    let (seconds, mut silent) = (state.now_seconds, Vec::new());
    for (id, member) in &mut state.replicas.members {
        match &member.stage {
            Stage::Asks(_) => {}
            Stage::Dump(dump) => {
                // An empty line shows that the data is on its way.
                if let Some(session) = state.clients.get_mut(*id).filter(|_| !dump.has_begun()) {
                    session.out.push(b'\n');
                }
                member.acked_seconds = seconds;
            }
            Stage::Loads | Stage::Online if member.is_old => {}
            Stage::Loads | Stage::Online if member.lag(seconds) > timeout => silent.push(*id),
            Stage::Loads | Stage::Online => {}
        }
    }
    silent.into_iter().for_each(|id| traffic::close(state, id));
    end_stream(state, now);
}

/// Gives the memory of the stream back when there was no replica for long.
fn end_stream(state: &mut ServerState, now: Duration) {
    let ttl = state.config.number("repl-backlog-ttl");
    let replicas = &mut state.replicas;
    if !replicas.members.is_empty() || state.replication.is_replica() {
        replicas.alone_since = None;
        return;
    }
    let since = *replicas.alone_since.get_or_insert(now);
    if ttl > 0 && now.saturating_sub(since) >= Duration::from_secs(ttl) {
        replicas.alone_since = None;
        replicas.is_active = false;
        replicas.collects = false;
        let end = replicas.backlog.end();
        replicas.backlog.restart(end);
    }
}

/// Closes a replica for which too much waits.
fn limit(state: &mut ServerState, id: u64, now: Duration) {
    let (limits, end) = (state.replicas.limits, state.replicas.backlog.end());
    let Some(member) = state.replicas.members.get_mut(&id) else {
        return;
    };
    if !member.needs_stream() {
        return;
    }
    let behind = end.saturating_sub(member.sent);
    let since = match behind > limits.soft_bytes {
        true => Some(*member.behind_since.get_or_insert(now)),
        false => None,
    };
    member.behind_since = since;
    let for_long = since.is_some_and(|since| now.saturating_sub(since) > limits.soft_time);
    if behind > limits.hard_bytes || for_long {
        traffic::close(state, id);
    }
}

/// Sends a replica what its socket takes.
fn pump(state: &mut ServerState, id: u64) {
    for _ in 0..PIECES_MAX {
        let (replicas, clients) = (&mut state.replicas, &mut state.clients);
        let (Some(member), Some(session)) = (replicas.members.get_mut(&id), clients.get_mut(id))
        else {
            return;
        };
        if session.out.len() >= super::member::PIECE_BYTES {
            return;
        }
        let before = session.out.len();
        match member.fill(&replicas.backlog, &mut session.out) {
            Filled::Some => {}
            Filled::Nothing if before > 0 => return traffic::flush(state, id),
            Filled::Nothing => return,
            Filled::Failed => {
                session.is_killed = true;
                return traffic::flush(state, id);
            }
        }
        let has_all = matches!(member.stage, Stage::Loads | Stage::Online);
        session.closes |= has_all && member.greeting.only_data;
        traffic::flush(state, id);
    }
    // There is more: the poller tells when it may go on.
    let (replicas, clients) = (&mut state.replicas, &mut state.clients);
    if let (Some(member), Some(session), Some(io)) = (
        replicas.members.get_mut(&id),
        clients.get_mut(id),
        state.net.ios.get_mut(&id),
    ) && member.fill(&replicas.backlog, &mut session.out) == Filled::Some
        && io
            .update_interest(&*state.net.poller, Token(id), session.out.len())
            .is_err()
    {
        traffic::close(state, id);
    }
}

/// Whether the server has no data for others: it follows one that it has no connection to.
pub(crate) fn has_no_data(state: &ServerState) -> bool {
    state.replication.is_replica() && state.replication.phase() != Phase::Connected
}
