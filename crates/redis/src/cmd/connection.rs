//! Commands of the connection.

use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::{Protocol, integer};

use crate::acl::{Context, Reason, UserId};
use crate::call::{Call, SYNTAX};
use crate::command::{Command, Flags, NO_KEYS};
use crate::dispatch_multi::end_multi;
use crate::permit;
use crate::pubsub::Subject;
use crate::session::Silence;

const ALWAYS: Flags = Flags::NOSCRIPT
    .and(Flags::LOADING)
    .and(Flags::STALE)
    .and(Flags::FAST);
const ANYBODY: Flags = ALWAYS.and(Flags::NO_AUTH);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("auth", -2, ANYBODY, NO_KEYS, auth),
    Command::new("echo", 2, Flags::FAST, NO_KEYS, echo),
    Command::new("hello", -1, ANYBODY, NO_KEYS, hello),
    Command::new("ping", -1, Flags::FAST, NO_KEYS, ping),
    Command::new("quit", -1, ANYBODY, NO_KEYS, quit),
    Command::new("reset", 1, ANYBODY, NO_KEYS, reset),
    Command::new(
        "select",
        2,
        Flags::LOADING.and(Flags::STALE).and(Flags::FAST),
        NO_KEYS,
        select,
    ),
];

fn ping(call: &mut Call<'_, '_>) -> Outcome<()> {
    if call.len() > 2 {
        return Err(call.wrong_arity("ping"));
    }
    if call.session.is_subscriber() {
        call.reply.array(2);
        call.reply.bulk(b"pong");
        call.reply.bulk(call.arg(1));
    } else if call.len() == 2 {
        call.reply.bulk(call.arg(1));
    } else {
        call.reply.simple(b"PONG");
    }
    Ok(())
}

fn echo(call: &mut Call<'_, '_>) -> Outcome<()> {
    call.reply.bulk(call.arg(1));
    Ok(())
}

fn quit(call: &mut Call<'_, '_>) -> Outcome<()> {
    call.session.closes = true;
    call.reply.ok();
    Ok(())
}

fn select(call: &mut Call<'_, '_>) -> Outcome<()> {
    let db = super::generic::database(call.arg(1))?;
    call.session.db = db;
    call.keys.select(db);
    call.reply.ok();
    Ok(())
}

const WRONG_PASSWORD: Failure =
    Failure::refused("WRONGPASS invalid username-password pair or user is disabled.");

/// Makes the client the user who says this password; a try in vain is logged.
fn authenticate(call: &mut Call<'_, '_>, name: &[u8], password: &[u8]) -> Outcome<()> {
    let command = call.arg(0).to_vec();
    let elsewhere = Failure::refused("ERR clients authenticate on the server's own thread");
    let server = call.server.as_deref_mut().ok_or(elsewhere)?;
    let session = &mut *call.session;
    let Some(user) = server.users.authenticate(name, password) else {
        // Nothing waits within EXEC.
        let context = match call.may_wait {
            true => Context::TopLevel,
            false => Context::Multi,
        };
        let reason = (Reason::Auth, context);
        permit::note(server, session, reason, &command, name.to_vec());
        return Err(WRONG_PASSWORD);
    };
    session.user = Some(user);
    session.is_authenticated = true;
    Ok(())
}

fn auth(call: &mut Call<'_, '_>) -> Outcome<()> {
    match call.len() {
        2 if call.server()?.users.default_needs_no_password() => {
            return Err(Failure::refused(
                "ERR AUTH <password> called without any password configured for the default \
                 user. Are you sure your configuration is correct?",
            ));
        }
        2 => authenticate(call, b"default", call.arg(1))?,
        3 => authenticate(call, call.arg(1), call.arg(2))?,
        _ => return Err(SYNTAX),
    }
    call.reply.ok();
    Ok(())
}

fn hello(call: &mut Call<'_, '_>) -> Outcome<()> {
    let mut protocol = call.session.protocol;
    if call.len() > 1 {
        protocol = match integer(call.arg(1)) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Err(Failure::refused("NOPROTO unsupported protocol version")),
            None => {
                return Err(Failure::refused(
                    "ERR Protocol version is not an integer or out of range",
                ));
            }
        };
    }
    let mut at = 2;
    let mut name = None;
    while at < call.len() {
        let left = call.len() - at - 1;
        if call.is(at, "auth") && left >= 2 {
            authenticate(call, call.arg(at + 1), call.arg(at + 2))?;
            at += 3;
        } else if call.is(at, "setname") && left >= 1 {
            name = Some(client_name(call.arg(at + 1))?);
            at += 2;
        } else {
            let option = String::from_utf8_lossy(call.arg(at)).into_owned();
            return Err(Failure::because(format!(
                "ERR Syntax error in HELLO option '{option}'"
            )));
        }
    }
    if !call.session.is_authenticated {
        return Err(Failure::refused(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO AUTH <user> <pass> option can be used to authenticate the client and select the \
             RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        call.session.name = name;
    }
    call.session.protocol = protocol;
    call.reply.set_protocol(protocol);
    call.reply.map(7);
    let id = call.session.id;
    let texts: [(&str, &str); 2] = [
        ("server", "redis"),
        ("version", super::server::REDIS_VERSION),
    ];
    for (field, value) in texts {
        call.reply.bulk(field.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
    call.reply.bulk(b"proto");
    call.reply
        .integer(if protocol == Protocol::Resp3 { 3 } else { 2 });
    call.reply.bulk(b"id");
    call.reply.integer(id as i64);
    let is_replica = call
        .server
        .as_ref()
        .is_some_and(|it| it.replication.is_replica());
    let role = if is_replica { "replica" } else { "master" };
    let server = call.server.as_ref();
    let is_cluster = server.is_some_and(|it| it.is_cluster);
    let mode = if is_cluster { "cluster" } else { "standalone" };
    for (field, value) in [("mode", mode), ("role", role)] {
        call.reply.bulk(field.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
    call.reply.bulk(b"modules");
    call.reply.array(0);
    Ok(())
}

fn reset(call: &mut Call<'_, '_>) -> Outcome<()> {
    let elsewhere = Failure::refused("ERR connections are reset on the server's own thread");
    let server = call.server.as_deref_mut().ok_or(elsewhere)?;
    let session = &mut *call.session;
    end_multi(server, session);
    for channel in std::mem::take(&mut session.channels) {
        server
            .pubsub
            .unsubscribe(Subject::Channel, &channel, session.id);
    }
    for pattern in std::mem::take(&mut session.patterns) {
        server
            .pubsub
            .unsubscribe(Subject::Pattern, &pattern, session.id);
    }
    session.user = Some(UserId::DEFAULT);
    session.is_authenticated = server.users.are_open();
    session.db = 0;
    session.name.clear();
    session.protocol = Protocol::Resp2;
    session.silence = Silence::None;
    session.no_evict = false;
    for channel in std::mem::take(&mut session.shard_channels) {
        server
            .pubsub
            .unsubscribe(Subject::Shard, &channel, session.id);
    }
    if let Some(tracking) = session.tracking.take() {
        server.tracker.end(session.id, &tracking);
    }
    session.is_monitor = false;
    server.observer.monitors.remove(&session.id);
    call.reply.set_protocol(Protocol::Resp2);
    call.reply.simple(b"RESET");
    Ok(())
}

pub(super) fn client_name(name: &[u8]) -> Outcome<Vec<u8>> {
    match name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        true => Ok(name.to_vec()),
        false => Err(Failure::refused(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        )),
    }
}
