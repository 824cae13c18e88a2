//! Commands of replication: REPLICAOF, REPLCONF, PSYNC, SYNC, ROLE, WAIT.

use std::time::Duration;

use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::integer;

use crate::call::{Call, SYNTAX};
use crate::command::{Command, Flags, NO_KEYS};
use crate::replica::state::Primary;
use crate::replica::tend::follow;
use crate::replicas::member::Request;
use crate::replicas::state::Waiter;
use crate::replicas::tend::has_no_data;
use crate::session::Silence;
use crate::wait::{TimeoutReply, Wait};

const FOLLOW: Flags = Flags::ADMIN
    .and(Flags::NOSCRIPT)
    .and(Flags::STALE)
    .and(Flags::NO_ASYNC_LOADING);
const CONFER: Flags = Flags::ADMIN
    .and(Flags::NOSCRIPT)
    .and(Flags::LOADING)
    .and(Flags::STALE)
    .and(Flags::ALLOW_BUSY);
const ASK: Flags = Flags::ADMIN
    .and(Flags::NOSCRIPT)
    .and(Flags::NO_ASYNC_LOADING)
    .and(Flags::NO_MULTI);
const TELL: Flags = Flags::NOSCRIPT
    .and(Flags::LOADING)
    .and(Flags::STALE)
    .and(Flags::FAST);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("psync", -3, ASK, NO_KEYS, psync),
    Command::new("replconf", -1, CONFER, NO_KEYS, replconf),
    Command::new("replicaof", 3, FOLLOW, NO_KEYS, replicaof),
    Command::new("role", 1, TELL, NO_KEYS, role),
    Command::new("slaveof", 3, FOLLOW, NO_KEYS, replicaof),
    Command::new("sync", 1, ASK, NO_KEYS, sync),
    Command::new("wait", 3, Flags::NOSCRIPT, NO_KEYS, wait),
];

fn replicaof(call: &mut Call<'_, '_>) -> Outcome<()> {
    let wanted = match call.is(1, "no") && call.is(2, "one") {
        true => None,
        false => Some(Primary::parse(call.arg(1), call.arg(2))?),
    };
    if call.server()?.failover.is_some() {
        let line = "ERR REPLICAOF not allowed while failing over.";
        return Err(Failure::refused(line));
    }
    if call.session.is_replica && wanted.is_some() {
        let line = "ERR Command is not valid when client is a replica.";
        return Err(Failure::refused(line));
    }
    let server = call.server()?;
    if wanted.is_some() && wanted == server.replication.primary {
        call.reply
            .simple(b"OK Already connected to specified master");
        return Ok(());
    }
    follow(server, wanted)?;
    // The one that said so is not the primary any more.
    call.session.closes |= call.session.is_primary;
    call.reply.ok();
    Ok(())
}

// Replicas.

/// A replica tells of itself; or the primary asks how far we are.
fn replconf(call: &mut Call<'_, '_>) -> Outcome<()> {
    if call.session.is_primary {
        if call.is(1, "getack") {
            call.server()?.replication.asks_ack = true;
        }
        return Ok(());
    }
    if call.len().is_multiple_of(2) {
        return Err(SYNTAX);
    }
    for at in (1..call.len()).step_by(2) {
        match () {
            () if call.is(at, "ack") => return acknowledge(call, at + 1),
            // For who has a primary.
            () if call.is(at, "getack") => return Ok(()),
            () => greet(call, at)?,
        }
    }
    call.reply.ok();
    Ok(())
}

fn greet(call: &mut Call<'_, '_>, at: usize) -> Outcome<()> {
    let (value, number) = (call.arg(at + 1), integer(call.arg(at + 1)));
    let mut greeting = call.session.greeting.take().unwrap_or_default();
    match () {
        () if call.is(at, "listening-port") => {
            let port = number.ok_or(crate::call::NOT_AN_INTEGER)?;
            greeting.port = u16::try_from(port).unwrap_or(0);
        }
        () if call.is(at, "ip-address") => {
            let address = String::from_utf8_lossy(value).into_owned();
            if address.len() > ADDRESS_BYTES_MAX {
                return Err(Failure::because(format!(
                    "ERR REPLCONF ip-address provided by replica instance is too long: {} bytes",
                    address.len()
                )));
            }
            greeting.address = Some(address).filter(|it| !it.is_empty());
        }
        () if call.is(at, "capa") => {
            greeting.takes_mark |= call.is(at + 1, "eof");
            greeting.takes_new_name |= call.is(at + 1, "psync2");
        }
        () if call.is(at, "rdb-only") => {
            let number = number.ok_or(crate::call::NOT_AN_INTEGER)?;
            greeting.only_data = number == 1;
        }
        () => {
            let option = String::from_utf8_lossy(call.arg(at)).into_owned();
            return Err(Failure::because(format!(
                "ERR Unrecognized REPLCONF option: {option}"
            )));
        }
    }
    call.session.greeting = Some(greeting);
    Ok(())
}

/// Longest address that a replica may have, as in Redis.
const ADDRESS_BYTES_MAX: usize = 255;

/// A replica has run so many bytes; nothing is answered.
fn acknowledge(call: &mut Call<'_, '_>, at: usize) -> Outcome<()> {
    let offset = integer(call.arg(at)).and_then(|it| u64::try_from(it).ok());
    let id = call.session.id;
    let server = call.server()?;
    let seconds = server.now_seconds;
    let member = server.replicas.members.get_mut(&id);
    let (Some(member), Some(offset)) = (member, offset) else {
        return Ok(());
    };
    member.acknowledge(offset, seconds);
    if !server.replicas.waiters.is_empty() {
        let served = server.replicas.take_served().into_iter();
        server.unblocks.extend(served.map(|client| (client, None)));
    }
    Ok(())
}

fn sync(call: &mut Call<'_, '_>) -> Outcome<()> {
    attach(call, Request::Old)
}

fn psync(call: &mut Call<'_, '_>) -> Outcome<()> {
    let asks_to_take_over = call.len() > 3;
    if asks_to_take_over {
        if call.len() > 4 || !call.is(3, "failover") {
            return Err(SYNTAX);
        }
        take_over(call)?;
    }
    // The next byte that it wants, counted from 1.
    let next = integer(call.arg(2)).ok_or(crate::call::NOT_AN_INTEGER)?;
    let offset = u64::try_from(next).ok().and_then(|it| it.checked_sub(1));
    let request = match offset {
        Some(offset) if call.arg(1) != b"?" => Request::From {
            id: String::from_utf8_lossy(call.arg(1)).into_owned(),
            offset,
        },
        _ => Request::All,
    };
    attach(call, request)
}

/// Makes this server, a replica, the primary: so the present one asks.
fn take_over(call: &mut Call<'_, '_>) -> Outcome<()> {
    let id = call.arg(1);
    let server = call.server()?;
    if !server.replication.is_replica() {
        let line = "ERR PSYNC FAILOVER can't be sent to a master.";
        return Err(Failure::refused(line));
    }
    if !id.eq_ignore_ascii_case(server.replicas.history.id.as_bytes()) {
        let line = "ERR PSYNC FAILOVER replid must match my replid.";
        return Err(Failure::refused(line));
    }
    follow(server, None).map_err(|error| Failure::because(format!("ERR PSYNC FAILOVER: {error}")))
}

/// Makes a replica of the client. It is answered at the end of the round.
fn attach(call: &mut Call<'_, '_>, request: Request) -> Outcome<()> {
    if call.session.is_replica {
        return Ok(());
    }
    let (id, greeting) = (call.session.id, call.session.greeting.take());
    let server = call.server()?;
    if server.failover.is_some() {
        let line = "NOMASTERLINK Can't SYNC while failing over";
        return Err(Failure::refused(line));
    }
    if has_no_data(server) {
        let line = "NOMASTERLINK Can't SYNC while not connected with my master";
        return Err(Failure::refused(line));
    }
    let (greeting, seconds) = (
        greeting.map(|it| *it).unwrap_or_default(),
        server.now_seconds,
    );
    server.replicas.attach(id, greeting, request, seconds);
    call.session.is_replica = true;
    // It takes the stream for commands: nothing else may be in it.
    call.session.silence = Silence::Off;
    Ok(())
}

fn role(call: &mut Call<'_, '_>) -> Outcome<()> {
    let server = call.server()?;
    let replication = &server.replication;
    let Some(primary) = replication.primary.clone() else {
        return role_of_primary(call);
    };
    let (phase, place) = (replication.phase(), replication.place.clone());
    let offset = place.map_or(-1, |place| i64::try_from(place.offset).unwrap_or(i64::MAX));
    call.reply.array(5);
    call.reply.bulk(b"slave");
    call.reply.bulk(primary.host.as_bytes());
    call.reply.integer(i64::from(primary.port));
    call.reply.bulk(phase.name().as_bytes());
    call.reply.integer(offset);
    Ok(())
}

fn role_of_primary(call: &mut Call<'_, '_>) -> Outcome<()> {
    let server = call.server()?;
    let offset = server.replicas.offset();
    let members = server.replicas.members.iter();
    let online = members.filter(|(_, member)| member.is_online());
    let shown = online.map(|(id, member)| {
        let address = server.replica_address(*id);
        [
            address,
            member.greeting.port.to_string(),
            member.acked.to_string(),
        ]
    });
    let shown: Vec<_> = shown.collect();
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply
        .integer(i64::try_from(offset).unwrap_or(i64::MAX));
    call.reply.array(shown.len());
    for member in shown {
        call.reply.array(3);
        member.iter().for_each(|it| call.reply.bulk(it.as_bytes()));
    }
    Ok(())
}

/// Waits until so many replicas have run what the client has changed.
fn wait(call: &mut Call<'_, '_>) -> Outcome<()> {
    if call.server()?.replication.is_replica() {
        return Err(Failure::refused(
            "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a \
             replica is configured to be writable (which is not the default) writes to replicas are \
             just local and are not propagated.",
        ));
    }
    let wanted = call.integer(1)?;
    let timeout = integer(call.arg(2));
    let timeout = timeout.ok_or(Failure::refused(
        "ERR timeout is not an integer or out of range",
    ))?;
    let negative = Failure::refused("ERR timeout is negative");
    let timeout = u64::try_from(timeout).map_err(|_| negative)?;
    let (id, offset) = (call.session.id, call.session.stream_offset);
    let may_wait = call.may_wait;
    let server = call.server()?;
    let acked = server.replicas.acked(offset);
    let replicas = u64::try_from(wanted).unwrap_or(0);
    if acked >= replicas || !may_wait {
        call.reply.integer(acked as i64);
        return Ok(());
    }
    server.replicas.wait(id, Waiter { offset, replicas });
    call.wait_for(Wait {
        keys: Vec::new(),
        timeout: (timeout > 0).then(|| Duration::from_millis(timeout)),
        on_timeout: TimeoutReply::Replicas { offset, acked },
        args: None,
    });
    Ok(())
}
