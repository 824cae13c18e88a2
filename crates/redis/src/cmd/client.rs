//! CLIENT: who is connected, and how they are served.

use std::time::Duration;

use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::integer;

use super::client_tracking;
use super::connection::client_name;
use crate::acl::UserId;
use crate::call::{Call, NOT_AN_INTEGER, SYNTAX};
use crate::client_line::describe;
use crate::command::{Command, Flags, NO_KEYS};
use crate::session::{Session, Silence};
use crate::state::Pause;

pub(crate) const COMMANDS: &[Command] = &[Command::new(
    "client",
    -2,
    Flags::ADMIN
        .and(Flags::NOSCRIPT)
        .and(Flags::LOADING)
        .and(Flags::STALE),
    NO_KEYS,
    client,
)];

fn client(call: &mut Call<'_, '_>) -> Outcome<()> {
    let name = call.arg(1).to_ascii_lowercase();
    match (name.as_slice(), call.len()) {
        (b"help", 2) => super::reply_help(call, HELP),
        (b"id", 2) => {
            call.reply.integer(call.session.id as i64);
            Ok(())
        }
        (b"getname", 2) => {
            match call.session.name.as_slice() {
                b"" => call.reply.null(),
                name => call.reply.bulk(name),
            }
            Ok(())
        }
        (b"setname", 3) => {
            call.session.name = client_name(call.arg(2))?;
            call.reply.ok();
            Ok(())
        }
        (b"info", 2) => {
            let own = sent_bytes(call);
            let server = call.server.as_deref().ok_or(SYNTAX)?;
            let line = describe(server, call.session, Some(own));
            call.reply.verbatim(*b"txt", line.as_bytes());
            Ok(())
        }
        (b"list", _) => list(call),
        (b"kill", 3..) => kill(call),
        (b"pause", 3 | 4) => pause(call),
        (b"unpause", 2) => {
            call.server()?.pause = None;
            call.reply.ok();
            Ok(())
        }
        (b"reply", 3) => silence(call),
        (b"no-evict", 3) => {
            call.session.no_evict = match () {
                () if call.is(2, "on") => true,
                () if call.is(2, "off") => false,
                () => return Err(SYNTAX),
            };
            call.reply.ok();
            Ok(())
        }
        (b"unblock", 3 | 4) => unblock(call),
        (b"tracking", 3..) => client_tracking::tracking(call),
        (b"caching", 3) => client_tracking::caching(call),
        (b"getredir", 2) => client_tracking::getredir(call),
        (b"trackinginfo", 2) => client_tracking::trackinginfo(call),
        _ => Err(call.unknown_subcommand("CLIENT")),
    }
}

fn pause(call: &mut Call<'_, '_>) -> Outcome<()> {
    let writes_only = match () {
        () if call.len() == 3 || call.is(3, "all") => false,
        () if call.is(3, "write") => true,
        () => {
            return Err(Failure::refused(
                "ERR CLIENT PAUSE mode must be WRITE or ALL",
            ));
        }
    };
    let millis = integer(call.arg(2)).ok_or(Failure::refused(
        "ERR timeout is not an integer or out of range",
    ))?;
    let millis = u64::try_from(millis).map_err(|_| Failure::refused("ERR timeout is negative"))?;
    let server = call.server()?;
    let until = server.observer.began() + Duration::from_millis(millis);
    // A pause is made longer and stricter, never the contrary.
    let old = server.pause.take();
    server.pause = Some(Pause {
        until: old.map_or(until, |old| old.until.max(until)),
        writes_only: writes_only && old.is_none_or(|old| old.writes_only),
    });
    call.reply.ok();
    Ok(())
}

fn silence(call: &mut Call<'_, '_>) -> Outcome<()> {
    call.session.silence = match () {
        () if call.is(2, "on") => Silence::None,
        () if call.is(2, "off") => Silence::Off,
        () if call.is(2, "skip") && call.session.silence == Silence::Off => Silence::Off,
        () if call.is(2, "skip") => Silence::AfterThis,
        () => return Err(SYNTAX),
    };
    if call.session.silence == Silence::None {
        call.reply.ok();
    }
    Ok(())
}

/// The bytes of the present command as it was sent.
fn sent_bytes(call: &Call<'_, '_>) -> usize {
    let mut bytes = Vec::new();
    let args: Vec<&[u8]> = call.args.iter().collect();
    drumlin_resp::encode_command(&mut bytes, &args);
    bytes.len()
}

/// The class of a client, as `TYPE` names them.
fn class(session: &Session) -> &'static str {
    match session.subscriptions() > 0 {
        _ if session.is_primary => "master",
        _ if session.is_replica => "replica",
        true => "pubsub",
        false => "normal",
    }
}

/// The class that argument `at` names.
fn class_argument(call: &Call<'_, '_>, at: usize) -> Outcome<&'static str> {
    let classes = ["normal", "master", "replica", "pubsub"];
    match classes.iter().find(|class| call.is(at, class)) {
        Some(class) => Ok(class),
        None if call.is(at, "slave") => Ok("replica"),
        None => {
            let name = String::from_utf8_lossy(call.arg(at));
            Err(Failure::because(format!(
                "ERR Unknown client type '{name}'"
            )))
        }
    }
}

fn list(call: &mut Call<'_, '_>) -> Outcome<()> {
    let mut ids = None;
    let mut wanted_class = None;
    match call.len() {
        2 => {}
        4 if call.is(2, "type") => wanted_class = Some(class_argument(call, 3)?),
        4.. if call.is(2, "id") => {
            let invalid = Failure::refused("ERR Invalid client ID");
            let given = call.args.from(3);
            let numbers = given.iter().map(integer);
            ids = Some(numbers.collect::<Option<Vec<i64>>>().ok_or(invalid)?);
        }
        _ => return Err(SYNTAX),
    }
    let own_bytes = sent_bytes(call);
    let server = call.server.as_deref().ok_or(SYNTAX)?;
    let own = &*call.session;
    let mut all: Vec<&Session> = server.clients.others().chain([own]).collect();
    all.sort_by_key(|session| session.id);
    let wanted = |session: &&&Session| {
        ids.as_ref()
            .is_none_or(|ids| ids.contains(&(session.id as i64)))
            && wanted_class.is_none_or(|name| class(session) == name)
    };
    let lines: String = all
        .iter()
        .filter(wanted)
        .map(|session| describe(server, session, (session.id == own.id).then_some(own_bytes)))
        .collect();
    call.reply.verbatim(*b"txt", lines.as_bytes());
    Ok(())
}

/// The filters of CLIENT KILL.
#[derive(Clone, Debug, Default)]
struct KillFilter {
    id: Option<u64>,
    address: Option<String>,
    local_address: Option<String>,
    class: Option<&'static str>,
    user: Option<UserId>,
    spares_own: bool,
}

impl KillFilter {
    /// The filter that the arguments name, in either form.
    fn parse(call: &mut Call<'_, '_>) -> Outcome<Self> {
        let args = call.args;
        let text =
            |at: usize| String::from_utf8_lossy(args.get(at).unwrap_or_default()).into_owned();
        let mut filter = Self {
            spares_own: true,
            ..Self::default()
        };
        if call.len() == 3 {
            filter.address = Some(text(2));
            filter.spares_own = false;
            return Ok(filter);
        }
        for at in (2..call.len()).step_by(2) {
            let has_value = at + 1 < call.len();
            match () {
                () if !has_value => return Err(SYNTAX),
                () if call.is(at, "id") => {
                    let id = integer(call.arg(at + 1)).and_then(|id| u64::try_from(id).ok());
                    let invalid = Failure::refused("ERR client-id should be greater than 0");
                    filter.id = Some(id.filter(|id| *id > 0).ok_or(invalid)?);
                }
                () if call.is(at, "type") => filter.class = Some(class_argument(call, at + 1)?),
                () if call.is(at, "addr") => filter.address = Some(text(at + 1)),
                () if call.is(at, "laddr") => filter.local_address = Some(text(at + 1)),
                () if call.is(at, "user") => filter.user = Some(user_argument(call, at + 1)?),
                () if call.is(at, "skipme") && call.is(at + 1, "yes") => filter.spares_own = true,
                () if call.is(at, "skipme") && call.is(at + 1, "no") => filter.spares_own = false,
                () => return Err(SYNTAX),
            }
        }
        Ok(filter)
    }

    fn hits(&self, session: &Session) -> bool {
        let is = |wanted: &Option<String>, has: &String| wanted.as_ref().is_none_or(|it| it == has);
        self.id.is_none_or(|id| session.id == id)
            && is(&self.address, &session.address)
            && is(&self.local_address, &session.local_address)
            && self.class.is_none_or(|it| class(session) == it)
            && self.user.is_none_or(|it| session.user == Some(it))
    }
}

/// The user whom argument `at` names.
fn user_argument(call: &mut Call<'_, '_>, at: usize) -> Outcome<UserId> {
    let name = call.arg(at);
    let found = call.server()?.users.find(name).map(|(id, _)| id);
    found.ok_or_else(|| {
        let name = String::from_utf8_lossy(name);
        Failure::because(format!("ERR No such user '{name}'"))
    })
}

fn kill(call: &mut Call<'_, '_>) -> Outcome<()> {
    let filter = KillFilter::parse(call)?;
    let mut killed = 0;
    if !filter.spares_own && filter.hits(call.session) {
        call.session.closes = true;
        killed += 1;
    }
    let clients = &mut call.server()?.clients;
    let ids: Vec<u64> = clients
        .others()
        .filter(|session| filter.hits(session) && !session.is_killed)
        .map(|session| session.id)
        .collect();
    killed += ids.into_iter().filter(|id| clients.kill(*id)).count();
    match (call.len(), killed) {
        (3, 0) => return Err(Failure::refused("ERR No such client")),
        (3, _) => call.reply.ok(),
        _ => call.reply.integer(killed as i64),
    }
    Ok(())
}

fn unblock(call: &mut Call<'_, '_>) -> Outcome<()> {
    let with_error = match () {
        () if call.len() == 3 || call.is(3, "timeout") => false,
        () if call.is(3, "error") => true,
        () => {
            return Err(Failure::refused(
                "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
            ));
        }
    };
    let id = integer(call.arg(2)).ok_or(NOT_AN_INTEGER)?;
    let id = u64::try_from(id).unwrap_or(0);
    let server = call.server()?;
    let waits = server
        .clients
        .get(id)
        .and_then(|session| session.blocked.as_ref())
        // Who waits for no key waits for a target, which is not given up.
        .is_some_and(|blocked| !blocked.wait.keys.is_empty());
    if waits {
        let error = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
        server.unblocks.push((id, with_error.then_some(error)));
    }
    call.reply.integer(i64::from(waits));
    Ok(())
}

const HELP: &[&str] = &[
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CACHING (YES|NO)",
    "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
    "GETREDIR",
    "    Return the client ID we are redirecting to when tracking is enabled.",
    "GETNAME",
    "    Return the name of the current connection.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current client connection.",
    "KILL <ip:port>",
    "    Kill connection made from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Kill connections. Options are:",
    "    * ADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made from the specified address",
    "    * LADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made to specified local address",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Kill connections by type.",
    "    * USER <username>",
    "      Kill connections authenticated by <username>.",
    "    * SKIPME (YES|NO)",
    "      Skip killing current connection (default: yes).",
    "LIST [options ...]",
    "    Return information about client connections. Options:",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Return clients of specified type.",
    "UNPAUSE",
    "    Stop the current client pause, resuming traffic.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Suspend all, or just write, clients for <timeout> milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETNAME <name>",
    "    Assign the name <name> to the current connection.",
    "UNBLOCK <clientid> [TIMEOUT|ERROR]",
    "    Unblock the specified blocked client.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
    "         [OPTIN] [OPTOUT] [NOLOOP]",
    "    Control server assisted client side caching.",
    "TRACKINGINFO",
    "    Report tracking status for the current connection.",
    "NO-EVICT (ON|OFF)",
    "    Protect current client connection from eviction.",
    "HELP",
    "    Prints this help.",
];
