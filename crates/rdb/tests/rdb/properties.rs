//! Goal: written values read back, and damage is an error. Method: random values of every type and size from a
//! seed, through every version and way of packing, whole and in pieces; then bits are turned and tails cut.

use crate::common::{KINDS, MEMORY_MAX, in_order, read_file, same, value, with_expiries};
use drumlin_base::rng::Rng;
use drumlin_rdb::crc64::crc64;
use drumlin_rdb::{
    Encoding, Entry, Event, FileWriter, Item, KeyFacts, Kind, Limits, NodeCutter, Reader, Stream,
    StreamId, StreamPart, Value, Version, dump,
};

const VERSIONS: [Version; 4] = [Version::V9, Version::V10, Version::V11, Version::V12];

fn encodings() -> Vec<Encoding> {
    let shapes = VERSIONS.iter().flat_map(|version| {
        let compact = Encoding::compact(*version);
        let huge = Encoding {
            packed_items_max: 2000,
            packed_item_bytes_max: 100_000,
            ..compact
        };
        [Encoding::plain(*version), compact, huge]
    });
    shapes.collect()
}

#[test]
fn payloads_read_back_in_every_version_that_holds_them() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let kind = KINDS[seed as usize % KINDS.len()];
        let size = if rng.one_in(4) { 400 } else { 20 };
        let mut original = value(&mut rng, kind, size);
        if rng.one_in(2) {
            original = with_expiries(&mut rng, original);
        }
        let original = in_order(original);
        for encoding in encodings() {
            if Version::oldest_for(&original) > encoding.version {
                continue;
            }
            let payload = dump::encode(&original, &encoding).unwrap();
            let back = in_order(dump::decode(&payload, MEMORY_MAX).unwrap());
            assert!(
                same(&back, &original),
                "seed {seed}, {encoding:?}: {back:?} for {original:?}"
            );
        }
        let payload = dump::encode_for_most(&original).unwrap();
        let back = in_order(dump::decode(&payload, MEMORY_MAX).unwrap());
        assert!(same(&back, &original), "seed {seed}: {back:?}");
    }
}

#[test]
fn a_value_is_refused_by_a_version_that_cannot_hold_it() {
    let mut rng = Rng::new(1);
    let hash = with_expiries(&mut rng, value(&mut Rng::new(2), Kind::Hash, 100));
    assert_eq!(Version::oldest_for(&hash), Version::V12);
    assert!(dump::encode(&hash, &Encoding::plain(Version::V11)).is_err());
    for empty in [
        Value::List(Vec::new()),
        Value::Set(Vec::new()),
        Value::Hash(Vec::new()),
    ] {
        assert!(dump::encode(&empty, &Encoding::plain(Version::V9)).is_err());
    }
    let nan = Value::ZSet(vec![(b"a".to_vec(), f64::NAN)]);
    for encoding in encodings() {
        assert!(dump::encode(&nan, &encoding).is_err());
    }
}

type Key = (Vec<u8>, KeyFacts, Value);

/// A file of keys of every type with facts of every sort, some written item by item.
fn file(seed: u64, encoding: Encoding) -> (Vec<Key>, Vec<u8>) {
    let mut rng = Rng::new(seed);
    let mut writer = FileWriter::new(Vec::new(), encoding);
    writer.aux(b"redis-ver", b"7.0.15").unwrap();
    writer.select(3, 24, 10).unwrap();
    let mut keys = Vec::new();
    for number in 0..24u8 {
        let kind = KINDS[usize::from(number) % KINDS.len()];
        let size = if rng.one_in(8) { 3000 } else { 30 };
        let value = in_order(value(&mut rng, kind, size));
        if Version::oldest_for(&value) > encoding.version {
            continue;
        }
        let facts = KeyFacts {
            expire_ms: rng.one_in(3).then(|| rng.below(1 << 44) as i64),
            idle_seconds: rng.one_in(3).then(|| rng.below(1 << 20)),
            frequency: rng.one_in(3).then(|| rng.below(256) as u8),
        };
        let key = vec![b'k', number];
        match items(&value) {
            Some(items) if rng.one_in(2) => {
                writer
                    .begin(&key, &facts, kind, items.len() as u64)
                    .unwrap();
                assert!(writer.key(&key, &facts, &value).is_err(), "within a value");
                items.iter().for_each(|item| writer.item(item).unwrap());
                assert!(writer.item(&items[0]).is_err(), "one too many");
            }
            _ => match &value {
                Value::Stream(stream) if rng.one_in(2) => {
                    write_in_parts(&mut writer, &key, &facts, stream);
                }
                _ => writer.key(&key, &facts, &value).unwrap(),
            },
        }
        keys.push((key, facts, value));
    }
    (keys, writer.finish().unwrap())
}

fn write_in_parts(writer: &mut FileWriter<Vec<u8>>, key: &[u8], facts: &KeyFacts, stream: &Stream) {
    let mut nodes: Vec<Vec<Entry>> = Vec::new();
    let mut cutter = NodeCutter::default();
    for entry in &stream.entries {
        if !cutter.takes(entry) {
            nodes.push(Vec::new());
        }
        nodes.last_mut().unwrap().push(entry.clone());
    }
    let head = StreamPart::Head {
        head: stream.head,
        entries: stream.entries.len() as u64,
        first: stream
            .entries
            .first()
            .map_or(StreamId::default(), |it| it.id),
        groups: stream.groups.len() as u64,
    };
    let mut parts: Vec<_> = nodes.iter().map(|node| StreamPart::Node(node)).collect();
    parts.push(head);
    for group in &stream.groups {
        let count = |owner: usize| group.pending.iter().filter(move |it| it.consumer == owner);
        parts.push(StreamPart::Group(group, group.pending.len() as u64));
        parts.extend(group.pending.iter().map(StreamPart::Pending));
        parts.push(StreamPart::Consumers(group.consumers.len() as u64));
        for (owner, consumer) in group.consumers.iter().enumerate() {
            parts.push(StreamPart::Consumer(consumer, count(owner).count() as u64));
            parts.extend(count(owner).map(|it| StreamPart::Owned(it.id)));
        }
    }
    assert!(writer.stream_part(&head).is_err(), "outside of a stream");
    writer.begin_stream(key, facts, nodes.len() as u64).unwrap();
    if !nodes.is_empty() {
        assert!(writer.stream_part(&head).is_err(), "before its nodes");
        assert!(writer.begin_stream(key, facts, 0).is_err(), "within it");
    }
    parts
        .iter()
        .for_each(|part| writer.stream_part(part).unwrap());
    assert!(
        writer
            .stream_part(&StreamPart::Node(&stream.entries))
            .is_err()
    );
    writer.end_stream().unwrap();
    assert!(writer.end_stream().is_err(), "twice");
}

fn items(value: &Value) -> Option<Vec<Item>> {
    Some(match value.clone() {
        Value::List(elements) => elements.into_iter().map(Item::Element).collect(),
        Value::Set(members) => members.into_iter().map(Item::Member).collect(),
        Value::ZSet(members) => members
            .into_iter()
            .map(|(m, s)| Item::Scored(m, s))
            .collect(),
        Value::Hash(fields) => fields.into_iter().map(Item::Field).collect(),
        Value::String(_) | Value::Stream(_) => return None,
    })
}

#[test]
fn files_read_back_whatever_pieces_they_come_in() {
    for (seed, encoding) in encodings().into_iter().enumerate() {
        let (expected, mut file) = file(seed as u64, encoding);
        let whole = file.len() as u64;
        file.extend_from_slice(b"*1\r\n$4\r\nPING\r\n");
        for piece_max in [1, 10, 1000, 1 << 20] {
            let file_bytes = (piece_max == 10).then_some(whole);
            let limits = Limits {
                file_bytes,
                ..Limits::default()
            };
            let (keys, behind) = read_file(&file, piece_max, limits).unwrap();
            assert_eq!(behind, b"*1\r\n$4\r\nPING\r\n");
            assert_eq!(keys.len(), expected.len());
            for ((head, value), (key, facts, original)) in keys.into_iter().zip(&expected) {
                assert_eq!((head.db, &head.key), (3, key));
                let told = KeyFacts {
                    expire_ms: head.expire_ms,
                    idle_seconds: head.idle_seconds,
                    frequency: head.frequency,
                };
                assert_eq!(told, *facts);
                assert!(same(&in_order(value), original), "{encoding:?}");
            }
        }
    }
}

#[test]
fn every_cut_of_a_file_and_every_turned_bit_is_an_error() {
    let (_, file) = file(7, Encoding::compact(Version::V11));
    let limits = Limits::default();
    let step = file.len() / 500 + 1;
    for len in (0..file.len()).step_by(step) {
        assert!(
            read_file(&file[..len], 1 << 20, limits).is_err(),
            "{len} bytes"
        );
    }
    for at in (0..file.len()).step_by(step) {
        let mut damaged = file.clone();
        damaged[at] ^= 1 << (at % 8);
        let outcome = read_file(&damaged, 1 << 20, limits);
        assert!(outcome.is_err(), "byte {at}");
    }
    // A file that says that it has no checksum is believed.
    let mut unchecked = file.clone();
    let end = file.len() - 8;
    unchecked[end..].fill(0);
    assert!(read_file(&unchecked, 1 << 20, limits).is_ok());
}

/// Behind a right checksum nothing but the decoder itself stands.
#[test]
fn damaged_payloads_with_a_right_checksum_do_no_harm() {
    let mut accepted = 0;
    for seed in 0..3_000 {
        let mut rng = Rng::new(seed);
        let kind = KINDS[seed as usize % KINDS.len()];
        let encoding = encodings()[rng.below(12) as usize];
        let original = value(&mut rng, kind, 12);
        let mut payload = dump::encode(&original, &encoding).unwrap();
        payload.truncate(payload.len() - 8);
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(payload.len() as u64 - 2) as usize;
            payload[at] = if rng.one_in(2) {
                rng.next_u64() as u8
            } else {
                0xff
            };
        }
        let checksum = crc64(&payload);
        payload.extend_from_slice(&checksum.to_le_bytes());
        if let Ok(back) = dump::decode(&payload, MEMORY_MAX) {
            // An accepted value can be written, and reads back.
            let again = dump::encode(&back, &Encoding::compact(Version::V12)).unwrap();
            let again = dump::decode(&again, MEMORY_MAX).unwrap();
            assert!(same(&in_order(again), &in_order(back)), "seed {seed}");
            accepted += 1;
        }
    }
    assert!(accepted > 300, "{accepted}");
}

/// 264 bytes for three are right, and counted.
#[test]
fn memory_is_bounded_for_values_that_unpack_to_much() {
    let many = Value::List(vec![b"1".to_vec(); 100_000]);
    let encoding = Encoding {
        packed_items_max: 1 << 20,
        ..Encoding::compact(Version::V10)
    };
    let payload = dump::encode(&many, &encoding).unwrap();
    assert!(payload.len() < 10_000, "{}", payload.len());
    assert!(dump::decode(&payload, 16 << 20).is_ok());
    let error = dump::decode(&payload, 1 << 20).unwrap_err();
    assert_eq!(error.kind(), drumlin_base::ErrorKind::TooLarge);
}

/// Lengths that can never come are refused at once, and nothing is kept for those that could.
#[test]
fn announced_lengths_are_compared_with_the_rest_of_the_file() {
    let huge = [
        b"REDIS0010\x00\x01k\x81".as_slice(),
        &(1u64 << 29).to_be_bytes(),
    ]
    .concat();
    let mut reader = Reader::new(Limits::default());
    reader.push(&huge);
    while let Some(event) = reader.event().unwrap() {
        assert_ne!(event, Event::End);
    }
    assert!(reader.finish().is_err());
    let file_bytes = Some(1 << 20);
    let mut reader = Reader::new(Limits {
        file_bytes,
        ..Limits::default()
    });
    reader.push(&huge);
    let mut outcome = reader.event();
    while let Ok(Some(_)) = outcome {
        outcome = reader.event();
    }
    assert!(outcome.unwrap_err().is_corruption());
    assert!(reader.event().is_err(), "nothing follows an error");
}

#[test]
fn modules_are_refused_by_name() {
    // "graphdata" as the nine letters of six bits.
    let charset = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let place = |letter| charset.iter().position(|known| *known == letter).unwrap() as u64;
    let number = b"graphdata"
        .iter()
        .fold(0, |sum, letter| sum << 6 | place(*letter))
        << 10
        | 1;
    let number = [&[0x81][..], &number.to_be_bytes()].concat();
    for before in [&b"\xf7"[..], b"\x07\x01k"] {
        let mut reader = Reader::new(Limits::default());
        reader.push(&[b"REDIS0010", before, &number].concat());
        assert_eq!(reader.event().unwrap(), Some(Event::Begin(10)));
        let error = reader.event().unwrap_err();
        assert_eq!(error.kind(), drumlin_base::ErrorKind::NotSupported);
        assert!(error.to_string().contains("graphdata"), "{error}");
    }
}
