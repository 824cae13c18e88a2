//! COMMAND: what there is to call.

use std::sync::Arc;

use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::Args;

use super::command_info as info;
use crate::call::{Call, SYNTAX};
use crate::catalog::{self, Entry};
use crate::command::{Command, Flags, NO_KEYS};
use crate::facts::Facts;
use crate::glob;
use crate::known::Known;

pub(crate) const COMMANDS: &[Command] = &[Command::new(
    "command",
    -1,
    Flags::LOADING.and(Flags::STALE),
    NO_KEYS,
    command,
)];

fn command(call: &mut Call<'_, '_>) -> Outcome<()> {
    let known = Arc::clone(&call.server()?.commands);
    let len = call.len();
    match () {
        () if len == 1 => reply_all(call, &known),
        () if call.is(1, "info") && len == 2 => reply_all(call, &known),
        () if call.is(1, "info") => {
            call.reply.array(len - 2);
            for name in call.args.from(2).iter() {
                match find(&known, name) {
                    Some(entry) => info::reply(call.reply, entry),
                    None => call.reply.null_array(),
                }
            }
        }
        () if call.is(1, "count") && len == 2 => call.reply.integer(known.all().len() as i64),
        () if call.is(1, "list") => return list(call, &known),
        () if call.is(1, "docs") => docs(call, &known),
        () if call.is(1, "getkeys") && len > 2 => return getkeys(call, &known, false),
        () if call.is(1, "getkeysandflags") && len > 2 => return getkeys(call, &known, true),
        () if call.is(1, "help") && len == 2 => return super::reply_help(call, HELP),
        () => return Err(call.unknown_subcommand("COMMAND")),
    }
    Ok(())
}

/// The command or subcommand of this name, as clients may call it.
fn find(known: &Known, name: &[u8]) -> Option<&'static Entry> {
    let mut parts = name.splitn(2, |byte| *byte == b'|');
    let family = known.find(parts.next()?)?.entry();
    match parts.next() {
        None => Some(family),
        Some(own) => catalog::child(family, own),
    }
}

/// The commands that are there.
fn present(known: &Known) -> Vec<&'static Entry> {
    known.all().map(Facts::entry).collect()
}

fn reply_all(call: &mut Call<'_, '_>, known: &Known) {
    let all = present(known);
    call.reply.array(all.len());
    all.iter().for_each(|entry| info::reply(call.reply, entry));
}

/// What a listing of commands is confined to.
enum Filter<'a> {
    None,
    /// Of a module: there are none.
    Module,
    Category(&'a [u8]),
    Pattern(&'a [u8]),
}

impl Filter<'_> {
    fn takes(&self, entry: &Entry) -> bool {
        match self {
            Self::None => true,
            Self::Module => false,
            Self::Category(name) => {
                catalog::category(name).is_some_and(|it| entry.categories.has(it))
            }
            Self::Pattern(pattern) => {
                glob::matches(&pattern.to_ascii_lowercase(), entry.name.as_bytes())
            }
        }
    }
}

fn list(call: &mut Call<'_, '_>, known: &Known) -> Outcome<()> {
    let filter = match call.len() {
        2 => Filter::None,
        5 if !call.is(2, "filterby") => return Err(SYNTAX),
        5 if call.is(3, "module") => Filter::Module,
        5 if call.is(3, "aclcat") => Filter::Category(call.arg(4)),
        5 if call.is(3, "pattern") => Filter::Pattern(call.arg(4)),
        _ => return Err(SYNTAX),
    };
    let families = present(known).into_iter();
    let all = families.flat_map(|it| [it].into_iter().chain(catalog::children(it)));
    let names: Vec<_> = all
        .filter(|entry| filter.takes(entry))
        .map(|entry| entry.name)
        .collect();
    call.reply.array(names.len());
    let names = names.iter();
    names.for_each(|name| call.reply.bulk(name.as_bytes()));
    Ok(())
}

fn docs(call: &mut Call<'_, '_>, known: &Known) {
    let wanted: Vec<_> = match call.len() {
        2 => present(known),
        _ => {
            let names = call.args.from(2);
            names.iter().filter_map(|name| find(known, name)).collect()
        }
    };
    let mark = call.reply.begin_map();
    let mut count = 0;
    for entry in wanted {
        if catalog::has_docs(entry.name) {
            call.reply.bulk(entry.name.as_bytes());
            catalog::write_docs(entry.name, call.reply);
            count += 1;
        }
    }
    call.reply.finish(mark, count);
}

fn getkeys(call: &mut Call<'_, '_>, known: &Known, with_flags: bool) -> Outcome<()> {
    let args = call.args.from(2);
    let refused = |text| Err(Failure::refused(text));
    let found = known.find(args.get(0).unwrap_or_default());
    let Some(entry) = found.and_then(|it| catalog::lookup(it.entry(), args)) else {
        return refused("ERR Invalid command specified");
    };
    if !catalog::has_keys(entry) {
        return refused("ERR The command has no key arguments");
    }
    if !entry.takes(args.len()) {
        return refused("ERR Invalid number of arguments specified for command");
    }
    let places = catalog::key_places(entry, args);
    if places.is_empty() && !entry.is("no_mandatory_keys") {
        return refused("ERR Invalid arguments specified for command");
    }
    call.reply.array(places.len());
    for place in places {
        if with_flags {
            call.reply.array(2);
        }
        call.reply.bulk(args.get(place.at).unwrap_or_default());
        if with_flags {
            info::reply_names(call.reply, place.flags.names());
        }
    }
    Ok(())
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

const HELP: &[&str] = &[
    "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "(no subcommand)",
    "    Return details about all Redis commands.",
    "COUNT",
    "    Return the total number of commands in this Redis server.",
    "LIST",
    "    Return a list of all commands in this Redis server.",
    "INFO [<command-name> ...]",
    "    Return details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "DOCS [<command-name> ...]",
    "    Return documentation details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "GETKEYS <full-command>",
    "    Return the keys from a full Redis command.",
    "GETKEYSANDFLAGS <full-command>",
    "    Return the keys and the access flags from a full Redis command.",
    "HELP",
    "    Prints this help.",
];
