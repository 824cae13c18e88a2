//! What has changed since the last look: replication, the disk, stalls, what was denied, what scripts have said.

use super::{Level, Watch};
use crate::replica::state::Phase;
use crate::state::ServerState;

/// Looks, and tells what has changed.
pub(crate) fn look(state: &mut ServerState) {
    state.journal.role = if state.replication.is_replica() {
        'S'
    } else {
        'M'
    };
    let mut watch = std::mem::take(&mut state.watch);
    link(state, &mut watch);
    replicas(state, &mut watch);
    disk(state, &mut watch);
    denied(state, &mut watch);
    scripts(state);
    state.watch = watch;
    state.journal.tell_counts();
}

fn link(state: &mut ServerState, watch: &mut Watch) {
    let replication = &state.replication;
    let primary = replication.primary.as_ref();
    let phase = match replication.phase() {
        // Tries that come to nothing are told by their errors.
        Phase::Connect | Phase::Connecting | Phase::Handshake => "connect",
        other => other.name(),
    };
    let now = primary.map(|it| (format!("{}:{}", it.host, it.port), phase));
    if now != watch.link {
        let (message, fields) = match &now {
            Some((primary, phase)) => {
                let fields = vec![("primary", primary.clone()), ("state", (*phase).to_owned())];
                ("the link to the primary has changed", fields)
            }
            None => ("this server is a primary now", Vec::new()),
        };
        state
            .journal
            .tell(Level::Notice, "replication", message, &fields);
        watch.link = now;
    }
    if replication.last_error != watch.link_error {
        watch.link_error.clone_from(&replication.last_error);
        if let Some(error) = &watch.link_error {
            let fields = [("error", error.clone())];
            let message = "the link to the primary has failed";
            state
                .journal
                .tell_once(Level::Warning, "replication-error", message, &fields);
        }
    }
}

fn replicas(state: &mut ServerState, watch: &mut Watch) {
    let members = state.replicas.members.iter();
    let online = members.filter(|(_, member)| member.is_online());
    let now: Vec<String> = online.map(|(id, _)| state.replica_address(*id)).collect();
    if now == watch.replicas {
        return;
    }
    let fields = [
        ("count", now.len().to_string()),
        ("addresses", now.join(",")),
    ];
    let message = "the replicas that follow have changed";
    state
        .journal
        .tell(Level::Notice, "replicas", message, &fields);
    watch.replicas = now;
}

fn disk(state: &mut ServerState, watch: &mut Watch) {
    if state.last_error != watch.error {
        watch.error.clone_from(&state.last_error);
        if let Some(error) = &watch.error {
            let fields = [("error", error.clone())];
            state
                .journal
                .tell_once(Level::Warning, "error", "work behind has failed", &fields);
        }
    }
    let stalls = state.counters.stalls;
    if stalls > watch.stalls {
        let fields = [("rounds", (stalls - watch.stalls).to_string())];
        state.journal.tell_once(
            Level::Notice,
            "stall",
            "writes wait for the engine",
            &fields,
        );
    }
    watch.stalls = stalls;
}

fn denied(state: &mut ServerState, watch: &mut Watch) {
    let denied = state.users.log.denied;
    if denied > watch.denied {
        let fields = [("count", (denied - watch.denied).to_string())];
        let message = "users were denied something; ACL LOG has what";
        state
            .journal
            .tell_once(Level::Notice, "denied", message, &fields);
    }
    watch.denied = denied;
}

fn scripts(state: &mut ServerState) {
    let (said, lost) = state.scripts.take_said();
    for (level, text) in said {
        if let Some(level) = Level::numbered(level) {
            state.journal.tell(level, "script", &text, &[]);
        }
    }
    if lost > 0 {
        let fields = [("lines", lost.to_string())];
        let message = "scripts logged more than is kept";
        state
            .journal
            .tell(Level::Warning, "script", message, &fields);
    }
}
