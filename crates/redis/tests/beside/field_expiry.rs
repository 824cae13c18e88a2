//! Goal: the commands of the expiry of fields answer in the words of Redis 7.4, and expiries outlive a restart, DUMP and files.
//! Method: no such server is at hand, so the replies are written here, from its sources; times are far away or long over.

use drumlin_fs::Env;
use drumlin_rdb::{Encoding, Field, Value as RdbValue, Version, dump};
use drumlin_redis::{export_rdb, load_data};
use drumlin_resp::Value;

use crate::pair::{Ours, config_of, words};

/// A reply in short: items in a row.
fn short(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(short).collect::<Vec<_>>().join(" "),
        Value::Simple(text) | Value::Bulk(text) | Value::Error(text) => {
            String::from_utf8_lossy(text).into_owned()
        }
        Value::Integer(number) => number.to_string(),
        other => other.to_string(),
    }
}

fn check(server: &Ours, cases: &[(&str, &str)]) {
    let commands: Vec<_> = cases.iter().map(|(command, _)| words(command)).collect();
    let replies = server.ask(&commands);
    for ((command, wanted), reply) in cases.iter().zip(&replies) {
        assert_eq!(&short(reply), wanted, "{command}");
    }
}

const NO_FIELDS: &str = "ERR Mandatory argument FIELDS is missing or not at the right position";
const COUNT: &str = "ERR The `numfields` parameter must match the number of arguments";
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn errors_are_in_the_words_of_redis() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Ours::start(&dir.path().join("data"));
    let too_few = "ERR Parameter `numFields` should be greater than 0";
    let no_count = "ERR Number of fields must be a positive integer";
    check(
        &server,
        &[
            ("SET s v", "OK"),
            ("HEXPIRE s x y 1 f g", WRONG_TYPE),
            ("HTTL s x 1 f", WRONG_TYPE),
            ("HPERSIST s x 1 f", WRONG_TYPE),
            ("HSET h f v", "1"),
            (
                "HEXPIRE h 10 FIELDS 1",
                "ERR wrong number of arguments for 'hexpire' command",
            ),
            (
                "HPTTL h FIELDS 1",
                "ERR wrong number of arguments for 'hpttl' command",
            ),
            (
                "HEXPIRE h x FIELDS 1 f",
                "ERR value is not an integer or out of range",
            ),
            (
                "HEXPIRE h -1 FIELDS 1 f",
                "ERR invalid expire time, must be >= 0",
            ),
            (
                "HEXPIREAT h 70368744178 FIELDS 1 f",
                "ERR invalid expire time in 'hexpireat' command",
            ),
            (
                "HPEXPIREAT h 70368744177664 FIELDS 1 f",
                "ERR invalid expire time in 'hpexpireat' command",
            ),
            (
                "HPEXPIRE h 9223372036854775807 FIELDS 1 f",
                "ERR invalid expire time in 'hpexpire' command",
            ),
            ("HEXPIRE h 10 1 1 f", NO_FIELDS),
            ("HEXPIRE h 10 NX 1 f", NO_FIELDS),
            ("HEXPIRE h 10 NX XX FIELDS 1 f", NO_FIELDS),
            ("HEXPIRE h 10 FIELDS 0 f", too_few),
            ("HEXPIRE h 10 FIELDS x f", too_few),
            ("HEXPIRE h 10 FIELDS 2 f", COUNT),
            ("HEXPIRE h 10 LT FIELDS 1 f g", COUNT),
            ("HTTL h FIELD 1 f", NO_FIELDS),
            ("HTTL h FIELDS 0 f", no_count),
            ("HPERSIST h FIELDS -1 f", no_count),
            ("HPERSIST h FIELDS 2 f", COUNT),
            ("HTTL h FIELDS 1 f", "-1"),
        ],
    );
}

#[test]
fn replies_are_those_of_redis() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Ours::start(&dir.path().join("data"));
    check(
        &server,
        &[
            ("HEXPIRE none 10 FIELDS 2 f g", "-2 -2"),
            ("HEXPIRETIME none FIELDS 2 f g", "-2 -2"),
            ("HPERSIST none FIELDS 1 f", "-2"),
            ("HSET h f 1 g 2 i 3", "3"),
            ("HEXPIREAT h 40000000000 FIELDS 2 f none", "1 -2"),
            ("HPEXPIREAT h 40000000000001 nx FIELDS 2 f g", "0 1"),
            ("HPEXPIREAT h 40000000000000 XX FIELDS 2 g i", "1 0"),
            ("HPEXPIREAT h 40000000000000 GT FIELDS 2 g i", "0 0"),
            ("HPEXPIREAT h 40000000000001 GT FIELDS 1 g", "1"),
            ("HPEXPIREAT h 40000000000002 LT FIELDS 2 g i", "0 1"),
            (
                "HEXPIRETIME h FIELDS 4 f g i none",
                "40000000000 40000000001 40000000001 -2",
            ),
            (
                "HPEXPIRETIME h FIELDS 3 f g i",
                "40000000000000 40000000000001 40000000000002",
            ),
            ("OBJECT ENCODING h", "listpackex"),
            ("HINCRBY h f 4", "5"),
            ("HINCRBYFLOAT h f 0.5", "5.5"),
            ("HPEXPIRETIME h FIELDS 1 f", "40000000000000"),
            ("HSET h f 6", "0"),
            ("HPERSIST h FIELDS 3 f g none", "-1 1 -2"),
            ("COPY h c", "1"),
            ("RENAME c d", "OK"),
            ("MOVE d 3", "1"),
            ("SELECT 3", "OK"),
            ("HPEXPIRETIME d FIELDS 3 f g i", "-1 -1 40000000000002"),
            ("SELECT 0", "OK"),
            ("HEXPIREAT h 1 FIELDS 3 i i none", "2 -2 -2"),
            ("HGETALL h", "f 6 g 2"),
            ("HPEXPIRE h 0 FIELDS 2 f g", "2 2"),
            ("EXISTS h", "0"),
            ("COMMAND GETKEYS HEXPIRE h 1 FIELDS 1 f", "h"),
        ],
    );
}

#[test]
fn expiries_of_fields_outlive_a_restart_dump_and_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let many: Vec<_> = (0..900).map(|number| format!("f{number}")).collect();
    let told = "HPEXPIRETIME large FIELDS 3 f0 f1 f899";
    let times = "40000000000000 -1 40000000000007";
    let server = Ours::start(&data);
    let set = format!("HSET large {}", many.join(" v ") + " v");
    check(
        &server,
        &[
            (&set, "900"),
            ("HPEXPIREAT large 40000000000000 FIELDS 1 f0", "1"),
            ("HPEXPIREAT large 40000000000007 FIELDS 1 f899", "1"),
            ("HSET small a 1 b 2", "2"),
            ("HPEXPIREAT small 40000000000009 FIELDS 1 b", "1"),
            (told, times),
        ],
    );
    drop(server);
    let server = Ours::start(&data);
    check(
        &server,
        &[
            (told, times),
            ("HPEXPIRETIME small FIELDS 2 a b", "-1 40000000000009"),
        ],
    );
    let payloads = server.ask(&[words("DUMP large"), words("DUMP small")]);
    let restores = payloads
        .into_iter()
        .zip(["large", "small"])
        .map(|(payload, key)| {
            let Value::Bulk(payload) = payload else {
                panic!("{key} has no payload");
            };
            let mut restore = words(&format!("RESTORE {key} 0 payload REPLACE"));
            restore[3] = payload;
            restore
        });
    let restores: Vec<_> = restores.collect();
    let done = server.ask(&restores);
    assert!(
        done.iter()
            .all(|reply| *reply == Value::Simple(b"OK".to_vec())),
        "{done:?}"
    );
    check(
        &server,
        &[(told, times), ("HLEN large", "900"), ("HGET small b", "2")],
    );
    drop(server);

    let (env, file) = (Env::system(), dir.path().join("file.rdb"));
    assert_eq!(
        export_rdb(&config_of(&data), &env, &file).expect("exports"),
        2
    );
    let other = dir.path().join("other");
    let loaded = load_data(&config_of(&other), &env, &file, &mut |_, _| {}).expect("loads");
    assert_eq!(loaded.keys, 2);
    let server = Ours::start(&other);
    check(
        &server,
        &[
            (told, times),
            ("HPEXPIRETIME small FIELDS 2 a b", "-1 40000000000009"),
        ],
    );
}

#[test]
fn payloads_of_redis_7_4_are_restored_and_what_expired_is_not_seen() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Ours::start(&dir.path().join("data"));
    let field = |name: &str, expire_ms| Field {
        name: name.into(),
        value: b"v".to_vec(),
        expire_ms,
    };
    let fields = vec![
        field("a", None),
        field("b", Some(5)),
        field("c", Some(40_000_000_000_000)),
    ];
    let ended = vec![field("b", Some(5))];
    for encoding in [
        Encoding::plain(Version::V12),
        Encoding::compact(Version::V12),
    ] {
        let payload = |fields: &[Field]| dump::encode(&RdbValue::Hash(fields.to_vec()), &encoding);
        let restores = [("h", &fields), ("e", &ended)].map(|(key, fields)| {
            let mut restore = words(&format!("RESTORE {key} 0 payload REPLACE"));
            restore[3] = payload(fields).expect("a payload");
            restore
        });
        let done = server.ask(&restores);
        assert!(
            done.iter()
                .all(|reply| *reply == Value::Simple(b"OK".to_vec())),
            "{done:?}"
        );
        check(
            &server,
            &[
                ("HPEXPIRETIME h FIELDS 3 a b c", "-1 -2 40000000000000"),
                ("HLEN h", "2"),
                ("HEXISTS h b", "0"),
                ("HDEL h b", "0"),
                ("HSTRLEN h c", "1"),
                ("EXISTS h e", "1"),
                ("KEYS *", "h"),
                ("TYPE e", "none"),
            ],
        );
    }
}
