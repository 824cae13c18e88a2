//! Pauses: commands wait until an operator lets them go on, or until a time; writes wait while a replica takes over.
//! Replicas never wait.

use std::time::Duration;

use crate::facts::{Facts, Flags};
use crate::io::Hold;
use crate::session::Session;
use crate::state::ServerState;

/// Commands that write nothing and wait with those that do: they would be sent to replicas.
const SENT_ON: [&str; 6] = ["eval", "evalsha", "fcall", "pfcount", "publish", "spublish"];

/// Whether a command has to wait for the end of a pause.
pub(crate) fn holds(state: &ServerState, session: &Session, facts: &Facts) -> bool {
    if (state.pause.is_none() && state.failover.is_none()) || session.is_replica {
        return false;
    }
    let sends_on =
        |facts: &Facts| SENT_ON.contains(&facts.name) && !facts.flags.has(Flags::DECLARED);
    let writes = |facts: &Facts| facts.flags.has(Flags::WRITE) || sends_on(facts);
    if state.pause.is_some_and(|pause| !pause.writes_only) {
        return true;
    }
    if facts.name == "exec" {
        let queue = session.multi.iter().flat_map(|multi| &multi.queue);
        return queue.into_iter().any(|kept| writes(&kept.facts));
    }
    writes(facts)
}

/// Ends the pause if it is time, and lets those go on who waited for its end.
pub(crate) fn end(state: &mut ServerState, now: Duration) {
    if state.pause.is_some_and(|pause| now >= pause.until) {
        state.pause = None;
    }
    if state.pause.is_some() || state.failover.is_some() {
        return;
    }
    for id in std::mem::take(&mut state.paused) {
        if let (Some(io), Some(session)) = (state.net.ios.get_mut(&id), state.clients.get_mut(id)) {
            io.hold = Hold::None;
            session.is_paused = false;
            state.net.runnable.insert(id);
        }
    }
}
