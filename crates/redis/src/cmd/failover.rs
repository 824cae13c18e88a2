//! FAILOVER: a replica takes over in good order.

use std::time::Duration;

use drumlin_redis_store::{Failure, Outcome};

use crate::call::{Call, SYNTAX};
use crate::command::{Command, Flags, NO_KEYS};
use crate::replica::state::Primary;
use crate::replica::tend::end_failover;
use crate::replicas::failover::{Failover, Stage};
use crate::replicas::hand_over;
use crate::state::ServerState;

const FLAGS: Flags = Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::STALE);

pub(crate) const COMMANDS: &[Command] = &[Command::new("failover", -1, FLAGS, NO_KEYS, failover)];

/// What came with the command.
#[derive(Debug, Default)]
struct Wanted {
    /// Host and port, as they were given.
    target: Option<(Vec<u8>, i64)>,
    timeout: Option<Duration>,
    is_forced: bool,
}

fn failover(call: &mut Call<'_, '_>) -> Outcome<()> {
    if call.server()?.is_cluster {
        let line = "ERR FAILOVER not allowed in cluster mode.";
        return Err(Failure::refused(line));
    }
    if call.len() == 2 && call.is(1, "abort") {
        return abort(call);
    }
    let wanted = parse(call)?;
    let server = call.server()?;
    let target = check(server, &wanted)?;
    let began = server.observer.began();
    server.failover = Some(Failover {
        stage: Stage::Waits,
        target,
        until: wanted.timeout.map(|timeout| began.saturating_add(timeout)),
        is_forced: wanted.is_forced,
    });
    server.replicas.ask_acks();
    call.reply.ok();
    Ok(())
}

fn abort(call: &mut Call<'_, '_>) -> Outcome<()> {
    let server = call.server()?;
    if server.failover.is_none() {
        return Err(Failure::refused("ERR No failover in progress."));
    }
    end_failover(server);
    call.reply.ok();
    Ok(())
}

fn parse(call: &Call<'_, '_>) -> Outcome<Wanted> {
    let (mut wanted, mut at) = (Wanted::default(), 1);
    while at < call.len() {
        match call.len() - at - 1 {
            1.. if wanted.timeout.is_none() && call.is(at, "timeout") => {
                wanted.timeout = Some(timeout(call, at + 1)?);
                at += 2;
            }
            2.. if wanted.target.is_none() && call.is(at, "to") => {
                wanted.target = Some((call.arg(at + 1).to_vec(), call.integer(at + 2)?));
                at += 3;
            }
            _ if !wanted.is_forced && call.is(at, "force") => {
                wanted.is_forced = true;
                at += 1;
            }
            _ => return Err(SYNTAX),
        }
    }
    Ok(wanted)
}

fn timeout(call: &Call<'_, '_>, at: usize) -> Outcome<Duration> {
    let millis = u64::try_from(call.integer(at)?).ok().filter(|it| *it > 0);
    let line = "ERR FAILOVER timeout must be greater than 0";
    millis
        .map(Duration::from_millis)
        .ok_or(Failure::refused(line))
}

/// The named target, if the failover can begin.
fn check(server: &ServerState, wanted: &Wanted) -> Outcome<Option<Primary>> {
    let refuse = |line: &'static str| Err(Failure::refused(line));
    if server.failover.is_some() {
        return refuse("ERR FAILOVER already in progress.");
    }
    if server.replication.is_replica() {
        return refuse("ERR FAILOVER is not valid when server is a replica.");
    }
    if server.replicas.members.is_empty() {
        return refuse("ERR FAILOVER requires connected replicas.");
    }
    if wanted.is_forced && (wanted.timeout.is_none() || wanted.target.is_none()) {
        return refuse(
            "ERR FAILOVER with force option requires both a timeout and target HOST and IP.",
        );
    }
    let Some((host, port)) = &wanted.target else {
        return Ok(None);
    };
    let name = String::from_utf8_lossy(host);
    let port = u16::try_from(*port).ok();
    let Some((port, id)) = port.and_then(|it| Some((it, hand_over::find(server, &name, it)?)))
    else {
        return refuse("ERR FAILOVER target HOST and PORT is not a replica.");
    };
    let member = server.replicas.members.get(&id);
    if !member.is_some_and(|it| it.is_online()) {
        return refuse("ERR FAILOVER target replica is not online.");
    }
    Primary::parse(host, port.to_string().as_bytes()).map(Some)
}
