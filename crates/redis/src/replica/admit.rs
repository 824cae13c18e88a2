//! Commands that a replica refuses, or a primary without enough replicas.

use drumlin_redis_store::{Failure, Outcome};

use super::state::Phase;
use crate::facts::{Facts, Flags};
use crate::session::Session;
use crate::state::ServerState;

const READONLY: Failure = Failure::refused("READONLY You can't write against a read only replica.");
const NOREPLICAS: Failure = Failure::refused("NOREPLICAS Not enough good replicas to write.");
const LOADING: Failure = Failure::refused("LOADING Redis is loading the dataset in memory");
const MASTERDOWN: Failure = Failure::refused(
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
);

/// Whether a client may send the command to a replica or to a primary now. For EXEC, the commands that it would run count.
///
/// # Errors
/// As Redis words them.
pub(crate) fn admit(server: &ServerState, session: &Session, facts: &Facts) -> Outcome<()> {
    let replication = &server.replication;
    if session.is_primary {
        return Ok(());
    }
    let queue = session.multi.as_ref().filter(|_| facts.name == "exec");
    let queued = || queue.iter().flat_map(|multi| &multi.queue);
    let any =
        |has: &dyn Fn(Flags) -> bool| has(facts.flags) || queued().any(|it| has(it.facts.flags));
    if !replication.is_replica() {
        let lacks = !server.replicas.has_enough(server.now_seconds);
        return match lacks && any(&|it| it.has(Flags::WRITE)) {
            true => Err(NOREPLICAS),
            false => Ok(()),
        };
    }
    if server.config.get("replica-read-only") == "yes" && any(&|it| it.has(Flags::WRITE)) {
        return Err(READONLY);
    }
    let phase = replication.phase();
    if phase != Phase::Connected
        && server.config.get("replica-serve-stale-data") == "no"
        && any(&|it| !it.has(Flags::STALE))
    {
        return Err(MASTERDOWN);
    }
    match phase == Phase::Loading && any(&|it| !it.has(Flags::LOADING)) {
        true => Err(LOADING),
        false => Ok(()),
    }
}
