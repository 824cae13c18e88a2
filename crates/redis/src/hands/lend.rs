//! The loop's side: whom it lends to hands, and when it calls them home.

use drumlin::Result;
use drumlin_fs::net::Token;
use drumlin_resp::Args;

use super::lent::Lent;
use super::post::Terms;
use super::quick::READS;
use super::tally::Tally;
use crate::acl::UserId;
use crate::catalog;
use crate::config::Fsync;
use crate::facts::Facts;
use crate::io::{Gate, Hold, Io};
use crate::observe::secrets;
use crate::permit;
use crate::session::{Session, Silence};
use crate::state::ServerState;

/// Commands in a turn from which on a client counts as one that sends many at a time.
const PIPELINE_MIN: usize = 4;
/// So many such clients in one turn show that they wait for the loop, and not it for them.
const CLIENTS_MIN: usize = 2;
/// The most turns in which a client has to have sent nothing but reads before it is lent again.
const PATIENCE_MAX: u32 = 1 << 10;

/// Commands besides those of operators that tell of other clients or of what was counted, or that change what keys are.
const LOOK_AROUND: [&str; 4] = ["info", "memory|doctor", "memory|stats", "swapdb"];

/// Whether it is a command that hands run, by its name.
pub(crate) fn is_read(name: &str) -> bool {
    READS.contains(&name)
}

/// Notes that the loop ran so many commands of a client in this turn, and whether hands could have run them all.
pub(crate) fn note(state: &mut ServerState, (id, io): (u64, &mut Io), ran: usize, are_reads: bool) {
    if state.hands.count() == 0 || ran < PIPELINE_MIN {
        return;
    }
    io.calm = if are_reads {
        io.calm.saturating_add(1)
    } else {
        0
    };
    if io.calm > io.patience {
        state.net.readers.push(id);
    }
}

/// Lends those to hands who sent nothing but reads in this turn and in those before, if the loop is what they wait for. At the end
/// of a turn; `is_written` if no changes wait for the engine.
pub(crate) fn lend(state: &mut ServerState, is_written: bool) {
    let readers = std::mem::take(&mut state.net.readers);
    if readers.len() < CLIENTS_MIN || !is_written || !may_lend(state) {
        return;
    }
    let lent: Vec<Lent> = readers
        .into_iter()
        .filter_map(|id| let_go(state, id))
        .collect();
    let terms = Terms {
        limits: state.limits,
        closer_micros: state.observer.closer_micros(),
    };
    state.counters.lent += lent.len() as u64;
    state.hands.lend(lent, terms);
}

/// Whether a read is at present nothing but that, whoever sends it.
fn may_lend(state: &ServerState) -> bool {
    let is_watched = !state.observer.monitors.is_empty() || !state.notify.is_empty();
    let is_held = state.pause.is_some() || state.failover.is_some() || state.shutdown.is_some();
    let is_plain = !state.replication.is_replica() && !state.is_cluster && !state.bounds.has_none;
    // Under it a reply waits until what it tells of is durable.
    is_plain && !is_watched && !is_held && state.config.fsync() != Fsync::Always
}

fn let_go(state: &mut ServerState, id: u64) -> Option<Lent> {
    let (io, session) = (state.net.ios.get(&id)?, state.clients.get(id)?);
    let is_open = !permit::needs_auth(state, session);
    if !is_open || !is_idle(io) || !is_plain(session) || !reads_all(state, session.user) {
        return None;
    }
    let (db, protocol) = (session.db, session.protocol);
    let mut io = state.net.ios.remove(&id)?;
    if io.leave(&*state.net.poller).is_err() {
        state.net.ios.insert(id, io);
        return None;
    }
    state.net.runnable.remove(id);
    Some(Lent {
        id,
        io,
        out: Vec::new(),
        db,
        protocol,
        last: None,
        wants_loop: false,
    })
}

/// Whether nothing is under way at its socket.
fn is_idle(io: &Io) -> bool {
    let is_free = io.hold == Hold::None && io.gate == Gate::Open && io.round_replies == 0;
    is_free && !io.has_ended && io.tls.is_none()
}

/// Whether its reads are answered, at once, and do nothing else.
fn is_plain(session: &Session) -> bool {
    let is_in_multi = session.multi.is_some() || !session.watched.is_empty();
    let waits = session.blocked.is_some() || session.is_paused || !session.out.is_empty();
    let ends = session.closes || session.is_killed;
    let is_linked = session.is_primary || session.is_replica || session.is_monitor;
    let is_told = session.subscriptions() > 0 || session.tracking.is_some();
    !is_in_multi && !waits && !ends && !is_linked && !is_told && session.silence == Silence::None
}

/// Whether the user may read every key by every command of hands.
fn reads_all(state: &ServerState, user: Option<UserId>) -> bool {
    let user = user.and_then(|id| state.users.get(id));
    user.is_some_and(|user| {
        let mut entries = READS
            .iter()
            .filter_map(|name| catalog::find(name.as_bytes()));
        entries.all(|entry| user.may_read_all_by(entry))
    })
}

/// Calls all home before a command that looks around.
pub(crate) fn before(state: &mut ServerState, facts: &Facts, args: Args<'_>) {
    if !state.hands.has_any() {
        return;
    }
    let looks = |name: &str, is_admin: bool| {
        // Replicas tell of their places every second.
        is_admin && name != "replconf" || LOOK_AROUND.contains(&name)
    };
    let entry = facts.resolve(args);
    let looks = entry.is_ok_and(|entry| looks(entry.name, entry.is("admin")));
    if looks && !drumlin_base::bug!("redis-hands-are-not-called") {
        call_home(state);
    }
}

/// Calls all connections home. Waits for hands to end what they are at: a connection each.
pub(crate) fn call_home(state: &mut ServerState) {
    if state.hands.has_any() {
        let home = state.hands.call_home();
        welcome(state, home);
    }
    collect(state);
}

/// The same, if this client's is among them.
pub(crate) fn call_one(state: &mut ServerState, id: u64) {
    if state.clients.get(id).is_some() && !state.net.ios.contains_key(&id) {
        call_home(state);
    }
}

/// Takes back the connections that have come home.
///
/// # Errors
/// When a hand has ended by itself.
pub(crate) fn hear(state: &mut ServerState) -> Result<()> {
    if state.hands.has_any() {
        let home = state.hands.take_home()?;
        if !home.is_empty() {
            welcome(state, home);
            collect(state);
        }
    }
    Ok(())
}

fn welcome(state: &mut ServerState, home: Vec<Lent>) {
    for lent in home {
        take_back(state, lent);
    }
}

fn take_back(state: &mut ServerState, lent: Lent) {
    let Lent {
        id,
        mut io,
        out,
        last,
        wants_loop,
        ..
    } = lent;
    let Some(session) = state.clients.get_mut(id) else {
        state.net.crowd.count(&mut io.counted, 0);
        return;
    };
    if let Some((name, seconds)) = last {
        (session.last_command, session.last_seconds) = (name, seconds);
    }
    // What others sent to it meanwhile comes behind.
    session.out.splice(..0, out);
    io.calm = 0;
    if wants_loop {
        io.patience = (io.patience * 2).min(PATIENCE_MAX);
    }
    if drumlin_base::bug!("redis-hand-loses-what-was-read") {
        io.consume(io.pending_bytes());
    }
    if io.enter(&*state.net.poller, Token(id)).is_err() {
        io.has_ended = true;
    }
    io.count_with(&mut state.net.crowd, &session.out);
    if io.has_ended {
        state.net.over.push(id);
    }
    if io.has_ended || io.has_commands() {
        state.net.runnable.insert(id);
    }
    state.net.ios.insert(id, io);
    state.net.participants.push(id);
}

/// Takes over what hands have counted.
pub(crate) fn collect(state: &mut ServerState) {
    let tallies: Vec<Tally> = state.hands.take_tallies().collect();
    for tally in tallies {
        take_over(state, tally);
    }
}

fn take_over(state: &mut ServerState, tally: Tally) {
    let counters = &mut state.counters;
    counters.commands_of_hands += tally.commands;
    counters.looked_up_of_hands += tally.looked_up;
    counters.bytes_in += tally.bytes_in;
    counters.bytes_out += tally.bytes_out;
    counters.reads += tally.reads;
    counters.writes += tally.writes;
    counters.reads_of_hands += tally.reads;
    counters.writes_of_hands += tally.writes;
    for (index, calls) in &tally.calls {
        state
            .observer
            .stats
            .ran_often(usize::from(*index), &calls.times);
    }
    for slow in tally.slow {
        let Some(session) = state.clients.get(slow.client) else {
            continue;
        };
        let (facts, args) = (&slow.kept.facts, slow.kept.args.args());
        let shown = secrets::shown(facts.name, args);
        let who = (session.address.as_str(), session.name.as_slice());
        state
            .observer
            .took(facts, &shown, (slow.seconds, slow.micros), who);
    }
}
