//! ACL: users, and what each may do.

use drumlin_redis_store::{Failure, Outcome};
use rustls::crypto::ring;

use super::acl_show as show;
use crate::accounts;
use crate::acl::{Denial, has_spaces, hex};
use crate::call::{Call, NOT_AN_INTEGER, SYNTAX};
use crate::catalog::{self, CATEGORIES};
use crate::command::{Command, Flags, NO_KEYS};
use crate::state::ServerState;

/// Bits of a generated password: without an argument, and at most.
const PASSWORD_BITS: i64 = 256;
const PASSWORD_BITS_MAX: i64 = 4_096;
/// Entries of the log that are shown without an argument.
const LOG_ENTRIES: i64 = 10;

pub(crate) const COMMANDS: &[Command] = &[Command::new(
    "acl",
    -2,
    Flags::ADMIN
        .and(Flags::NOSCRIPT)
        .and(Flags::LOADING)
        .and(Flags::STALE),
    NO_KEYS,
    acl,
)];

fn acl(call: &mut Call<'_, '_>) -> Outcome<()> {
    let name = call.arg(1).to_ascii_lowercase();
    match (name.as_slice(), call.len()) {
        (b"setuser", 3..) => setuser(call),
        (b"deluser", 3..) => deluser(call),
        (b"getuser", 3) => show::getuser(call),
        (b"list" | b"users", 2) => show::list(call, name == b"list"),
        (b"whoami", 2) => whoami(call),
        (b"load" | b"save", 2) if server(call)?.config.get("aclfile").is_empty() => {
            Err(Failure::refused(NO_FILE))
        }
        (b"load", 2) => load(call),
        (b"save", 2) => save(call),
        (b"cat", 2 | 3) => cat(call),
        (b"genpass", 2 | 3) => genpass(call),
        (b"log", 2 | 3) => log(call),
        (b"dryrun", 4..) => dryrun(call),
        (b"help", 2) => super::reply_help(call, HELP),
        _ => Err(call.unknown_subcommand("ACL")),
    }
}

const NO_FILE: &str = "ERR This Redis instance is not configured to use an ACL file. You may want \
     to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you \
     have a Redis configuration file set) in order to store users in the Redis configuration.";

fn server<'a>(call: &'a mut Call<'_, '_>) -> Outcome<&'a mut ServerState> {
    call.server()
}

// Changes.

fn setuser(call: &mut Call<'_, '_>) -> Outcome<()> {
    let name = call.arg(2);
    if has_spaces(name) {
        let text = "ERR Usernames can't contain spaces or null characters";
        return Err(Failure::refused(text));
    }
    let rules: Vec<&[u8]> = call.args.from(3).iter().collect();
    let elsewhere = Failure::refused("ERR users change on the server's own thread");
    let server = call.server.as_deref_mut().ok_or(elsewhere)?;
    let user = server.users.changed(name, &rules);
    let user = user.map_err(|text| Failure::because(format!("ERR {text}")))?;
    call.session.closes |= accounts::change(server, user, call.session);
    call.reply.ok();
    Ok(())
}

fn deluser(call: &mut Call<'_, '_>) -> Outcome<()> {
    let names: Vec<&[u8]> = call.args.from(2).iter().collect();
    if names.contains(&b"default".as_slice()) {
        let text = "ERR The 'default' user cannot be removed";
        return Err(Failure::refused(text));
    }
    let server = call.server()?;
    let gone: Vec<_> = names
        .iter()
        .filter_map(|name| server.users.remove(name))
        .collect();
    accounts::close(server, &gone);
    end_own(call, &gone);
    call.reply.integer(gone.len() as i64);
    Ok(())
}

/// Has the own client closed after its reply, if its user is gone.
fn end_own(call: &mut Call<'_, '_>, gone: &[crate::acl::UserId]) {
    if call.session.user.is_some_and(|id| gone.contains(&id)) {
        call.session.user = Some(crate::acl::UserId::DEFAULT);
        call.session.is_authenticated = false;
        call.session.closes = true;
    }
}

fn load(call: &mut Call<'_, '_>) -> Outcome<()> {
    let gone = accounts::read_file(call.server()?);
    let gone = gone.map_err(|text| Failure::because(format!("ERR {text}")))?;
    end_own(call, &gone);
    call.reply.ok();
    Ok(())
}

fn save(call: &mut Call<'_, '_>) -> Outcome<()> {
    accounts::write_file(call.server()?).map_err(|_| {
        Failure::refused(
            "ERR There was an error trying to save the ACLs. Please check the server logs for more \
             information",
        )
    })?;
    call.reply.ok();
    Ok(())
}

// Questions.

fn whoami(call: &mut Call<'_, '_>) -> Outcome<()> {
    let user = call.session.user;
    let name = match user {
        Some(id) => call.server()?.users.get(id).map(|user| user.name.clone()),
        None => None,
    };
    match name {
        Some(name) => call.reply.bulk(&name),
        None => call.reply.null(),
    }
    Ok(())
}

fn cat(call: &mut Call<'_, '_>) -> Outcome<()> {
    let names: Vec<&str> = match call.len() {
        2 => CATEGORIES.to_vec(),
        _ => {
            let name = call.arg(2);
            let category = catalog::category(name).ok_or_else(|| {
                let name: String = String::from_utf8_lossy(name).chars().take(128).collect();
                Failure::because(format!("ERR Unknown category '{name}'"))
            })?;
            let all = catalog::all().iter();
            let all = all.filter(|entry| entry.categories.has(category));
            all.map(|entry| entry.name).collect()
        }
    };
    call.reply.array(names.len());
    let names = names.iter();
    names.for_each(|name| call.reply.bulk(name.as_bytes()));
    Ok(())
}

fn genpass(call: &mut Call<'_, '_>) -> Outcome<()> {
    let bits = match call.len() {
        2 => PASSWORD_BITS,
        _ => call.integer(2)?,
    };
    if !(1..=PASSWORD_BITS_MAX).contains(&bits) {
        return Err(Failure::because(format!(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a \
             positive number up to {PASSWORD_BITS_MAX}"
        )));
    }
    let digits = usize::try_from((bits + 3) / 4).unwrap_or(0);
    let mut bytes = vec![0; digits.div_ceil(2)];
    // Not the server's own numbers, which a seed repeats.
    let filled = ring::default_provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| Failure::refused("ERR the system has no random bytes"))?;
    let text = hex(&bytes);
    call.reply
        .bulk(text.get(..digits).unwrap_or_default().as_bytes());
    Ok(())
}

fn log(call: &mut Call<'_, '_>) -> Outcome<()> {
    if call.len() == 3 && call.is(2, "reset") {
        call.server()?.users.log.clear();
        call.reply.ok();
        return Ok(());
    }
    let most = match call.len() {
        2 => LOG_ENTRIES,
        _ => call.integer(2).map_err(|_| NOT_AN_INTEGER)?,
    };
    show::log(call, usize::try_from(most).unwrap_or(0))
}

fn dryrun(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (name, args) = (call.arg(2), call.args.from(3));
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let server = call.server.as_deref().ok_or(SYNTAX)?;
    let Some((_, user)) = server.users.find(name) else {
        return Err(Failure::because(format!(
            "ERR User '{}' not found",
            shown(name)
        )));
    };
    let command = args.get(0).unwrap_or_default();
    let found = server.commands.find(command);
    let Some(entry) = found.and_then(|it| catalog::lookup(it.entry(), args)) else {
        let text = format!("ERR Command '{}' not found", shown(command));
        return Err(Failure::because(text));
    };
    if !entry.takes(args.len()) {
        return Err(call.wrong_arity(entry.name));
    }
    let Some(denied) = user.lacks(entry, args) else {
        call.reply.ok();
        return Ok(());
    };
    let arg = shown(args.get(denied.at).unwrap_or_default());
    let what = match denied.what {
        Denial::Command => format!("run the '{}' command", entry.name),
        Denial::Key => format!("access the '{arg}' key"),
        Denial::Channel => format!("access the '{arg}' channel"),
    };
    let text = format!("This user has no permissions to {what}");
    call.reply.bulk(text.as_bytes());
    Ok(())
}

const HELP: &[&str] = &[
    "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CAT [<category>]",
    "    List all commands that belong to <category>, or all command categories",
    "    when no category is specified.",
    "DELUSER <username> [<username> ...]",
    "    Delete a list of users.",
    "DRYRUN <username> <command> [<arg> ...]",
    "    Returns whether the user can execute the given command without executing the command.",
    "GETUSER <username>",
    "    Get the user's details.",
    "GENPASS [<bits>]",
    "    Generate a secure 256-bit user password. The optional `bits` argument can",
    "    be used to specify a different size.",
    "LIST",
    "    Show users details in config file format.",
    "LOAD",
    "    Reload users from the ACL file.",
    "LOG [<count> | RESET]",
    "    Show the ACL log entries.",
    "SAVE",
    "    Save the current config to the ACL file.",
    "SETUSER <username> <attribute> [<attribute> ...]",
    "    Create or modify a user with the specified attributes.",
    "USERS",
    "    List all the registered usernames.",
    "WHOAMI",
    "    Return the current connection username.",
    "HELP",
    "    Prints this help.",
];
