//! Commands that are families of subcommands. Which subcommand is meant, and with how many arguments, is checked before a
//! command is queued or run, as Redis does.

use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::Args;

/// Subcommands with their arities, the names of both counted.
pub(crate) type Subcommands = &'static [(&'static str, i32)];

const CONTAINERS: [(&str, Subcommands); 13] = [
    (
        "client",
        &[
            ("caching", 3),
            ("getname", 2),
            ("getredir", 2),
            ("help", 2),
            ("id", 2),
            ("info", 2),
            ("kill", -3),
            ("list", -2),
            ("no-evict", 3),
            ("pause", -3),
            ("reply", 3),
            ("setname", 3),
            ("tracking", -3),
            ("trackinginfo", 2),
            ("unblock", -3),
            ("unpause", 2),
        ],
    ),
    (
        "cluster",
        &[
            ("addslots", -3),
            ("addslotsrange", -4),
            ("bumpepoch", 2),
            ("count-failure-reports", 3),
            ("countkeysinslot", 3),
            ("delslots", -3),
            ("delslotsrange", -4),
            ("failover", -2),
            ("flushslots", 2),
            ("forget", 3),
            ("getkeysinslot", 4),
            ("help", 2),
            ("info", 2),
            ("keyslot", 3),
            ("links", 2),
            ("meet", -4),
            ("myid", 2),
            ("nodes", 2),
            ("replicas", 3),
            ("replicate", 3),
            ("reset", -2),
            ("saveconfig", 2),
            ("set-config-epoch", 3),
            ("setslot", -4),
            ("shards", 2),
            ("slaves", 3),
            ("slots", 2),
        ],
    ),
    (
        "command",
        &[
            ("count", 2),
            ("docs", -2),
            ("getkeys", -4),
            ("help", 2),
            ("info", -2),
            ("list", -2),
        ],
    ),
    (
        "config",
        &[
            ("get", -3),
            ("help", 2),
            ("resetstat", 2),
            ("rewrite", 2),
            ("set", -4),
        ],
    ),
    (
        "latency",
        &[
            ("doctor", 2),
            ("graph", 3),
            ("help", 2),
            ("histogram", -2),
            ("history", 3),
            ("latest", 2),
            ("reset", -2),
        ],
    ),
    (
        "memory",
        &[
            ("doctor", 2),
            ("help", 2),
            ("malloc-stats", 2),
            ("purge", 2),
            ("stats", 2),
            ("usage", -3),
        ],
    ),
    (
        "function",
        &[
            ("delete", 3),
            ("dump", 2),
            ("flush", -2),
            ("help", 2),
            ("kill", 2),
            ("list", -2),
            ("load", -3),
            ("restore", -3),
            ("stats", 2),
        ],
    ),
    (
        "object",
        &[
            ("encoding", 3),
            ("freq", 3),
            ("help", 2),
            ("idletime", 3),
            ("refcount", 3),
        ],
    ),
    (
        "pubsub",
        &[
            ("channels", -2),
            ("help", 2),
            ("numpat", 2),
            ("numsub", -2),
            ("shardchannels", -2),
            ("shardnumsub", -2),
        ],
    ),
    (
        "script",
        &[
            ("debug", 3),
            ("exists", -3),
            ("flush", -2),
            ("help", 2),
            ("kill", 2),
            ("load", 3),
        ],
    ),
    (
        "slowlog",
        &[("get", -2), ("help", 2), ("len", 2), ("reset", 2)],
    ),
    (
        "xgroup",
        &[
            ("create", -5),
            ("createconsumer", 5),
            ("delconsumer", 5),
            ("destroy", 4),
            ("help", 2),
            ("setid", -5),
        ],
    ),
    (
        "xinfo",
        &[("consumers", 4), ("groups", 3), ("help", 2), ("stream", -3)],
    ),
];

/// The subcommands of the command called `name`; none if it is not a family of them.
pub(crate) fn of(name: &str) -> Subcommands {
    let found = CONTAINERS.iter().find(|(container, _)| *container == name);
    found.map_or(&[], |(_, known)| known)
}

/// The subcommand of the command called `name`, if it has any.
///
/// # Errors
/// As Redis words them.
pub(crate) fn check(name: &str, args: Args<'_>) -> Outcome<Option<&'static str>> {
    let Some((_, known)) = CONTAINERS.iter().find(|(container, _)| *container == name) else {
        return Ok(None);
    };
    let Some(asked) = args.get(1) else {
        return Ok(None);
    };
    let found = known
        .iter()
        .find(|(subcommand, _)| subcommand.as_bytes().eq_ignore_ascii_case(asked));
    let Some((subcommand, arity)) = found else {
        let asked: String = String::from_utf8_lossy(asked).chars().take(128).collect();
        let container = name.to_ascii_uppercase();
        return Err(Failure::because(format!(
            "ERR unknown subcommand '{asked}'. Try {container} HELP."
        )));
    };
    let count = i32::try_from(args.len()).unwrap_or(i32::MAX);
    match count == *arity || *arity < 0 && count >= -arity {
        true => Ok(Some(subcommand)),
        false => Err(Failure::because(format!(
            "ERR wrong number of arguments for '{name}|{subcommand}' command"
        ))),
    }
}
