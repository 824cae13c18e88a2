//! Commands of the connection.

use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::{Protocol, integer};

use crate::call::{Call, NOT_AN_INTEGER, SYNTAX};
use crate::command::{Command, Flags, NO_KEYS};
use crate::dispatch_multi::end_multi;
use crate::pubsub::Subject;
use crate::session::{Session, Silence};

const ALWAYS: Flags = Flags::NOSCRIPT
    .and(Flags::LOADING)
    .and(Flags::STALE)
    .and(Flags::FAST);
const ANYBODY: Flags = ALWAYS.and(Flags::NO_AUTH);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("auth", -2, ANYBODY, NO_KEYS, auth),
    Command::new(
        "client",
        -2,
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        NO_KEYS,
        client,
    ),
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

/// Checks a password in a time that does not tell how much of it is right.
fn authenticate(call: &mut Call<'_, '_>, user: &[u8], password: &[u8]) -> Outcome<()> {
    let wanted = call.server()?.config.get("requirepass").as_bytes().to_vec();
    let same_length = wanted.len() == password.len();
    let differs = wanted
        .iter()
        .zip(password)
        .fold(0, |all, (one, other)| all | (one ^ other));
    let is_right = wanted.is_empty() || same_length && std::hint::black_box(differs) == 0;
    if !is_right || user != b"default" {
        return Err(WRONG_PASSWORD);
    }
    call.session.is_authenticated = true;
    Ok(())
}

fn auth(call: &mut Call<'_, '_>) -> Outcome<()> {
    match call.len() {
        2 if call.server()?.config.get("requirepass").is_empty() => {
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
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
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
    for (field, value) in [("mode", "standalone"), ("role", "master")] {
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
    session.is_authenticated = server.config.get("requirepass").is_empty();
    session.db = 0;
    session.name.clear();
    session.protocol = Protocol::Resp2;
    session.silence = Silence::None;
    session.no_evict = false;
    call.reply.set_protocol(Protocol::Resp2);
    call.reply.simple(b"RESET");
    Ok(())
}

fn client_name(name: &[u8]) -> Outcome<Vec<u8>> {
    match name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        true => Ok(name.to_vec()),
        false => Err(Failure::refused(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        )),
    }
}

fn client(call: &mut Call<'_, '_>) -> Outcome<()> {
    let name = call.arg(1).to_ascii_lowercase();
    match (name.as_slice(), call.len()) {
        (b"help", 2) => super::reply_help(call, HELP),
        (b"id", 2) => {
            call.reply.integer(call.session.id as i64);
            Ok(())
        }
        (b"getname", 2) => {
            match call.session.name.as_slice() {
                b"" => call.reply.null(),
                name => call.reply.bulk(name),
            }
            Ok(())
        }
        (b"setname", 3) => {
            call.session.name = client_name(call.arg(2))?;
            call.reply.ok();
            Ok(())
        }
        (b"info", 2) => {
            let now = call.server()?.now_seconds;
            let line = describe(call.session, now);
            call.reply.verbatim(*b"txt", line.as_bytes());
            Ok(())
        }
        (b"list", _) => list(call),
        (b"kill", 3..) => kill(call),
        (b"reply", 3) => silence(call),
        (b"no-evict", 3) => {
            call.session.no_evict = match () {
                () if call.is(2, "on") => true,
                () if call.is(2, "off") => false,
                () => return Err(SYNTAX),
            };
            call.reply.ok();
            Ok(())
        }
        (b"unblock", 3 | 4) => unblock(call),
        _ => Err(call.unknown_subcommand("CLIENT")),
    }
}

fn silence(call: &mut Call<'_, '_>) -> Outcome<()> {
    call.session.silence = match () {
        () if call.is(2, "on") => Silence::None,
        () if call.is(2, "off") => Silence::Off,
        () if call.is(2, "skip") && call.session.silence == Silence::Off => Silence::Off,
        () if call.is(2, "skip") => Silence::AfterThis,
        () => return Err(SYNTAX),
    };
    if call.session.silence == Silence::None {
        call.reply.ok();
    }
    Ok(())
}

fn describe(session: &Session, now_seconds: u64) -> String {
    let mut flags = String::new();
    if session.blocked.is_some() {
        flags.push('b');
    }
    if session.multi.is_some() {
        flags.push('x');
    }
    if session.is_dirty {
        flags.push('d');
    }
    if session.subscriptions() > 0 {
        flags.push('P');
    }
    if session.no_evict {
        flags.push('e');
    }
    if flags.is_empty() {
        flags.push('N');
    }
    format!(
        "id={} addr={} laddr={} fd=-1 name={} age={} idle={} flags={flags} db={} sub={} psub={} \
         ssub=0 multi={} qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=1024 rbp=0 obl={} oll=0 \
         omem=0 tot-mem=0 events=r cmd={} user=default redir=-1 resp={}\n",
        session.id,
        session.address,
        session.local_address,
        String::from_utf8_lossy(&session.name),
        now_seconds.saturating_sub(session.created_seconds),
        now_seconds.saturating_sub(session.last_seconds),
        session.db,
        session.channels.len(),
        session.patterns.len(),
        session
            .multi
            .as_ref()
            .map_or(-1, |multi| multi.queue.len() as i64),
        session.out.len(),
        session.last_command,
        if session.protocol == Protocol::Resp3 {
            3
        } else {
            2
        },
    )
}

/// The class of a client, as `TYPE` names them.
fn class(session: &Session) -> &'static str {
    match session.subscriptions() > 0 {
        true => "pubsub",
        false => "normal",
    }
}

fn list(call: &mut Call<'_, '_>) -> Outcome<()> {
    let mut ids = None;
    let mut wanted_class = None;
    match call.len() {
        2 => {}
        4 if call.is(2, "type") => {
            let name = String::from_utf8_lossy(call.arg(3)).to_ascii_lowercase();
            if !["normal", "master", "replica", "slave", "pubsub"].contains(&name.as_str()) {
                let message = format!("ERR Unknown client type '{name}'");
                return Err(Failure::because(message));
            }
            wanted_class = Some(name);
        }
        4.. if call.is(2, "id") => {
            let invalid = Failure::refused("ERR Invalid client ID");
            let given = call.args.from(3);
            let numbers = given.iter().map(integer);
            ids = Some(numbers.collect::<Option<Vec<i64>>>().ok_or(invalid)?);
        }
        _ => return Err(SYNTAX),
    }
    let server = call.server.as_deref().ok_or(SYNTAX)?;
    let own = &*call.session;
    let mut all: Vec<&Session> = server.clients.others().chain([own]).collect();
    all.sort_by_key(|session| session.id);
    let wanted = |session: &&&Session| {
        ids.as_ref()
            .is_none_or(|ids| ids.contains(&(session.id as i64)))
            && wanted_class
                .as_ref()
                .is_none_or(|name| class(session) == name)
    };
    let lines: String = all
        .iter()
        .filter(wanted)
        .map(|session| describe(session, server.now_seconds))
        .collect();
    call.reply.verbatim(*b"txt", lines.as_bytes());
    Ok(())
}

/// The filters of CLIENT KILL.
#[derive(Clone, Debug, Default)]
struct KillFilter {
    id: Option<u64>,
    address: Option<String>,
    local_address: Option<String>,
    class: Option<String>,
    spares_own: bool,
}

fn kill(call: &mut Call<'_, '_>) -> Outcome<()> {
    let text = |at: usize| String::from_utf8_lossy(call.arg(at)).into_owned();
    let mut filter = KillFilter {
        spares_own: true,
        ..KillFilter::default()
    };
    let is_old = call.len() == 3;
    if is_old {
        filter.address = Some(text(2));
        filter.spares_own = false;
    } else if call.len().is_multiple_of(2) {
        for at in (2..call.len()).step_by(2) {
            match () {
                () if call.is(at, "id") => {
                    let id = integer(call.arg(at + 1)).and_then(|id| u64::try_from(id).ok());
                    let invalid = Failure::refused("ERR client-id should be greater than 0");
                    filter.id = Some(id.filter(|id| *id > 0).ok_or(invalid)?);
                }
                () if call.is(at, "addr") => filter.address = Some(text(at + 1)),
                () if call.is(at, "laddr") => filter.local_address = Some(text(at + 1)),
                () if call.is(at, "type") => filter.class = Some(text(at + 1)),
                () if call.is(at, "skipme") && call.is(at + 1, "yes") => filter.spares_own = true,
                () if call.is(at, "skipme") && call.is(at + 1, "no") => filter.spares_own = false,
                () => return Err(SYNTAX),
            }
        }
    } else {
        return Err(SYNTAX);
    }
    let hits = |session: &Session| {
        filter.id.is_none_or(|id| session.id == id)
            && filter
                .address
                .as_ref()
                .is_none_or(|it| session.address == *it)
            && filter
                .local_address
                .as_ref()
                .is_none_or(|it| session.local_address == *it)
            && filter.class.as_ref().is_none_or(|it| class(session) == it)
    };
    let mut killed = 0;
    if !filter.spares_own && hits(call.session) {
        call.session.closes = true;
        killed += 1;
    }
    let clients = &mut call.server()?.clients;
    let ids: Vec<u64> = clients
        .others()
        .filter(|session| hits(session))
        .map(|session| session.id)
        .collect();
    killed += ids.into_iter().filter(|id| clients.kill(*id)).count();
    match (is_old, killed) {
        (true, 0) => return Err(Failure::refused("ERR No such client")),
        (true, _) => call.reply.ok(),
        (false, _) => call.reply.integer(killed as i64),
    }
    Ok(())
}

fn unblock(call: &mut Call<'_, '_>) -> Outcome<()> {
    let with_error = match () {
        () if call.len() == 3 || call.is(3, "timeout") => false,
        () if call.is(3, "error") => true,
        () => {
            return Err(Failure::refused(
                "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
            ));
        }
    };
    let id = integer(call.arg(2)).ok_or(NOT_AN_INTEGER)?;
    let id = u64::try_from(id).unwrap_or(0);
    let server = call.server()?;
    let waits = server
        .clients
        .get(id)
        .is_some_and(|session| session.blocked.is_some());
    if waits {
        server.unblocks.push((id, with_error));
    }
    call.reply.integer(i64::from(waits));
    Ok(())
}

const HELP: &[&str] = &[
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GETNAME",
    "    Return the name of the current connection.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current client connection.",
    "KILL <ip:port>",
    "    Kill connection made from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Kill connections. Options are: ADDR, LADDR, TYPE, ID, SKIPME.",
    "LIST [options ...]",
    "    Return information about client connections. Options: TYPE, ID.",
    "NO-EVICT (ON|OFF)",
    "    Protect current client connection from eviction.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETNAME <name>",
    "    Assign the name <name> to the current connection.",
    "UNBLOCK <clientid> [TIMEOUT|ERROR]",
    "    Unblock the specified blocked client.",
    "HELP",
    "    Print this help.",
];
