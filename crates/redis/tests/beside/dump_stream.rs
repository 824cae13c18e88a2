//! Goal: streams with their groups leave for Redis and come from it whole, and damaged ones are refused. Method: random streams on
//! both servers, exchanged by DUMP and by RDB files; all that XINFO tells is compared, times included.

use drumlin_base::rng::Rng;
use drumlin_fs::Env;
use drumlin_rdb::crc64::crc64;
use drumlin_redis::{export_rdb, load_data};
use drumlin_resp::Value;
use drumlin_testkit::redis;

use crate::pair::{Ours, Pair, Words, ask_redis, config_of, pick, words};

const KEYS: u64 = 12;

/// A command that changes a random stream.
fn change(rng: &mut Rng) -> String {
    let key = rng.below(KEYS);
    let id = 1 + rng.below(60);
    let group = pick(rng, &["g", "other", "3"]);
    let consumer = pick(rng, &["c", "d", "17", "long-name-of-a-consumer"]);
    match rng.below(24) {
        0 => format!("XDEL k{key} 5-{id} 5-{}", id + 1),
        1 => format!("XTRIM k{key} MAXLEN ~ {id}"),
        2 => format!("XTRIM k{key} MINID 5-{}", id / 8),
        3 => format!("XSETID k{key} 5-{}", 70 + id),
        4 if rng.one_in(3) => {
            format!(
                "XSETID k{key} 5-400 ENTRIESADDED {} MAXDELETEDID 5-{id}",
                200 + id
            )
        }
        4 | 5 => {
            let from = pick(rng, &["$", "0", "5-7"]);
            format!("XGROUP CREATE k{key} {group} {from} MKSTREAM")
        }
        6 => format!("XGROUP CREATECONSUMER k{key} {group} {consumer}"),
        7..=10 => format!("XREADGROUP GROUP {group} {consumer} COUNT {id} STREAMS k{key} >"),
        11 => format!("XACK k{key} {group} 5-{id} 5-{} 5-{}", id + 1, id + 2),
        12 => format!("XCLAIM k{key} {group} {consumer} 0 5-{id} RETRYCOUNT 7"),
        13 if rng.one_in(8) => format!("XGROUP DESTROY k{key} {group}"),
        14 if rng.one_in(4) => format!("XGROUP DELCONSUMER k{key} {group} {consumer}"),
        15 if rng.one_in(4) => format!("PEXPIREAT k{key} 99999999999999"),
        _ => {
            let value = match rng.below(6) {
                0 => "x".repeat(rng.below(900) as usize + 1),
                1 => format!("-{}", rng.below(1 << 40)),
                _ => rng.below(500).to_string(),
            };
            let name = pick(rng, &["f", "f", "f", "name", "12"]);
            match rng.below(4) {
                0 => format!("XADD k{key} 5-* {name} {value} more {id}"),
                _ => format!("XADD k{key} 5-* {name} {value}"),
            }
        }
    }
}

fn fill(pair: &Pair, seed: u64, count: usize) {
    let mut rng = Rng::new(seed);
    let lines: Vec<_> = (0..count).map(|_| words(&change(&mut rng))).collect();
    pair.same("2", &lines, |_| true);
}

/// All that is told of the streams of this prefix.
fn reads(prefix: &str) -> Vec<Words> {
    let of = |key| {
        let lines = [
            format!("XINFO STREAM {prefix}{key} FULL COUNT 0"),
            format!("XINFO GROUPS {prefix}{key}"),
        ];
        lines.map(|line| words(&line))
    };
    (0..KEYS).flat_map(of).collect()
}

/// Without how Redis keeps the entries, which the exchange need not keep.
fn told(value: Value) -> Value {
    let Value::Array(items) = value else {
        return value;
    };
    let is_tree = |name: &Value| matches!(name, Value::Bulk(it) if it.starts_with(b"radix-tree"));
    let mut kept = Vec::new();
    let mut items = items.into_iter();
    while let Some(item) = items.next() {
        match is_tree(&item) {
            true => drop(items.next()),
            false => kept.push(told(item)),
        }
    }
    Value::Array(kept)
}

fn same(one: Vec<Value>, other: Vec<Value>, commands: &[Words]) {
    assert_eq!(one.len(), other.len());
    for ((one, other), command) in one.into_iter().zip(other).zip(commands) {
        let line = String::from_utf8_lossy(&command.concat()).into_owned();
        assert_eq!(told(one), told(other), "{line}");
    }
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

fn dumps() -> Vec<Words> {
    let dump = |key| words(&format!("DUMP k{key}"));
    (0..KEYS).map(dump).collect()
}

/// So that each key is a stream.
fn make(pair: &Pair) {
    let make = |key| words(&format!("XGROUP CREATE k{key} made $ MKSTREAM"));
    let lines: Vec<_> = (0..KEYS).map(make).collect();
    pair.same("2", &lines, |_| true);
}

#[test]
fn streams_go_both_ways() {
    for seed in 1..4 {
        let Some(pair) = Pair::start() else {
            return;
        };
        fill(&pair, seed, 900);
        make(&pair);
        let ours = payloads(pair.ours.ask(&dumps()));
        let theirs = payloads(ask_redis(&pair.theirs, &dumps()));
        for reply in pair.ours.ask(&restores(&theirs)) {
            assert_eq!(reply, Value::Simple(b"OK".to_vec()));
        }
        for reply in ask_redis(&pair.theirs, &restores(&ours)) {
            assert_eq!(reply, Value::Simple(b"OK".to_vec()));
        }
        let asked = reads("k");
        let wanted = ask_redis(&pair.theirs, &asked);
        same(pair.ours.ask(&reads("r")), wanted, &asked);
        let wanted = pair.ours.ask(&asked);
        same(ask_redis(&pair.theirs, &reads("r")), wanted, &asked);
        // What was restored goes on as what was not.
        let more = [
            "XADD r1 5-* f v",
            "XADD r2 * f v",
            "XREADGROUP GROUP made c COUNT 3 STREAMS r1 >",
            "XLEN r1",
            "XACK r1 made 5-1 5-2 5-3 5-4",
            "XGROUP DELCONSUMER r1 g c",
            "XPENDING r1 g",
            "XPENDING r3 g",
            "XTRIM r4 MAXLEN 3",
            "XRANGE r4 - +",
            "COPY r5 copied",
            "XRANGE copied - +",
            "XPENDING copied g",
            "DEBUG DIGEST-VALUE k0 k1 k2 k3 k4 k5 k6 k7 k8 k9 k10 k11 r6 copied",
        ];
        let more = more.map(words);
        pair.same("3", &more, |command| command[1] != b"r2");
    }
}

#[test]
fn files_with_streams_go_both_ways() {
    let Some(mut pair) = Pair::start() else {
        return;
    };
    fill(&pair, 5, 900);
    make(&pair);
    // More than one part, of entries and of pending ones.
    let large = (0..5_000).map(|number| words(&format!("XADD large * number {number}")));
    let mut large: Vec<_> = large.collect();
    large.push(words("XGROUP CREATE large g 0"));
    for consumer in ["a", "b", "c"] {
        let line = format!("XREADGROUP GROUP g {consumer} COUNT 1300 STREAMS large >");
        large.push(words(&line));
    }
    ask_redis(&pair.theirs, &large);
    let mut compared = reads("k");
    compared.push(words("XINFO STREAM large FULL COUNT 0"));
    compared.push(words("DEBUG DIGEST"));
    let wanted = ask_redis(&pair.theirs, &compared);
    let theirs = pair.theirs.save();
    let dir = tempfile::tempdir().expect("a directory");
    let (data, env) = (dir.path().join("data"), Env::system());
    let config = config_of(&data);
    for _ in 0..2 {
        let loaded = load_data(&config, &env, &theirs, &mut |_, _| {}).expect("loads");
        assert_eq!(loaded.keys, KEYS + 1);
    }
    let ours = Ours::start(&data);
    same(ours.ask(&compared), wanted.clone(), &compared);
    drop(ours);

    let file = dir.path().join("dump.rdb");
    assert_eq!(export_rdb(&config, &env, &file).expect("exports"), KEYS + 1);
    redis::check_file(&file);
    let back = redis::Server::start(dir, &[]);
    same(ask_redis(&back, &compared), wanted, &compared);
}

#[test]
fn damaged_streams_are_errors_and_the_server_goes_on() {
    let Some(pair) = Pair::start() else {
        return;
    };
    fill(&pair, 9, 900);
    make(&pair);
    let sound = payloads(ask_redis(&pair.theirs, &dumps()));
    let mut rng = Rng::new(3);
    let mut refused = 0;
    for _ in 0..40 {
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
        // All of what was taken can be read, changed and deleted.
        pair.ours.ask(&reads("r"));
        for key in 0..KEYS {
            let lines = [
                format!("DUMP r{key}"),
                format!("XADD r{key} * f v"),
                format!("XTRIM r{key} MAXLEN 2"),
                format!("XAUTOCLAIM r{key} g c 0 0 COUNT 100"),
                format!("XGROUP DESTROY r{key} g"),
            ];
            pair.ours.ask(&lines.map(|line| words(&line)));
        }
    }
    assert!(refused > 150, "{refused} were refused");
}
