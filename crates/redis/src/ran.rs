//! After a command: it is counted, and told to those who look on.

use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::Args;

use crate::cmd::command::keys_of;
use crate::facts::{Facts, Flags};
use crate::observe::secrets;
use crate::session::Session;
use crate::state::ServerState;
use crate::wait::Wait;

/// The address of a client whose script runs.
const SCRIPT: &str = "lua";

/// Subcommands of CLIENT that monitors are not told.
const CLIENT_ADMIN: [&[u8]; 5] = [b"kill", b"list", b"no-evict", b"pause", b"unpause"];

/// Notes that a command has run, or that it waits for keys.
pub(crate) fn ran(
    server: &mut ServerState,
    session: &mut Session,
    facts: &Facts,
    args: Args<'_>,
    outcome: &Outcome<Option<Wait>>,
) {
    let failed = match outcome {
        // It runs again.
        Err(Failure::Cold) => return,
        Ok(Some(_)) => {
            server.counters.counted.commands += 1;
            monitor(server, session, facts, args);
            return;
        }
        Ok(None) => false,
        Err(failure) => {
            error(server, &failure.to_string());
            true
        }
    };
    server.counters.counted.commands += 1;
    let micros = server.observer.lap();
    ended(server, session, facts, args, (micros, failed));
    if session.tracking.is_some() {
        remember(server, session, facts, args);
    }
    monitor(server, session, facts, args);
}

/// Remembers who has read which keys: for a script that has read any, those that were declared, as Redis does.
pub(crate) fn remember(
    server: &mut ServerState,
    session: &mut Session,
    facts: &Facts,
    args: Args<'_>,
) {
    let Some(tracking) = session.tracking.as_deref_mut() else {
        return;
    };
    if session.address == SCRIPT {
        tracking.has_read_in_script |= facts.flags.has(Flags::READONLY);
        return;
    }
    let in_script = std::mem::take(&mut tracking.has_read_in_script);
    let has_read = match facts.flags.has(Flags::SCRIPT) {
        true => in_script,
        false => facts.flags.has(Flags::READONLY),
    };
    if has_read && tracking.remembers() {
        for key in keys_of(facts, args) {
            server.tracker.has_read(session.id, key);
        }
    }
    if facts.name != "client" && session.multi.is_none() {
        tracking.is_caching = false;
    }
}

/// Notes that a command has run to its end in so many microseconds, and whether it failed.
pub(crate) fn ended(
    server: &mut ServerState,
    session: &Session,
    facts: &Facts,
    args: Args<'_>,
    (micros, failed): (u64, bool),
) {
    server.observer.stats.ran(facts, args, micros, failed);
    if server.observer.looks_closer(micros) {
        let shown = secrets::shown(facts.name, args);
        // The log tells of no client for what a script called.
        let who = match session.address == SCRIPT {
            true => ("?:0", &[][..]),
            false => (session.address.as_str(), session.name.as_slice()),
        };
        let when = (server.now_seconds, micros);
        server.observer.took(facts, &shown, when, who);
    }
}

/// Notes that a command was refused before it ran.
pub(crate) fn refused(
    server: &mut ServerState,
    command: Option<Facts>,
    args: Args<'_>,
    text: &str,
) {
    if let Some(facts) = command {
        server.observer.stats.refused(&facts, args);
    }
    error(server, text);
}

/// Counts an error that a client is told.
pub(crate) fn error(server: &mut ServerState, text: &str) {
    server.counters.errors += 1;
    server.observer.stats.error(text);
}

/// Tells monitors of a command.
pub(crate) fn monitor(server: &mut ServerState, session: &Session, facts: &Facts, args: Args<'_>) {
    if server.observer.monitors.is_empty() || is_hidden(facts, args) {
        return;
    }
    let (seconds, micros) = (server.now_micros / 1_000_000, server.now_micros % 1_000_000);
    let (db, address) = (session.db, &session.address);
    let mut line = format!("{seconds}.{micros:06} [{db} {address}]").into_bytes();
    for arg in secrets::shown(facts.name, args) {
        line.extend_from_slice(b" \"");
        arg.iter().for_each(|byte| push_shown(&mut line, *byte));
        line.push(b'"');
    }
    for client in &server.observer.monitors {
        server.clients.send(*client, |out| out.simple(&line));
    }
}

fn is_hidden(facts: &Facts, args: Args<'_>) -> bool {
    let asked = args.get(1).unwrap_or_default().to_ascii_lowercase();
    match facts.name {
        // Told after the commands that it ran.
        "exec" => false,
        // Told before the commands that they run.
        _ if facts.flags.has(Flags::SCRIPT) => false,
        "client" => CLIENT_ADMIN.contains(&asked.as_slice()),
        _ => facts.flags.has(Flags::ADMIN) || facts.flags.has(Flags::SKIP_MONITOR),
    }
}

fn push_shown(line: &mut Vec<u8>, byte: u8) {
    match byte {
        b'\\' | b'"' => line.extend_from_slice(&[b'\\', byte]),
        b'\n' => line.extend_from_slice(b"\\n"),
        b'\r' => line.extend_from_slice(b"\\r"),
        b'\t' => line.extend_from_slice(b"\\t"),
        7 => line.extend_from_slice(b"\\a"),
        8 => line.extend_from_slice(b"\\b"),
        b' '..=b'~' => line.push(byte),
        _ => line.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
    }
}
