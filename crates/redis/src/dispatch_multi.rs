//! The end of MULTI and WATCH, and what a command that is refused does to them.

use drumlin_redis_store::Failure;

use crate::session::Session;
use crate::state::ServerState;

/// Ends MULTI and WATCH.
pub(crate) fn end_multi(server: &mut ServerState, session: &mut Session) {
    session.multi = None;
    session.is_dirty = false;
    server.watching.remove(session.watched.keys(), session.id);
    session.watched.clear();
}

/// Notes that the command called `name` is refused before it runs, by which a transaction fails, and ends if it is an EXEC; the text of
/// the error for the client.
pub(crate) fn refuse(
    server: &mut ServerState,
    session: &mut Session,
    name: Option<&str>,
    refusal: &Failure,
) -> String {
    if let Some(multi) = &mut session.multi {
        multi.is_broken = true;
    }
    let text = refusal.to_string();
    if name != Some("exec") {
        return text;
    }
    end_multi(server, session);
    let reason = text.strip_prefix("ERR ").unwrap_or(&text);
    format!("EXECABORT Transaction discarded because of: {reason}")
}
