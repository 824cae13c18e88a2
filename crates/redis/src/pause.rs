//! Pauses: commands wait until an operator lets them go on, or until a time.

use std::time::Duration;

use crate::facts::{Facts, Flags};
use crate::io::Hold;
use crate::session::Session;
use crate::state::ServerState;

/// Commands that write nothing and wait with those that do: they would be sent to replicas.
const SENT_ON: [&str; 6] = ["eval", "evalsha", "fcall", "pfcount", "publish", "spublish"];

/// Whether a command has to wait for the end of a pause.
pub(crate) fn holds(state: &ServerState, session: &Session, facts: &Facts) -> bool {
    let writes = |facts: &Facts| facts.flags.has(Flags::WRITE) || SENT_ON.contains(&facts.name);
    match state.pause {
        None => false,
        Some(pause) if !pause.writes_only => true,
        Some(_) if facts.name == "exec" => {
            let queue = session.multi.iter().flat_map(|multi| &multi.queue);
            queue.into_iter().any(|kept| writes(&kept.facts))
        }
        Some(_) => writes(facts),
    }
}

/// Ends the pause if it is time, and lets those go on who waited for its end.
pub(crate) fn end(state: &mut ServerState, now: Duration) {
    if state.pause.is_some_and(|pause| now >= pause.until) {
        state.pause = None;
    }
    if state.pause.is_some() {
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
