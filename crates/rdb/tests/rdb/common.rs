//! Random values from a seed, and values in one order.

use std::collections::BTreeSet;
use std::sync::Arc;

use drumlin_base::rng::Rng;
use drumlin_rdb::{
    Bytes, Collector, Consumer, Entry, Event, Field, Group, KeyHead, Kind, Limits, Pending, Reader,
    Stream, StreamHead, StreamId, Value,
};

/// Far more memory than any value here takes.
pub(crate) const MEMORY_MAX: usize = 64 << 20;

pub(crate) const KINDS: [Kind; 6] = [
    Kind::String,
    Kind::List,
    Kind::Set,
    Kind::ZSet,
    Kind::Hash,
    Kind::Stream,
];

/// A string: a number of any size, a few letters, one letter many times, or noise; rarely a long one.
pub(crate) fn text(rng: &mut Rng, long: bool) -> Bytes {
    match rng.below(8) {
        0 => (rng.below(300) as i64 - 150).to_string().into_bytes(),
        1 => {
            let number = rng.next_u64() as i64 >> rng.below(64);
            number.to_string().into_bytes()
        }
        2 => b"x".repeat(rng.below(120) as usize),
        3 if long && rng.one_in(20) => b"drumlin, esker; ".repeat(rng.below(1500) as usize),
        4 => format!("0{}", rng.below(1000)).into_bytes(),
        _ => {
            let most = if rng.one_in(10) { 200 } else { 12 };
            let len = rng.below(most);
            let letters = if rng.one_in(2) { 256 } else { 4 };
            (0..len).map(|_| rng.below(letters) as u8).collect()
        }
    }
}

/// So many different strings, or integers alone.
fn names(rng: &mut Rng, count: u64) -> Vec<Bytes> {
    let integers = rng.one_in(3);
    let width = rng.below(64);
    let mut names = BTreeSet::new();
    for number in 0..count {
        names.insert(if integers {
            let number = (rng.next_u64() as i64 >> width).wrapping_add(number as i64);
            number.to_string().into_bytes()
        } else {
            text(rng, true)
        });
    }
    let mut names: Vec<_> = names.into_iter().collect();
    // Not in any order.
    for at in 1..names.len() {
        names.swap(at, rng.below(at as u64 + 1) as usize);
    }
    names
}

fn score(rng: &mut Rng) -> f64 {
    match rng.below(6) {
        0 => rng.below(10) as f64,
        1 => -(rng.below(1 << 40) as f64),
        2 => [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY][rng.below(4) as usize],
        3 => rng.unit(),
        _ => {
            let score = f64::from_bits(rng.next_u64());
            if score.is_nan() { 1.5 } else { score }
        }
    }
}

/// A value of about `size` items.
pub(crate) fn value(rng: &mut Rng, kind: Kind, size: u64) -> Value {
    let count = 1 + rng.below(size);
    match kind {
        Kind::String => Value::String(text(rng, true)),
        Kind::List => Value::List((0..count).map(|_| text(rng, true)).collect()),
        Kind::Set => Value::Set(names(rng, count)),
        Kind::ZSet => {
            let names = names(rng, count);
            Value::ZSet(names.into_iter().map(|name| (name, score(rng))).collect())
        }
        Kind::Hash => Value::Hash(hash(rng, count)),
        Kind::Stream => Value::Stream(Box::new(stream(rng, count))),
    }
}

fn hash(rng: &mut Rng, count: u64) -> Vec<Field> {
    let field = |name| {
        let value = text(rng, true);
        let expire_ms = None;
        Field {
            name,
            value,
            expire_ms,
        }
    };
    let names = names(&mut Rng::new(count), count);
    names.into_iter().map(field).collect()
}

/// `value`, with expiries at some fields if it is a hash.
pub(crate) fn with_expiries(rng: &mut Rng, mut value: Value) -> Value {
    if let Value::Hash(fields) = &mut value {
        for field in fields {
            field.expire_ms = rng.one_in(2).then(|| 1 + rng.below(1 << 47));
        }
    }
    value
}

fn stream(rng: &mut Rng, count: u64) -> Stream {
    let shared: Vec<Arc<[u8]>> = (0..rng.below(4)).map(|_| text(rng, false).into()).collect();
    let mut id = StreamId::new(rng.below(1 << 45), rng.below(1 << 20));
    let mut entries = Vec::new();
    for _ in 0..if rng.one_in(10) { 0 } else { count } {
        if rng.one_in(2) {
            id = StreamId::new(id.ms + 1 + rng.below(100_000), rng.below(5));
        } else {
            id.seq += 1 + rng.below(3);
        }
        let mut names = shared.clone();
        if names.is_empty() || rng.one_in(5) {
            names.push(text(rng, false).into());
        }
        let fields = names.into_iter().map(|name| (name, text(rng, true)));
        let fields = fields.collect();
        entries.push(Entry { id, fields });
    }
    let len = entries.len() as u64;
    let mut head = StreamHead {
        last_id: id,
        max_deleted_id: StreamId::default(),
        entries_added: len,
    };
    if rng.one_in(2) {
        head.last_id.seq += rng.below(3);
        head.entries_added += rng.below(5);
        head.max_deleted_id = StreamId::new(rng.below(id.ms + 1), 0);
    }
    let groups = names(rng, 3).into_iter();
    let groups = groups
        .map(|name| group(rng, name, &entries, &head))
        .collect();
    Stream {
        entries,
        head,
        groups,
    }
}

fn group(rng: &mut Rng, name: Bytes, entries: &[Entry], head: &StreamHead) -> Group {
    let time = |rng: &mut Rng| 1_700_000_000_000 + rng.below(1 << 30) as i64;
    let consumers = names(rng, 3).into_iter().map(|name| {
        let seen_ms = time(rng);
        Consumer {
            name,
            seen_ms,
            active_ms: seen_ms,
        }
    });
    let mut consumers: Vec<_> = consumers.collect();
    consumers.sort_by(|one, other| one.name.cmp(&other.name));
    let mut pending = Vec::new();
    for entry in entries {
        if rng.one_in(3) {
            pending.push(Pending {
                id: entry.id,
                delivered_ms: time(rng),
                deliveries: 1 + rng.below(100),
                consumer: rng.below(consumers.len() as u64) as usize,
            });
        }
    }
    let entries_read = rng.one_in(2).then(|| rng.below(head.entries_added + 1));
    let last_id = match rng.below(3) {
        0 => StreamId::default(),
        1 => head.last_id,
        _ => entries.first().map_or(head.last_id, |entry| entry.id),
    };
    Group {
        name,
        last_id,
        entries_read,
        pending,
        consumers,
    }
}

/// `value` in an order that does not depend on how it was stored.
pub(crate) fn in_order(mut value: Value) -> Value {
    match &mut value {
        Value::Set(members) => members.sort(),
        Value::ZSet(members) => members.sort_by(|one, other| one.0.cmp(&other.0)),
        Value::Hash(fields) => fields.sort_by(|one, other| one.name.cmp(&other.name)),
        Value::Stream(stream) => {
            stream
                .groups
                .sort_by(|one, other| one.name.cmp(&other.name));
            stream.groups.iter_mut().for_each(sort_consumers);
        }
        Value::String(_) | Value::List(_) => {}
    }
    value
}

fn sort_consumers(group: &mut Group) {
    let before = group.consumers.clone();
    group
        .consumers
        .sort_by(|one, other| one.name.cmp(&other.name));
    for pending in &mut group.pending {
        let owner = &before[pending.consumer];
        let place = group
            .consumers
            .iter()
            .position(|consumer| consumer == owner);
        pending.consumer = place.unwrap();
    }
}

/// Whether the scores have the same signs too, which `==` does not see of zeros.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    let bits = |value: &Value| match value {
        Value::ZSet(members) => members.iter().map(|(_, score)| score.to_bits()).collect(),
        _ => Vec::new(),
    };
    one == other && bits(one) == bits(other)
}

/// All keys of a file that is pushed in pieces of up to `piece_max` bytes, and the bytes behind it.
pub(crate) fn read_file(
    file: &[u8],
    piece_max: u64,
    limits: Limits,
) -> drumlin_base::Result<(Vec<(KeyHead, Value)>, Bytes)> {
    let mut rng = Rng::new(file.len() as u64);
    let mut reader = Reader::new(limits);
    let mut keys = Vec::new();
    let mut open: Option<(KeyHead, Collector)> = None;
    let mut rest = file;
    let mut ended = false;
    while !rest.is_empty() && !ended {
        let (piece, behind) = rest.split_at(rest.len().min(1 + rng.below(piece_max) as usize));
        reader.push(piece);
        rest = behind;
        while let Some(event) = reader.event()? {
            match event {
                Event::Key(head) => {
                    let collector = Collector::new(head.kind, MEMORY_MAX);
                    open = Some((head, collector));
                }
                Event::Item(item) => open.as_mut().unwrap().1.push(item)?,
                Event::KeyEnd => {
                    let (head, collector) = open.take().unwrap();
                    keys.extend(collector.finish()?.map(|value| (head, value)));
                }
                Event::End => ended = true,
                _ => {}
            }
        }
    }
    reader.finish()?;
    Ok((keys, [reader.rest(), rest].concat()))
}
