//! The other clients, while a script runs for long: they are told so, and may end it.

use std::time::Duration;

use drumlin_fs::net::Events;
use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::{Args, ReplyWriter, RequestLimits};

use super::running::{Running, Stop};
use crate::command::Command;
use crate::dispatch_multi::refuse;
use crate::hands::lend;
use crate::io::{Io, OUT_BYTES_HIGH};
use crate::metrics::scrape;
use crate::permit;
use crate::ran;
use crate::round::{Stage, run};
use crate::session::Session;
use crate::state::Shutdown;
use crate::traffic;

/// Events of one look.
const EVENTS_MAX: usize = 256;
/// Commands of a client in one look.
const COMMANDS_MAX: usize = 64;

/// Commands that are carried out all the same.
const ALLOWED: [&str; 8] = [
    "auth", "discard", "hello", "multi", "quit", "reset", "unwatch", "watch",
];

const BUSY_EVAL: Failure = Failure::refused(
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
);
const BUSY_FUNCTION: Failure = Failure::refused(
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.",
);
const UNKILLABLE: Failure = Failure::refused(
    "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script \
     termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
);

/// Reads what has come from clients without waiting, and answers them.
pub(super) fn serve(script: &mut Running<'_>) {
    release(script);
    // What is counted of others is not the script's to take back.
    let noted = script.server.observer.stats.noted.take();
    // They are told that a script runs, as all others are.
    lend::call_home(script.server);
    let now = script.server.scripts.now();
    let events = script.events.take();
    let mut events = events.unwrap_or_else(|| Events::with_capacity(EVENTS_MAX));
    let net = &mut script.server.net;
    // The loop meets an error of the poller again, and ends by it.
    net.greetings_left = traffic::GREETINGS_A_TURN;
    if net.poller.wait(&mut events, Some(Duration::ZERO)).is_ok() {
        for event in events.iter() {
            let id = event.token.0;
            if let Some(door) = script.server.net.door(event.token) {
                // One that cannot be accepted now is when the loop goes on.
                drop(traffic::accept(script.server, door, now));
                continue;
            }
            if scrape::is_served(script.server, event) {
                continue;
            }
            if event.readable {
                traffic::read(script.server, id, now);
            }
            let answers = event.writable || has_unsent(script, id);
            if answers && !has_unwritten(script, id) {
                traffic::flush(script.server, id);
            }
        }
    }
    script.events = Some(events);
    let net = &mut script.server.net;
    let mut ids = std::mem::take(&mut net.turn);
    ids.append(std::mem::take(&mut net.runnable));
    while let Some(id) = ids.pop_first() {
        answer(script, id);
    }
    script.server.observer.stats.noted = noted;
}

/// Sends those replies of the present round that tell of nothing unwritten: all, if it had changed nothing before the script.
fn release(script: &mut Running<'_>) {
    for id in script.server.net.participants.clone() {
        let io = script.server.net.ios.get_mut(&id);
        if let Some(io) = io.filter(|io| script.is_first_to_write || !io.round_saw) {
            io.leave_round();
            traffic::flush(script.server, id);
        }
    }
}

/// Whether a client's replies tell of the present round, which is not written before the script ends.
fn has_unwritten(script: &Running<'_>, id: u64) -> bool {
    let io = script.server.net.ios.get(&id);
    io.is_some_and(|io| io.round_replies > 0)
}

/// Whether a client's handshake goes on.
fn has_unsent(script: &Running<'_>, id: u64) -> bool {
    let io = script.server.net.ios.get(&id);
    io.is_some_and(Io::has_unsent)
}

/// Answers the commands that a client has sent.
fn answer(script: &mut Running<'_>, id: u64) {
    let may_run = |io: &Io| io.may_run() && io.round_replies == 0;
    let is_free = script.server.net.ios.get(&id).is_some_and(may_run);
    let server = &mut *script.server;
    let Some(session) = server.clients.borrow(id).filter(|_| is_free) else {
        server.net.runnable.insert(id);
        return;
    };
    let Some(mut io) = server.net.ios.remove(&id) else {
        server.clients.give_back(session);
        return;
    };
    let mut session = session;
    let mut left = COMMANDS_MAX;
    while left > 0 && !session.closes && !session.is_killed && session.out.len() <= OUT_BYTES_HIGH {
        left -= 1;
        let (parser, input) = io.pending();
        let request = match parser.parse(input) {
            Ok(Some(request)) => request,
            Ok(None) => break,
            Err(error) => {
                let out = std::mem::take(&mut session.out);
                let mut reply = ReplyWriter::append_to(out, session.protocol);
                reply.protocol_error(error);
                session.out = reply.take();
                session.closes = true;
                break;
            }
        };
        let bytes = request.consumed;
        if !request.args.is_empty() {
            command(script, &mut session, request.args);
        }
        io.consume(bytes);
        io.parser.set_limits(RequestLimits {
            bulk_bytes_max: script.server.limits.string_bytes_max,
            authenticated: !permit::needs_auth(script.server, &session),
        });
    }
    io.compact();
    if left == 0 {
        script.server.net.runnable.insert(id);
    }
    script.server.net.ios.insert(id, io);
    script.server.clients.give_back(session);
    traffic::flush(script.server, id);
}

fn command(script: &mut Running<'_>, session: &mut Session, args: Args<'_>) {
    let out = std::mem::take(&mut session.out);
    let mut reply = ReplyWriter::append_to(out, session.protocol);
    let start = reply.bytes().len();
    if let Err(failure) = carry_out(script, session, &mut reply, args) {
        reply.buffer_mut().truncate(start);
        let found = script.table.find(args.get(0).unwrap_or_default());
        let name = found.map(|it| it.facts.name);
        let text = refuse(script.server, session, name, &failure);
        ran::refused(script.server, found.map(|it| it.facts), args, &text);
        reply.error(text.as_bytes());
    }
    session.out = reply.take();
}

fn carry_out(
    script: &mut Running<'_>,
    session: &mut Session,
    reply: &mut ReplyWriter,
    args: Args<'_>,
) -> Outcome<()> {
    let busy = match script.is_eval {
        true => BUSY_EVAL,
        false => BUSY_FUNCTION,
    };
    let found = script.table.find(args.get(0).unwrap_or_default());
    let Some(command) = found.copied().filter(|it| it.facts.takes(args.len())) else {
        return Err(busy);
    };
    let name = command.facts.name;
    let entry = command.facts.resolve(args)?;
    permit::authenticated(script.server, session, entry)?;
    permit::may_send(script.server, session, (entry, args))?;
    let word = |at: usize, word: &str| {
        let arg = args.get(at).unwrap_or_default();
        arg.eq_ignore_ascii_case(word.as_bytes())
    };
    match name {
        "script" if word(1, "kill") && args.len() == 2 => kill(script, reply, true),
        "function" if word(1, "kill") && args.len() == 2 => kill(script, reply, false),
        "function" if word(1, "stats") && args.len() == 2 => {
            if script.is_eval {
                return Err(busy);
            }
            stats(script, reply);
            Ok(())
        }
        "shutdown" if (1..args.len()).any(|at| word(at, "nosave")) => {
            script.server.shutdown = Some(Shutdown::NoSave);
            script.stop = Some(Stop::ShutDown);
            session.is_killed = true;
            Ok(())
        }
        _ if ALLOWED.contains(&name) => allowed(script, session, reply, &command, args),
        _ => Err(busy),
    }
}

fn kill(script: &mut Running<'_>, reply: &mut ReplyWriter, is_eval: bool) -> Outcome<()> {
    if script.wrote {
        return Err(UNKILLABLE);
    }
    match (is_eval, script.is_eval) {
        (true, false) => return Err(BUSY_FUNCTION),
        (false, true) => return Err(BUSY_EVAL),
        _ => {}
    }
    script.stop.get_or_insert(Stop::Killed);
    reply.ok();
    Ok(())
}

fn allowed(
    script: &mut Running<'_>,
    session: &mut Session,
    reply: &mut ReplyWriter,
    command: &Command,
    args: Args<'_>,
) -> Outcome<()> {
    let store = std::sync::Arc::clone(&script.server.store);
    let stage = Stage {
        store: &store,
        from: script.terms.from,
        limits: script.server.limits,
        may_wait: false,
        counts: false,
        may_write: false,
        woken_by: None,
        server: Some(script.server),
    };
    run(command.handler, args, session, reply, script.round, stage)?;
    Ok(())
}

/// FUNCTION STATS while a function runs.
fn stats(script: &Running<'_>, reply: &mut ReplyWriter) {
    let elapsed = script.server.scripts.now().saturating_sub(script.started);
    reply.map(2);
    reply.bulk(b"running_script");
    reply.map(3);
    reply.bulk(b"name");
    reply.bulk(script.name.as_bytes());
    reply.bulk(b"command");
    reply.array(script.args.len());
    script.args.iter().for_each(|arg| reply.bulk(arg));
    reply.bulk(b"duration_ms");
    reply.integer(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX));
    script.server.scripts.libraries.write_engines(reply);
}
