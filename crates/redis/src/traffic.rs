//! Clients come, send, are answered and go.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use drumlin::Result;
use drumlin_fs::net::{Address, Connection, NetErrorKind, Token};
use drumlin_resp::RequestLimits;
use drumlin_tls::Tls;

use crate::dispatch_multi::end_multi;
use crate::io::{Gate, HELD_BYTES_MAX, Heard, Hold, Io, OUT_BYTES_HIGH};
use crate::log::Level;
use crate::metrics::scrape;
use crate::net::Guest;
use crate::permit;
use crate::pubsub::Subject;
use crate::session::{Blocked, Session};
use crate::state::ServerState;

/// From a connection to its authentication, where one is needed.
const STRANGER_MAX: Duration = Duration::from_secs(10);
/// Bytes that who has not authenticated may leave unread.
const STRANGER_OUT_BYTES: usize = 1_024;
/// From a connection to the end of its handshake.
const GREETING_MAX: Duration = Duration::from_secs(10);
/// Steps of handshakes in a turn of the loop: one may take a millisecond, where a key is of RSA.
pub(crate) const GREETINGS_A_TURN: usize = 4;

/// Lets in who waits at a listener.
///
/// # Errors
/// Of the socket and of the poller.
pub(crate) fn accept(state: &mut ServerState, index: usize, now: Duration) -> Result<()> {
    let guest = state.net.doors.get(index).map(|door| door.guest);
    if guest == Some(Guest::Scraper) {
        return scrape::accept(state, index, now);
    }
    loop {
        let Some(door) = state.net.doors.get_mut(index) else {
            return Ok(());
        };
        let accepted = match door.acceptor.accept(&*state.net.poller, now) {
            Ok(accepted) => accepted,
            // A client that went before it was accepted.
            Err(error) if NetErrorKind::of(&error) == NetErrorKind::Disconnected => continue,
            Err(error) => return Err(error),
        };
        let Some(connection) = accepted else {
            return Ok(());
        };
        let_in(state, connection, guest == Some(Guest::Secure), now)?;
    }
}

/// Makes a client of who was accepted, if there is room.
fn let_in(
    state: &mut ServerState,
    mut connection: Box<dyn Connection>,
    is_secure: bool,
    now: Duration,
) -> Result<()> {
    state.counters.connections += 1;
    if let Some(reason) = refusal(state, connection.peer_address()) {
        state.counters.rejected += 1;
        tell(
            state,
            "refused",
            reason.split('.').next().unwrap_or(reason),
            connection.peer_address(),
        );
        if !is_secure {
            // As much as the socket takes: nobody waits for a client that is not let in.
            drop(connection.write(format!("-{reason}\r\n").as_bytes()));
        }
        return Ok(());
    }
    let mut tls = None;
    if is_secure {
        let session = state.tls.as_ref().map(|it| Tls::new(Arc::clone(it)));
        let Some(Ok(session)) = session else {
            return Ok(());
        };
        tls = Some(Box::new(session));
    }
    // A socket that is gone already fails here; reading it tells.
    drop(connection.set_nodelay(true));
    let keepalive = state.config.number("tcp-keepalive");
    let keepalive = (keepalive >= 3).then(|| Duration::from_secs(keepalive));
    drop(connection.set_keepalive(keepalive));
    let id = add_client(state, connection, now)?;
    if let Some(io) = state.net.ios.get_mut(&id)
        && is_secure
    {
        io.tls = tls;
        state.net.greetings.push_back((now + GREETING_MAX, id));
    }
    Ok(())
}

/// Tells the log of a client that is not served.
fn tell(state: &mut ServerState, event: &'static str, reason: &str, address: &dyn Display) {
    let fields = [
        ("reason", reason.to_owned()),
        ("address", address.to_string()),
    ];
    let message = "a client is not served";
    state
        .journal
        .tell_once(Level::Notice, event, message, &fields);
}

/// Why a client from this address is not let in.
fn refusal(state: &ServerState, from: &Address) -> Option<&'static str> {
    let is_full = state.clients.len() as u64 >= state.config.number("maxclients");
    let is_protected = state.config.get("protected-mode") == "yes";
    match () {
        () if is_full => Some("ERR max number of clients reached"),
        () if is_protected && state.users.default_needs_no_password() && !is_local(from) => {
            Some(PROTECTED)
        }
        () => None,
    }
}

/// What is said to clients from elsewhere while nobody needs a password.
const PROTECTED: &str = "DENIED Redis is running in protected mode because protected mode is enabled and no password is set for \
     the default user. In this mode connections are only accepted from the loopback interface. If \
     you want to connect from external computers to Redis you may adopt one of the following \
     solutions: 1) Just disable protected mode sending the command 'CONFIG SET protected-mode no' \
     from the loopback interface by connecting to Redis from the same host the server is running, \
     however MAKE SURE Redis is not publicly accessible from internet if you do so. Use CONFIG \
     REWRITE to make this change permanent. 2) Alternatively you can just disable the protected \
     mode by editing the Redis configuration file, and setting the protected mode option to 'no', \
     and then restarting the server. 3) If you started the server manually just for testing, \
     restart it with the '--protected-mode no' option. 4) Setup a an authentication password for \
     the default user. NOTE: You only need to do one of the above things in order for the server to \
     start accepting connections from the outside.";

/// Whether it is this machine's own, as Redis counts them.
fn is_local(address: &Address) -> bool {
    match address {
        Address::Tcp(address) => {
            let ip = address.ip();
            ip == IpAddr::from(Ipv4Addr::LOCALHOST) || ip == IpAddr::from(Ipv6Addr::LOCALHOST)
        }
        Address::Unix(_) | Address::Unnamed => true,
    }
}

/// A name for each end of a connection. Ends at a socket with a path have that one's.
fn names(connection: &dyn Connection) -> [String; 2] {
    let local = connection.local_address();
    if let Ok(Address::Unix(path)) = &local {
        let name = format!("{}:0", path.display());
        return [name.clone(), name];
    }
    let local = local.map_or_else(|_| String::new(), |it| it.to_string());
    [connection.peer_address().to_string(), local]
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
    let id = state.net.take_id();
    let is_authenticated = state.users.are_open();
    let addresses = names(&*connection);
    let session = Session::new(id, is_authenticated, addresses, state.now_seconds);
    if !is_authenticated {
        state.net.strangers.push_back((now + STRANGER_MAX, id));
    }
    let limits = RequestLimits {
        bulk_bytes_max: state.limits.string_bytes_max,
        authenticated: is_authenticated,
    };
    let mut io = Io::new(connection, &*state.net.poller, Token(id), limits, now)?;
    io.count(&mut state.net.crowd);
    state.net.ios.insert(id, io);
    state.clients.add(session);
    Ok(id)
}

/// Reads what a client has sent, a bounded part of it.
pub(crate) fn read(state: &mut ServerState, id: u64, now: Duration) {
    let Some(io) = state.net.ios.get_mut(&id).filter(|io| !io.has_ended) else {
        return;
    };
    if io.pending_bytes() >= HELD_BYTES_MAX && state.net.runnable.contains(id) {
        // It sends faster than its commands run. The rest waits in its socket.
        return;
    }
    if io.is_greeting() {
        if state.net.greetings_left == 0 {
            // It stays ready, and has its turn.
            return;
        }
        state.net.greetings_left -= 1;
    }
    let heard = io.read(now);
    if io.has_unsent() {
        // Of a handshake, mostly.
        state.net.participants.push(id);
    }
    if io.is_over() && heard != Heard::Gone {
        state.net.over.push(id);
    }
    match heard {
        Heard::Bytes(bytes) => {
            state.counters.bytes_in += bytes as u64;
            state.counters.reads += 1;
            io.count(&mut state.net.crowd);
            if io.pending_bytes() as u64 > state.bounds.query_bytes {
                let address = state.clients.get(id).map(|it| it.address.clone());
                let address = address.unwrap_or_default();
                tell(state, "input", "it sends more than is kept", &address);
                close(state, id);
                return;
            }
            state.net.runnable.insert(id);
        }
        Heard::Nothing => {}
        Heard::Gone => {
            state.net.runnable.insert(id);
            state.net.participants.push(id);
            state.net.over.push(id);
        }
    }
}

/// Ends clients that have been silent for longer than `timeout`.
pub(crate) fn end_idle(state: &mut ServerState, now: Duration) {
    let idle = Duration::from_secs(state.config.number("timeout"));
    if idle.is_zero() {
        return;
    }
    let silent = |io: &Io| io.hold != Hold::Blocked && now.saturating_sub(io.heard) > idle;
    // Those of replication have a time of their own.
    let is_linked = |id: u64| {
        let session = state.clients.get(id);
        session.is_some_and(|it| it.is_primary || it.is_replica)
    };
    let ios = state.net.ios.iter();
    let gone: Vec<u64> = ios
        .filter(|(id, io)| silent(io) && !is_linked(**id))
        .map(|(id, _)| *id)
        .collect();
    gone.into_iter().for_each(|id| close(state, id));
}

/// Ends clients for whom more than the soft limit has waited for too long.
pub(crate) fn end_behind(state: &mut ServerState, now: Duration) {
    let mut gone = Vec::new();
    for (id, since) in &mut state.net.behind {
        let is_subscriber = |it: &Session| it.subscriptions() > 0;
        let limits = match state.clients.get(*id).is_some_and(is_subscriber) {
            true => state.bounds.subscriber,
            false => state.bounds.normal,
        };
        let since = *since.get_or_insert(now);
        if now.saturating_sub(since) > limits.soft_time {
            gone.push(*id);
        }
    }
    gone.into_iter().for_each(|id| close(state, id));
}

/// Ends handshakes whose time is over.
pub(crate) fn end_greetings(state: &mut ServerState, now: Duration) {
    while let Some((until, id)) = state.net.greetings.front().copied() {
        if until > now {
            break;
        }
        state.net.greetings.pop_front();
        if state.net.ios.get(&id).is_some_and(Io::is_greeting) {
            close(state, id);
        }
    }
}

/// Ends those who had to authenticate and have not done so in time.
pub(crate) fn end_strangers(state: &mut ServerState, now: Duration) {
    while let Some((until, id)) = state.net.strangers.front().copied() {
        if until > now {
            break;
        }
        state.net.strangers.pop_front();
        let session = state.clients.get(id);
        let needs_auth = |session: &&Session| permit::needs_auth(state, session);
        if let Some(session) = session.filter(needs_auth) {
            let address = session.address.clone();
            tell(
                state,
                "stranger",
                "it did not authenticate in time",
                &address,
            );
            close(state, id);
        }
    }
}

/// Ends those who send nothing more, once what they sent before has run and its replies may go; who waits for a key or for
/// the end of a pause waits no more.
pub(crate) fn end_over(state: &mut ServerState) {
    let over = std::mem::take(&mut state.net.over);
    let is_left = |io: &Io| io.has_commands() || io.gate != Gate::Open;
    let goes_on = |io: &Io| !matches!(io.hold, Hold::Blocked | Hold::Paused) && is_left(io);
    let (later, now): (Vec<u64>, Vec<u64>) = over
        .into_iter()
        .partition(|id| state.net.ios.get(id).is_some_and(goes_on));
    state.net.over = later;
    now.into_iter().for_each(|id| close(state, id));
}

/// Forgets a client and its socket.
pub(crate) fn close(state: &mut ServerState, id: u64) {
    if let Some(mut io) = state.net.ios.remove(&id) {
        io.say_goodbye();
        state.net.crowd.count(&mut io.counted, 0);
    }
    state.net.runnable.remove(id);
    state.net.behind.remove(&id);
    let Some(mut session) = state.clients.remove(id) else {
        return;
    };
    end_multi(state, &mut session);
    unblock(state, &mut session);
    state.observer.monitors.remove(&id);
    state.paused.remove(&id);
    state.replicas.forget(id);
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

/// Forgets a command that was run. One of the primary goes to those who follow this server.
pub(crate) fn consume(state: &mut ServerState, session: &Session, io: &mut Io, bytes: usize) {
    if session.is_primary {
        let run = io.received().get(..bytes).unwrap_or(&[]);
        state.replicas.feed(run, session.multi.is_some());
    }
    io.consume(bytes);
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
    if (io.gate == Gate::Open && !session.out.is_empty()) || io.has_unsent() {
        match io.send(&mut session.out) {
            Ok(sent) => {
                state.counters.bytes_out += sent as u64;
                state.counters.writes += 1;
            }
            Err(_) => {
                // What it has sent runs all the same.
                session.out.clear();
                io.has_ended = true;
                state.net.over.push(id);
            }
        }
    }
    io.count_with(&mut state.net.crowd, &session.out);
    let left = session.out.len();
    let limits = match session.subscriptions() > 0 {
        true => state.bounds.subscriber,
        false => state.bounds.normal,
    };
    if left as u64 > limits.soft_bytes {
        state.net.behind.entry(id).or_default();
    } else if !state.net.behind.is_empty() {
        state.net.behind.remove(&id);
    }
    let is_stranger = !session.is_authenticated && !state.users.are_open();
    let is_over = left as u64 > limits.hard_bytes || is_stranger && left > STRANGER_OUT_BYTES;
    if is_over {
        let address = session.address.clone();
        tell(state, "output", "it reads too slowly", &address);
        close(state, id);
        return;
    }
    if session.closes && left == 0 && !io.has_unsent() {
        close(state, id);
        return;
    }
    if io.may_run() && io.has_commands() && left <= OUT_BYTES_HIGH {
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
    state.replicas.waiters.remove(&session.id);
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

#[cfg(test)]
mod tests {
    use drumlin_fs::net::Address;

    use super::is_local;

    /// Goal: protected mode keeps out whom Redis's does. Method: addresses of this machine and of others.
    #[test]
    fn only_the_loopbacks_own_addresses_are_local() {
        let tcp = |text: &str| Address::Tcp(text.parse().expect("an address"));
        for address in ["127.0.0.1:1", "[::1]:1"] {
            assert!(is_local(&tcp(address)), "{address}");
        }
        for address in [
            "127.0.0.2:1",
            "10.0.0.1:1",
            "[::2]:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(!is_local(&tcp(address)), "{address}");
        }
        assert!(is_local(&Address::Unix("/a".into())) && is_local(&Address::Unnamed));
    }
}
