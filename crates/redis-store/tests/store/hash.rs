//! Goal: a hash is a map, in both forms and over the growth from one to the other. Method: random commands against a
//! `BTreeMap` with commits, compactions and new starts in between.

use std::collections::{BTreeMap, BTreeSet};

use drumlin_base::rng::Rng;
use drumlin_redis_store::number::LongDouble;
use drumlin_redis_store::types::hash::{
    add, add_float, draw, each, encoding, get, get_many, len, remove, sample, scan, set, set_new,
};
use drumlin_redis_store::{Failure, Kind, NewRecord, Old};

use crate::world::World;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const KEY: &[u8] = b"hash";

fn below(rng: &mut Rng, bound: usize) -> usize {
    rng.below(bound as u64) as usize
}

/// Few fields, so that they meet, of odd lengths.
fn a_field(rng: &mut Rng, fields: usize) -> Vec<u8> {
    let number = below(rng, fields);
    match number % 50 {
        7 => vec![b'x'; number + 200],
        8 => vec![b'y'; 1_000 + number],
        9 => Vec::new(),
        _ => number.to_string().into_bytes(),
    }
}

fn a_value(rng: &mut Rng) -> Vec<u8> {
    let bytes = match below(rng, 40) {
        0 => below(rng, 5_000),
        1..4 => 500 + below(rng, 20),
        _ => below(rng, 20),
    };
    let mut value = vec![0; bytes];
    rng.fill(&mut value);
    value
}

fn change(world: &mut World, model: &mut Model, rng: &mut Rng, fields: usize) {
    let field = a_field(rng, fields);
    match below(rng, 20) {
        0..9 => {
            let pairs = [(field, a_value(rng)), (a_field(rng, fields), a_value(rng))];
            let given = pairs.iter().map(|(field, value)| (&field[..], &value[..]));
            let added = world.ok(|keyspace| set(keyspace, KEY, given));
            let before = model.len();
            model.extend(pairs);
            assert_eq!(added as usize, model.len() - before);
        }
        9..12 => {
            let value = a_value(rng);
            let is_new = world.ok(|keyspace| set_new(keyspace, KEY, &field, &value));
            assert_eq!(is_new, !model.contains_key(&field));
            model.entry(field).or_insert(value);
        }
        _ => {
            let most = if below(rng, 100) == 0 { fields } else { 3 };
            let gone: Vec<_> = (0..1 + below(rng, most))
                .map(|_| a_field(rng, fields))
                .collect();
            let given = gone.iter().map(Vec::as_slice);
            let removed = world.ok(|keyspace| remove(keyspace, KEY, given));
            let before = model.len();
            gone.iter().for_each(|field| _ = model.remove(field));
            assert_eq!(removed as usize, before - model.len());
        }
    }
}

fn look(world: &mut World, model: &Model, rng: &mut Rng, fields: usize) {
    let asked = [a_field(rng, fields), a_field(rng, fields)];
    let given = asked.iter().map(Vec::as_slice);
    let found = world.ok(|keyspace| get_many(keyspace, KEY, given));
    for (field, value) in asked.iter().zip(found) {
        assert_eq!(value.as_deref(), model.get(field).map(Vec::as_slice));
        let alone = world.ok(|keyspace| get(keyspace, KEY, field));
        assert_eq!(alone.as_deref(), value.as_deref());
    }
    let count = world.ok(|keyspace| len(keyspace, KEY));
    assert_eq!(count as usize, model.len());
}

fn compare_whole(world: &mut World, model: &Model, rng: &mut Rng) {
    let mut found = Model::new();
    world.ok(|keyspace| {
        each(keyspace, KEY, |field, value| {
            let before = found.insert(field.to_vec(), value.to_vec());
            assert_eq!(before, None);
        })
    });
    assert_eq!(&found, model);
    let (mut cursor, mut scanned) = (0, Model::new());
    loop {
        let (next, pairs) = world.ok(|keyspace| scan(keyspace, KEY, cursor, 7));
        scanned.extend(pairs);
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(&scanned, model);
    let wanted = below(rng, model.len() + 2);
    let picked = world.ok(|keyspace| sample(keyspace, KEY, wanted as u64, rng));
    assert_eq!(picked.len(), wanted.min(model.len()));
    assert!(
        picked
            .iter()
            .all(|(field, value)| model.get(field) == Some(value))
    );
    let different: BTreeSet<_> = picked.iter().collect();
    assert_eq!(different.len(), picked.len());
}

fn run(seed: u64, fields: usize, rounds: usize) -> (World, Model) {
    let (mut world, mut model, mut rng) = (World::new(), Model::new(), Rng::new(seed));
    for round in 0..rounds {
        change(&mut world, &mut model, &mut rng, fields);
        look(&mut world, &model, &mut rng, fields);
        match below(&mut rng, 150) {
            0..6 => world.commit(),
            6 => {
                world.commit();
                world.compact();
            }
            7 => {
                world.commit();
                world = world.reopen(false);
            }
            _ => {}
        }
        if round % 100 == 0 {
            compare_whole(&mut world, &model, &mut rng);
        }
    }
    compare_whole(&mut world, &model, &mut rng);
    (world, model)
}

#[test]
fn a_small_hash_is_a_map() {
    run(1, 6, 2_000);
}

#[test]
fn a_hash_that_grows_and_shrinks_is_a_map() {
    run(2, 300, 2_000);
    let (mut world, model) = run(3, 5_000, 3_000);
    assert!(model.len() > 512, "{} fields", model.len());
    world.commit();
    assert!(world.entries("sub") >= model.len());
    let all = model.keys().map(Vec::as_slice);
    let removed = world.ok(|keyspace| remove(keyspace, KEY, all));
    assert_eq!(removed as usize, model.len());
    world.commit();
    world.compact();
    assert_eq!((world.entries("sub"), world.entries("keys")), (0, 0));
}

#[test]
fn a_deleted_hash_leaves_no_fields() {
    let mut world = World::new();
    let fields: Vec<_> = (0..2_000).map(|number: u32| number.to_be_bytes()).collect();
    let pairs = fields.iter().map(|field| (&field[..], &b"value"[..]));
    world.ok(|keyspace| set(keyspace, KEY, pairs));
    world.commit();
    assert_eq!(world.entries("sub"), 2_000);
    world.ok(|keyspace| {
        let record = keyspace.lookup(KEY)?.expect("it is there");
        keyspace.remove(KEY, &record);
        Ok(())
    });
    world.commit();
    world.compact();
    assert_eq!(world.entries("sub"), 0);
}

#[test]
fn a_small_hash_keeps_the_order_in_which_fields_came() {
    let mut world = World::new();
    let names = world.ok(|keyspace| {
        let pairs = [("z", "1"), ("a", "2"), ("m", "3"), ("z", "a longer value")];
        let pairs = pairs.map(|(field, value)| (field.as_bytes(), value.as_bytes()));
        set(keyspace, KEY, pairs)?;
        let mut names = Vec::new();
        each(keyspace, KEY, |field, _| names.extend_from_slice(field))?;
        Ok(names)
    });
    assert_eq!(names, b"zam");
}

#[test]
fn sums_are_exact_or_refused() {
    let mut world = World::new();
    let number = |text: &str| LongDouble::parse(text.as_bytes()).expect("a number");
    let line = |failure: Failure| failure.to_string();
    assert_eq!(world.ok(|keyspace| add(keyspace, KEY, b"n", 5)), 5);
    assert_eq!(world.ok(|keyspace| add(keyspace, KEY, b"n", -7)), -2);
    let text = world.ok(|keyspace| add_float(keyspace, KEY, b"n", number("5.1")));
    assert_eq!(text, "3.1");
    let failed = world
        .run(|keyspace| add(keyspace, KEY, b"n", 1))
        .map_err(line);
    assert_eq!(failed, Err("ERR hash value is not an integer".to_owned()));
    world.ok(|keyspace| {
        set(
            keyspace,
            KEY,
            [(&b"n"[..], i64::MAX.to_string().as_bytes())],
        )
    });
    let failed = world
        .run(|keyspace| add(keyspace, KEY, b"n", 1))
        .map_err(line);
    assert_eq!(
        failed,
        Err("ERR increment or decrement would overflow".to_owned())
    );
    world.ok(|keyspace| set(keyspace, KEY, [(&b"n"[..], &b"inf"[..])]));
    let failed = world.run(|keyspace| add_float(keyspace, KEY, b"n", number("1")));
    assert_eq!(
        failed.map_err(line),
        Err("ERR increment would produce NaN or Infinity".to_owned())
    );
    world.ok(|keyspace| set(keyspace, KEY, [(&b"n"[..], &b" 1"[..])]));
    let failed = world.run(|keyspace| add_float(keyspace, KEY, b"n", number("1")));
    assert_eq!(
        failed.map_err(line),
        Err("ERR hash value is not a float".to_owned())
    );
}

#[test]
fn changes_are_told_keep_the_expiry_and_an_emptied_hash_goes() {
    let mut world = World::new();
    let told = |world: &mut World| {
        let events = world.overlay.events_since(world.start()).iter();
        events.map(|event| event.name).collect::<Vec<_>>()
    };
    world.ok(|keyspace| {
        set(keyspace, KEY, [(&b"f"[..], &b"v"[..])])?;
        let record = keyspace.lookup(KEY)?.expect("it is there");
        keyspace.put(
            KEY,
            Old::Is(Some(&record)),
            record.with_expire(Some(2_000_000)),
        )?;
        set_new(keyspace, KEY, b"f", b"w")?;
        set_new(keyspace, KEY, b"n", b"1")?;
        add(keyspace, KEY, b"n", 1)?;
        add_float(keyspace, KEY, b"n", LongDouble::ZERO)?;
        remove(keyspace, KEY, [&b"none"[..]])?;
        let record = keyspace.lookup(KEY)?.expect("it is there");
        assert_eq!(record.expire_ms(), Some(2_000_000));
        remove(keyspace, KEY, [&b"f"[..], b"n", b"n"])?;
        assert!(keyspace.lookup(KEY)?.is_none());
        Ok(())
    });
    let wanted = ["hset", "hset", "hincrby", "hincrbyfloat", "hdel", "del"];
    assert_eq!(told(&mut world), wanted);
}

#[test]
fn encodings_are_those_of_redis_and_do_not_go_back() {
    let mut world = World::new();
    let mut encoding_of = |fields: usize, value: &[u8]| {
        world.ok(|keyspace| {
            let names: Vec<_> = (0..fields).map(|number| number.to_string()).collect();
            set(
                keyspace,
                KEY,
                names.iter().map(|name| (name.as_bytes(), value)),
            )?;
            Ok(encoding(&keyspace.lookup(KEY)?.expect("it is there")))
        })
    };
    assert_eq!(encoding_of(512, b"v"), "listpack");
    assert_eq!(encoding_of(512, &[b'v'; 64]), "listpack");
    assert_eq!(encoding_of(1, &[b'v'; 65]), "hashtable");
    assert_eq!(encoding_of(1, b"v"), "hashtable");
}

/// Goal: each field has about the same chance. Method: draws from few and from many.
#[test]
fn random_fields_are_all_met() {
    for (fields, draws) in [(10u32, 1_000), (2_000, 60_000)] {
        let mut world = World::new();
        let names: Vec<_> = (0..fields).map(|number| number.to_string()).collect();
        let pairs = names.iter().map(|name| (name.as_bytes(), &b"v"[..]));
        world.ok(|keyspace| set(keyspace, KEY, pairs));
        world.commit();
        let mut rng = Rng::new(1);
        let mut met: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        world.ok(|keyspace| {
            let mut drawn = draw(keyspace, KEY)?.expect("it is there");
            for _ in 0..draws {
                let (field, _) = drawn.next(keyspace, &mut rng)?.expect("a field");
                *met.entry(field).or_default() += 1;
            }
            Ok(())
        });
        assert_eq!(met.len(), fields as usize);
        let each = draws / fields;
        assert!(met.values().all(|times| *times < 4 * each), "{met:?}");
    }
}

#[test]
fn damaged_hashes_are_refused() {
    for payload in [
        &b""[..],
        b"\x00",
        b"\x01",
        b"\x01\x00\x01a",
        b"\x01\x01\x01a\x01b",
        b"\x01\x00\x01a\x01b\x00",
    ] {
        let mut world = World::new();
        let failed = world.run(|keyspace| {
            let mut new = NewRecord::new(Kind::Hash, None, None, 0);
            new.payload().extend_from_slice(payload);
            keyspace.put(KEY, Old::Unknown, new)?;
            len(keyspace, KEY)
        });
        assert!(matches!(failed, Err(Failure::Engine(_))), "{payload:?}");
    }
    let mut world = World::new();
    let failed = world.run(|keyspace| {
        let of = keyspace.new_collection(KEY)?;
        let mut new = NewRecord::new(Kind::Hash, Some(of), None, 0);
        new.payload().push(1);
        keyspace.put(KEY, Old::Unknown, new)?;
        keyspace.sub_put(of, b"e\xffcut", b"\x00v".to_vec());
        each(keyspace, KEY, |_, _| {})
    });
    assert!(matches!(failed, Err(Failure::Engine(_))));
}
