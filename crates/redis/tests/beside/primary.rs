//! Goal: a redis-server and a server of ours follow a server of ours that is written to, lose the connection, go on, and have
//! the same data. Method: random commands of all types before, while and after the data comes; WAIT says when all of it is
//! there, so nothing depends on time. DEBUG DIGEST tells of all data.

use drumlin_base::rng::Rng;
use drumlin_resp::Value;
use drumlin_testkit::redis::{self, Server};

use crate::pair::{Ours, Words, ask_redis, pick, words};
use crate::replica::free_port;

/// A key of a type.
fn key(rng: &mut Rng, kind: &str) -> String {
    format!("{kind}{}", rng.below(6))
}

fn word(rng: &mut Rng) -> String {
    match rng.below(10) {
        0 => "y".repeat(rng.below(2_000) as usize + 1),
        1..=4 => rng.below(50).to_string(),
        _ => format!("w{}", rng.below(60)),
    }
}

/// Words of a command, joined.
fn several(rng: &mut Rng, mut make: impl FnMut(&mut Rng) -> String) -> String {
    let count = 1 + rng.below(8);
    let made: Vec<_> = (0..count).map(|_| make(rng)).collect();
    made.join(" ")
}

fn of_strings(rng: &mut Rng) -> String {
    let (key, word) = (key(rng, "s"), word(rng));
    let number = rng.below(100);
    match rng.below(16) {
        0 => format!("SET {key} {word}"),
        1 => format!("SET {key} {word} EX 100000"),
        2 => format!("SET {key} {word} NX GET"),
        3 => format!("SET {key} {number} KEEPTTL"),
        4 => format!("SETEX {key} 100000 {word}"),
        5 => format!("PSETEX {key} 100000000 {number}"),
        6 => format!("GETEX {key} PX 100000000"),
        7 => format!("GETEX {key} PERSIST"),
        8 => format!("GETDEL {key}"),
        9 => format!("INCRBYFLOAT {key} 0.{number}"),
        10 => format!("INCRBY {key} {number}"),
        11 => format!("APPEND {key} {word}"),
        12 => format!("SETRANGE {key} {number} {word}"),
        13 => format!("MSET {key} {word} b{number} {word}"),
        14 => format!("SETBIT {key} {number} 1"),
        _ => format!("BITFIELD {key} INCRBY u8 {number} 7"),
    }
}

fn of_lists(rng: &mut Rng) -> String {
    let (key, other) = (key(rng, "l"), key(rng, "l"));
    let number = rng.below(6);
    match rng.below(14) {
        0..=3 => format!("RPUSH {key} {}", several(rng, word)),
        4 => format!("LPUSH {key} {}", several(rng, word)),
        5 => format!("LPOP {key} {number}"),
        6 => format!("LMPOP 2 {key} {other} RIGHT COUNT 3"),
        7 => format!("LMOVE {key} {other} LEFT RIGHT"),
        8 => format!("BLPOP {key} {other} 0.01"),
        9 => format!("BLMOVE {key} {other} RIGHT LEFT 0.01"),
        10 => format!("LREM {key} 1 {}", word(rng)),
        11 => format!("LSET {key} {number} {}", word(rng)),
        12 => format!("LTRIM {key} 0 {}", number + 20),
        _ => format!("SORT {key} ALPHA STORE {other}"),
    }
}

fn of_sets(rng: &mut Rng) -> String {
    let (key, other) = (key(rng, "S"), key(rng, "S"));
    match rng.below(9) {
        0..=3 => format!("SADD {key} {}", several(rng, word)),
        4 => format!("SPOP {key}"),
        5 => format!("SPOP {key} {}", rng.below(5)),
        6 => format!("SMOVE {key} {other} {}", word(rng)),
        7 => format!("SUNIONSTORE {key} {other} {key}"),
        _ => format!("SREM {key} {}", several(rng, word)),
    }
}

fn of_hashes(rng: &mut Rng) -> String {
    let key = key(rng, "h");
    match rng.below(7) {
        0..=3 => format!("HSET {key} {} {}", word(rng), word(rng)),
        4 => format!("HINCRBY {key} n {}", rng.below(9)),
        5 => format!("HINCRBYFLOAT {key} f 1.{}", rng.below(999)),
        _ => format!("HDEL {key} {}", several(rng, word)),
    }
}

fn of_sorted_sets(rng: &mut Rng) -> String {
    let (key, other) = (key(rng, "z"), key(rng, "z"));
    let scored = |rng: &mut Rng| format!("{}.5 {}", rng.below(40), word(rng));
    match rng.below(12) {
        0..=3 => format!("ZADD {key} {}", several(rng, scored)),
        4 => format!("ZINCRBY {key} 0.{} {}", rng.below(99), word(rng)),
        5 => format!("ZPOPMIN {key} 2"),
        6 => format!("ZMPOP 2 {key} {other} MAX COUNT 2"),
        7 => format!("BZPOPMAX {key} {other} 0.01"),
        8 => format!("ZUNIONSTORE {key} 2 {other} {key} WEIGHTS 1 0.5"),
        9 => format!("ZREMRANGEBYRANK {key} 0 {}", rng.below(3)),
        10 => format!(
            "GEOADD g {}.5 {}.25 {}",
            rng.below(90),
            rng.below(80),
            word(rng)
        ),
        _ => format!("GEOSEARCHSTORE {key} g FROMLONLAT 40 40 BYRADIUS 4000 km COUNT 3 ANY"),
    }
}

fn of_streams(rng: &mut Rng) -> String {
    let key = format!("x{}", rng.below(3));
    let (consumer, count) = (format!("c{}", rng.below(3)), 1 + rng.below(4));
    match rng.below(12) {
        0..=2 => format!("XADD {key} * f {}", word(rng)),
        3 => format!("XADD {key} MAXLEN ~ 20 * f {}", word(rng)),
        4 => format!("XTRIM {key} MAXLEN ~ {}", 100 + count),
        5 => format!("XGROUP CREATE {key} g {} MKSTREAM", pick(rng, &["0", "$"])),
        6 => format!("XREADGROUP GROUP g {consumer} COUNT {count} STREAMS {key} >"),
        7 => format!("XREADGROUP GROUP g {consumer} COUNT {count} NOACK STREAMS {key} >"),
        8 => format!("XAUTOCLAIM {key} g {consumer} 0 0 COUNT {count}"),
        9 => format!("XREADGROUP GROUP g {consumer} STREAMS {key} 0"),
        10 => format!("XTRIM {key} MAXLEN {}", 30 + count),
        _ => format!(
            "XSETID {key} {}-{count} ENTRIESADDED 100000",
            u64::MAX >> 20
        ),
    }
}

fn of_keys(rng: &mut Rng) -> String {
    let kind = pick(rng, &["s", "l", "S", "h", "z"]);
    let (key, other) = (key(rng, kind), key(rng, kind));
    let volatile = format!("v{}", rng.below(4));
    match rng.below(20) {
        0 => format!("DEL {key}"),
        1 => format!("EXPIRE {key} 100000"),
        2 => format!("PEXPIREAT {key} 99999999999999"),
        3 => format!("EXPIRE {key} -1"),
        4 => format!("PERSIST {key}"),
        5 => format!("RENAME {key} {other}"),
        6 => format!("COPY {key} {other} DB {} REPLACE", rng.below(3)),
        7 => format!("MOVE {key} {}", rng.below(3)),
        8 => format!("SELECT {}", rng.below(3)),
        9 => "MULTI".to_owned(),
        10 | 11 => "EXEC".to_owned(),
        12 => format!("SADD {volatile} {}", word(rng)),
        13 => format!("PEXPIRE {volatile} {}", 1 + rng.below(5)),
        14 => format!("SUNIONSTORE S0 {volatile} S1"),
        15 => format!("PFADD p{} {}", rng.below(3), several(rng, word)),
        16 => "PFCOUNT p0 p1".to_owned(),
        17 => format!("PFCOUNT p{}", rng.below(3)),
        18 => "EVAL return{redis.call('SPOP','S1'),redis.call('INCR','n'),redis.call('PEXPIRE','n',90000000)} 0".to_owned(),
        _ => pick(rng, &["SWAPDB 1 2", "PUBLISH channel text", "FLUSHDB", "EVAL return{redis.call('GET','s1')} 0"]).to_owned(),
    }
}

fn line(rng: &mut Rng) -> String {
    match rng.below(8) {
        6 => of_streams(rng),
        0 => of_strings(rng),
        1 => of_lists(rng),
        2 => of_sets(rng),
        3 => of_hashes(rng),
        4 => of_sorted_sets(rng),
        _ => of_keys(rng),
    }
}

/// A primary of ours, a replica of ours and a redis-server that is one.
struct Three {
    primary: Ours,
    port: String,
    ours: Ours,
    theirs: Server,
    _dir: tempfile::TempDir,
}

impl Three {
    fn ask(&self, line: &str) -> Value {
        self.primary.ask(&[words(line)]).remove(0)
    }

    fn write(&self, count: u64, mut line: impl FnMut() -> String) {
        let mut lines: Vec<Words> = (0..count).map(|_| words(&line())).collect();
        lines.push(words("EXEC"));
        self.primary.ask(&lines);
    }

    /// Waits until both have all writes.
    fn wait(&self) {
        // Keys that expire are seen by DEBUG DIGEST of Redis until they are deleted.
        let mut lines = Vec::new();
        for db in 0..3 {
            lines.push(format!("SELECT {db}"));
            lines.push("MSET v0 0 v1 1 v2 2 v3 3".to_owned());
            lines.push("DEL v0 v1 v2 v3".to_owned());
        }
        lines.push("SET last write".to_owned());
        lines.push("WAIT 2 60000".to_owned());
        let lines: Vec<_> = lines.iter().map(|line| words(line)).collect();
        let answers = self.primary.ask(&lines);
        let info = self.ask("INFO replication");
        assert_eq!(answers.last(), Some(&Value::Integer(2)), "{info}");
    }

    /// Waits until both have all writes, and compares.
    fn compare(&self) {
        self.wait();
        for db in 0..3 {
            let select = words(&format!("SELECT {db}"));
            let names = |answers: Vec<Value>| {
                let mut names = answers[1].as_items().expect("keys").to_vec();
                names.sort_by_key(|name| format!("{name:?}"));
                names
            };
            let list = [select.clone(), words("KEYS *")];
            let keys = names(self.primary.ask(&list));
            assert_eq!(names(ask_redis(&self.theirs, &list)), keys, "Redis's, {db}");
            assert_eq!(names(self.ours.ask(&list)), keys, "ours, {db}");
            for key in keys {
                let Value::Bulk(key) = key else {
                    panic!("{key} is no name");
                };
                let told = |words: &str| [crate::pair::words(words), vec![key.clone()]].concat();
                let lines = [
                    select.clone(),
                    told("DEBUG DIGEST-VALUE"),
                    told("PEXPIRETIME"),
                ];
                let wanted = self.primary.ask(&lines);
                let key = String::from_utf8_lossy(&key);
                assert_eq!(
                    ask_redis(&self.theirs, &lines),
                    wanted,
                    "Redis's {key}, {db}"
                );
                assert_eq!(self.ours.ask(&lines), wanted, "ours {key}, {db}");
            }
        }
        let digest = [words("DEBUG DIGEST")];
        let wanted = self.primary.ask(&digest);
        assert_eq!(ask_redis(&self.theirs, &digest), wanted, "Redis's");
        assert_eq!(self.ours.ask(&digest), wanted, "ours");
    }

    /// The same of streams, with their groups.
    fn compare_streams(&self) {
        self.wait();
        let pending: Vec<_> = (0..3)
            .map(|at| words(&format!("XPENDING x{at} g - + 1000")))
            .collect();
        let told = |values: Vec<Value>| {
            // But for how long each has been pending.
            let items = |value: &Value| value.as_items().map(<[Value]>::to_vec);
            let rows = values.iter().flat_map(|it| items(it).unwrap_or_default());
            let rows =
                rows.map(|row| items(&row).map(|it| [it[0].clone(), it[1].clone(), it[3].clone()]));
            format!("{:?}", rows.collect::<Vec<_>>())
        };
        let wanted = told(self.primary.ask(&pending));
        assert_eq!(told(ask_redis(&self.theirs, &pending)), wanted);
        assert_eq!(told(self.ours.ask(&pending)), wanted);
        for at in 0..3 {
            for line in ["XINFO GROUPS x", "XRANGE x - +", "XLEN x"] {
                let line = [words(&line.replace('x', &format!("x{at}")))];
                let wanted = self.primary.ask(&line);
                assert_eq!(ask_redis(&self.theirs, &line), wanted, "{line:?}");
                assert_eq!(self.ours.ask(&line), wanted, "{line:?}");
            }
        }
    }

    fn stat(&self, name: &str) -> u64 {
        stat(&self.primary, name)
    }
}

/// A number of INFO.
fn stat(server: &Ours, name: &str) -> u64 {
    let info = server.ask(&[words("INFO everything")]).remove(0);
    let text = match info {
        Value::Bulk(bytes) | Value::Verbatim(_, bytes) => String::from_utf8(bytes).expect("text"),
        other => panic!("{other}"),
    };
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let mut found = lines
        .filter(|(it, _)| *it == name)
        .map(|(_, value)| value.parse());
    found.next_back().expect("it is told").expect("a number")
}

/// A primary with some data and two replicas that begin to follow it.
fn three(rng: &mut Rng, diskless_load: &str) -> Three {
    let dir = tempfile::tempdir().expect("a directory");
    let port = free_port();
    let settings = [("port", port.as_str()), ("repl-diskless-sync-delay", "0")];
    let primary = Ours::start_with(&dir.path().join("primary"), &settings);
    let ours = Ours::start(&dir.path().join("replica"));
    let settings = ["--repl-diskless-load", diskless_load];
    let theirs = Server::start(tempfile::tempdir().expect("a directory"), &settings);
    let three = Three {
        primary,
        port,
        ours,
        theirs,
        _dir: dir,
    };
    three.write(600, || line(rng));
    let follow = [words(&format!("REPLICAOF 127.0.0.1 {}", three.port))];
    let ok = [Value::Simple(b"OK".to_vec())];
    assert_eq!(three.ours.ask(&follow), ok);
    assert_eq!(ask_redis(&three.theirs, &follow), ok);
    three
}

fn follow(seed: u64, diskless_load: &str) {
    if !redis::installed() {
        return;
    }
    let rounds = match std::env::var("REDIS_COMMANDS") {
        Ok(text) => text.parse::<u64>().expect("a number") / 600,
        Err(_) => 3,
    };
    let mut rng = Rng::new(seed);
    let three = three(&mut rng, diskless_load);
    three.write(600, || line(&mut rng));
    three.compare();
    assert_eq!(three.stat("sync_full"), 2);
    for round in 0..rounds {
        three.write(300, || line(&mut rng));
        assert_eq!(three.ask("CLIENT KILL TYPE replica"), Value::Integer(2));
        three.write(300, || line(&mut rng));
        three.compare();
        assert_eq!(three.stat("sync_partial_ok"), 2 * (round + 1));
    }
    assert_eq!(three.stat("sync_full"), 2);
    assert_eq!(three.stat("connected_slaves"), 2);
}

#[test]
fn replicas_have_what_their_primary_has() {
    let seed = std::env::var("REDIS_SEED").map_or(1, |text| text.parse().expect("a number"));
    follow(seed, "disabled");
}

#[test]
fn a_replica_that_loads_without_a_file_has_it_too() {
    follow(7, "swapdb");
}

#[test]
fn replicas_have_the_streams_of_their_primary() {
    if !redis::installed() {
        return;
    }
    let mut rng = Rng::new(3);
    let three = three(&mut rng, "disabled");
    three.wait();
    for _ in 0..3 {
        three.write(200, || of_streams(&mut rng));
        three.ask("CLIENT KILL TYPE replica");
        three.write(200, || of_streams(&mut rng));
        three.compare_streams();
    }
    assert_eq!(three.stat("sync_full"), 2);
}

/// Goal: replicas are told of a key that a command finds expired, before they are told of the command. Method: a primary that deletes
/// nothing by itself; the keys of a redis-server count until they are deleted.
#[test]
fn replicas_are_told_of_keys_that_a_command_found_expired() {
    if !redis::installed() {
        return;
    }
    let three = three(&mut Rng::new(9), "disabled");
    three.wait();
    let lines = [
        "FLUSHALL",
        "DEBUG SET-ACTIVE-EXPIRE 0",
        "SET k v PX 1",
        "RPUSH l a",
        "PEXPIRE l 1",
        "DEBUG SLEEP 0.005",
    ];
    three.primary.ask(&lines.map(words));
    // In another round, which has a later time.
    let lines = ["GET k", "RPUSH l b", "WAIT 2 60000"];
    three.primary.ask(&lines.map(words));
    let there = [words("DBSIZE"), words("LRANGE l 0 -1")];
    let wanted = three.primary.ask(&there);
    assert_eq!(wanted[0], Value::Integer(1));
    assert_eq!(ask_redis(&three.theirs, &there), wanted);
    assert_eq!(three.ours.ask(&there), wanted);
}
