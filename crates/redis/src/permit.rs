//! Whether the user of a client may run a command; what is denied is logged.

use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::Args;

use crate::acl::{Context, Denial, Denied, LogEntry, Reason};
use crate::catalog::Entry;
use crate::client_line::describe;
use crate::session::Session;
use crate::state::ServerState;

/// The error of a client that has to authenticate first.
const NOAUTH: Failure = Failure::refused("NOAUTH Authentication required.");

/// What somebody lacks who may do nothing.
const NOTHING: Denied = Denied {
    what: Denial::Command,
    at: 0,
};

/// Whether the client has to authenticate before anything else.
pub(crate) fn needs_auth(server: &ServerState, session: &Session) -> bool {
    !session.is_authenticated && !server.users.are_open()
}

/// Whether a client that has not authenticated may send the command.
///
/// # Errors
/// As Redis words it.
pub(crate) fn authenticated(server: &ServerState, session: &Session, entry: &Entry) -> Outcome<()> {
    match needs_auth(server, session) && !entry.is("no_auth") {
        true => Err(NOAUTH),
        false => Ok(()),
    }
}

/// Whether the client may use what an operator has to turn on first: DEBUG and MODULE.
///
/// # Errors
/// As Redis words it.
pub(crate) fn protected(server: &ServerState, session: &Session, entry: &Entry) -> Outcome<()> {
    let (shown, option) = match entry.name {
        "debug" => ("DEBUG", "enable-debug-command"),
        "module|load" | "module|loadex" | "module|unload" => ("MODULE", "enable-module-command"),
        _ => return Ok(()),
    };
    match is_enabled(server, session, option) {
        true => Ok(()),
        false => Err(Failure::because(format!(
            "ERR {shown} command not allowed. If the {option} option is set to \"local\", you can \
             run it from a local connection, otherwise you need to set this option in the \
             configuration file, and then restart the server."
        ))),
    }
}

/// Whether an option that is `yes`, `no` or `local` lets the client through.
pub(crate) fn is_enabled(server: &ServerState, session: &Session, option: &str) -> bool {
    match server.config.get(option) {
        "yes" => true,
        "local" => session.is_local(),
        _ => false,
    }
}

/// What the user of the client lacks to make the call.
pub(crate) fn denied(
    server: &mut ServerState,
    session: &Session,
    (entry, args): (&Entry, Args<'_>),
    context: Context,
) -> Option<Denial> {
    let user = server.users.get(session.user?);
    let (denied, user) = match user {
        Some(user) => (user.lacks(entry, args)?, user.name.clone()),
        // The user is gone, and the client about to be.
        None => (NOTHING, Vec::new()),
    };
    let arg = args.get(denied.at).unwrap_or_default();
    let (reason, object) = match denied.what {
        Denial::Command => (Reason::Command, entry.name.as_bytes()),
        Denial::Key => (Reason::Key, arg),
        Denial::Channel => (Reason::Channel, arg),
    };
    note(server, session, (reason, context), object, user);
    Some(denied.what)
}

/// Notes in the log that something was denied.
pub(crate) fn note(
    server: &mut ServerState,
    session: &Session,
    (reason, context): (Reason, Context),
    object: &[u8],
    user: Vec<u8>,
) {
    let most = server.config.number("acllog-max-len");
    let entry = LogEntry {
        count: 1,
        reason,
        context,
        object: object.to_vec(),
        user,
        at_ms: server.now_micros / 1_000,
        client: describe(server, session, None).trim_end().to_owned(),
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    server.users.log.add(entry, most);
}

/// Whether the user of the client may send the command, to be run or to be queued.
///
/// # Errors
/// As Redis words it.
pub(crate) fn may_send(
    server: &mut ServerState,
    session: &Session,
    call: (&Entry, Args<'_>),
) -> Outcome<()> {
    let context = match session.multi {
        Some(_) => Context::Multi,
        None => Context::TopLevel,
    };
    let Some(denial) = denied(server, session, call, context) else {
        return Ok(());
    };
    Err(match denial {
        Denial::Command => Failure::because(format!(
            "NOPERM this user has no permissions to run the '{}' command",
            call.0.name
        )),
        Denial::Key => Failure::refused(
            "NOPERM this user has no permissions to access one of the keys used as arguments",
        ),
        Denial::Channel => Failure::refused(
            "NOPERM this user has no permissions to access one of the channels used as arguments",
        ),
    })
}

/// Whether a command that was queued may still be run.
///
/// # Errors
/// As Redis words it.
pub(crate) fn may_run_queued(
    server: &mut ServerState,
    session: &Session,
    call: (&Entry, Args<'_>),
) -> Outcome<()> {
    let Some(denial) = denied(server, session, call, Context::Multi) else {
        return Ok(());
    };
    let reason = match denial {
        Denial::Command => "no permission to execute the command or subcommand",
        Denial::Key => "no permission to touch the specified keys",
        Denial::Channel => "no permission to access one of the channels used as arguments",
    };
    Err(Failure::because(format!(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC \
         call. This command is no longer allowed for the following reason: {reason}"
    )))
}

/// Whether a script may call the command for its user.
///
/// # Errors
/// As Redis words it, without a code.
pub(crate) fn may_call(
    server: &mut ServerState,
    session: &Session,
    call: (&Entry, Args<'_>),
) -> Result<(), &'static str> {
    match denied(server, session, call, Context::Script) {
        None => Ok(()),
        Some(Denial::Command) => {
            Err("The user executing the script can't run this command or subcommand")
        }
        Some(Denial::Key) => Err(
            "The user executing the script can't access at least one of the keys mentioned in the \
             command arguments",
        ),
        Some(Denial::Channel) => Err(
            "The user executing the script can't publish to the channel mentioned in the command",
        ),
    }
}
