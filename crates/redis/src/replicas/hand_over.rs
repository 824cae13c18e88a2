//! A failover that an operator asked for: writes wait until a replica has all changes, and then that replica is the primary
//! and this server follows it.
//!
//! The name of the stream goes with the request, as a word of PSYNC: a server that follows the same stream takes over at its
//! end. If it refuses, this server is the primary again.

use std::time::Duration;

use super::failover::{Failover, Stage};
use crate::replica::state::Primary;
use crate::replica::tend::follow;
use crate::state::ServerState;

/// The replica that says of itself that it is at this place.
pub(crate) fn find(state: &ServerState, host: &str, port: u16) -> Option<u64> {
    let members = state.replicas.members.iter();
    let mut found = members
        .filter(|(id, member)| member.greeting.port == port && state.replica_address(**id) == host);
    found.next().map(|(id, _)| *id)
}

/// Looks after a failover at the end of a turn. `is_written` if no changes wait for the engine.
pub(crate) fn tend(state: &mut ServerState, is_written: bool, now: Duration) {
    let Some(failover) = &state.failover else {
        return;
    };
    if failover.stage == Stage::HandsOver {
        // Its answer comes by letter.
        return;
    }
    let is_late = failover.until.is_some_and(|until| now >= until);
    let target = match failover.is_forced && is_late {
        true => failover.target.clone(),
        false if is_late => None,
        false if is_written => synced(state, failover),
        false => return,
    };
    match target {
        Some(target) => hand_over(state, target),
        None if is_late => state.failover = None,
        None => {}
    }
}

/// A replica that has all changes: the target, or any.
fn synced(state: &ServerState, failover: &Failover) -> Option<Primary> {
    let end = state.replicas.offset();
    let members = state.replicas.members.iter();
    let mut synced = members
        .filter(|(_, member)| {
            member.is_online()
                && (member.acked == end || drumlin_base::bug!("redis-failover-before-the-end"))
        })
        .filter_map(|(id, member)| {
            let (host, port) = (state.replica_address(*id), member.greeting.port);
            Primary::parse(host.as_bytes(), port.to_string().as_bytes()).ok()
        });
    match &failover.target {
        Some(target) => synced.find(|it| it == target),
        None => synced.next(),
    }
}

/// Follows `target`, which is asked to take over.
fn hand_over(state: &mut ServerState, target: Primary) {
    if let Some(failover) = &mut state.failover {
        failover.stage = Stage::HandsOver;
    }
    if let Err(error) = follow(state, Some(target)) {
        state.last_error = Some(error.to_string());
    }
}
