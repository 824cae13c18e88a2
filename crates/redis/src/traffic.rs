//! Clients come, send, are answered and go.

use std::time::Duration;

use drumlin::Result;
use drumlin_fs::net::{Connection, NetErrorKind, Token};
use drumlin_resp::RequestLimits;

use crate::dispatch_multi::end_multi;
use crate::io::{Gate, Heard, Hold, Io, OUT_BYTES_HIGH};
use crate::pubsub::Subject;
use crate::session::{Blocked, Session};
use crate::state::ServerState;

/// Lets in who waits at a listener.
///
/// # Errors
/// Of the socket and of the poller.
pub(crate) fn accept(state: &mut ServerState, index: usize, now: Duration) -> Result<()> {
    let clients_max = state.config.number("maxclients");
    loop {
        let Some(acceptor) = state.net.acceptors.get_mut(index) else {
            return Ok(());
        };
        let accepted = match acceptor.accept(&*state.net.poller, now) {
            Ok(accepted) => accepted,
            // A client that went before it was accepted.
            Err(error) if NetErrorKind::of(&error) == NetErrorKind::Disconnected => continue,
            Err(error) => return Err(error),
        };
        let Some(mut connection) = accepted else {
            return Ok(());
        };
        state.counters.connections += 1;
        if state.clients.len() as u64 >= clients_max {
            state.counters.rejected += 1;
            // As much as the socket takes: nobody waits for a client that is not let in.
            drop(connection.write(b"-ERR max number of clients reached\r\n"));
            continue;
        }
        // A socket that is gone already fails here; reading it tells.
        drop(connection.set_nodelay(true));
        let keepalive = state.config.number("tcp-keepalive");
        let keepalive = (keepalive >= 3).then(|| Duration::from_secs(keepalive));
        drop(connection.set_keepalive(keepalive));
        add_client(state, connection, now)?;
    }
}

/// Makes a client of a connection; its id.
///
/// # Errors
/// Of the poller.
pub(crate) fn add_client(
    state: &mut ServerState,
    connection: Box<dyn Connection>,
    now: Duration,
) -> Result<u64> {
    // Tokens below are those of the listeners.
    let id = state.net.next_id.max(state.net.acceptors.len() as u64);
    state.net.next_id = id + 1;
    let is_authenticated = state.config.get("requirepass").is_empty();
    let local = connection.local_address();
    let addresses = [Ok(connection.peer_address().clone()), local]
        .map(|address| address.map_or_else(|_| String::new(), |it| it.to_string()));
    let session = Session::new(id, is_authenticated, addresses, state.now_seconds);
    let limits = RequestLimits {
        bulk_bytes_max: state.limits.string_bytes_max,
        authenticated: is_authenticated,
    };
    let io = Io::new(connection, &*state.net.poller, Token(id), limits, now)?;
    state.net.ios.insert(id, io);
    state.clients.add(session);
    Ok(id)
}

/// Reads what a client has sent, a bounded part of it.
pub(crate) fn read(state: &mut ServerState, id: u64, now: Duration) {
    let Some(io) = state.net.ios.get_mut(&id) else {
        return;
    };
    match io.read(now) {
        Heard::Bytes(bytes) => {
            state.counters.bytes_in += bytes as u64;
            state.counters.reads += 1;
            let most = state.config.number("client-query-buffer-limit");
            if io.pending_bytes() as u64 > most.max(1 << 20) {
                close(state, id);
                return;
            }
            state.net.runnable.insert(id);
        }
        Heard::Nothing => {}
        Heard::Gone => close(state, id),
    }
}

/// Forgets a client and its socket.
pub(crate) fn close(state: &mut ServerState, id: u64) {
    state.net.ios.remove(&id);
    state.net.runnable.remove(&id);
    let Some(mut session) = state.clients.remove(id) else {
        return;
    };
    end_multi(state, &mut session);
    unblock(state, &mut session);
    state.observer.monitors.remove(&id);
    state.paused.remove(&id);
    if let Some(tracking) = session.tracking.take() {
        state.tracker.end(id, &tracking);
    }
    for channel in &session.shard_channels {
        state.pubsub.unsubscribe(Subject::Shard, channel, id);
    }
    for channel in &session.channels {
        state.pubsub.unsubscribe(Subject::Channel, channel, id);
    }
    for pattern in &session.patterns {
        state.pubsub.unsubscribe(Subject::Pattern, pattern, id);
    }
}

/// Sends what a client is to get, as much as its socket takes, and closes it if it is to be.
pub(crate) fn flush(state: &mut ServerState, id: u64) {
    let (Some(io), Some(session)) = (state.net.ios.get_mut(&id), state.clients.get_mut(id)) else {
        return;
    };
    if session.is_killed {
        close(state, id);
        return;
    }
    if io.gate == Gate::Open && !session.out.is_empty() {
        match io.send(&mut session.out) {
            Ok(sent) => {
                state.counters.bytes_out += sent as u64;
                state.counters.writes += 1;
            }
            Err(_) => {
                close(state, id);
                return;
            }
        }
    }
    let left = session.out.len();
    let is_subscriber = session.subscriptions() > 0;
    let is_over = left as u64 > state.config.out_limit(is_subscriber);
    if (session.closes && left == 0) || is_over {
        close(state, id);
        return;
    }
    if io.may_run() && io.pending_bytes() > 0 && left <= OUT_BYTES_HIGH {
        // Commands that were read while it was held, or while it took no replies.
        state.net.runnable.insert(id);
    }
    if io
        .update_interest(&*state.net.poller, Token(id), left)
        .is_err()
    {
        close(state, id);
    }
}

/// Ends the wait of a client for keys.
pub(crate) fn unblock(state: &mut ServerState, session: &mut Session) -> Option<Blocked> {
    let blocked = session.blocked.take()?;
    state
        .waiting
        .remove(blocked.db, &blocked.wait.keys, session.id);
    if let Some(until) = blocked.until {
        state.net.timers.remove(&(until, session.id));
    }
    if let Some(io) = state.net.ios.get_mut(&session.id) {
        io.hold = Hold::None;
        state.net.runnable.insert(session.id);
    }
    Some(blocked)
}
