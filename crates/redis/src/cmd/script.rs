//! SCRIPT; and the facts of EVAL and its like, which `script` carries out.

use drumlin_redis_store::{Failure, Outcome};

use crate::call::Call;
use crate::command::{Command, Flags, NO_KEYS};

const EVAL: Flags = Flags::NOSCRIPT
    .and(Flags::STALE)
    .and(Flags::SKIP_MONITOR)
    .and(Flags::NO_MANDATORY_KEYS)
    .and(Flags::MOVABLE_KEYS)
    .and(Flags::SCRIPT);
const EVAL_RO: Flags = EVAL.and(Flags::READONLY);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("eval", -3, EVAL, NO_KEYS, elsewhere),
    Command::new("eval_ro", -3, EVAL_RO, NO_KEYS, elsewhere),
    Command::new("evalsha", -3, EVAL, NO_KEYS, elsewhere),
    Command::new("evalsha_ro", -3, EVAL_RO, NO_KEYS, elsewhere),
    Command::new("fcall", -3, EVAL, NO_KEYS, elsewhere),
    Command::new("fcall_ro", -3, EVAL_RO, NO_KEYS, elsewhere),
    Command::new("script", -2, Flags::NONE, NO_KEYS, script),
];

/// Never called: `dispatch` runs scripts, as they run other commands.
fn elsewhere(_call: &mut Call<'_, '_>) -> Outcome<()> {
    Err(Failure::refused(
        "ERR scripts run on the server's own thread",
    ))
}

fn script(call: &mut Call<'_, '_>) -> Outcome<()> {
    let len = call.len();
    match () {
        () if call.is(1, "load") => {
            let body = call.arg(2);
            let sha = call.server()?.scripts.load(body);
            let sha = sha.map_err(|text| Failure::because(format!("ERR {text}")))?;
            call.reply.bulk(sha.as_bytes());
        }
        () if call.is(1, "exists") => {
            call.reply.array(len - 2);
            for sha in call.args.from(2).iter() {
                let sha = String::from_utf8_lossy(sha).to_ascii_lowercase();
                let is_known = call.server()?.scripts.find(&sha).is_some();
                call.reply.integer(i64::from(is_known));
            }
        }
        () if call.is(1, "flush") => {
            let is_mode = call.is(2, "sync") || call.is(2, "async");
            if len > 3 || len == 3 && !is_mode {
                let text = "ERR SCRIPT FLUSH only support SYNC|ASYNC option";
                return Err(Failure::refused(text));
            }
            call.server()?.scripts.flush();
            call.reply.ok();
        }
        () if call.is(1, "kill") => return Err(NOT_BUSY),
        () if call.is(1, "debug") => {
            let text = "ERR the debugger of scripts is not supported";
            return Err(Failure::refused(text));
        }
        () => return super::reply_help(call, HELP),
    }
    Ok(())
}

/// The error of SCRIPT KILL and FUNCTION KILL when no script runs for long.
pub(super) const NOT_BUSY: Failure = Failure::refused("NOTBUSY No scripts in execution right now.");

const HELP: &[&str] = &[
    "SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DEBUG (YES|SYNC|NO)",
    "    Set the debug mode for subsequent scripts executed.",
    "EXISTS <sha1> [<sha1> ...]",
    "    Return information about the existence of the scripts in the script cache.",
    "FLUSH [ASYNC|SYNC]",
    "    Flush the Lua scripts cache. Very dangerous on replicas.",
    "    When called without the optional mode argument, the behavior is determined by the",
    "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
    "    * ASYNC: Asynchronously flush the scripts cache.",
    "    * SYNC: Synchronously flush the scripts cache.",
    "KILL",
    "    Kill the currently executing Lua script.",
    "LOAD <script>",
    "    Load a script into the scripts cache without executing it.",
    "HELP",
    "    Prints this help.",
];
