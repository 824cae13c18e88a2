//! The end of MULTI and WATCH.

use crate::session::Session;
use crate::state::ServerState;

/// Ends MULTI and WATCH.
pub(crate) fn end_multi(server: &mut ServerState, session: &mut Session) {
    session.multi = None;
    session.is_dirty = false;
    server.watching.remove(session.watched.keys(), session.id);
    session.watched.clear();
}
