//! To and fro between this crate and redis-server. Without the program these tests say so and pass.
//!
//! Redis 7.0 loses the sign of a zero when it packs a sorted set; `==` does not see it either.

use std::collections::BTreeMap;
use std::process::Command;

use drumlin_base::rng::Rng;
use drumlin_rdb::aof::{Commands, Manifest, Tail, begins_as_rdb};
use drumlin_rdb::crc64::crc64;
use drumlin_rdb::{
    Encoding, FileWriter, KeyFacts, Kind, Limits, Stream, StreamId, Value, Version, dump,
};
use drumlin_testkit::redis::{Reply, Server, installed};

use crate::common::{KINDS, MEMORY_MAX, in_order, read_file, value};

/// Settings under which it packs nothing, the default values, and all values.
const THRESHOLDS: [[&str; 3]; 3] = [
    ["0", "1", "-1"],
    ["64", "64", "-2"],
    ["5000", "100000", "-5"],
];

fn set_thresholds(server: &mut Server, [entries, bytes, list]: [&str; 3]) {
    let of_entries = [
        "hash-max-listpack-entries",
        "zset-max-listpack-entries",
        "set-max-intset-entries",
    ];
    for name in of_entries {
        server.ok(&["CONFIG", "SET", name, entries]);
    }
    for name in ["hash-max-listpack-value", "zset-max-listpack-value"] {
        server.ok(&["CONFIG", "SET", name, bytes]);
    }
    server.ok(&["CONFIG", "SET", "list-max-listpack-size", list]);
}

fn random(seed: u64) -> Value {
    let mut rng = Rng::new(seed);
    let size = if rng.one_in(4) { 700 } else { 20 };
    let kind = KINDS[seed as usize % KINDS.len()];
    in_order(value(&mut rng, kind, size))
}

/// The key as its commands give it.
fn read_back(server: &mut Server, key: &str, kind: Kind) -> Vec<Reply> {
    let command: &[&str] = match kind {
        Kind::String => return vec![server.say(&["GET", key])],
        Kind::List => &["LRANGE", key, "0", "-1"],
        Kind::Set => &["SMEMBERS", key],
        Kind::ZSet => &["ZRANGE", key, "0", "-1", "WITHSCORES"],
        Kind::Hash => &["HGETALL", key],
        Kind::Stream => &["XRANGE", key, "-", "+"],
    };
    server.say(command).many().to_vec()
}

/// Asserts that the commands of its type give `value` for the key.
fn assert_holds(server: &mut Server, key: &str, value: &Value) {
    let replies = read_back(server, key, value.kind());
    let texts = || replies.iter().map(Reply::bytes);
    let mut pairs: Vec<_> = Vec::new();
    if matches!(value, Value::ZSet(_) | Value::Hash(_)) {
        pairs = replies
            .chunks(2)
            .map(|pair| (pair[0].bytes(), pair[1].bytes()))
            .collect();
        pairs.sort();
    }
    match value {
        Value::String(text) => assert_eq!(replies, [Reply::Text(text.clone())]),
        Value::List(elements) => assert_eq!(texts().collect::<Vec<_>>(), *elements),
        Value::Set(members) => {
            let mut found: Vec<_> = texts().collect();
            found.sort();
            assert_eq!(found, *members);
        }
        Value::ZSet(members) => {
            let score = |text: Vec<u8>| String::from_utf8(text).unwrap().parse::<f64>().unwrap();
            let found = pairs
                .into_iter()
                .map(|(member, text)| (member, score(text)));
            assert_eq!(found.collect::<Vec<_>>(), *members);
        }
        Value::Hash(fields) => {
            let fields = fields
                .iter()
                .map(|field| (field.name.clone(), field.value.clone()));
            assert_eq!(pairs, fields.collect::<Vec<_>>());
        }
        Value::Stream(stream) => assert_stream(server, key, stream, &replies),
    }
}

fn id(id: StreamId) -> String {
    format!("{}-{}", id.ms, id.seq)
}

fn assert_stream(server: &mut Server, key: &str, stream: &Stream, entries: &[Reply]) {
    assert_eq!(entries.len(), stream.entries.len());
    for (found, entry) in entries.iter().zip(&stream.entries) {
        let fields = entry.fields.iter();
        let fields: Vec<_> = fields
            .flat_map(|(name, value)| [name.to_vec(), value.clone()])
            .collect();
        let found = found.many();
        assert_eq!(found[0].text(), id(entry.id));
        assert_eq!(
            found[1].many().iter().map(Reply::bytes).collect::<Vec<_>>(),
            fields
        );
    }
    let facts = facts(&server.say(&["XINFO", "STREAM", key]));
    assert_eq!(facts["length"].integer() as usize, stream.entries.len());
    assert_eq!(facts["last-generated-id"].text(), id(stream.head.last_id));
    assert_eq!(
        facts["max-deleted-entry-id"].text(),
        id(stream.head.max_deleted_id)
    );
    assert_eq!(
        facts["entries-added"].integer() as u64,
        stream.head.entries_added
    );
    let groups = server.say(&["XINFO", "GROUPS", key]);
    let groups = groups.many();
    assert_eq!(groups.len(), stream.groups.len());
    for (found, group) in groups.iter().zip(&stream.groups) {
        let facts = self::facts(found);
        assert_eq!(facts["name"].bytes(), group.name);
        assert_eq!(facts["last-delivered-id"].text(), id(group.last_id));
        let read = match &facts["entries-read"] {
            Reply::Nil => None,
            read => Some(read.integer() as u64),
        };
        assert_eq!(read, group.entries_read);
        let consumers = server.ask(&[b"XINFO", b"CONSUMERS", key.as_bytes(), &group.name]);
        assert_eq!(consumers.many().len(), group.consumers.len());
        let pending = server.ask(&[
            b"XPENDING",
            key.as_bytes(),
            &group.name,
            b"-",
            b"+",
            b"100000",
        ]);
        assert_eq!(pending.many().len(), group.pending.len());
        for (found, pending) in pending.many().iter().zip(&group.pending) {
            let found = found.many();
            assert_eq!(found[0].text(), id(pending.id));
            assert_eq!(found[1].bytes(), group.consumers[pending.consumer].name);
            assert_eq!(found[3].integer() as u64, pending.deliveries);
        }
    }
}

fn facts(reply: &Reply) -> BTreeMap<String, Reply> {
    let pairs = reply.many().chunks(2);
    pairs
        .map(|pair| (pair[0].text(), pair[1].clone()))
        .collect()
}

pub(crate) fn restore(server: &mut Server, key: &str, payload: &[u8]) -> Reply {
    server.ask(&[b"RESTORE", key.as_bytes(), b"0", payload, b"REPLACE"])
}

pub(crate) fn dumped(server: &mut Server, key: &str) -> Value {
    let payload = server.say(&["DUMP", key]).bytes();
    in_order(dump::decode(&payload, MEMORY_MAX).unwrap())
}

#[test]
fn payloads_go_to_redis_and_back_unchanged() {
    if !installed() {
        return;
    }
    let mut server = Server::start(tempfile::tempdir().unwrap(), &[]);
    for (round, thresholds) in THRESHOLDS.into_iter().enumerate() {
        set_thresholds(&mut server, thresholds);
        for seed in 0..240 {
            let value = random(seed + 6000 * round as u64);
            let packed = Encoding {
                packed_items_max: 300,
                ..Encoding::compact(Version::V10)
            };
            let forms = [
                dump::encode_for_most(&value).unwrap(),
                dump::encode(&value, &Encoding::plain(Version::V10)).unwrap(),
                dump::encode(&value, &packed).unwrap(),
            ];
            for (form, payload) in forms.iter().enumerate() {
                let answer = restore(&mut server, "k", payload);
                let place = format!("seed {seed}, form {form}, {thresholds:?}");
                assert_eq!(answer, Reply::Text(b"OK".to_vec()), "{place}: {value:?}");
                assert_holds(&mut server, "k", &value);
                let back = dumped(&mut server, "k");
                assert!(back == value, "{place}: {back:?} for {value:?}");
            }
        }
    }
}

/// The values that commands make, rather than payloads of ours: deletions inside streams, lists grown at both ends.
#[test]
fn what_commands_have_made_decodes_as_the_commands_say() {
    if !installed() {
        return;
    }
    let mut server = Server::start(tempfile::tempdir().unwrap(), &[]);
    server.ok(&["CONFIG", "SET", "stream-node-max-entries", "7"]);
    for thresholds in THRESHOLDS {
        set_thresholds(&mut server, thresholds);
        server.ok(&["FLUSHALL"]);
        let mut rng = Rng::new(5);
        for number in 0..200u64 {
            let text = crate::common::text(&mut rng, true);
            let push: &[u8] = if rng.one_in(2) { b"LPUSH" } else { b"RPUSH" };
            server.ask(&[push, b"list", &text]);
            server.ask(&[b"SADD", b"set", &text]);
            let score = (rng.next_u64() as i64 as f64 / 1e12).to_string();
            server.ask(&[b"ZADD", b"zset", score.as_bytes(), &text]);
            server.ask(&[b"HSET", b"hash", &text, number.to_string().as_bytes()]);
            let id = format!("{}-*", 100 + number / 3);
            let name: &[u8] = if rng.one_in(4) { b"other" } else { b"name" };
            let added = server
                .ask(&[b"XADD", b"stream", id.as_bytes(), name, &text])
                .text();
            if rng.one_in(4) {
                server.say(&["XDEL", "stream", &added]);
            }
            match number {
                50 => drop(server.say(&["XGROUP", "CREATE", "stream", "g", "0"])),
                51..150 => drop(server.say(&[
                    "XREADGROUP",
                    "GROUP",
                    "g",
                    ["c", "d"][(number % 2) as usize],
                    "COUNT",
                    "1",
                    "STREAMS",
                    "stream",
                    ">",
                ])),
                _ => {}
            }
        }
        for (key, kind) in [
            ("list", Kind::List),
            ("set", Kind::Set),
            ("zset", Kind::ZSet),
            ("hash", Kind::Hash),
            ("stream", Kind::Stream),
        ] {
            let value = dumped(&mut server, key);
            assert_eq!(value.kind(), kind);
            assert_holds(&mut server, key, &value);
        }
    }
}

fn file_of(server: &Server) -> Vec<u8> {
    read(server, "dump.rdb")
}

fn read(server: &Server, name: &str) -> Vec<u8> {
    std::fs::read(server.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn its_file_decodes_wholly() {
    if !installed() {
        return;
    }
    for (round, thresholds) in THRESHOLDS.into_iter().enumerate() {
        let compression = ["yes", "no", "yes"][round];
        let checksum = ["yes", "yes", "no"][round];
        let settings = ["--rdbcompression", compression, "--rdbchecksum", checksum];
        let mut server = Server::start(tempfile::tempdir().unwrap(), &settings);
        set_thresholds(&mut server, thresholds);
        let policy = ["noeviction", "allkeys-lru", "allkeys-lfu"][round];
        server.ok(&["CONFIG", "SET", "maxmemory-policy", policy]);
        let mut expected = BTreeMap::new();
        for seed in 0..120 {
            let db = seed % 3;
            server.ok(&["SELECT", &db.to_string()]);
            let (key, value) = (format!("k{seed}"), random(seed + 1000));
            let payload = dump::encode(&value, &Encoding::plain(Version::V10)).unwrap();
            restore(&mut server, &key, &payload);
            let expires = (seed % 4 == 0).then_some(4_000_000_000_000 + seed as i64);
            if let Some(time) = expires {
                server.say(&["PEXPIREAT", &key, &time.to_string()]);
            }
            expected.insert((db, key.into_bytes()), (expires, value));
        }
        server.ok(&["SAVE"]);
        let file = file_of(&server);
        let file_bytes = Some(file.len() as u64);
        let limits = Limits {
            file_bytes,
            ..Limits::default()
        };
        let (keys, behind) = read_file(&file, 5000, limits).unwrap();
        assert!(behind.is_empty());
        assert_eq!(keys.len(), expected.len());
        for (head, value) in keys {
            assert_eq!(head.idle_seconds.is_some(), round == 1);
            assert_eq!(head.frequency.is_some(), round == 2);
            let (expires, original) = expected.remove(&(head.db, head.key)).unwrap();
            assert_eq!(head.expire_ms, expires);
            assert!(in_order(value) == original);
        }
    }
}

#[test]
fn our_files_load_there() {
    if !installed() {
        return;
    }
    for encoding in [
        Encoding::plain(Version::V9),
        Encoding::compact(Version::V9),
        Encoding::plain(Version::V10),
        Encoding::compact(Version::V10),
    ] {
        let mut writer = FileWriter::new(Vec::new(), encoding);
        writer.aux(b"redis-ver", b"7.0.15").unwrap();
        writer.select(2, 120, 10).unwrap();
        let mut expected = Vec::new();
        for seed in 0..120u64 {
            let value = random(seed + 2000);
            if Version::oldest_for(&value) > encoding.version {
                continue;
            }
            let facts = KeyFacts {
                expire_ms: (seed % 7 == 0).then_some(4_000_000_000_000),
                idle_seconds: (seed % 5 == 0).then_some(3),
                frequency: (seed % 5 == 1).then_some(5),
            };
            writer
                .key(format!("k{seed}").as_bytes(), &facts, &value)
                .unwrap();
            expected.push((format!("k{seed}"), facts, value));
        }
        let library = "#!lua name=lib\nredis.register_function('f', function() return 7 end)";
        if encoding.version >= Version::V10 {
            writer.function(library.as_bytes()).unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dump.rdb");
        std::fs::write(&path, writer.finish().unwrap()).unwrap();
        let checked = Command::new("redis-check-rdb").arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(
            checked.status.success() && said.contains("RDB looks OK"),
            "{said}"
        );
        let mut server = Server::start(dir, &[]);
        server.ok(&["SELECT", "2"]);
        assert_eq!(server.say(&["DBSIZE"]).integer() as usize, expected.len());
        for (key, facts, value) in expected {
            let expires = server.say(&["PEXPIRETIME", &key]).integer();
            assert_eq!(expires, facts.expire_ms.unwrap_or(-1));
            assert_holds(&mut server, &key, &value);
            let back = dumped(&mut server, &key);
            assert!(back == value, "{key}: {back:?} for {value:?}");
        }
        if encoding.version >= Version::V10 {
            assert_eq!(server.say(&["FCALL", "f", "0"]), Reply::Integer(7));
        }
    }
}

/// A damaged payload with a right checksum that is taken here is taken by Redis's deep sanitizer too.
#[test]
fn nothing_is_taken_that_redis_refuses() {
    if !installed() {
        return;
    }
    let mut server = Server::start(tempfile::tempdir().unwrap(), &[]);
    let (mut both, mut stricter, mut neither) = (0, 0, 0);
    for seed in 0..4_000 {
        let mut rng = Rng::new(seed);
        let kind = KINDS[seed as usize % KINDS.len()];
        let original = value(&mut rng, kind, 8);
        let encoding = [
            Encoding::plain(Version::V10),
            Encoding::compact(Version::V10),
        ];
        let mut payload = dump::encode(&original, &encoding[rng.below(2) as usize]).unwrap();
        payload.truncate(payload.len() - 8);
        let at = rng.below(payload.len() as u64 - 2) as usize;
        payload[at] = if rng.one_in(2) {
            payload[at] ^ 1 << rng.below(8)
        } else {
            0xff
        };
        let checksum = crc64(&payload);
        payload.extend_from_slice(&checksum.to_le_bytes());
        let ours = dump::decode(&payload, MEMORY_MAX);
        // Types of Redis 7.2 and 7.4, which this one does not know.
        if payload[0] > 19 {
            continue;
        }
        let theirs = restore(&mut server, "k", &payload);
        match (&ours, &theirs) {
            (Ok(value), Reply::Text(_)) => {
                both += 1;
                let back = dumped(&mut server, "k");
                let value = in_order(value.clone());
                assert!(back == value, "seed {seed}: {back:?} for {value:?}");
            }
            (Ok(value), other) => panic!("seed {seed}: {other:?} for {value:?}"),
            (Err(_), Reply::Text(_)) => stricter += 1,
            (Err(_), _) => neither += 1,
        }
    }
    println!("taken by both {both}, only by Redis {stricter}, by neither {neither}");
    assert!(both > 500 && neither > 500);
}

#[test]
fn its_append_only_files_are_read() {
    if !installed() {
        return;
    }
    let settings = [
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
        "--aof-timestamp-enabled",
        "yes",
    ];
    let mut server = Server::start(tempfile::tempdir().unwrap(), &settings);
    server.ok(&["SET", "a", "1"]);
    server.say(&["BGREWRITEAOF"]);
    while persistence(&mut server).contains("aof_rewrite_in_progress:1")
        || persistence(&mut server).contains("aof_rewrite_scheduled:1")
    {}
    server.ok(&["SET", "b", "two\r\nlines"]);
    server.ok(&["MULTI"]);
    server.say(&["SET", "c", "3"]);
    server.say(&["DEL", "a"]);
    server.say(&["EXEC"]);
    let manifest = read(&server, "appendonlydir/appendonly.aof.manifest");
    let parsed = Manifest::parse(&manifest).unwrap();
    let written = Manifest::parse(parsed.to_text().as_bytes()).unwrap();
    assert_eq!(written, parsed);
    let base = read(
        &server,
        &format!("appendonlydir/{}", parsed.base.as_ref().unwrap().name),
    );
    assert_eq!(begins_as_rdb(&base), Some(true));
    let (keys, behind) = read_file(&base, 100, Limits::default()).unwrap();
    assert_eq!((keys.len(), behind.len()), (1, 0));
    let mut found = Vec::new();
    for part in &parsed.increments {
        let mut commands = Commands::new(0, 1 << 20, 1000);
        commands.push(&read(&server, &format!("appendonlydir/{}", part.name)));
        while let Some(command) = commands.command().unwrap() {
            found.push(command.arguments.join(&b' '));
        }
        assert_eq!(commands.finish(), Tail::Whole);
    }
    let expected: [&[u8]; 6] = [
        b"SELECT 0",
        b"SET b two\r\nlines",
        b"MULTI",
        b"SET c 3",
        b"DEL a",
        b"EXEC",
    ];
    assert_eq!(found, expected);
    drop(server.kill());
}

fn persistence(server: &mut Server) -> String {
    server.say(&["INFO", "persistence"]).text()
}
