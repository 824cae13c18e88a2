//! Goal: clients are told of the same commands as by Redis. Method: all that COMMAND tells, command by command; and what is there
//! is answered as what is there. What differs is named here.

use std::collections::BTreeSet;

use drumlin_resp::Value;

use crate::pair::{Pair, Words, words};

/// Commands that Redis 7.0.15 does not have.
const OURS: [&str; 10] = [
    "compact",
    "hexpire",
    "hexpireat",
    "hexpiretime",
    "hpersist",
    "hpexpire",
    "hpexpireat",
    "hpexpiretime",
    "hpttl",
    "httl",
];

fn names(value: &Value) -> BTreeSet<String> {
    let items = value.as_items().expect("a list");
    let text = |it: &Value| String::from_utf8_lossy(it.as_bytes().expect("a name")).into_owned();
    items.iter().map(text).collect()
}

/// The members of each set in order: Redis has subcommands and documents in the order of hash tables.
fn sorted(value: Value) -> Value {
    let name = |item: &Value| match item {
        Value::Array(fields) => fields.first().and_then(Value::as_bytes).map(<[u8]>::to_vec),
        _ => None,
    };
    match value {
        Value::Array(items) => {
            let mut items: Vec<_> = items.into_iter().map(sorted).collect();
            if items
                .iter()
                .all(|item| name(item).is_some_and(|it| it.contains(&b'|')))
            {
                items.sort_by_key(name);
            }
            Value::Array(items)
        }
        Value::Map(pairs) => {
            let mut pairs: Vec<_> = pairs.into_iter().map(|(k, v)| (k, sorted(v))).collect();
            if pairs
                .iter()
                .all(|(_, value)| matches!(value, Value::Map(_)))
            {
                pairs.sort_by_key(|(name, _)| name.as_bytes().map(<[u8]>::to_vec));
            }
            Value::Map(pairs)
        }
        other => other,
    }
}

fn listed(pair: &Pair, line: &str) -> [BTreeSet<String>; 2] {
    let asked = [words(line)];
    let ours = pair.ours.ask(&asked);
    let theirs = crate::pair::ask_redis(&pair.theirs, &asked);
    [&ours, &theirs].map(|replies| names(&replies[0]))
}

#[test]
fn every_command_of_redis_is_there() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let categories = listed(&pair, "ACL CAT");
    assert_eq!(categories[0], categories[1]);
    let filters = categories[1].iter().map(|name| format!("ACLCAT {name}"));
    let filters = filters.chain([
        "PATTERN c*".into(),
        "MODULE none".into(),
        "ACLCAT none".into(),
    ]);
    let lines = filters.map(|it| format!("COMMAND LIST FILTERBY {it}"));
    let cats = categories[1].iter().map(|name| format!("ACL CAT {name}"));
    for line in lines.chain(cats).chain(["COMMAND LIST".to_owned()]) {
        let [ours, theirs] = listed(&pair, &line);
        let is_ours = |name: &&String| !OURS.contains(&name.as_str());
        let ours: Vec<_> = ours.iter().filter(is_ours).collect();
        let theirs: Vec<_> = theirs.iter().collect();
        assert_eq!(ours, theirs, "{line}");
    }
}

#[test]
fn clients_are_told_of_commands_what_redis_tells() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let [_, all] = listed(&pair, "COMMAND LIST");
    let all: Vec<&String> = all.iter().collect();
    for word in ["INFO", "DOCS"] {
        let commands: Vec<_> = all
            .iter()
            .map(|name| words(&format!("COMMAND {word} {name}")))
            .collect();
        pair.same_as_told("3", &commands, |_, value| Some(sorted(value)));
        // Without names of kinds nothing tells what may be put in order.
        let alone = |name: &str| {
            !name.contains('|') && all.iter().all(|it| !it.starts_with(&format!("{name}|")))
        };
        let single: Vec<_> = all.iter().filter(|name| alone(name)).collect();
        let commands: Vec<_> = single
            .iter()
            .map(|name| words(&format!("COMMAND {word} {name}")))
            .collect();
        pair.same("2", &commands, |_| true);
    }
    let lines = [
        "COMMAND INFO get nothing config|nothing config|get GET",
        "COMMAND DOCS nothing get",
    ];
    pair.same("3", &lines.map(words), |_| true);
}

/// Calls of commands whose keys have no fixed place, and some that are wrong.
const CALLS: &[&str] = &[
    "get a",
    "get",
    "get a b",
    "nothing a",
    "config get a",
    "config",
    "ping",
    "mset a 1 b 2",
    "mset a 1 b",
    "set k v",
    "set k v ex 10 get",
    "set k v GET",
    "bitfield k get u8 0",
    "bitfield k get u8 0 set u8 0 1",
    "bitfield k overflow sat",
    "bitfield k overflow sat incrby u8 0 1",
    "bitfield k nothing",
    "sort k",
    "sort k by w* get # get v* limit 0 1 store d",
    "sort k store",
    "sort k by store store d",
    "sort k store d store e",
    "sort_ro k by w* get v*",
    "georadius g 1 2 3 m store d",
    "georadius g 1 2 3 m storedist d store e",
    "georadius g 1 2 3 m store",
    "georadiusbymember g a 3 m store d",
    "xread streams a 1",
    "xread count 1 block 0 streams a b 1 2",
    "xread count 1 streams a b 1",
    "xread nothing streams a 1",
    "xread block 1 streams",
    "xreadgroup group streams c streams s 1",
    "xreadgroup group g c noack streams s t 1 2",
    "eval x 0",
    "eval x 1 a",
    "eval x 2 a b c",
    "eval x 3 a b",
    "eval x -1 a",
    "eval x y a",
    "fcall f 1 a",
    "evalsha x 1 a b",
    "zunionstore d 2 a b",
    "zunionstore d 3 a b",
    "zunionstore d 0 a b",
    "zunion 2 a b weights 1 2",
    "zinter 99999999999999 a b",
    "lmpop 2 a b left",
    "blmpop 0 2 a b left count 1",
    "bzmpop 0 1 a min",
    "sintercard 2 a b limit 1",
    "migrate h 1 k 0 1",
    "migrate h 1 k 0 1 copy keys a b",
    "migrate h 1 '' 0 1 copy keys a b",
    "migrate h 1 '' 0 1 auth keys keys a b",
    "migrate h 1 '' 0 1 auth2 keys keys keys a b",
    "object encoding k",
    "object nothing k",
    "object encoding",
    "xgroup create s g 0",
    "xinfo stream s",
    "memory usage k",
    "memory doctor",
    "publish c m",
    "spublish c m",
    "ssubscribe c",
    "bitop and d a b c",
    "rename a b",
    "smove a b c",
    "lmove a b left right",
    "blpop a b c 0",
    "pfcount a b",
    "pfmerge d a b",
    "copy a b replace",
    "xautoclaim s g c 0 0",
    "dump k",
    "restore k 0 x",
    "append k v",
    "getdel k",
    "unlink a b",
    "watch a b",
    "touch a",
];

#[test]
fn the_keys_of_a_call_are_those_that_redis_finds() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let commands: Vec<Words> = CALLS
        .iter()
        .flat_map(|call| ["GETKEYS", "GETKEYSANDFLAGS"].map(|it| format!("COMMAND {it} {call}")))
        .map(|line| words(&line))
        .collect();
    pair.same("3", &commands, |_| true);
    pair.same("2", &commands, |_| true);
    let help = [
        words("COMMAND HELP"),
        words("COMMAND LIST FILTERBY x y"),
        words("COMMAND GETKEYS"),
    ];
    pair.same("2", &help, |_| true);
}
