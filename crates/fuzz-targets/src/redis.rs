//! Seeds for the targets of `drumlin_rdb`: a body of each type, small files, and the packings alone.

use std::sync::Arc;

use drumlin_rdb::{
    Consumer, Encoding, Entry, Field, FileWriter, Group, KeyFacts, Pending, Stream, StreamHead,
    StreamId, Value, Version, dump, intset, listpack, lzf,
};

/// The example in Redis's own description of ziplists: "2" and "5".
const ZIPLIST: [u8; 15] = [15, 0, 0, 0, 12, 0, 0, 0, 2, 0, 0, 0xf3, 2, 0xf6, 0xff];
const ZIPMAP: &[u8] = b"\x02\x03foo\x03\x00bar\x05hello\x05\x02world__\xff";
/// Behind a body: its version and checksum.
const SEAL_BYTES: usize = 10;

fn values() -> Vec<(&'static str, Value)> {
    let text = |number: usize| match number % 3 {
        0 => number.to_string().into_bytes(),
        1 => format!("text {number}").into_bytes(),
        _ => b"long ".repeat(number),
    };
    let names = || (0..20).map(text);
    let field = |timed: bool| {
        move |name: Vec<u8>| Field {
            value: name.clone(),
            expire_ms: (timed && name.len() > 6).then_some(1 << 40),
            name,
        }
    };
    vec![
        ("integer", Value::String(b"-70000".to_vec())),
        (
            "string",
            Value::String(b"drumlin, drumlin, drumlin, esker".to_vec()),
        ),
        ("list", Value::List(names().collect())),
        ("set", Value::Set(names().collect())),
        (
            "integers",
            Value::Set((0..20).map(|n: u32| n.pow(4).to_string().into()).collect()),
        ),
        (
            "zset",
            Value::ZSet(
                names()
                    .zip([0.5, -1.0, f64::INFINITY].into_iter().cycle())
                    .collect(),
            ),
        ),
        ("hash", Value::Hash(names().map(field(false)).collect())),
        ("timed", Value::Hash(names().map(field(true)).collect())),
        ("stream", Value::Stream(Box::new(stream()))),
    ]
}

fn stream() -> Stream {
    let names: Vec<Arc<[u8]>> = vec![b"a".as_slice().into(), b"name".as_slice().into()];
    let entry = |number: u64| {
        let names = names.iter().skip(usize::from(number == 3));
        let fields = names.map(|name| (name.clone(), number.to_string().into_bytes()));
        Entry {
            id: StreamId::new(1000 + number / 2, number),
            fields: fields.collect(),
        }
    };
    let entries: Vec<_> = (0..6).map(entry).collect();
    let last_id = StreamId::new(1002, 5);
    let pending = entries.iter().enumerate().map(|(number, entry)| Pending {
        id: entry.id,
        delivered_ms: 5000,
        deliveries: 2,
        consumer: number % 2,
    });
    let consumer = |name: &str| Consumer {
        name: name.into(),
        seen_ms: 7000,
        active_ms: -1,
    };
    let group = Group {
        name: b"group".to_vec(),
        last_id,
        entries_read: Some(6),
        pending: pending.collect(),
        consumers: vec![consumer("one"), consumer("two")],
    };
    let head = StreamHead {
        last_id,
        max_deleted_id: StreamId::new(900, 0),
        entries_added: 7,
    };
    Stream {
        entries,
        head,
        groups: vec![group],
    }
}

/// Bodies of types that are read and never written.
fn old_bodies() -> Vec<(&'static str, Vec<u8>)> {
    let node = |head: &[u8], node: &[u8]| [head, &[node.len() as u8], node].concat();
    vec![
        ("zset-as-text", b"\x03\x02\x01a\x033.5\x01b\xfe".to_vec()),
        ("zipmap", node(&[9], ZIPMAP)),
        ("list-ziplist", node(&[10], &ZIPLIST)),
        ("zset-ziplist", node(&[12], &ZIPLIST)),
        ("hash-ziplist", node(&[13], &ZIPLIST)),
        ("quicklist", node(&[14, 1], &ZIPLIST)),
        (
            "timed-unreleased",
            b"\x16\x02\x00\x01a\x01x\x05\x01b\x01y".to_vec(),
        ),
        ("module", b"\x07\x81abcdefgh".to_vec()),
    ]
}

/// Inputs: target, name, bytes.
pub(crate) fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for (version, encoding) in [
        ("9", Encoding::plain(Version::V9)),
        ("10", Encoding::compact(Version::V10)),
        ("11", Encoding::compact(Version::V11)),
        ("12-plain", Encoding::plain(Version::V12)),
        ("12", Encoding::compact(Version::V12)),
    ] {
        let mut file = FileWriter::new(Vec::new(), encoding);
        file.aux(b"redis-ver", b"7.4.0").expect("memory takes it");
        file.select(1, 9, 1).expect("memory takes it");
        for (name, value) in values() {
            let Ok(payload) = dump::encode(&value, &encoding) else {
                continue;
            };
            let body = payload[..payload.len() - SEAL_BYTES].to_vec();
            seeds.push(("rdb_dump", format!("{name}-{version}"), body));
            let facts = KeyFacts {
                expire_ms: Some(1 << 41),
                idle_seconds: Some(9),
                frequency: None,
            };
            file.key(name.as_bytes(), &facts, &value)
                .expect("it was encoded before");
        }
        let file = file.finish().expect("memory takes it");
        seeds.push((
            "rdb_file",
            format!("version-{version}"),
            [&[16], file.as_slice()].concat(),
        ));
    }
    for (name, body) in old_bodies() {
        let file = [
            b"\x03REDIS0007\xfa\x01a\x00",
            &body[..1],
            b"\x01k",
            &body[1..],
            b"\xff12345678",
        ];
        seeds.push(("rdb_file", name.to_owned(), file.concat()));
        seeds.push(("rdb_dump", name.to_owned(), body));
    }
    let mut writer = listpack::Writer::new();
    for number in [0, 127, -1, 4095, 40_000, -9_000_000, 1 << 30, i64::MIN] {
        writer.push_integer(number);
        writer.push(&b"x".repeat(number.unsigned_abs() as usize % 300));
    }
    let packed = writer.finish().expect("a small one");
    seeds.push(("rdb_listpack", "integers-and-texts".to_owned(), packed));
    for (name, top) in [("narrow", 1), ("middle", 1 << 20), ("wide", 1 << 40)] {
        let packed = intset::encode(&mut [3, -7, top]).expect("they differ");
        seeds.push(("rdb_intset", name.to_owned(), packed));
    }
    seeds.push(("rdb_ziplist", "example".to_owned(), ZIPLIST.to_vec()));
    seeds.push(("rdb_ziplist", "zipmap".to_owned(), ZIPMAP.to_vec()));
    for (name, text) in [
        ("zeros", vec![0; 5000]),
        ("texts", b"drumlin, esker; ".repeat(20)),
    ] {
        let packed = lzf::Compressor::new().compress(&text).expect("it repeats");
        let claim = (text.len() as u32).to_be_bytes();
        seeds.push(("rdb_lzf", name.to_owned(), [&claim[1..], &packed].concat()));
        seeds.push((
            "rdb_lzf",
            format!("{name}-to-pack"),
            [&claim[1..], &text].concat(),
        ));
    }
    seeds
}
