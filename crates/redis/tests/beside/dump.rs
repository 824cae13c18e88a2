//! Goal: values leave for Redis and come from it, by DUMP and RESTORE and by RDB files, and damaged ones are refused. Method:
//! random values of all types on both servers, exchanged, read and compared.

use drumlin_base::rng::Rng;
use drumlin_fs::Env;
use drumlin_rdb::crc64::crc64;
use drumlin_redis::{export_rdb, load_data};
use drumlin_resp::Value;
use drumlin_testkit::redis;

use crate::pair::{Ours, Pair, Words, ask_redis, config_of, pick, words};

/// Types of values; the number of a key decides its own.
pub(crate) const TYPES: u64 = 7;
pub(crate) const KEYS: u64 = 6 * TYPES;

fn element(rng: &mut Rng) -> String {
    match rng.below(12) {
        0 => "x".repeat(rng.below(3_000) as usize + 1),
        1 => format!("-{}", rng.below(1 << 40)),
        2..=5 => rng.below(200).to_string(),
        6 => u64::MAX.to_string(),
        _ => format!("e{}", rng.below(500)),
    }
}

/// A command that adds to the value of a random key, whose number decides its type.
pub(crate) fn addition(rng: &mut Rng) -> String {
    let key = rng.below(KEYS);
    let mut line = match key % TYPES {
        0 => return format!("SET k{key} {}", element(rng)),
        1 => format!("RPUSH k{key}"),
        2 => format!("SADD k{key}"),
        3 => {
            let members = (0..1 + rng.below(20)).map(|_| rng.below(70_000).to_string());
            let members: Vec<_> = members.collect();
            return format!("SADD k{key} {}", members.join(" "));
        }
        4 => format!("HSET k{key}"),
        5 => format!("ZADD k{key}"),
        _ => return format!("XADD k{key} 1-* {} {}", element(rng), element(rng)),
    };
    let many = if key < 12 { 40 } else { 6 };
    for _ in 0..1 + rng.below(many) {
        if key % TYPES == 5 {
            let scores = ["1", "-2.5", "inf", "-inf", "3.1", "1e300", "0"];
            let score = match rng.below(2) {
                0 => pick(rng, &scores).to_owned(),
                _ => rng.below(1_000).to_string(),
            };
            line += &format!(" {score}");
        } else if key % TYPES == 4 {
            line += &format!(" f{}", rng.below(300));
        }
        line += &format!(" {}", element(rng));
    }
    line
}

/// Reads of the value of `key`, in an order that both have.
fn reads(key: &str, number: u64) -> Words {
    words(&match number % TYPES {
        0 => format!("GET {key}"),
        1 => format!("LRANGE {key} 0 -1"),
        2 | 3 => format!("SMEMBERS {key}"),
        4 => format!("HGETALL {key}"),
        5 => format!("ZRANGE {key} 0 -1 WITHSCORES"),
        _ => format!("XRANGE {key} - +"),
    })
}

/// Sets and hashes in one order.
fn sorted(number: u64, value: Value) -> Value {
    let Value::Array(items) = value else {
        return value;
    };
    let width = match number % TYPES {
        2 | 3 => 1,
        4 => 2,
        _ => return Value::Array(items),
    };
    let mut groups: Vec<_> = items.chunks(width).map(<[Value]>::to_vec).collect();
    groups.sort_by_key(|group| format!("{group:?}"));
    Value::Array(groups.concat())
}

pub(crate) fn all(prefix: &str) -> Vec<Words> {
    let key = |number| reads(&format!("{prefix}{number}"), number);
    (0..KEYS).map(key).collect()
}

pub(crate) fn same(ours: Vec<Value>, theirs: Vec<Value>) {
    assert_eq!(ours.len(), theirs.len());
    for ((ours, theirs), number) in ours.into_iter().zip(theirs).zip(0..) {
        assert_eq!(sorted(number, ours), sorted(number, theirs), "key {number}");
    }
}

fn fill(pair: &Pair, seed: u64) {
    let mut rng = Rng::new(seed);
    let lines: Vec<_> = (0..400).map(|_| words(&addition(&mut rng))).collect();
    pair.same("2", &lines, |_| true);
}

fn payloads(replies: Vec<Value>) -> Vec<Vec<u8>> {
    let bytes = |reply: Value| match reply {
        Value::Bulk(bytes) => bytes,
        other => panic!("{other} is no payload"),
    };
    replies.into_iter().map(bytes).collect()
}

fn restores(payloads: &[Vec<u8>]) -> Vec<Words> {
    let restore = |(number, payload): (usize, &Vec<u8>)| {
        let mut command = words(&format!("RESTORE r{number} 0"));
        command.push(payload.clone());
        command
    };
    payloads.iter().enumerate().map(restore).collect()
}

#[test]
fn payloads_go_both_ways() {
    for seed in 1..4 {
        let Some(pair) = Pair::start() else {
            return;
        };
        fill(&pair, seed);
        let dumps: Vec<_> = (0..KEYS)
            .map(|key| words(&format!("DUMP k{key}")))
            .collect();
        let ours = payloads(pair.ours.ask(&dumps));
        let theirs = payloads(ask_redis(&pair.theirs, &dumps));
        for reply in pair.ours.ask(&restores(&theirs)) {
            assert_eq!(reply, Value::Simple(b"OK".to_vec()));
        }
        for reply in ask_redis(&pair.theirs, &restores(&ours)) {
            assert_eq!(reply, Value::Simple(b"OK".to_vec()));
        }
        let wanted = ask_redis(&pair.theirs, &all("k"));
        same(pair.ours.ask(&all("r")), wanted.clone());
        same(ask_redis(&pair.theirs, &all("r")), wanted);
    }
}

#[test]
fn restore_refuses_as_redis_does() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let payload =
        payloads(ask_redis(&pair.theirs, &[words("SET a 12"), words("DUMP a")])[1..].to_vec());
    let payload = payload[0].clone();
    let with = |line: &str, payload: &[u8], rest: &str| {
        [words(line), vec![payload.to_vec()], words(rest)].concat()
    };
    let mut newer = payload[..payload.len() - 10].to_vec();
    newer.extend_from_slice(&13u16.to_le_bytes());
    let sum = crc64(&newer);
    newer.extend_from_slice(&sum.to_le_bytes());
    let commands = [
        words("SET a 1"),
        with("RESTORE a 0", &payload, ""),
        with("RESTORE a 0", &payload, "REPLACE"),
        words("GET a"),
        with("RESTORE b -1", &payload, ""),
        with("RESTORE b x", &payload, ""),
        with("RESTORE b 0", b"nothing", ""),
        with("RESTORE b 0", &newer, ""),
        with("RESTORE b 0", &payload[..payload.len() - 1], ""),
        with("RESTORE b 0", &payload, "REPLACE WHAT"),
        with("RESTORE b 0", &payload, "IDLETIME -1"),
        with("RESTORE b 0", &payload, "FREQ 256"),
        with("RESTORE b 0", &payload, "FREQ 1 IDLETIME 1"),
        with("RESTORE b 0", &payload, "IDLETIME"),
        with("RESTORE b 10000000", &payload, "IDLETIME 3"),
        words("EXISTS b"),
        with("RESTORE c 1000", &payload, "ABSTTL"),
        words("EXISTS c"),
        with("RESTORE a 1000", &payload, "ABSTTL REPLACE"),
        words("EXISTS a"),
        with("RESTORE c 99999999999999", &payload, "ABSTTL FREQ 7"),
        words("PEXPIRETIME c"),
        with("RESTORE d 9223372036854775807", &payload, "ABSTTL"),
        words("EXISTS d"),
        words("RESTORE c"),
        words("DUMP none"),
    ];
    pair.same("3", &commands, |_| true);
    let lone: Words = vec![b"COMMAND".to_vec()];
    assert!(!pair.ours.ask(&[lone]).is_empty());
    crate::pair::same_facts("dump restore restore-asking");
}

#[test]
fn damaged_payloads_are_errors_and_the_server_goes_on() {
    let Some(pair) = Pair::start() else {
        return;
    };
    fill(&pair, 9);
    let dumps: Vec<_> = (0..KEYS)
        .map(|key| words(&format!("DUMP k{key}")))
        .collect();
    let sound = payloads(ask_redis(&pair.theirs, &dumps));
    let mut rng = Rng::new(3);
    let mut refused = 0;
    for _ in 0..20 {
        let damaged: Vec<_> = sound
            .iter()
            .map(|payload| {
                let mut body = payload[..payload.len() - 8].to_vec();
                let version_at = body.len() - 2;
                for _ in 0..1 + rng.below(3) {
                    let at = rng.below(version_at as u64) as usize;
                    body[at] = rng.next_u64() as u8;
                }
                let sum = crc64(&body);
                [body, sum.to_le_bytes().to_vec()].concat()
            })
            .collect();
        let flush = [words("FLUSHALL")];
        let replies = pair.ours.ask(&[&flush[..], &restores(&damaged)].concat());
        refused += replies
            .iter()
            .filter(|reply| matches!(reply, Value::Error(_)))
            .count();
        pair.ours.ask(&all("r"));
    }
    assert!(refused > 200, "{refused} were refused");
}

#[test]
fn files_go_both_ways() {
    let Some(mut pair) = Pair::start() else {
        return;
    };
    fill(&pair, 5);
    let more = [
        "SELECT 3",
        "SET a 1",
        "SET b 2 PXAT 99999999999999",
        "SELECT 0",
        "PEXPIREAT k3 99999999999999",
        "SET gone 1 PX 1",
    ];
    let more: Vec<_> = more.iter().map(|line| words(line)).collect();
    pair.same("2", &more, |_| true);
    let library = "#!lua name=l\nredis.register_function('f', function() return 7 end)";
    pair.theirs.ask(&[b"FUNCTION", b"LOAD", library.as_bytes()]);
    let theirs = pair.theirs.save();
    let dir = tempfile::tempdir().expect("a directory");
    let (data, env) = (dir.path().join("data"), Env::system());
    let rest = [
        "SELECT 3",
        "GET a",
        "PEXPIRETIME b",
        "DBSIZE",
        "SELECT 0",
        "PEXPIRETIME k3",
        "GET gone",
        "DBSIZE",
        "FCALL f 0",
        "FUNCTION LIST WITHCODE",
    ];
    let rest: Vec<_> = rest.iter().map(|line| words(line)).collect();
    let compared = [all("k"), rest].concat();
    let wanted = ask_redis(&pair.theirs, &compared);

    let mut told = 0;
    let config = config_of(&data);
    for _ in 0..2 {
        // The second time every key is replaced.
        let loaded = load_data(&config, &env, &theirs, &mut |_, _| told += 1).expect("loads");
        assert_eq!((loaded.keys, loaded.libraries), (KEYS + 2, 1));
    }
    assert!(told > 1);
    let ours = Ours::start(&data);
    same(ours.ask(&compared), wanted.clone());
    drop(ours);

    let file = dir.path().join("dump.rdb");
    assert_eq!(export_rdb(&config, &env, &file).expect("exports"), KEYS + 2);
    redis::check_file(&file);
    let back = redis::Server::start(dir, &[]);
    same(ask_redis(&back, &compared), wanted);
}

/// Goal: DEBUG tells the digests that Redis tells. Method: the same additions to both, some with an expiry, in two databases.
#[test]
fn digests_are_redis_s() {
    for seed in 20..23 {
        let Some(pair) = Pair::start() else {
            return;
        };
        fill(&pair, seed);
        let mut commands: Vec<_> = ["DEBUG DIGEST", "EXPIRE k1 1000", "DEBUG RELOAD"]
            .map(words)
            .into();
        commands.push(words("DEBUG DIGEST"));
        let names: Vec<_> = (0..KEYS).map(|key| format!("k{key}")).collect();
        commands.push(words(&format!(
            "DEBUG DIGEST-VALUE none {}",
            names.join(" ")
        )));
        for line in [
            "SELECT 3",
            "SET a 1",
            "ZADD z -0.1 a 3 b",
            "DEBUG DIGEST",
            "DEBUG DIGEST-VALUE",
        ] {
            commands.push(words(line));
        }
        pair.same("2", &commands, |_| true);
    }
}
