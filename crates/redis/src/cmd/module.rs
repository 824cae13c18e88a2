//! MODULE: there are none, and none are loaded.

use drumlin_redis_store::{Failure, Outcome};

use crate::call::Call;
use crate::command::{Command, Flags, NO_KEYS};

pub(crate) const COMMANDS: &[Command] = &[Command::new(
    "module",
    -2,
    Flags::ADMIN.and(Flags::NOSCRIPT),
    NO_KEYS,
    module,
)];

fn module(call: &mut Call<'_, '_>) -> Outcome<()> {
    match call.len() {
        2 if call.is(1, "help") => super::reply_help(call, HELP),
        2 if call.is(1, "list") => {
            call.reply.array(0);
            Ok(())
        }
        3.. if call.is(1, "load") || call.is(1, "loadex") => Err(Failure::refused(
            "ERR Error loading the extension. Please check the server logs.",
        )),
        3 if call.is(1, "unload") => Err(Failure::refused(
            "ERR Error unloading module: no such module with that name",
        )),
        _ => Err(call.unknown_subcommand("MODULE")),
    }
}

const HELP: &[&str] = &[
    "MODULE <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "LIST",
    "    Return a list of loaded modules.",
    "LOAD <path> [<arg> ...]",
    "    Load a module library from <path>, passing to it any optional arguments.",
    "LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
    "    Load a module library from <path>, while passing it module configurations and optional arguments.",
    "UNLOAD <name>",
    "    Unload a module.",
    "HELP",
    "    Prints this help.",
];
