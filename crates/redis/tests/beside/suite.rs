//! Goal: what Redis's own suite of tests showed to be different stays the same. Method: for each kind of difference, a few clients who
//! say the same to a redis-server and to a server of ours.

use core::net::{Ipv4Addr, SocketAddr};

use drumlin_fs::net::{Address, ListenOptions, Network, PosixNetwork};
use drumlin_resp::Value;
use drumlin_testkit::redis::Link;

use crate::clients::Both;
use crate::pair::{Pair, Words, words};

/// Has a client say all of `lines`, in which `|` stands between the words.
fn say(both: &mut Both, lines: &[&str]) {
    for line in lines {
        let words: Words = line
            .split('|')
            .map(|word| word.as_bytes().to_vec())
            .collect();
        both.ours.say(&words);
        both.theirs.say(&words);
        let (ours, theirs) = (both.ours.hear(), both.theirs.hear());
        assert_eq!(ours, theirs, "to {line:?}");
    }
}

/// The values of `fields` of INFO, which are the same.
fn same_info(both: &mut Both, fields: &[&str]) {
    let [ours, theirs] = info(both, fields);
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), fields.len(), "{fields:?}");
}

/// The lines of both INFOs that tell of `fields`.
fn info(both: &mut Both, fields: &[&str]) -> [Vec<String>; 2] {
    both.ask("info").map(|text| {
        let text = text.unwrap_or(Value::Null);
        let text = String::from_utf8_lossy(text.as_bytes().unwrap_or_default()).into_owned();
        let has = |line: &&str| {
            let name = line.split(':').next().unwrap_or_default();
            fields.contains(&name)
        };
        text.lines()
            .filter(has)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    })
}

/// A key whose time is over is deleted when a command comes to it, which is told and counted; until then it counts.
#[test]
fn what_a_command_finds_expired_is_deleted() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let [mut both, mut listener] = [0; 2].map(|_| Both::connect(&pair));
    say(
        &mut both,
        &[
            "config|set|notify-keyspace-events|KEA",
            "debug|set-active-expire|0",
        ],
    );
    say(&mut listener, &["psubscribe|__keyevent@0__:*"]);
    let found_by = [
        ("get|k", "set|k|v|px|1"),
        ("mget|none|k|k", "set|k|v|px|1"),
        ("exists|k", "set|k|v|px|1"),
        ("incr|k", "set|k|5|px|1"),
        ("lpush|k|b", "set|k|5|px|1"),
        ("lset|k|0|v", "set|k|5|px|1"),
        ("randomkey", "set|k|5|px|1"),
        ("scan|0", "set|k|5|px|1"),
        ("eval|return redis.call('exists', 'k')|0", "set|k|5|px|1"),
        ("rename|k|other", "set|k|5|px|1"),
    ];
    for (finds, sets) in found_by {
        say(
            &mut both,
            &[
                "del|k",
                sets,
                "debug|sleep|0.005",
                "dbsize",
                "debug|object|none",
            ],
        );
        say(&mut both, &[finds, "dbsize", finds, "dbsize", "type|k"]);
        same_info(&mut both, &["expired_keys"]);
    }
    // Redis looks at the clock twice in PEXPIRE: a time that is over by then deletes the key at once, and is not counted.
    say(
        &mut both,
        &[
            "sadd|k|a|b",
            "pexpire|k|500",
            "debug|sleep|0.55",
            "scard|k",
            "dbsize",
        ],
    );
    same_info(&mut both, &["expired_keys"]);
    // Messages up to this one came in the same order.
    say(&mut both, &["set|last|v"]);
    loop {
        let message = listener.hear().expect("a message");
        let items = message.as_items().unwrap_or_default();
        if items.last().and_then(Value::as_bytes) == Some(b"last") {
            break;
        }
    }
}

/// Keys that commands look up to read them count as hits and misses: Redis says the same of each command.
#[test]
fn keys_that_are_looked_up_are_hits_or_misses() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let mut both = Both::connect(&pair);
    say(
        &mut both,
        &[
            "mset|s|5|t|text",
            "rpush|l|a|b",
            "sadd|u|a|b",
            "zadd|z|1|a",
            "hset|h|f|v",
            "xadd|x|1-1|f|v",
            "pfadd|p|a",
        ],
    );
    let reads = [
        "get|s",
        "get|none",
        "get|l",
        "mget|s|none|l|s",
        "strlen|s",
        "strlen|none",
        "getrange|t|0|1",
        "getset|s|6",
        "getset|new|1",
        "getdel|new",
        "getdel|new",
        "getex|s",
        "getex|none",
        "getbit|t|3",
        "bitcount|t",
        "exists|s|s|none",
        "type|s",
        "type|none",
        "ttl|s",
        "pttl|none",
        "expiretime|s",
        "touch|s|none",
        "dump|none",
        "object|encoding|s",
        "object|refcount|s",
        "llen|l",
        "llen|none",
        "lrange|l|0|-1",
        "lindex|l|0",
        "lpos|l|a",
        "scard|u",
        "sismember|u|a",
        "smismember|u|a|b",
        "sinter|u|none",
        "zcard|z",
        "zscore|z|a",
        "zrange|z|0|-1",
        "zrank|z|a",
        "zcount|z|0|5",
        "zmscore|z|a|b",
        "hget|h|f",
        "hget|none|f",
        "hgetall|h",
        "hmget|h|f|g",
        "hlen|h",
        "hexists|h|f",
        "hkeys|h",
        "hstrlen|h|f",
        "xlen|x",
        "xrange|x|-|+",
        "pfcount|p",
        "pfcount|none",
        "incr|s",
        "append|t|x",
        "setnx|s|1",
        "expire|none|5",
        "rename|t|t2",
        "lpop|l",
        "eval|return redis.call('get', 's')|0",
        "multi;get|s;get|none;exec",
    ];
    let mut others = Vec::new();
    for read in reads {
        let commands: Vec<&str> = read.split(';').collect();
        say(&mut both, &["config|resetstat"]);
        say(&mut both, &commands);
        let [ours, theirs] = info(&mut both, &["keyspace_hits", "keyspace_misses"]);
        assert_eq!(ours.len(), 2);
        if ours != theirs {
            others.push((read, ours, theirs));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

/// Has clients wait for `k` or `other`, one after the other.
fn have_wait(waiters: &mut [Both], other: &mut Both) {
    for (place, waiter) in waiters.iter_mut().enumerate() {
        let wait = words("blpop k other 0");
        waiter.ours.say(&wait);
        waiter.theirs.say(&wait);
        let blocked = format!("blocked_clients:{}\r", place + 1);
        let all_wait = |it: &Option<Value>| {
            let text = it.as_ref().and_then(Value::as_bytes).unwrap_or_default();
            String::from_utf8_lossy(text).contains(&blocked)
        };
        while !other.ask("info clients").iter().all(all_wait) {}
    }
}

/// Clients that wait for a key get its elements in the order in which they came, and those for whom none is left wait on, for their
/// other keys, too.
#[test]
fn clients_that_wait_for_a_key_are_served_as_they_came() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let mut other = Both::connect(&pair);
    let mut waiters = [0; 5].map(|_| Both::connect(&pair));
    have_wait(&mut waiters, &mut other);
    say(&mut other, &["rpush|k|a|b|c|d|e"]);
    for waiter in &mut waiters {
        waiter.hear();
    }
    have_wait(&mut waiters, &mut other);
    say(&mut other, &["rpush|k|a|b"]);
    for waiter in &mut waiters[..2] {
        waiter.hear();
    }
    say(
        &mut other,
        &[
            "rpush|other|c",
            "multi",
            "rpush|k|d",
            "rpush|other|e",
            "exec",
        ],
    );
    for waiter in &mut waiters[2..] {
        waiter.hear();
    }
    say(&mut other, &["exists|k|other"]);
    for waiter in &mut waiters {
        say(waiter, &["ping"]);
    }
}

/// Who watches a key that has expired already sees no change when it is deleted, and neither does who watches none that an expired
/// one replaces.
#[test]
fn watched_keys_that_had_expired_do_not_change() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let [mut both, mut other] = [0; 2].map(|_| Both::connect(&pair));
    say(&mut both, &["debug|set-active-expire|0"]);
    let begin = ["flushall", "select|1", "set|x|v|px|1", "debug|sleep|0.005"];
    let changes: [&[&str]; 6] = [
        &["exists|x"],
        &["flushdb"],
        &["swapdb|0|1"],
        &["set|x|w"],
        &["exists|x", "set|x|w"],
        &["set|x|w|px|1", "debug|sleep|0.005"],
    ];
    for db in ["select|1", "select|0"] {
        for change in changes {
            say(&mut both, &begin);
            say(&mut both, &[db, "watch|x"]);
            say(&mut other, &["select|1"]);
            say(&mut other, change);
            say(&mut both, &["multi", "ping", "exec", "select|0"]);
        }
    }
}

/// A `maxmemory` that no server has room in refuses what needs memory, also within MULTI and scripts, and nothing else.
#[test]
fn without_any_memory_writes_are_refused() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let mut both = Both::connect(&pair);
    say(
        &mut both,
        &[
            "set|k|v",
            "function|load|#!lua name=l\nredis.register_function('w', function() return redis.call('set', 'x', 1) end)\n\
             redis.register_function{function_name='a', callback=function() return redis.call('set', 'x', 1) end, flags={'allow-oom'}}\n\
             redis.register_function{function_name='r', callback=function() return 1 end, flags={'no-writes'}}",
            "config|set|maxmemory|1",
            "get|k",
            "set|k|w",
            "del|none",
            "expire|k|100",
            "lpush|l|a",
            "publish|c|m",
            "multi",
            "get|k",
            "ping",
            "discard",
            "function|load|replace|#!lua name=l2\nredis.register_function('z', function() end)",
            "fcall|w|0",
            "fcall|a|0",
            "fcall|r|0",
            "eval|return redis.call('set', 'x', 1)|0",
            "eval|return redis.pcall('set', 'x', 1).err|0",
            "eval|redis.call('del', 'x') return redis.call('set', 'x', 1)|0",
            "eval|return redis.call('get', 'k')|0",
            "eval|#!lua\nreturn 1|0",
            "eval|#!lua flags=allow-oom\nreturn redis.call('set', 'x', 1)|0",
            "eval|#!lua flags=no-writes\nreturn redis.call('get', 'x')|0",
            "config|set|maxmemory|0",
            "multi",
            "set|k|y",
            "config|set|maxmemory|1",
            "exec",
            "multi",
            "get|k",
            "config|set|maxmemory|0",
            "exec",
            "exec",
            "set|k|z",
        ],
    );
    same_info(&mut both, &["errorstat_OOM", "total_error_replies"]);
}

/// While writes are paused, scripts that declare that they do not write run, also within MULTI; all others wait.
#[test]
fn a_pause_of_writes_lets_scripts_read() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let [mut both, mut other] = [0; 2].map(|_| Both::connect(&pair));
    let function = "function|load|#!lua name=l\nredis.register_function{function_name='r', callback=function() return 'read' end, \
                    flags={'no-writes'}}";
    say(
        &mut both,
        &["set|x|y", function, "client|pause|100000|write"],
    );
    let reads = "eval|#!lua flags=no-writes\nreturn redis.call('get', 'x')|0";
    say(
        &mut other,
        &[
            reads,
            "eval_ro|return redis.call('get', 'x')|0",
            "script|load|#!lua flags=no-writes\nreturn 2",
            "evalsha|ae33f9227913b24d053a555637f98260b23bd3a3|0",
            "fcall|r|0",
            "multi",
            reads,
            "exec",
            "set|x",
        ],
    );
    for waits in [
        "eval|return 1|0",
        "eval|#!lua\nreturn 1|0",
        "evalsha|x|0",
        "set|x|z",
    ] {
        let words: Words = waits
            .split('|')
            .map(|word| word.as_bytes().to_vec())
            .collect();
        other.ours.say(&words);
        other.theirs.say(&words);
        // It is held before the next command of another client is answered.
        while both.ask("info clients").iter().any(|it| !has_blocked(it)) {}
        say(&mut both, &["client|unpause"]);
        other.hear().expect("a reply");
        say(&mut both, &["client|pause|100000|write"]);
    }
    say(&mut both, &["client|unpause"]);
}

fn has_blocked(info: &Option<Value>) -> bool {
    let bytes = info.as_ref().and_then(Value::as_bytes).unwrap_or_default();
    String::from_utf8_lossy(bytes).contains("blocked_clients:1")
}

/// A key that a client changes and then reads, in a transaction or a script, is not told to it.
#[test]
fn what_is_read_after_its_change_is_not_told() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let [mut both, mut other] = [0; 2].map(|_| Both::connect(&pair));
    say(
        &mut both,
        &["debug|set-active-expire|0", "client|tracking|on"],
    );
    // The clients' ids in the reply differ.
    both.ask("hello 3");
    let cases: [&[&str]; 3] = [
        &["multi", "mset|x|1|y|2", "get|y", "exec"],
        &["eval|redis.call('set', KEYS[1], 1) return redis.call('get', KEYS[1])|1|y"],
        &["set|y|5", "get|y"],
    ];
    for case in cases {
        say(&mut both, case);
        say(&mut both, &["ping"]);
        say(&mut other, &["set|y|3"]);
        let told = both.hear().expect("it is told of the other's change");
        assert!(told.to_string().contains("invalidate"), "{told}");
    }
    say(
        &mut both,
        &["set|y|v|px|1", "get|x", "debug|sleep|0.005", "mget|x|y"],
    );
    say(&mut both, &["ping"]);
}

/// Scripts may call all commands where an operator lets them; a subcommand that is not for scripts is refused.
#[test]
fn scripts_are_denied_what_is_not_for_them_unless_told() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let mut both = Both::connect(&pair);
    let calls = [
        "eval|return redis.call('debug', 'protocol', 'bignum')|0",
        "eval|redis.setresp(3) return redis.call('debug', 'protocol', 'map')|0",
        "eval|return redis.call('cluster', 'reset', 'hard')|0",
        "eval|return redis.call('config', 'get', 'databases')|0",
    ];
    say(&mut both, &calls);
    say(&mut both, &["debug|set-disable-deny-scripts|1"]);
    say(&mut both, &calls);
    say(&mut both, &["debug|set-disable-deny-scripts|0"]);
    say(&mut both, &calls);
}

/// CONFIG SET changes all or nothing, the ports too.
#[test]
fn a_configuration_that_cannot_be_applied_changes_nothing() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let mut both = Both::connect(&pair);
    let any = Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let listener = PosixNetwork::new().listen(&any, ListenOptions::default());
    let taken = listener.expect("listens");
    let Address::Tcp(taken_at) = taken.local_address().clone() else {
        panic!("it has a port");
    };
    let port = format!("config|set|maxmemory|10000001|port|{}", taken_at.port());
    say(
        &mut both,
        &[
            "config|set|maxmemory|10000002",
            "config|set|maxmemory|10000001|maxmemory-clients|200%|client-query-buffer-limit|invalid",
            "config|get|maxmemory",
            port.as_str(),
            "config|get|maxmemory",
            "config|set|bind|127.0.0.1",
            "config|get|key-load-delay",
            "config|get|key-load-dela?",
        ],
    );
    // Once the port is free, it serves; a connection outlives it.
    drop(taken);
    let ok = Some(Value::Simple(b"OK".to_vec()));
    let set = |port: u16| format!("config set port {port}");
    assert_eq!(both.ours.ask(&set(taken_at.port())), ok);
    let mut client = Link::to(&Address::Tcp(taken_at));
    for _ in 0..2 {
        client.send(b"PING\r\n");
        assert_eq!(client.receive().as_deref(), Some(b"+PONG\r\n".as_slice()));
        assert_eq!(both.ours.ask(&set(0)), ok);
    }
    let answer = Link::try_to(&Address::Tcp(taken_at)).and_then(|mut link| {
        link.send(b"PING\r\n");
        link.receive()
    });
    assert_eq!(answer, None, "nobody listens there");
}
