//! Commands of replication: REPLICAOF, REPLCONF, ROLE.

use drumlin_redis_store::{Failure, Outcome};

use crate::call::Call;
use crate::command::{Command, Flags, NO_KEYS};
use crate::replica::state::Primary;
use crate::replica::tend::follow;

const FOLLOW: Flags = Flags::ADMIN
    .and(Flags::NOSCRIPT)
    .and(Flags::STALE)
    .and(Flags::NO_ASYNC_LOADING);
const CONFER: Flags = Flags::ADMIN
    .and(Flags::NOSCRIPT)
    .and(Flags::LOADING)
    .and(Flags::STALE)
    .and(Flags::ALLOW_BUSY);
const TELL: Flags = Flags::NOSCRIPT
    .and(Flags::LOADING)
    .and(Flags::STALE)
    .and(Flags::FAST);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("replconf", -1, CONFER, NO_KEYS, replconf),
    Command::new("replicaof", 3, FOLLOW, NO_KEYS, replicaof),
    Command::new("role", 1, TELL, NO_KEYS, role),
    Command::new("slaveof", 3, FOLLOW, NO_KEYS, replicaof),
];

fn replicaof(call: &mut Call<'_, '_>) -> Outcome<()> {
    let wanted = match call.is(1, "no") && call.is(2, "one") {
        true => None,
        false => Some(Primary::parse(call.arg(1), call.arg(2))?),
    };
    let server = call.server()?;
    if wanted.is_some() && wanted == server.replication.primary {
        call.reply
            .simple(b"OK Already connected to specified master");
        return Ok(());
    }
    follow(server, wanted)?;
    call.reply.ok();
    Ok(())
}

/// The primary asks how far we are; nobody else has anything to say.
fn replconf(call: &mut Call<'_, '_>) -> Outcome<()> {
    if call.session.is_primary {
        if call.is(1, "getack") {
            call.server()?.replication.asks_ack = true;
        }
        return Ok(());
    }
    let option = String::from_utf8_lossy(call.arg(1)).into_owned();
    Err(Failure::because(format!(
        "ERR Unrecognized REPLCONF option: {option}"
    )))
}

fn role(call: &mut Call<'_, '_>) -> Outcome<()> {
    let replication = &call.server()?.replication;
    let Some(primary) = replication.primary.clone() else {
        call.reply.array(3);
        call.reply.bulk(b"master");
        call.reply.integer(0);
        call.reply.array(0);
        return Ok(());
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
