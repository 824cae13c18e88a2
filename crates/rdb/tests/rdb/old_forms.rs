//! Goal: forms that nobody writes any more are read: those of Redis 2.4 to 6.2 from ziplists, zipmaps and scores as
//! text, and those of 7.4 with field expiries. Method: they are made here from random values, decoded, and, where
//! Redis 7.0 knows them, RESTOREd there too.

use drumlin_base::rng::Rng;
use drumlin_rdb::crc64::crc64;
use drumlin_rdb::{Bytes, Field, Kind, Value, dump, listpack};
use drumlin_testkit::redis::{Reply, Server, installed};

use crate::common::{MEMORY_MAX, in_order, value, with_expiries};
use crate::redis::{dumped, restore};

fn sealed(body: &[u8], version: u16) -> Vec<u8> {
    let mut out = [body, &version.to_le_bytes()].concat();
    let checksum = crc64(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

fn length(out: &mut Vec<u8>, length: usize) {
    out.push(0x80);
    out.extend_from_slice(&(length as u32).to_be_bytes());
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    length(out, text.len());
    out.extend_from_slice(text);
}

fn ziplist(entries: &[Bytes]) -> Bytes {
    let mut out = vec![0; 10];
    let (mut last, mut before) = (10, 0);
    for entry in entries {
        last = out.len();
        if before < 254 {
            out.push(before as u8);
        } else {
            out.push(0xfe);
            out.extend_from_slice(&(before as u32).to_le_bytes());
        }
        let number = std::str::from_utf8(entry)
            .ok()
            .and_then(|text| text.parse::<i64>().ok());
        match number.filter(|number| number.to_string().as_bytes() == entry) {
            Some(number @ 0..=12) => out.push(0xf1 + number as u8),
            Some(number) => {
                let (mark, bytes) = match number {
                    -0x80..=0x7f => (0xfe, 1),
                    -0x8000..=0x7fff => (0xc0, 2),
                    -0x80_0000..=0x7f_ffff => (0xf0, 3),
                    -0x8000_0000..=0x7fff_ffff => (0xd0, 4),
                    _ => (0xe0, 8),
                };
                out.push(mark);
                out.extend_from_slice(&number.to_le_bytes()[..bytes]);
            }
            None => {
                match entry.len() {
                    len @ 0..=63 => out.push(len as u8),
                    len @ 64..=16_383 => {
                        out.extend_from_slice(&[0x40 | (len >> 8) as u8, len as u8])
                    }
                    len => {
                        out.push(0x80);
                        out.extend_from_slice(&(len as u32).to_be_bytes());
                    }
                }
                out.extend_from_slice(entry);
            }
        }
        before = out.len() - last;
    }
    out.push(0xff);
    let size = out.len() as u32;
    out[..4].copy_from_slice(&size.to_le_bytes());
    out[4..8].copy_from_slice(&(last as u32).to_le_bytes());
    out[8..10].copy_from_slice(&(entries.len() as u16).to_le_bytes());
    out
}

fn zipmap(fields: &[Field], rng: &mut Rng) -> Bytes {
    let mut out = vec![fields.len().min(254) as u8];
    let len = |out: &mut Bytes, len: usize| match len {
        0..=253 => out.push(len as u8),
        _ => {
            out.push(254);
            out.extend_from_slice(&(len as u32).to_le_bytes());
        }
    };
    for field in fields {
        len(&mut out, field.name.len());
        out.extend_from_slice(&field.name);
        len(&mut out, field.value.len());
        let unused = rng.below(4) as usize;
        out.push(unused as u8);
        out.extend_from_slice(&field.value);
        out.extend_from_slice(&vec![b'?'; unused]);
    }
    out.push(0xff);
    out
}

fn packed(entries: &[Bytes]) -> Bytes {
    let mut writer = listpack::Writer::new();
    entries.iter().for_each(|entry| writer.push(entry));
    writer.finish().unwrap()
}

/// All old forms of `value`, by their type.
fn forms(value: &Value, rng: &mut Rng) -> Vec<(u8, Bytes)> {
    let node = |code: u8, node: &[u8]| {
        let mut body = vec![code];
        string(&mut body, node);
        (code, body)
    };
    match value {
        Value::List(elements) => {
            let mut quicklist = vec![14];
            length(&mut quicklist, elements.chunks(5).len());
            for elements in elements.chunks(5) {
                string(&mut quicklist, &ziplist(elements));
            }
            vec![node(10, &ziplist(elements)), (14, quicklist)]
        }
        Value::Set(members) => vec![node(20, &packed(members))],
        Value::ZSet(members) => {
            let mut plain = vec![3];
            length(&mut plain, members.len());
            for (member, score) in members {
                string(&mut plain, member);
                match score {
                    score if score.is_finite() => {
                        let text = format!("{score:e}");
                        plain.push(text.len() as u8);
                        plain.extend_from_slice(text.as_bytes());
                    }
                    score => plain.push(if *score > 0.0 { 254 } else { 255 }),
                }
            }
            let mut members = members.clone();
            // Zeros of both signs are one score, so members decide.
            members.sort_by(|one, other| {
                let scores = one.1.partial_cmp(&other.1).unwrap();
                scores.then_with(|| one.0.cmp(&other.0))
            });
            let pairs = members.iter();
            let pairs =
                pairs.flat_map(|(member, score)| [member.clone(), format!("{score:e}").into()]);
            vec![(3, plain), node(12, &ziplist(&pairs.collect::<Vec<_>>()))]
        }
        Value::Hash(fields) => {
            let texts = fields.iter();
            let texts = texts.flat_map(|field| [field.name.clone(), field.value.clone()]);
            let texts: Vec<_> = texts.collect();
            vec![
                node(9, &zipmap(fields, rng)),
                node(13, &ziplist(&texts)),
                node(16, &packed(&texts)),
            ]
        }
        Value::String(_) | Value::Stream(_) => Vec::new(),
    }
}

#[test]
fn forms_of_older_versions_read_here_and_there() {
    let mut server = installed().then(|| Server::start(tempfile::tempdir().unwrap(), &[]));
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let kind = [Kind::List, Kind::Set, Kind::ZSet, Kind::Hash][seed as usize % 4];
        let original = in_order(value(&mut rng, kind, 60));
        for (code, body) in forms(&original, &mut rng) {
            let payload = sealed(&body, 9);
            let back = in_order(dump::decode(&payload, MEMORY_MAX).unwrap());
            assert_eq!(back, original, "seed {seed}, type {code}");
            // Sets as listpacks are of Redis 7.2.
            if let Some(server) = server.as_mut().filter(|_| code != 20) {
                let answer = restore(server, "k", &payload);
                assert_eq!(
                    answer,
                    Reply::Text(b"OK".to_vec()),
                    "seed {seed}, type {code}"
                );
                assert_eq!(dumped(server, "k"), original, "seed {seed}, type {code}");
            }
        }
    }
}

/// As the release candidates of Redis 7.4 wrote them, and as 7.4 does.
#[test]
fn hashes_with_field_expiries_read_in_all_four_forms() {
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        let hash = value(&mut rng, Kind::Hash, 30);
        let original = in_order(with_expiries(&mut rng, hash));
        let Value::Hash(fields) = &original else {
            unreachable!("a hash was made");
        };
        let times = fields.iter().filter_map(|field| field.expire_ms);
        let least = times.min().unwrap_or(1);
        let mut sorted = fields.clone();
        sorted.sort_by_key(|field| field.expire_ms.unwrap_or(u64::MAX));
        let triples = sorted.iter().flat_map(|field| {
            let time = field.expire_ms.unwrap_or(0).to_string().into_bytes();
            [field.name.clone(), field.value.clone(), time]
        });
        let node = packed(&triples.collect::<Vec<_>>());
        for code in 22..=25u8 {
            let mut body = vec![code];
            if code >= 24 {
                body.extend_from_slice(&least.to_le_bytes());
            }
            if code % 2 == 1 {
                string(&mut body, &node);
            } else {
                length(&mut body, fields.len());
                for field in fields {
                    let base = if code == 24 { least - 1 } else { 0 };
                    body.push(0x81);
                    let time = field.expire_ms.map_or(0, |time| time - base);
                    body.extend_from_slice(&time.to_be_bytes());
                    string(&mut body, &field.name);
                    string(&mut body, &field.value);
                }
            }
            let back = dump::decode(&sealed(&body, 12), MEMORY_MAX).unwrap();
            assert_eq!(in_order(back), original, "seed {seed}, type {code}");
        }
    }
}

/// Streams of Redis 5 have no counts of entries added and read; all counts of a later one are taken.
#[test]
fn streams_of_each_version_are_completed_as_redis_does() {
    if !installed() {
        return;
    }
    let mut server = Server::start(tempfile::tempdir().unwrap(), &[]);
    let mut estimated = 0;
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let original = value(&mut rng, Kind::Stream, 20);
        let encoding = drumlin_rdb::Encoding::plain(drumlin_rdb::Version::V9);
        let payload = dump::encode(&original, &encoding).unwrap();
        assert_eq!(payload[0], 15);
        let ours = in_order(dump::decode(&payload, MEMORY_MAX).unwrap());
        assert_eq!(
            restore(&mut server, "k", &payload),
            Reply::Text(b"OK".to_vec())
        );
        assert_eq!(dumped(&mut server, "k"), ours, "seed {seed}");
        if let Value::Stream(stream) = ours {
            let read = stream.groups.iter().filter_map(|group| group.entries_read);
            estimated += read.count();
        }
    }
    assert!(estimated > 20, "{estimated}");
}
