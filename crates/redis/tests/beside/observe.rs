//! Goal: the server counts and logs commands as Redis does. Method: the same commands to both; then what SLOWLOG, INFO and LATENCY
//! tell of them, without times.

use drumlin_base::rng::Rng;
use drumlin_resp::Value;

use crate::pair::{Pair, Words, pick, words};

const COMMANDS: &[&str] = &[
    "set k v",
    "SET k",
    "get k",
    "GET",
    "incr k",
    "lpush k a",
    "lpush l a b c",
    "blpop l 0.01",
    "no-such-command a b",
    "config get port",
    "CONFIG GET",
    "config no-such-thing",
    "config set requirepass",
    "config set masterauth secret",
    "auth wrong",
    "auth default wrong",
    "hello 9",
    "multi",
    "exec",
    "discard",
    "object encoding k",
    "object freq k",
    "object encoding",
    "client id",
    "client no-such-thing",
    "client setname somebody",
    "slowlog get -2",
    "slowlog get x",
    "slowlog len x",
    "latency history none",
    "latency reset none",
    "latency graph none",
    "latency help x",
    "latency nothing",
    "memory usage none",
    "memory usage k samples -1",
    "memory usage k samples",
    "memory nothing",
    "eval return{redis.call('incr',KEYS[1]),redis.call('get',KEYS[1])} 1 n",
    "eval return{} x",
    "monitor x",
    "sadd s 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33",
    "sadd s 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32",
    "config rewrite",
    "cluster info",
    "cluster nothing",
    "cluster keyslot",
    "readonly",
    "readwrite",
    "asking",
    "client pause x",
    "client pause -1",
    "client pause 1 some",
    "client unpause",
    "client caching yes",
    "client caching",
    "client tracking maybe",
    "client tracking on prefix a",
    "client tracking on bcast optin",
    "client tracking on optin optout",
    "client tracking on redirect 999999999",
    "client tracking on bcast prefix ab prefix a",
    "client tracking off",
    "client getredir",
    "client trackinginfo",
    "client kill type nobody",
    "client kill user nobody",
    "client kill id 0",
    "client list type nobody",
    "client no-evict off",
    "pubsub shardchannels",
    "pubsub shardnumsub a b",
    "spublish c hello",
    "debug nothing-of-this",
];

/// What has to be the same of a reply.
fn told(command: &Words, value: Value) -> Option<Value> {
    match command.join(&b' ').as_slice() {
        // Numbers of clients differ.
        b"client id" | b"exec" => None,
        b"slowlog get -1" => Some(without_times(value)),
        b"info stats" => Some(lines_of_stats(&value)),
        line if line.starts_with(b"info ") => Some(lines(&value)),
        line if line.starts_with(b"latency histogram") => Some(calls(value)),
        _ => Some(value),
    }
}

/// The lines of INFO that count what commands did.
fn lines_of_stats(value: &Value) -> Value {
    const NAMES: [&str; 4] = [
        "total_commands_processed",
        "keyspace_hits",
        "keyspace_misses",
        "total_error_replies",
    ];
    let text = String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned();
    let is_told = |line: &&str| NAMES.iter().any(|name| line.starts_with(name));
    let lines: Vec<&str> = text.lines().filter(is_told).collect();
    assert_eq!(lines.len(), NAMES.len(), "{text}");
    Value::Bulk(lines.join("\n").into_bytes())
}

/// Entries of the slow log: their ids, arguments and names.
fn without_times(value: Value) -> Value {
    let Value::Array(entries) = value else {
        return value;
    };
    let kept = entries.into_iter().map(|entry| match entry {
        Value::Array(mut fields) => {
            fields.drain(1..3);
            fields.remove(2);
            Value::Array(fields)
        }
        other => other,
    });
    Value::Array(kept.collect())
}

/// Lines of INFO without times, in order of their names: Redis has them in that of a hash table.
fn lines(value: &Value) -> Value {
    let text = String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned();
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| {
            let fields = line.split(',').filter(|field| !field.starts_with("usec"));
            let fields: Vec<&str> = fields.collect();
            // Times of latencystats: their names only.
            match line.strip_prefix("latency_percentiles") {
                Some(rest) => rest.split(':').next().unwrap_or_default().to_owned(),
                None => fields.join(","),
            }
        })
        .collect();
    lines.sort();
    Value::Bulk(lines.join("\n").into_bytes())
}

/// Numbers of calls by command.
fn calls(value: Value) -> Value {
    let pairs = match value {
        Value::Map(pairs) => pairs,
        other => return other,
    };
    let calls = |value: Value| match value {
        Value::Map(fields) => fields.into_iter().next().map(|(_, calls)| calls),
        other => Some(other),
    };
    let mut pairs: Vec<_> = pairs
        .into_iter()
        .map(|(name, value)| (name, calls(value).unwrap_or(Value::Null)))
        .collect();
    pairs.sort_by_key(|(name, _)| name.as_bytes().map(<[u8]>::to_vec));
    Value::Map(pairs)
}

#[test]
fn commands_are_counted_and_logged_as_redis_does() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let count: u64 = number("REDIS_COMMANDS").unwrap_or(2_000);
    let first: u64 = number("REDIS_SEED").unwrap_or(1);
    let Some(pair) = Pair::start() else {
        return;
    };
    for seed in first..first + count.div_ceil(500) {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut commands: Vec<Words> = [
            "flushall",
            "config set slowlog-max-len 1000 slowlog-log-slower-than 0",
            "slowlog reset",
            "latency reset",
            "config resetstat",
        ]
        .map(words)
        .to_vec();
        commands.extend((0..500).map(|_| words(pick(&mut rng, COMMANDS))));
        commands.push(words("discard"));
        commands.extend(
            [
                "info stats",
                "slowlog len",
                "slowlog get -1",
                "info commandstats",
                "info errorstats",
                "info latencystats",
                "latency histogram",
                "latency histogram config set nothing client|id",
                "latency latest",
            ]
            .map(words),
        );
        pair.same_as_told("3", &commands, told);
    }
}

/// Goal: a script or an EXEC that is undone for the disk, and runs again, is counted once. Method: both servers, with commands that
/// succeed, fail and are refused before one that needs data which ours has on disk only; then what both have counted.
#[test]
fn what_runs_again_is_counted_once() {
    const SCRIPT: &str = "redis.call('set', 'fresh', 1)
        redis.call('get', 'fresh')
        redis.pcall('incr', 'fresh', 'x')
        redis.pcall('lpush', 'fresh', 'x')
        for at = 0, 2999, 500 do
          redis.call('get', 'key:' .. at)
        end
        return redis.call('get', 'nothing')";
    let Some(mut pair) = Pair::start() else {
        return;
    };
    let value = "v".repeat(200);
    let fill: Vec<Words> = (0..3_000)
        .map(|number| words(&format!("set key:{number} {value}")))
        .collect();
    pair.same("2", &fill, |_| true);
    pair.ours.ask(&[words("compact")]);
    let script = ["eval", SCRIPT, "0"].map(|word| word.as_bytes().to_vec());
    let script = script.to_vec();
    let exec = |command: &Words| {
        let [multi, first, failing, last] =
            ["multi", "set fresh 1", "lpush fresh x", "exec"].map(words);
        vec![multi, first, failing, command.clone(), last]
    };
    for undone in [
        vec![script.clone()],
        exec(&script),
        exec(&words("get key:250")),
    ] {
        // The compaction ends with the server; what is read now is on disk.
        pair.ours.restart();
        let mut commands = vec![words("config resetstat")];
        commands.extend(undone);
        commands.extend(
            [
                "info stats",
                "info commandstats",
                "info errorstats",
                "info latencystats",
                "latency histogram",
            ]
            .map(words),
        );
        pair.same_as_told("3", &commands, |command, value| {
            let is_exec = *command == words("exec");
            if is_exec {
                Some(value)
            } else {
                told(command, value)
            }
        });
        let info = pair.ours.ask(&[words("info stats")]).remove(0);
        let text = String::from_utf8_lossy(info.as_bytes().unwrap_or_default()).into_owned();
        assert!(!text.contains("cold_commands:0"), "they met the disk");
    }
}

/// Goal: INFO has all of Redis's fields, in its order. Method: the names of both, ours among them taken out.
#[test]
fn info_has_all_fields_of_redis() {
    const OURS: &[&str] = &[
        "server_name",
        "drumlin_version",
        "newest_seqno",
        "durable_seqno",
        "last_error",
        "rounds",
        "lent_connections",
        "cold_commands",
        "stalled_rounds",
        "collections",
        "clients_limit",
        "compactions_asked_for",
    ];
    let Some(pair) = Pair::start() else {
        return;
    };
    let names = |_: &Words, value: Value| {
        let text = String::from_utf8_lossy(value.as_bytes()?).into_owned();
        // A section that Redis does not have is the last.
        let redis = text.split("\r\n# RocksDB").next()?;
        let names = redis.lines().filter_map(|line| {
            let name = line.split(':').next()?;
            // Commands come in the order of a hash table.
            let is_stat = name.starts_with("cmdstat") || name.starts_with("latency_p");
            let is_ours = OURS.contains(&name) || name.starts_with("budget_");
            (!is_stat && !is_ours).then(|| name.to_owned())
        });
        Some(Value::Bulk(
            names.collect::<Vec<_>>().join("\n").into_bytes(),
        ))
    };
    let sections = [
        "all",
        "everything",
        "default",
        "memory stats",
        "nothing",
        "modules",
    ];
    let commands: Vec<Words> = sections.map(|it| words(&format!("info {it}"))).to_vec();
    let once: Vec<Words> = [vec![words("config resetstat")], commands].concat();
    pair.same_as_told("2", &once, names);
}

/// Goal: what tests of clients ask of DEBUG is answered as Redis answers it, and objects that it shares are told as shared.
#[test]
fn debug_and_object_answer_as_redis() {
    const TYPES: &str =
        "string integer double bignum null array set map true false verbatim nothing";
    const REST: [&str; 10] = [
        "debug populate 20",
        "debug populate 3 other 7",
        "get key:19",
        "get other:2",
        "dbsize",
        "debug object nothing",
        "set shared 9999",
        "object refcount shared",
        "incr shared",
        "object refcount shared",
    ];
    let Some(pair) = Pair::start() else {
        return;
    };
    for protocol in ["2", "3"] {
        let types = TYPES
            .split(' ')
            .map(|name| format!("debug protocol {name}"));
        let mut commands: Vec<Words> = types.map(|line| words(&line)).collect();
        if protocol == "2" {
            commands.extend(["attrib", "push"].map(|it| words(&format!("debug protocol {it}"))));
        }
        commands.push(words("flushall"));
        commands.extend(REST.map(words));
        // Stars that Redis goes through before it takes a pattern for one that matches nothing.
        commands.push(vec![b"set".to_vec(), vec![b'a'; 2_000], b"1".to_vec()]);
        commands.extend(
            [999, 1_000, 1_001, 1_002].map(|stars| vec![b"keys".to_vec(), b"*a".repeat(stars)]),
        );
        pair.same(protocol, &commands, |_| true);
    }
}
