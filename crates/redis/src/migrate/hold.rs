//! Commands that wait because they may change a key that is on its way.

use drumlin_resp::Args;

use crate::cmd::command::keys_of;
use crate::facts::Facts;
use crate::session::Session;
use crate::state::ServerState;

/// Whether a command has to wait. For EXEC, the commands that it would run count.
pub(crate) fn holds(state: &ServerState, session: &Session, facts: &Facts, args: Args<'_>) -> bool {
    let migrations = &state.migrations;
    if migrations.is_idle() || session.is_primary {
        return false;
    }
    let holds = |facts: &Facts, args: Args<'_>| {
        let mut keys = keys_of(facts, args);
        facts.flags.may_write() && keys.any(|key| migrations.has(session.db, key))
    };
    match (&session.multi, facts.name) {
        (Some(multi), "exec") => {
            let mut queue = multi.queue.iter();
            queue.any(|kept| holds(&kept.facts, kept.args.args()))
        }
        (Some(_), _) => false,
        (None, _) => holds(facts, args),
    }
}
