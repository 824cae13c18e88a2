//! Goal: streams are streams, whatever is trimmed and deleted, and groups keep count of what is pending. Method: random
//! commands against maps, with commits, compactions and new starts in between.

use std::collections::BTreeMap;

use drumlin_base::rng::Rng;
use drumlin_redis_store::types::stream::{
    Group, NodeLimits, Pending, Stream, StreamId, Trim, TrimTo,
};
use drumlin_redis_store::{Direction, Failure, Keyspace, Kind, NewRecord, Old, Outcome};

use crate::world::World;

type Parts = Vec<Vec<u8>>;
type Model = BTreeMap<StreamId, Parts>;

const KEY: &[u8] = b"k";

const LIMITS: NodeLimits = NodeLimits {
    entries_max: 10,
    bytes_max: 4_096,
};

fn id(ms: u64) -> StreamId {
    StreamId { ms, seq: 0 }
}

fn change<T>(
    keyspace: &mut Keyspace<'_>,
    change: impl FnOnce(&mut Keyspace<'_>, &mut Stream) -> Outcome<T>,
) -> Outcome<T> {
    let mut stream = Stream::open_or_new(keyspace, KEY)?;
    let done = change(keyspace, &mut stream)?;
    stream.save(keyspace, KEY)?;
    Ok(done)
}

fn append(world: &mut World, id: StreamId, parts: &Parts) {
    let parts: Vec<_> = parts.iter().map(Vec::as_slice).collect();
    world.ok(|keyspace| {
        change(keyspace, |keyspace, stream| {
            stream.append(keyspace, id, &parts, LIMITS);
            Ok(())
        })
    });
}

fn read(world: &mut World, range: (StreamId, StreamId), direction: Direction) -> Vec<StreamId> {
    let found = world.ok(|keyspace| {
        let mut found = Vec::new();
        if let Some(stream) = Stream::open(keyspace, KEY)? {
            let mut entries = stream.entries(keyspace, range, direction);
            while let Some(entry) = entries.next()? {
                let parts: Parts = entry.parts().map(<[u8]>::to_vec).collect();
                assert_eq!(entry.fields() as usize * 2, parts.len());
                found.push(entry.id);
            }
        }
        Ok(found)
    });
    let mut sorted = found.clone();
    sorted.sort();
    if direction == Direction::Backward {
        sorted.reverse();
    }
    assert_eq!(found, sorted);
    found
}

/// The entries as a model has them, and the counters that go with them.
fn compare(world: &mut World, model: &Model, rng: &mut Rng) {
    let whole = world.ok(|keyspace| {
        let stream = Stream::open(keyspace, KEY)?.expect("it is there");
        assert_eq!(stream.len() as usize, model.len());
        let first = model.keys().next().copied().unwrap_or_default();
        assert_eq!(stream.first(), first);
        let all = (StreamId::MIN, StreamId::MAX);
        let mut entries = stream.entries(keyspace, all, Direction::Forward);
        let mut found = Model::new();
        while let Some(entry) = entries.next()? {
            found.insert(entry.id, entry.parts().map(<[u8]>::to_vec).collect());
        }
        Ok(found)
    });
    assert_eq!(&whole, model);
    let top = model.keys().next_back().map_or(10, |last| last.ms + 5);
    let (from, to) = (id(rng.below(top)), id(rng.below(top)));
    for direction in [Direction::Forward, Direction::Backward] {
        let mut wanted: Vec<_> = model.keys().copied().collect();
        wanted.retain(|id| (from..=to).contains(id));
        if direction == Direction::Backward {
            wanted.reverse();
        }
        assert_eq!(read(world, (from, to), direction), wanted);
    }
}

fn a_trim(rng: &mut Rng, model: &Model) -> Trim {
    let at = rng.below(model.len() as u64 + 2);
    let id = model.keys().nth(at as usize).copied();
    let is_exact = rng.below(2) == 0;
    Trim {
        to: match rng.below(2) {
            0 => TrimTo::Length(at),
            _ => TrimTo::Id(id.unwrap_or(StreamId { ms: 7, seq: 7 })),
        },
        is_exact,
        limit: if is_exact { 0 } else { rng.below(3) * 15 },
    }
}

fn trim(world: &mut World, model: &mut Model, trim: Trim) {
    let gone =
        world.ok(|keyspace| change(keyspace, |keyspace, stream| stream.trim(keyspace, trim)));
    let most = match trim.to {
        TrimTo::Length(length) => model.len().saturating_sub(length as usize),
        TrimTo::Id(least) => model.range(..least).count(),
    };
    let gone = gone as usize;
    match trim.is_exact {
        true => assert_eq!(gone, most),
        false => assert!(gone <= most, "{gone} of {most}"),
    }
    assert!(trim.limit == 0 || gone as u64 <= trim.limit);
    for _ in 0..gone {
        model.pop_first();
    }
}

fn run(seed: u64, rounds: usize) -> World {
    let (mut world, mut rng) = (World::new(), Rng::new(seed));
    let (mut model, mut last) = (Model::new(), StreamId::MIN);
    world.ok(|keyspace| change(keyspace, |_, _| Ok(())));
    for round in 0..rounds {
        match rng.below(20) {
            0..12 => {
                last.ms += rng.below(3);
                last.seq += 1;
                let field = format!("field{}", rng.below(3)).into_bytes();
                let value = vec![b'v'; rng.below(60) as usize];
                let parts = vec![field, value];
                append(&mut world, last, &parts);
                model.insert(last, parts);
            }
            12..19 => {
                let mut ids: Vec<_> = model.keys().copied().collect();
                let kept = rng.below(ids.len() as u64 + 1) as usize;
                ids = ids.into_iter().skip(kept).take(2).collect();
                ids.push(id(3));
                let gone =
                    world.ok(|keyspace| change(keyspace, |keyspace, it| it.delete(keyspace, &ids)));
                let wanted = ids.iter().filter(|id| model.remove(id).is_some()).count();
                assert_eq!(gone as usize, wanted);
            }
            _ => {
                let cut = a_trim(&mut rng, &model);
                trim(&mut world, &mut model, cut);
            }
        }
        match rng.below(150) {
            0..8 => world.commit(),
            8 => {
                world.commit();
                world.compact();
            }
            9 => {
                world.commit();
                world = world.reopen(false);
            }
            _ => {}
        }
        if round % 10 == 0 {
            compare(&mut world, &model, &mut rng);
        }
    }
    compare(&mut world, &model, &mut rng);
    world
}

#[test]
fn streams_are_streams() {
    for seed in 1..5 {
        run(seed, 1_500);
    }
}

#[test]
fn a_deleted_stream_leaves_nothing() {
    let mut world = run(9, 400);
    world.commit();
    world.ok(|keyspace| {
        let stream = Stream::open(keyspace, KEY)?.expect("it is there");
        stream.create_group(keyspace, b"group", StreamId::MIN, None)?;
        let record = keyspace.lookup(KEY)?.expect("it is there");
        keyspace.remove(KEY, &record);
        Ok(())
    });
    world.commit();
    world.compact();
    assert_eq!((world.entries("sub"), world.entries("keys")), (0, 0));
}

/// Goal: a rough trim leaves Redis's entries. Method: nodes of ten, as `stream-node-max-entries 10` has them.
#[test]
fn a_rough_trim_cuts_whole_nodes() {
    let mut world = World::new();
    for ms in 1..=100 {
        append(&mut world, id(ms), &vec![b"f".to_vec(), b"v".to_vec()]);
    }
    let mut left = |to, limit| {
        let trim = Trim {
            to,
            is_exact: false,
            limit,
        };
        world.ok(|keyspace| {
            change(keyspace, |keyspace, stream| {
                stream.trim(keyspace, trim)?;
                Ok((stream.len(), stream.first().ms, stream.nodes()))
            })
        })
    };
    assert_eq!(left(TrimTo::Length(85), 0), (90, 11, 9));
    assert_eq!(left(TrimTo::Length(0), 30), (60, 41, 6));
    assert_eq!(left(TrimTo::Length(0), 29), (40, 61, 4));
    assert_eq!(left(TrimTo::Id(id(79)), 0), (30, 71, 3));
    assert_eq!(left(TrimTo::Length(0), 9), (30, 71, 3));
    assert_eq!(left(TrimTo::Length(0), 0), (0, 0, 0));
}

// Groups.

const NAMES: [&[u8]; 3] = [b"a", b"ab", b""];

type Wanted = BTreeMap<StreamId, Pending>;

fn with_group<T>(
    world: &mut World,
    name: &[u8],
    work: impl FnOnce(&mut Keyspace<'_>, &mut Group) -> Outcome<T>,
) -> T {
    world.ok(|keyspace| {
        let stream = Stream::open(keyspace, KEY)?.expect("it is there");
        let mut group = stream.group(keyspace, name)?.expect("it is there");
        let done = work(keyspace, &mut group)?;
        group.save(keyspace)?;
        Ok(done)
    })
}

fn change_pending(world: &mut World, name: &[u8], wanted: &mut Wanted, rng: &mut Rng) {
    let consumer = NAMES[rng.below(3) as usize];
    let id = id(rng.below(60));
    let new = Pending {
        consumer: consumer.to_vec(),
        delivered_ms: rng.below(1_000),
        deliveries: rng.below(5),
    };
    let what = rng.below(30);
    with_group(world, name, |keyspace, group| {
        let old = group.pending(keyspace, id)?;
        assert_eq!(old.as_ref(), wanted.get(&id));
        match (what, old) {
            (0, _) => {
                let gone = group.delete_consumer(keyspace, consumer)?;
                let before = wanted.len();
                wanted.retain(|_, pending| pending.consumer != consumer);
                assert_eq!(gone.unwrap_or(0) as usize, before - wanted.len());
            }
            (1..15, Some(old)) => {
                group.settle(keyspace, id, &old);
                wanted.remove(&id);
            }
            (_, old) => {
                group.see(keyspace, consumer)?;
                group.put_pending(keyspace, id, old.as_ref(), &new);
                wanted.insert(id, new);
            }
        }
        Ok(())
    });
}

fn compare_pending(world: &mut World, name: &[u8], wanted: &Wanted) {
    with_group(world, name, |keyspace, group| {
        let all = (StreamId::MIN, StreamId::MAX);
        let mut found = Wanted::new();
        group.each_pending(keyspace, all, Direction::Forward, |id, pending| {
            found.insert(id, pending);
            Ok(true)
        })?;
        assert_eq!(&found, wanted);
        assert_eq!(group.pending_len() as usize, wanted.len());
        let consumers = group.consumers(keyspace)?;
        assert_eq!(group.consumers_len() as usize, consumers.len());
        for consumer in consumers {
            let mut owned = Vec::new();
            group.each_owned(keyspace, &consumer.name, all, |id| {
                owned.push(id);
                Ok(true)
            })?;
            let of = wanted.iter().filter(|(_, it)| it.consumer == consumer.name);
            let of: Vec<_> = of.map(|(id, _)| *id).collect();
            assert_eq!(owned, of);
            assert_eq!(consumer.pending as usize, of.len());
        }
        Ok(())
    });
}

#[test]
fn groups_keep_count_of_what_is_pending() {
    let (mut world, mut rng) = (World::new(), Rng::new(1));
    let mut wanted = [Wanted::new(), Wanted::new()];
    let names = [&b"a"[..], b"ab"];
    append(&mut world, id(1), &vec![b"f".to_vec(), b"v".to_vec()]);
    world.ok(|keyspace| {
        let stream = Stream::open(keyspace, KEY)?.expect("it is there");
        for name in names {
            stream.create_group(keyspace, name, StreamId::MIN, None)?;
        }
        Ok(())
    });
    for round in 0..3_000 {
        let at = rng.below(2) as usize;
        change_pending(&mut world, names[at], &mut wanted[at], &mut rng);
        if round % 20 == 0 {
            compare_pending(&mut world, names[at], &wanted[at]);
        }
        match rng.below(200) {
            0..8 => world.commit(),
            8 => {
                world.commit();
                world = world.reopen(false);
            }
            _ => {}
        }
    }
    world.ok(|keyspace| {
        let stream = Stream::open(keyspace, KEY)?.expect("it is there");
        let [one, _] = names.map(|name| stream.group(keyspace, name));
        one?.expect("it is there").destroy(keyspace)?;
        assert!(stream.group(keyspace, names[0])?.is_none());
        assert_eq!(stream.groups(keyspace)?.len(), 1);
        stream.create_group(keyspace, names[0], StreamId::MIN, None)
    });
    compare_pending(&mut world, names[0], &Wanted::new());
    compare_pending(&mut world, names[1], &wanted[1]);
}

// Damage.

fn is_corrupt<T>(outcome: Outcome<T>) -> bool {
    let Err(Failure::Engine(error)) = outcome else {
        return false;
    };
    error.is_corruption()
}

#[test]
fn damaged_streams_are_refused() {
    let mut world = World::new();
    for ms in 1..=25 {
        append(&mut world, id(ms), &vec![b"f".to_vec(), b"v".to_vec()]);
    }
    let (payload, of) = world.ok(|keyspace| {
        let record = keyspace.lookup(KEY)?.expect("it is there");
        Ok((record.payload().to_vec(), record.collection().expect("one")))
    });
    for end in 0..payload.len() {
        let opened = world.run(|keyspace| {
            let mut new = NewRecord::new(Kind::Stream, Some(of), None, 0);
            new.payload().extend_from_slice(&payload[..end]);
            keyspace.put(b"cut", Old::Unknown, new)?;
            Stream::open(keyspace, b"cut")
        });
        assert!(is_corrupt(opened), "{end} bytes");
    }
    let trimmed = |kind: u8, ms: u64, value: &[u8], world: &mut World| {
        world.run(|keyspace| {
            let mut stream = Stream::open(keyspace, KEY)?.expect("it is there");
            let key = [&[kind][..], &ms.to_be_bytes(), &[0; 8]].concat();
            keyspace.sub_put(of, &key, value.to_vec());
            let to = TrimTo::Length(3);
            let (is_exact, limit) = (true, 0);
            stream.trim(
                keyspace,
                Trim {
                    to,
                    is_exact,
                    limit,
                },
            )?;
            // Nothing of this is to stay.
            Err::<(), _>(Failure::WrongType)
        })
    };
    assert!(!is_corrupt(trimmed(b'z', 1, b"", &mut world)));
    for value in [
        &b""[..],
        b"\x01",
        b"\x01\x01f",
        b"\x01\x01f\x01vx",
        b"\xff\xff\xff\xff\xff",
    ] {
        assert!(is_corrupt(trimmed(b'e', 4, value, &mut world)), "{value:?}");
        assert!(is_corrupt(trimmed(b'n', 1, value, &mut world)), "{value:?}");
    }
    let grouped = |key: &[u8], value: &[u8], world: &mut World| {
        world.run(|keyspace| {
            let stream = Stream::open(keyspace, KEY)?.expect("it is there");
            stream.create_group(keyspace, b"g", StreamId::MIN, None)?;
            keyspace.sub_put(of, key, value.to_vec());
            let group = stream.group(keyspace, b"g")?.expect("it is there");
            group.consumers(keyspace)?;
            let all = (StreamId::MIN, StreamId::MAX);
            group.each_pending(keyspace, all, Direction::Forward, |_, _| Ok(true))
        })
    };
    for value in [&b""[..], b"\x01", b"\xff"] {
        assert!(is_corrupt(grouped(b"gg", value, &mut world)));
        assert!(is_corrupt(grouped(b"c\x01gname", value, &mut world)));
        let pending = [&b"p\x01g"[..], &[0; 16]].concat();
        assert!(is_corrupt(grouped(&pending, value, &mut world)));
    }
}

/// Goal: the bytes are those of docs/format/redis.md. Method: its example.
#[test]
fn a_record_is_as_documented() {
    let mut world = World::new();
    append(
        &mut world,
        StreamId { ms: 1, seq: 1 },
        &vec![b"f".to_vec(), b"v".to_vec()],
    );
    world.ok(|keyspace| {
        let record = keyspace.lookup(KEY)?.expect("it is there");
        let wanted = [1, 1, 1, 1, 1, 0, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0x19];
        assert_eq!(record.payload().get(..16), Some(&wanted[..]));
        assert_eq!(record.payload().len(), 24);
        let of = record.collection().expect("one");
        let key = [&b"e"[..], &1u64.to_be_bytes(), &1u64.to_be_bytes()].concat();
        let entry = keyspace.sub_get(of, &key)?.expect("it is there");
        assert_eq!(&entry[..], b"\x01\x01f\x01v");
        Ok(())
    });
}
