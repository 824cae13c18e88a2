//! Commands that are refused, as `maxmemory` is less than any server needs.

use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::Args;

use crate::facts::{Facts, Flags};
use crate::session::Session;
use crate::state::ServerState;

/// The error of a command that there is no memory for.
pub(crate) const OOM: Failure =
    Failure::refused("OOM command not allowed when used memory > 'maxmemory'.");

/// Commands that a transaction needs to end, and others that need no memory: within MULTI all the rest do, as they are queued.
const NOT_QUEUED: [&str; 6] = ["discard", "multi", "quit", "reset", "unwatch", "watch"];

/// Whether the command may need memory, and there is none.
pub(crate) fn needs_memory(server: &ServerState, facts: &Facts, args: Args<'_>) -> bool {
    let needs = || facts.resolve(args).is_ok_and(|entry| entry.is("denyoom"));
    server.bounds.has_none && (facts.flags.has(Flags::DENYOOM) || needs())
}

/// Whether a client may send the command. For EXEC, the commands that it would run count.
///
/// # Errors
/// [`OOM`].
pub(crate) fn admit(
    server: &ServerState,
    session: &Session,
    facts: &Facts,
    args: Args<'_>,
) -> Outcome<()> {
    if !server.bounds.has_none || session.is_primary {
        return Ok(());
    }
    let is_refused = match &session.multi {
        None => needs_memory(server, facts, args),
        Some(multi) if facts.name == "exec" => {
            let mut queue = multi.queue.iter();
            queue.any(|kept| needs_memory(server, &kept.facts, kept.args.args()))
        }
        Some(_) => !NOT_QUEUED.contains(&facts.name),
    };
    match is_refused {
        true => Err(OOM),
        false => Ok(()),
    }
}
