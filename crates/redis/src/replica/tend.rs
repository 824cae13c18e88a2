//! The loop's side: the connection to the primary is made, watched, and made again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use drumlin::{Error, Result};
use drumlin_resp::encode_command;
use parking_lot::{Condvar, Mutex};

use super::attempt::Task;
use super::greeting::Credentials;
use super::state::{Attempt, Letters, Link, Phase, Place, Primary, Shared, Stream, Verdict};
use crate::config::Config;
use crate::replicas::failover::Stage;
use crate::replicas::tend as replicas;
use crate::session::Silence;
use crate::state::ServerState;
use crate::traffic;

/// Time from one acknowledgement to the next, and from a lost connection to the next try.
const SECOND: Duration = Duration::from_secs(1);
/// The file for a primary's data, in the directory of ours.
const DATA_FILE: &str = "primary.rdb";

/// Nothing goes over a plain connection that was to go over TLS.
const NO_TLS: &str = "tls-replication: a primary is followed over plain connections only";

/// The error of those who wait for keys when the server becomes a replica.
const UNBLOCKED: &str = "UNBLOCKED force unblock from blocking operation, instance state changed \
                         (master -> replica?)";

/// Follows the primary that the configuration names, if it does.
///
/// # Errors
/// `InvalidArgument`.
pub(crate) fn begin(state: &mut ServerState) -> Result<()> {
    let wanted = state.config.get("replicaof").to_owned();
    let mut words = wanted.split_ascii_whitespace();
    if let (Some(host), Some(port)) = (words.next(), words.next()) {
        let primary = Primary::parse(host.as_bytes(), port.as_bytes());
        let primary = primary
            .map_err(|refusal| Error::invalid_argument(format!("replicaof {wanted}: {refusal}")))?;
        follow(state, Some(primary))?;
    }
    Ok(())
}

/// Makes `primary` the server's, or has it stand alone.
///
/// # Errors
/// Of the thread that made the connection before.
pub(crate) fn follow(state: &mut ServerState, primary: Option<Primary>) -> Result<()> {
    let was_replica = state.replication.is_replica();
    let becomes_replica = primary.is_some() && !was_replica;
    state.replication.end_attempt()?;
    note_place(state);
    if let Some(link) = state.replication.link.take() {
        traffic::close(state, link.client);
    }
    if becomes_replica {
        let own = state.replicas.demote();
        state.replication.place = own.map(|(id, offset, db)| Place { id, offset, db });
    }
    if primary.is_none() && was_replica {
        state.replicas.promote(&mut state.random);
        state.replication.forget_place();
    }
    replicas::disconnect(state);
    state.config.note_primary(primary.as_ref());
    let replication = &mut state.replication;
    replication.primary = primary;
    replication.due = Duration::ZERO;
    replication.last_error = None;
    replication.down_since_seconds = state.now_seconds;
    replication.heard_seconds = state.now_seconds;
    if becomes_replica {
        // They could only be served by writes.
        let blocked = state.clients.others().filter(|it| it.blocked.is_some());
        let blocked = blocked.map(|it| (it.id, Some(UNBLOCKED)));
        state.unblocks.extend(blocked);
        state.migrations.abandon();
    }
    Ok(())
}

/// Looks after the connection at the end of a turn, when the round's changes are on their way. `may_load` if none of them
/// waits for the engine.
pub(crate) fn tend(state: &mut ServerState, may_load: bool, now: Duration) {
    if !state.replication.is_replica() {
        return;
    }
    hear(state, may_load, now);
    if state.replication.link.is_some() {
        watch(state, now);
    } else if state.replication.attempt.is_none() && now >= state.replication.due {
        attempt(state, now);
    }
}

/// Begins a try.
fn attempt(state: &mut ServerState, now: Duration) {
    let replication = &mut state.replication;
    let Some(primary) = &replication.primary else {
        return;
    };
    if state.config.get("tls-replication") == "yes" {
        replication.last_error = Some(NO_TLS.to_owned());
        replication.due = now + SECOND;
        return;
    }
    let shared = Arc::new(Shared {
        letters: Mutex::new(Letters::default()),
        answered: Condvar::new(),
        stops: Arc::default(),
        waker: state.net.poller.waker(),
    });
    let config = &state.config;
    let task = Task {
        env: replication.env.clone(),
        network: Arc::clone(&replication.network),
        store: Arc::clone(&state.store),
        shared: Arc::clone(&shared),
        primary: primary.clone(),
        credentials: credentials(config),
        timeout: Duration::from_secs(config.number("repl-timeout").max(1)),
        place: replication.place.clone(),
        hands_over: state.failover.is_some(),
        file: Path::new(config.get("dir")).join(DATA_FILE),
    };
    let spawner = &replication.env.spawner;
    match spawner.spawn("redis-replica", Box::new(move || task.run())) {
        Ok(thread) => replication.attempt = Some(Attempt { shared, thread }),
        Err(error) => {
            replication.last_error = Some(error.to_string());
            replication.due = now + SECOND;
        }
    }
}

/// What the server tells of itself: where it is to be found may be another place than where it listens.
fn credentials(config: &Config) -> Credentials {
    let port = match config.number("replica-announce-port") {
        0 => "port",
        _ => "replica-announce-port",
    };
    Credentials {
        user: config.get("masteruser").to_owned(),
        password: config.get("masterauth").to_owned(),
        port: config.get(port).to_owned(),
        address: config.get("replica-announce-ip").to_owned(),
    }
}

/// Reads the thread's letters.
fn hear(state: &mut ServerState, may_load: bool, now: Duration) {
    let Some(attempt) = &state.replication.attempt else {
        return;
    };
    let mut letters = attempt.shared.letters.lock();
    let mut loads = false;
    if letters.asks_to_load && may_load {
        letters.asks_to_load = false;
        letters.may_load = true;
        letters.phase = Phase::Loading;
        loads = true;
        attempt.shared.answered.notify_all();
    }
    let (verdict, outcome) = (letters.verdict.take(), letters.outcome.take());
    drop(letters);
    if let Some(verdict) = verdict {
        match verdict {
            Verdict::TakesOver => state.failover = None,
            Verdict::Refuses => return end_failover(state),
        }
    }
    if loads {
        // Until all of it is loaded, nothing is there that could be gone on from.
        state.replication.forget_place();
        state.replication.replaces_libraries = true;
        state.touch_watched();
        state.tracker.cleared();
    }
    let Some(outcome) = outcome else {
        return;
    };
    let ended = state.replication.end_attempt();
    match ended
        .and_then(|()| take_libraries(state))
        .and(outcome)
        .and_then(|stream| install(state, stream, now))
    {
        Ok(()) => state.replication.last_error = None,
        Err(error) => {
            state.replication.last_error = Some(error.to_string());
            state.replication.due = now + SECOND;
        }
    }
}

/// Ends the failover: the server is the primary, as it was.
pub(crate) fn end_failover(state: &mut ServerState) {
    let Some(failover) = state.failover.take() else {
        return;
    };
    if failover.stage == Stage::HandsOver
        && let Err(error) = follow(state, None)
    {
        state.last_error = Some(error.to_string());
    }
}

/// Loads the libraries that came with all data.
fn take_libraries(state: &mut ServerState) -> Result<()> {
    match std::mem::take(&mut state.replication.replaces_libraries) {
        true => state.scripts.load_stored(&state.store),
        false => Ok(()),
    }
}

/// Makes a client of the primary.
fn install(state: &mut ServerState, stream: Stream, now: Duration) -> Result<()> {
    let Stream {
        connection,
        read,
        place,
        has_all_data,
    } = stream;
    let is_new = match has_all_data {
        true => {
            state.replicas.adopt(&place.id, place.offset);
            true
        }
        false => state.replicas.go_on(&place.id),
    };
    if is_new {
        replicas::disconnect(state);
    }
    let client = traffic::add_client(state, connection, now)?;
    if let Some(session) = state.clients.get_mut(client) {
        session.is_primary = true;
        session.is_authenticated = true;
        session.user = None;
        session.silence = Silence::Off;
        session.db = place.db;
    }
    if let Some(io) = state.net.ios.get_mut(&client) {
        io.give(&read);
        io.parser.set_limits(drumlin_resp::RequestLimits {
            bulk_bytes_max: state.limits.string_bytes_max,
            authenticated: true,
        });
    }
    state.net.runnable.insert(client);
    state.replication.link = Some(Link {
        client,
        from: place.offset,
        ack_due: Duration::ZERO,
    });
    state.replication.place = Some(place);
    Ok(())
}

/// Notes how far the primary's commands have come.
fn note_place(state: &mut ServerState) {
    let replication = &mut state.replication;
    let (Some(link), Some(place)) = (&replication.link, &mut replication.place) else {
        return;
    };
    let io = state.net.ios.get(&link.client);
    // A transaction whose end is lost with the connection comes again from its beginning.
    if let (Some(io), Some(session)) = (io, state.clients.get(link.client))
        && session.multi.is_none()
    {
        place.offset = link.from + io.consumed();
        place.db = session.db;
    }
}

/// Notes how far the primary's commands have come, and tells it.
fn watch(state: &mut ServerState, now: Duration) {
    let Some(mut link) = state.replication.link else {
        return;
    };
    note_place(state);
    let timeout = Duration::from_secs(state.config.number("repl-timeout").max(1));
    let io = state.net.ios.get(&link.client);
    let silent = io.is_some_and(|io| now.saturating_sub(io.heard) > timeout);
    if silent {
        traffic::close(state, link.client);
    }
    let (Some(io), Some(session)) = (
        state.net.ios.get(&link.client),
        state.clients.get_mut(link.client),
    ) else {
        let replication = &mut state.replication;
        replication.link = None;
        replication.due = now;
        replication.down_since_seconds = state.now_seconds;
        return;
    };
    let replication = &mut state.replication;
    replication.heard_seconds = state.now_seconds - (now.saturating_sub(io.heard)).as_secs();
    let asked = std::mem::take(&mut replication.asks_ack);
    if asked || now >= link.ack_due {
        link.ack_due = now + SECOND;
        let offset = replication.offset().to_string();
        encode_command(&mut session.out, &["REPLCONF", "ACK", &offset]);
        state.replication.link = Some(link);
        traffic::flush(state, link.client);
    }
}
