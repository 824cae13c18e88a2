//! The life of a server, as its log tells it: its beginning, long turns, failures, its end.

use std::path::Path;
use std::time::Duration;

use drumlin::Error;
use drumlin_redis_store::Failure;
use drumlin_resp::ReplyWriter;

use crate::accounts::replace_file;
use crate::log::{Level, watch};
use crate::state::{ServerState, Shutdown};

/// Turns of the loop that take so long are told.
const LONG_TURN: Duration = Duration::from_millis(100);
/// Names of the configuration that ask for what the server does not do.
const WITHOUT_EFFECT: [(&str, &str); 3] = [
    ("daemonize", "no"),
    ("supervised", "no"),
    ("syslog-enabled", "no"),
];

/// It begins to serve.
pub(crate) fn began(state: &ServerState) {
    let doors = state.net.doors.iter();
    let addresses = doors.map(|door| door.acceptor.listener().local_address().to_string());
    let fields = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("dir", state.config.get("dir").to_owned()),
        ("addresses", addresses.collect::<Vec<_>>().join(",")),
    ];
    write_pidfile(state);
    let journal = &state.journal;
    journal.tell(
        Level::Notice,
        "start",
        "ready to accept connections",
        &fields,
    );
    for (name, plain) in WITHOUT_EFFECT {
        let value = state.config.get(name);
        if value != plain {
            let fields = [("name", name.to_owned()), ("value", value.to_owned())];
            let message = "the configuration asks for what this server does not do";
            journal.tell(Level::Warning, "no-effect", message, &fields);
        }
    }
    if state.config.get("protected-mode") == "no" && state.users.are_open() {
        let message = "nobody needs a password, and protected-mode is off";
        journal.tell(Level::Warning, "open", message, &[]);
    }
}

/// Writes the number of the process into `pidfile`, if there is to be one.
fn write_pidfile(state: &ServerState) {
    let path = state.config.get("pidfile");
    if path.is_empty() {
        return;
    }
    let text = format!("{}\n", std::process::id());
    let env = &state.observer.env;
    if let Err(error) = replace_file(env, Path::new(path), text.as_bytes()) {
        let fields = [("error", error.to_string())];
        let message = "the file of the process id was not written";
        state
            .journal
            .tell(Level::Warning, "pidfile", message, &fields);
    }
}

/// Counts a turn of the loop in which commands ran.
pub(crate) fn turned(state: &mut ServerState, took: Duration, ran: usize) {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    state.counters.round_commands.record(ran as u64);
    state.counters.round_micros.record(micros);
    if took >= LONG_TURN && state.journal.takes(Level::Notice) {
        let fields = [
            ("micros", micros.to_string()),
            ("commands", ran.to_string()),
        ];
        let message = "a turn of the loop took long";
        state
            .journal
            .tell_once(Level::Notice, "slow-turn", message, &fields);
    }
}

/// Something that was to be on disk is not.
pub(crate) fn failed(state: &mut ServerState, what: &str, error: &Error) {
    let fields = [("error", error.to_string())];
    state
        .journal
        .tell_once(Level::Warning, "disk", what, &fields);
}

/// Nothing of the round was written: whoever was told of a write, or may have read what others wrote, is told of the error instead.
pub(crate) fn fail_round(state: &mut ServerState, error: &Error) {
    failed(state, "a round was not written", error);
    let line = Failure::from(error.duplicate()).to_string();
    state.replicas.drop_pending();
    for id in &state.net.participants {
        let (Some(io), Some(session)) = (state.net.ios.get_mut(id), state.clients.get_mut(*id))
        else {
            continue;
        };
        if io.round_wrote && session.is_primary {
            // Its changes are to come again.
            session.is_killed = true;
            state.replication.forget_place();
            continue;
        }
        let is_told =
            io.round_wrote || io.round_saw && !drumlin_base::bug!("redis-unwritten-change-read");
        if is_told {
            session.out.truncate(io.round_from);
            let out = std::mem::take(&mut session.out);
            let mut reply = ReplyWriter::append_to(out, session.protocol);
            (0..io.round_replies).for_each(|_| reply.error(line.as_bytes()));
            session.out = reply.take();
        }
    }
}

/// It ends.
pub(crate) fn ends(state: &mut ServerState) {
    watch::look(state);
    let reason = match state.shutdown {
        Some(Shutdown::Save) => "SHUTDOWN",
        Some(Shutdown::NoSave) => "SHUTDOWN NOSAVE",
        None => "it was asked to",
    };
    let fields = [("reason", reason.to_owned())];
    let journal = &state.journal;
    journal.tell(Level::Warning, "stop", "the server ends", &fields);
    let path = state.config.get("pidfile");
    if !path.is_empty()
        && let Err(error) = state.observer.env.files.remove(Path::new(path))
    {
        let fields = [("error", error.to_string())];
        let message = "the file of the process id was not removed";
        journal.tell(Level::Warning, "pidfile", message, &fields);
    }
}
