//! Goal: sets are sets, in both forms and over the growth from one to the other. Method: random commands on three of them
//! against `BTreeSet`s with commits, compactions and new starts in between.

use std::collections::BTreeSet;

use drumlin_base::rng::Rng;
use drumlin_redis_store::types::hash;
use drumlin_redis_store::types::set::{
    Combination, add, combine, contains, contains_each, draw, encoding, intersection_len, len,
    move_member, pop, remove, sample, scan, store,
};
use drumlin_redis_store::{Failure, Keyspace, Outcome};

use crate::world::World;

type Model = BTreeSet<Vec<u8>>;

const KEYS: [&[u8]; 3] = [b"one", b"two", b"three"];

fn below(rng: &mut Rng, bound: usize) -> usize {
    rng.below(bound as u64) as usize
}

fn a_member(rng: &mut Rng, members: usize) -> Vec<u8> {
    let number = below(rng, members);
    match number % 50 {
        7 => vec![b'x'; number + 200],
        8 => vec![b'y'; 1_000 + number],
        9 => Vec::new(),
        _ => number.to_string().into_bytes(),
    }
}

fn some_members(rng: &mut Rng, members: usize) -> Vec<Vec<u8>> {
    let most = if below(rng, 50) == 0 { members / 2 } else { 3 };
    (0..=below(rng, most))
        .map(|_| a_member(rng, members))
        .collect()
}

fn slices(members: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    members.iter().map(Vec::as_slice)
}

fn change(world: &mut World, models: &mut [Model; 3], rng: &mut Rng, members: usize) {
    let at = below(rng, 3);
    let (key, model) = (KEYS[at], &mut models[at]);
    let before = model.len();
    match below(rng, 20) {
        0..10 => {
            let given = some_members(rng, members);
            let added = world.ok(|keyspace| add(keyspace, key, slices(&given)));
            model.extend(given);
            assert_eq!(added as usize, model.len() - before);
        }
        10..15 => {
            let given = some_members(rng, members);
            let removed = world.ok(|keyspace| remove(keyspace, key, slices(&given)));
            given.iter().for_each(|member| _ = model.remove(member));
            assert_eq!(removed as usize, before - model.len());
        }
        15..17 => {
            let count = if below(rng, 50) == 0 {
                members
            } else {
                below(rng, 4)
            };
            let taken = world.ok(|keyspace| pop(keyspace, key, count as u64, rng));
            assert_eq!(taken.len(), count.min(before));
            assert!(taken.iter().all(|member| model.remove(member)));
        }
        _ => {
            let (to, member) = (below(rng, 3), a_member(rng, members));
            let moved = world.ok(|keyspace| move_member(keyspace, key, KEYS[to], &member));
            assert_eq!(moved, model.remove(&member));
            if moved {
                models[to].insert(member);
            }
        }
    }
}

fn look(world: &mut World, models: &[Model; 3], rng: &mut Rng, members: usize) {
    let asked = some_members(rng, members);
    for (key, model) in KEYS.iter().zip(models) {
        let found = world.ok(|keyspace| contains_each(keyspace, key, slices(&asked)));
        let wanted: Vec<_> = asked.iter().map(|member| model.contains(member)).collect();
        assert_eq!(found, wanted);
        let alone = world.ok(|keyspace| contains(keyspace, key, &asked[0]));
        assert_eq!(alone, wanted[0]);
        assert_eq!(
            world.ok(|keyspace| len(keyspace, key)) as usize,
            model.len()
        );
    }
}

fn different(members: Vec<Vec<u8>>) -> Model {
    let count = members.len();
    let model: Model = members.into_iter().collect();
    assert_eq!(model.len(), count);
    model
}

fn compare_whole(world: &mut World, models: &[Model; 3], rng: &mut Rng) {
    for (key, model) in KEYS.iter().zip(models) {
        let (mut cursor, mut scanned) = (0, Model::new());
        loop {
            let (next, found) = world.ok(|keyspace| scan(keyspace, key, cursor, 7));
            scanned.extend(found);
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(&scanned, model);
        let wanted = below(rng, model.len() + 2);
        let picked = different(world.ok(|keyspace| sample(keyspace, key, wanted as u64, rng)));
        assert_eq!(picked.len(), wanted.min(model.len()));
        assert!(picked.is_subset(model));
    }
    let [one, two, three] = models;
    let common: Model = one
        .iter()
        .filter(|it| two.contains(*it) && three.contains(*it))
        .cloned()
        .collect();
    let any: Model = one.iter().chain(two).chain(three).cloned().collect();
    let only: Model = one
        .iter()
        .filter(|it| !two.contains(*it) && !three.contains(*it))
        .cloned()
        .collect();
    let counted = world.ok(|keyspace| intersection_len(keyspace, &KEYS, 0));
    assert_eq!(counted as usize, common.len());
    let some = world.ok(|keyspace| intersection_len(keyspace, &KEYS, 5));
    assert_eq!(some as usize, common.len().min(5));
    for (combination, wanted) in [
        (Combination::Intersection, common),
        (Combination::Union, any),
        (Combination::Difference, only),
    ] {
        let found = world.ok(|keyspace| combine(keyspace, combination, &KEYS));
        let (stored, again) = world.ok(|keyspace| {
            let stored = store(keyspace, b"made", &found, "sinterstore")?;
            Ok((stored, combine(keyspace, Combination::Union, &[b"made"])?))
        });
        assert_eq!(stored as usize, wanted.len());
        assert_eq!(different(again), wanted);
        assert_eq!(different(found), wanted);
    }
}

fn run(seed: u64, members: usize, rounds: usize) -> (World, [Model; 3]) {
    let (mut world, mut rng) = (World::new(), Rng::new(seed));
    let mut models = [Model::new(), Model::new(), Model::new()];
    for round in 0..rounds {
        change(&mut world, &mut models, &mut rng, members);
        look(&mut world, &models, &mut rng, members);
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
            compare_whole(&mut world, &models, &mut rng);
        }
    }
    compare_whole(&mut world, &models, &mut rng);
    (world, models)
}

#[test]
fn small_sets_are_sets() {
    run(1, 7, 2_000);
}

#[test]
fn sets_that_grow_and_shrink_are_sets() {
    run(2, 300, 2_000);
    let (mut world, models) = run(3, 6_000, 2_500);
    let most = models.iter().map(Model::len).max().unwrap_or(0);
    assert!(most > 512, "{most} members");
    world.ok(|keyspace| {
        for key in KEYS.into_iter().chain([&b"made"[..]]) {
            pop(keyspace, key, u64::MAX, &mut Rng::new(1))?;
        }
        Ok(())
    });
    world.commit();
    world.compact();
    assert_eq!((world.entries("sub"), world.entries("keys")), (0, 0));
}

fn put(keyspace: &mut Keyspace<'_>, key: &[u8], members: &[&str]) -> Outcome<u64> {
    add(
        keyspace,
        key,
        members.iter().map(|member| member.as_bytes()),
    )
}

#[test]
fn changes_are_told_and_emptied_sets_go() {
    let mut world = World::new();
    world.ok(|keyspace| {
        put(keyspace, b"a", &["1", "2", "3"])?;
        put(keyspace, b"a", &["1"])?;
        remove(keyspace, b"a", [&b"3"[..], b"4"])?;
        move_member(keyspace, b"a", b"a", b"1")?;
        move_member(keyspace, b"a", b"b", b"1")?;
        move_member(keyspace, b"a", b"b", b"2")?;
        assert!(keyspace.lookup(b"a")?.is_none());
        pop(keyspace, b"b", 0, &mut Rng::new(1))?;
        pop(keyspace, b"b", 1, &mut Rng::new(1))?;
        store(keyspace, b"b", &[b"x".to_vec()], "sunionstore")?;
        store(keyspace, b"b", &[], "sdiffstore")?;
        store(keyspace, b"b", &[], "sdiffstore")?;
        assert!(keyspace.lookup(b"b")?.is_none());
        Ok(())
    });
    let events = world.overlay.events_since(world.start()).iter();
    let told: Vec<_> = events
        .map(|event| format!("{} {}", event.name, String::from_utf8_lossy(&event.key)))
        .collect();
    let wanted = [
        "sadd a",
        "srem a",
        "srem a",
        "sadd b",
        "srem a",
        "del a",
        "sadd b",
        "spop b",
        "sunionstore b",
        "del b",
    ];
    assert_eq!(told, wanted);
}

#[test]
fn every_key_that_takes_part_has_to_be_a_set() {
    let mut world = World::new();
    world.ok(|keyspace| {
        put(keyspace, b"set", &["1"])?;
        hash::set(keyspace, b"hash", [(&b"f"[..], &b"v"[..])])
    });
    for combination in [
        Combination::Union,
        Combination::Intersection,
        Combination::Difference,
    ] {
        let failed =
            world.run(|keyspace| combine(keyspace, combination, &[b"none", b"set", b"hash"]));
        assert!(matches!(failed, Err(Failure::WrongType)));
    }
    let failed = world.run(|keyspace| move_member(keyspace, b"set", b"hash", b"none"));
    assert!(matches!(failed, Err(Failure::WrongType)));
    assert!(!world.ok(|keyspace| move_member(keyspace, b"none", b"hash", b"1")));
}

#[test]
fn stored_sets_replace_whatever_was_there() {
    let mut world = World::new();
    let members: Vec<_> = (0..1_000u32)
        .map(|number| number.to_string().into_bytes())
        .collect();
    for count in [1, 1_000, 2, 1_000] {
        world.ok(|keyspace| {
            store(keyspace, b"to", &members[..count], "sinterstore")?;
            assert_eq!(len(keyspace, b"to")? as usize, count);
            Ok(())
        });
        world.commit();
    }
    world.ok(|keyspace| {
        hash::set(keyspace, b"hash", [(&b"f"[..], &b"v"[..])])?;
        store(keyspace, b"hash", &members[..3], "sinterstore")?;
        assert_eq!(len(keyspace, b"hash")?, 3);
        Ok(())
    });
    world.commit();
    world.compact();
    assert_eq!(
        (world.entries("sub"), world.store.collections()),
        (1_000, 1)
    );
}

#[test]
fn integers_come_in_their_order_until_there_is_something_else() {
    let mut world = World::new();
    let (integers, encodings) = world.ok(|keyspace| {
        put(keyspace, b"k", &["10", "-3", "9", "2"])?;
        let integers = combine(keyspace, Combination::Union, &[b"k"])?;
        let mut encodings = Vec::new();
        let mut note = |keyspace: &mut Keyspace<'_>, key: &[u8]| {
            encodings.push(encoding(&keyspace.lookup(key)?.expect("it is there")));
            Outcome::Ok(())
        };
        note(keyspace, b"k")?;
        put(keyspace, b"k", &["01"])?;
        remove(keyspace, b"k", [&b"01"[..]])?;
        note(keyspace, b"k")?;
        let many: Vec<_> = (0..513).map(|number: u32| number.to_string()).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        put(keyspace, b"m", &many[..512])?;
        note(keyspace, b"m")?;
        put(keyspace, b"m", &many[512..])?;
        note(keyspace, b"m")?;
        Ok((integers, encodings))
    });
    assert_eq!(integers, [&b"-3"[..], b"2", b"9", b"10"]);
    assert_eq!(encodings, ["intset", "hashtable", "intset", "hashtable"]);
}

#[test]
fn members_that_stay_are_scanned_while_others_come_and_go() {
    let mut world = World::new();
    let names: Vec<_> = (0..1_000).map(|number: u32| format!("m{number}")).collect();
    world.ok(|keyspace| add(keyspace, b"k", names.iter().map(String::as_bytes)));
    let (mut cursor, mut seen, mut round) = (0, Model::new(), 0);
    loop {
        let (next, found) = world.ok(|keyspace| scan(keyspace, b"k", cursor, 10));
        assert!(found.len() <= 11);
        seen.extend(found);
        cursor = next;
        if cursor == 0 {
            break;
        }
        round += 1;
        world.ok(|keyspace| {
            add(keyspace, b"k", [format!("new{round}").as_bytes()])?;
            remove(keyspace, b"k", [format!("m{}", 800 + round).as_bytes()])
        });
        if round % 9 == 0 {
            world.commit();
        }
    }
    assert!(
        names[..800]
            .iter()
            .all(|name| seen.contains(name.as_bytes()))
    );
    let drawn = world.ok(|keyspace| draw(keyspace, b"none"));
    assert!(drawn.is_none());
}

/// Goal: a member is taken once, and only while it is one. Method: one by one from a set around the size up to which all are
/// found at once, with members that come, go and come back in the same round, and with commands that fail after they took some.
#[test]
fn members_that_are_taken_one_by_one_are_there() {
    let mut rng = Rng::new(9);
    let mut world = World::new();
    let key = b"set";
    let mut model: Model = (0..700).map(|at: u32| at.to_string().into()).collect();
    world.ok(|keyspace| add(keyspace, key, model.iter().map(Vec::as_slice)));
    for _ in 0..10_000 {
        let member = below(&mut rng, 1_000).to_string().into_bytes();
        match below(&mut rng, 40) {
            0..6 => {
                world.ok(|keyspace| remove(keyspace, key, [&member[..]]));
                model.remove(&member);
            }
            6..24 => {
                world.ok(|keyspace| add(keyspace, key, [&member[..]]));
                model.insert(member);
            }
            24 => {
                let outcome = world.run(|keyspace| {
                    add(keyspace, key, [&member[..]])?;
                    for _ in 0..3 {
                        pop(keyspace, key, 1, &mut rng)?;
                    }
                    Err::<(), _>(Failure::WrongType)
                });
                assert!(matches!(outcome, Err(Failure::WrongType)));
            }
            25 if below(&mut rng, 3) == 0 => world.commit(),
            _ if model.is_empty() => {}
            _ => {
                let taken = world.ok(|keyspace| pop(keyspace, key, 1, &mut rng));
                assert!(model.remove(&taken[0]), "{:?} was no member", taken[0]);
            }
        }
    }
    let count = model.len() as u64;
    let all = world.ok(|keyspace| pop(keyspace, key, count, &mut rng));
    assert_eq!(different(all), model);
}
