//! COMMAND: what there is to call.

use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::Args;

use crate::call::{Call, SYNTAX};
use crate::command::{Command, Flags, NO_KEYS};
use crate::facts::Facts;
use crate::glob;

pub(crate) const COMMANDS: &[Command] = &[Command::new(
    "command",
    -1,
    Flags::LOADING.and(Flags::STALE),
    NO_KEYS,
    command,
)];

fn command(call: &mut Call<'_, '_>) -> Outcome<()> {
    let all = std::sync::Arc::clone(&call.server()?.commands);
    let len = call.len();
    match () {
        () if len == 1 => reply_all(call, &all),
        () if call.is(1, "info") && len == 2 => reply_all(call, &all),
        () if call.is(1, "info") => {
            call.reply.array(len - 2);
            for name in call.args.from(2).iter() {
                match find(&all, name) {
                    Some(command) => reply_info(call, command),
                    None => call.reply.null_array(),
                }
            }
        }
        () if call.is(1, "count") && len == 2 => call.reply.integer(all.len() as i64),
        () if call.is(1, "list") => {
            let pattern = match len {
                2 => None,
                5 if call.is(2, "filterby") && call.is(3, "pattern") => Some(call.arg(4)),
                _ => return Err(SYNTAX),
            };
            let wanted = |command: &&Facts| {
                let name = command.name.as_bytes();
                pattern.is_none_or(|pattern| glob::matches(&pattern.to_ascii_lowercase(), name))
            };
            let names: Vec<_> = all
                .iter()
                .filter(wanted)
                .map(|command| command.name)
                .collect();
            call.reply.array(names.len());
            names
                .iter()
                .for_each(|name| call.reply.bulk(name.as_bytes()));
        }
        () if call.is(1, "docs") => {
            // Summaries are in the documents; clients take an empty map for a server without them.
            call.reply.map(0);
        }
        () if call.is(1, "getkeys") && len > 2 => return getkeys(call, &all),
        () if call.is(1, "help") && len == 2 => return super::reply_help(call, HELP),
        () => return Err(call.unknown_subcommand("COMMAND")),
    }
    Ok(())
}

fn find<'a>(all: &'a [Facts], name: &[u8]) -> Option<&'a Facts> {
    all.iter()
        .find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

fn reply_all(call: &mut Call<'_, '_>, all: &[Facts]) {
    call.reply.array(all.len());
    all.iter().for_each(|command| reply_info(call, command));
}

fn reply_info(call: &mut Call<'_, '_>, command: &Facts) {
    call.reply.array(10);
    call.reply.bulk(command.name.as_bytes());
    call.reply.integer(i64::from(command.arity));
    let flags: Vec<_> = command.flags.names().collect();
    call.reply.set(flags.len());
    flags
        .iter()
        .for_each(|flag| call.reply.simple(flag.as_bytes()));
    for position in [command.keys.first, command.keys.last, command.keys.step] {
        call.reply.integer(i64::from(position));
    }
    // ACL categories, tips, key specifications, subcommands.
    call.reply.set(0);
    (0..3).for_each(|_| call.reply.array(0));
}

/// Commands with a number of keys, which follow it, and the place of that number.
const COUNTED_KEYS: &[(&str, usize)] = &[
    ("blmpop", 2),
    ("bzmpop", 2),
    ("eval", 2),
    ("eval_ro", 2),
    ("evalsha", 2),
    ("evalsha_ro", 2),
    ("fcall", 2),
    ("fcall_ro", 2),
    ("lmpop", 1),
    ("sintercard", 1),
    ("zdiff", 1),
    ("zdiffstore", 2),
    ("zinter", 1),
    ("zintercard", 1),
    ("zinterstore", 2),
    ("zmpop", 1),
    ("zunion", 1),
    ("zunionstore", 2),
];

/// The keys among the arguments of a command.
pub(crate) fn keys_of<'a>(command: &Facts, args: Args<'a>) -> impl Iterator<Item = &'a [u8]> {
    let counts = COUNTED_KEYS.iter().find(|(name, _)| *name == command.name);
    let counted = counts.and_then(|(_, at)| {
        let count = args.get(*at).and_then(drumlin_resp::integer)?;
        let after = args.from(at + 1);
        let count = usize::try_from(count)
            .ok()
            .filter(|it| *it <= after.len())?;
        Some(after.iter().take(count))
    });
    let positions = command.key_positions(args.len());
    let named = positions.filter_map(move |at| args.get(at));
    // The key of MIGRATE is empty where others follow.
    let is_none = command.name == "migrate";
    let named = named.filter(move |key| !(is_none && key.is_empty()));
    named
        .chain(counted.into_iter().flatten())
        .chain(other_keys(command.name, args))
}

/// The keys that have no fixed place: of commands of streams those behind STREAMS, with as many ids behind them, and that of a
/// subcommand; of MIGRATE those behind KEYS.
fn other_keys<'a>(name: &str, args: Args<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let (mut at, mut count) = (1, 0);
    match name {
        "xgroup" | "xinfo" => (at, count) = (2, 1),
        "migrate" if args.get(3).is_some_and(<[u8]>::is_empty) => {
            let is_word = |arg: &[u8]| arg.eq_ignore_ascii_case(b"keys");
            let word = (6..args.len()).find(|at| args.get(*at).is_some_and(is_word));
            at = word.map_or(args.len(), |word| word + 1);
            count = args.len() - at;
        }
        "xread" | "xreadgroup" => {
            while let Some(arg) = args.get(at) {
                at += match arg.to_ascii_lowercase().as_slice() {
                    b"noack" => 1,
                    b"block" | b"count" => 2,
                    b"group" => 3,
                    option => {
                        let left = args.len() - at - 1;
                        let has_pairs = option == b"streams" && left.is_multiple_of(2);
                        count = if has_pairs { left / 2 } else { 0 };
                        at += 1;
                        break;
                    }
                };
            }
        }
        _ => {}
    }
    args.from(at).iter().take(count)
}

fn getkeys(call: &mut Call<'_, '_>, all: &[Facts]) -> Outcome<()> {
    let args = call.args.from(2);
    let name = args.get(0).unwrap_or_default();
    let command = find(all, name).ok_or(Failure::refused("ERR Invalid command specified"))?;
    if !command.takes(args.len()) {
        return Err(Failure::refused(
            "ERR Invalid number of arguments specified for command",
        ));
    }
    let counts = COUNTED_KEYS.iter().find(|(name, _)| *name == command.name);
    let count = counts.map(|(_, at)| args.get(*at).and_then(drumlin_resp::integer));
    let mut keys: Vec<&[u8]> = keys_of(command, args).collect();
    let lacks_streams = command.name.starts_with("xread") && keys.is_empty();
    if count.is_some_and(|count| count.is_none_or(|count| count < 1 || count > keys.len() as i64))
        || lacks_streams
    {
        return Err(Failure::refused(
            "ERR Invalid arguments specified for command",
        ));
    }
    keys.extend(stored_keys(command.name, args));
    if keys.is_empty() {
        return Err(Failure::refused("ERR The command has no key arguments"));
    }
    call.reply.array(keys.len());
    keys.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

/// The keys that options name, to store at. Of GEORADIUS and GEORADIUSBYMEMBER it is the first behind each of two words, of SORT
/// the last behind one, where that word is no argument of another option.
fn stored_keys<'a>(name: &str, args: Args<'a>) -> Vec<&'a [u8]> {
    let is = |at: usize, word: &str| {
        let arg = args.get(at).unwrap_or_default();
        arg.eq_ignore_ascii_case(word.as_bytes())
    };
    let first_behind = |from: usize, word: &str| {
        let mut places = from..args.len().saturating_sub(1);
        places
            .find(|at| is(*at, word))
            .and_then(|at| args.get(at + 1))
    };
    let found = match name {
        "georadius" => [first_behind(6, "store"), first_behind(6, "storedist")],
        "georadiusbymember" => [first_behind(5, "store"), first_behind(5, "storedist")],
        "sort" => {
            let (mut at, mut found) = (2, None);
            while at < args.len() {
                at += match () {
                    () if is(at, "limit") => 3,
                    () if is(at, "get") || is(at, "by") => 2,
                    () if is(at, "store") && at + 1 < args.len() => {
                        found = args.get(at + 1);
                        1
                    }
                    () => 1,
                };
            }
            [found, None]
        }
        _ => [None, None],
    };
    found.into_iter().flatten().collect()
}

const HELP: &[&str] = &[
    "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "(no subcommand)",
    "    Return details about all commands.",
    "COUNT",
    "    Return the total number of commands in this server.",
    "LIST [FILTERBY PATTERN <pattern>]",
    "    Return a list of all commands in this server.",
    "INFO [<command-name> ...]",
    "    Return details about multiple commands.",
    "GETKEYS <full-command>",
    "    Return the keys from a full command.",
    "HELP",
    "    Print this help.",
];
