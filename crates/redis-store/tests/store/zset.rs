//! Goal: a sorted set is a map from members to scores in the order of the scores. Method: random commands against a
//! `BTreeMap`, in both forms and over the growth from one to the other, with commits, compactions and new starts.

use std::collections::BTreeMap;

use drumlin_base::rng::Rng;
use drumlin_redis_store::types::set;
use drumlin_redis_store::types::zset::{
    AddOptions, Added, Aggregate, Combination, LexBound, LexRange, Operand, Page, ScoreRange,
    Scored, Select, Selection, add, combine, count, encoding, intersection_len, len, pop, random,
    range, rank, remove, remove_range, scan, score, store, store_range,
};
use drumlin_redis_store::{Direction, Failure, Kind, Outcome};

use crate::world::World;

type Model = BTreeMap<Vec<u8>, f64>;

const KEY: &[u8] = b"zset";

fn sorted(model: &Model) -> Vec<(f64, Vec<u8>)> {
    let mut items: Vec<_> = model
        .iter()
        .map(|(member, score)| (*score, member.clone()))
        .collect();
    items.sort_by(|a, b| {
        a.0.partial_cmp(&b.0)
            .expect("no NaN")
            .then_with(|| a.1.cmp(&b.1))
    });
    items
}

fn pairs(items: Vec<Scored>) -> Vec<(f64, Vec<u8>)> {
    items
        .into_iter()
        .map(|item| (item.score, item.member))
        .collect()
}

fn all() -> Selection<'static> {
    Selection {
        select: Select::Ranks { start: 0, end: -1 },
        direction: Direction::Forward,
        page: None,
    }
}

fn below(rng: &mut Rng, bound: usize) -> usize {
    (rng.next_u64() % bound.max(1) as u64) as usize
}

/// Few members, so that they meet, of odd lengths.
fn a_member(rng: &mut Rng, members: usize) -> Vec<u8> {
    let number = below(rng, members);
    let mut member = format!("{number}").into_bytes();
    match number % 50 {
        7 => member = vec![b'x'; number + 200],
        8 => member = [vec![b'y'; 600], member].concat(),
        9 => member.clear(),
        _ => {}
    }
    member
}

fn a_score(rng: &mut Rng) -> f64 {
    match below(rng, 12) {
        0 => 0.0,
        1 => -0.0,
        2 => f64::INFINITY,
        3 => f64::NEG_INFINITY,
        4 => f64::from_bits(rng.next_u64() >> 12),
        _ => below(rng, 40) as f64 - 20.0,
    }
}

fn change(world: &mut World, model: &mut Model, rng: &mut Rng, members: usize) {
    match below(rng, 20) {
        0..12 => {
            let (member, score) = (a_member(rng, members), a_score(rng));
            let old = model.get(&member).copied();
            let added =
                world.ok(|keyspace| add(keyspace, KEY, &[(score, &member)], AddOptions::default()));
            assert_eq!(added.added, u64::from(old.is_none()));
            assert_eq!(
                added.updated,
                u64::from(old.is_some_and(|old| old != score))
            );
            if old != Some(score) {
                model.insert(member, score);
            }
        }
        12..17 => {
            let taken = [a_member(rng, members), a_member(rng, members)];
            let removed =
                world.ok(|keyspace| remove(keyspace, KEY, taken.iter().map(Vec::as_slice)));
            let before = model.len();
            taken.iter().for_each(|member| _ = model.remove(member));
            assert_eq!(removed as usize, before - model.len());
        }
        17 => {
            let direction = [Direction::Forward, Direction::Backward][below(rng, 2)];
            let wanted = below(rng, 4);
            let taken = world.ok(|keyspace| pop(keyspace, KEY, wanted as u64, direction));
            let mut items = sorted(model);
            if direction == Direction::Backward {
                items.reverse();
            }
            items.truncate(wanted);
            items
                .iter()
                .for_each(|(_, member)| _ = model.remove(member));
            assert_eq!(pairs(taken.unwrap_or_default()), items);
        }
        18 => {
            let start = below(rng, model.len() + 1);
            let most = if below(rng, 100) == 0 { 200 } else { 5 };
            let end = start + below(rng, most);
            let select = Select::Ranks {
                start: start as i64,
                end: end as i64,
            };
            let removed = world.ok(|keyspace| remove_range(keyspace, KEY, &select));
            let gone: Vec<_> = sorted(model)
                .into_iter()
                .skip(start)
                .take(end - start + 1)
                .collect();
            assert_eq!(removed as usize, gone.len());
            gone.iter().for_each(|(_, member)| _ = model.remove(member));
        }
        _ => {
            let min = a_score(rng);
            let range = ScoreRange {
                min,
                max: min + 1.5,
                excludes_min: below(rng, 2) == 0,
                excludes_max: false,
            };
            if below(rng, members / 100) == 0 {
                let removed =
                    world.ok(|keyspace| remove_range(keyspace, KEY, &Select::Scores(range)));
                let before = model.len();
                model.retain(|_, score| !in_range(&range, *score));
                assert_eq!(removed as usize, before - model.len());
            }
        }
    }
}

fn in_range(range: &ScoreRange, score: f64) -> bool {
    let above = if range.excludes_min {
        score > range.min
    } else {
        score >= range.min
    };
    let below = if range.excludes_max {
        score < range.max
    } else {
        score <= range.max
    };
    above && below
}

fn look(world: &mut World, model: &Model, rng: &mut Rng, members: usize) {
    let items = sorted(model);
    let member = a_member(rng, members);
    let found = items.iter().position(|(_, other)| *other == member);
    let (scored, forward, backward) = world.ok(|keyspace| {
        Ok((
            score(keyspace, KEY, &member)?,
            rank(keyspace, KEY, &member, Direction::Forward)?,
            rank(keyspace, KEY, &member, Direction::Backward)?,
        ))
    });
    assert_eq!(scored, model.get(&member).copied());
    assert_eq!(forward, found.map(|at| at as u64));
    assert_eq!(backward, found.map(|at| (items.len() - 1 - at) as u64));
    let (min, max) = (a_score(rng), a_score(rng));
    let scores = ScoreRange {
        min,
        max,
        excludes_min: below(rng, 2) == 0,
        excludes_max: below(rng, 2) == 0,
    };
    let mut wanted: Vec<_> = items
        .iter()
        .filter(|(score, _)| in_range(&scores, *score))
        .cloned()
        .collect();
    let select = Select::Scores(scores);
    let counted = world.ok(|keyspace| count(keyspace, KEY, &select));
    assert_eq!(counted as usize, wanted.len());
    let direction = [Direction::Forward, Direction::Backward][below(rng, 2)];
    if direction == Direction::Backward {
        wanted.reverse();
    }
    let page = Page {
        offset: below(rng, 5) as i64,
        count: below(rng, 7) as i64 - 1,
    };
    let most = usize::try_from(page.count).unwrap_or(usize::MAX);
    let wanted: Vec<_> = wanted
        .into_iter()
        .skip(page.offset as usize)
        .take(most)
        .collect();
    let selection = Selection {
        select,
        direction,
        page: Some(page),
    };
    let found = world.ok(|keyspace| range(keyspace, KEY, &selection));
    assert_eq!(pairs(found), wanted);
}

fn compare_whole(world: &mut World, model: &Model) {
    let found = world.ok(|keyspace| range(keyspace, KEY, &all()));
    assert_eq!(pairs(found), sorted(model));
    let (mut cursor, mut scanned) = (0, Model::new());
    loop {
        let (next, items) = world.ok(|keyspace| scan(keyspace, KEY, cursor, 7));
        scanned.extend(items.into_iter().map(|item| (item.member, item.score)));
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(&scanned, model);
    assert_eq!(
        world.ok(|keyspace| len(keyspace, KEY)) as usize,
        model.len()
    );
}

/// The world after the commands, and what it should hold.
fn run(seed: u64, members: usize, rounds: usize) -> (World, Model) {
    let (mut world, mut model, mut rng) = (World::new(), Model::new(), Rng::new(seed));
    for round in 0..rounds {
        change(&mut world, &mut model, &mut rng, members);
        look(&mut world, &model, &mut rng, members);
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
            compare_whole(&mut world, &model);
        }
    }
    compare_whole(&mut world, &model);
    (world, model)
}

#[test]
fn a_small_sorted_set_is_a_map_in_order() {
    run(1, 6, 1_500);
}

#[test]
fn a_sorted_set_that_grows_and_shrinks_is_a_map_in_order() {
    run(2, 300, 1_500);
    let (mut world, model) = run(3, 5_000, 3_000);
    assert!(model.len() > 300, "{} members", model.len());
    world.commit();
    assert!(world.entries("sub") > model.len());
    let select = Select::Ranks { start: 0, end: -1 };
    let removed = world.ok(|keyspace| remove_range(keyspace, KEY, &select));
    assert_eq!(removed as usize, model.len());
    world.commit();
    world.compact();
    assert_eq!((world.entries("sub"), world.entries("keys")), (0, 0));
}

fn put(world: &mut World, key: &[u8], items: &[(f64, &str)]) {
    let items: Vec<_> = items
        .iter()
        .map(|(score, member)| (*score, member.as_bytes()))
        .collect();
    world.ok(|keyspace| add(keyspace, key, &items, AddOptions::default()));
}

#[test]
fn additions_keep_their_conditions() {
    let mut world = World::new();
    let mut add_one = |score: f64, options: AddOptions| {
        world.run(|keyspace| add(keyspace, KEY, &[(score, b"m")], options))
    };
    let none = AddOptions::default();
    let only_new = AddOptions {
        only_new: true,
        ..none
    };
    let only_present = AddOptions {
        only_present: true,
        ..none
    };
    let greater = AddOptions {
        only_greater: true,
        ..none
    };
    let less = AddOptions {
        only_less: true,
        ..none
    };
    let increments = AddOptions {
        increments: true,
        ..none
    };
    let mut effect = |score, options| {
        let added = add_one(score, options).expect("adds");
        (added.added, added.updated, added.score)
    };
    assert_eq!(effect(1.0, only_present), (0, 0, None));
    assert_eq!(effect(1.0, greater), (1, 0, Some(1.0)), "GT adds");
    assert_eq!(effect(2.0, only_new), (0, 0, None));
    assert_eq!(effect(1.0, greater), (0, 0, None));
    assert_eq!(effect(2.0, greater), (0, 1, Some(2.0)));
    assert_eq!(effect(2.0, less), (0, 0, None));
    assert_eq!(effect(2.0, none), (0, 0, Some(2.0)));
    assert_eq!(effect(3.0, increments), (0, 1, Some(5.0)));
    let lowers = AddOptions {
        only_less: true,
        ..increments
    };
    assert_eq!(effect(3.0, lowers), (0, 0, None));
    assert_eq!(
        effect(f64::INFINITY, increments),
        (0, 1, Some(f64::INFINITY))
    );
    assert!(add_one(f64::NEG_INFINITY, increments).is_err());
    let kept = world.ok(|keyspace| score(keyspace, KEY, b"m"));
    assert_eq!(kept, Some(f64::INFINITY));
}

#[test]
fn ranges_of_members_have_open_and_closed_ends() {
    let mut world = World::new();
    put(
        &mut world,
        KEY,
        &[(0.0, "a"), (0.0, "b"), (-0.0, "c"), (0.0, "d")],
    );
    let mut found = |min, max| {
        let selection = Selection {
            select: Select::Members(LexRange { min, max }),
            ..all()
        };
        let items = world.ok(|keyspace| range(keyspace, KEY, &selection));
        let members: Vec<u8> = items.into_iter().flat_map(|item| item.member).collect();
        String::from_utf8(members).expect("letters")
    };
    assert_eq!(found(LexBound::First, LexBound::Last), "abcd");
    assert_eq!(
        found(LexBound::Included(b"b"), LexBound::Excluded(b"d")),
        "bc"
    );
    assert_eq!(
        found(LexBound::Excluded(b"b"), LexBound::Included(b"d")),
        "cd"
    );
    assert_eq!(found(LexBound::Last, LexBound::First), "");
    assert_eq!(
        found(LexBound::Excluded(b"b"), LexBound::Included(b"b")),
        ""
    );
}

#[test]
fn combinations_weigh_and_aggregate() {
    let mut world = World::new();
    put(
        &mut world,
        b"one",
        &[(1.0, "a"), (2.0, "b"), (f64::INFINITY, "i")],
    );
    put(
        &mut world,
        b"two",
        &[(10.0, "b"), (20.0, "c"), (f64::NEG_INFINITY, "i")],
    );
    let mut made = |combination, aggregate| {
        let operands =
            [(&b"one"[..], 2.0), (b"two", 1.0)].map(|(key, weight)| Operand { key, weight });
        let items = world.ok(|keyspace| combine(keyspace, combination, &operands, aggregate));
        let text: Vec<_> = items
            .iter()
            .map(|item| format!("{}{}", String::from_utf8_lossy(&item.member), item.score))
            .collect();
        text.join(" ")
    };
    assert_eq!(made(Combination::Union, Aggregate::Sum), "i0 a2 b14 c20");
    assert_eq!(made(Combination::Union, Aggregate::Min), "i-inf a2 b4 c20");
    assert_eq!(made(Combination::Intersection, Aggregate::Max), "b10 iinf");
    assert_eq!(made(Combination::Difference, Aggregate::Sum), "a2");
    let lens = world.ok(|keyspace| {
        Ok((
            intersection_len(keyspace, &[b"one", b"two"], 0)?,
            intersection_len(keyspace, &[b"one", b"two"], 1)?,
            intersection_len(keyspace, &[b"one", b"none"], 0)?,
        ))
    });
    assert_eq!(lens, (2, 1, 0));
}

#[test]
fn sets_take_part_with_the_score_1() {
    let mut world = World::new();
    put(&mut world, b"sorted", &[(5.0, "7"), (6.0, "b")]);
    for large in [false, true] {
        let names: Vec<_> = (0..if large { 500 } else { 10 })
            .map(|number| number.to_string())
            .collect();
        world.ok(|keyspace| {
            let members = names.iter().map(|name| name.as_bytes());
            set::add(keyspace, b"set", members)
        });
        let mut made = |combination, keys: [(&'static [u8], f64); 2]| {
            let operands = keys.map(|(key, weight)| Operand { key, weight });
            let sum = Aggregate::Sum;
            pairs(world.ok(|keyspace| combine(keyspace, combination, &operands, sum)))
        };
        let keys = [(&b"set"[..], 3.0), (b"sorted", 1.0)];
        let common = made(Combination::Intersection, keys);
        assert_eq!(common, [(8.0, b"7".to_vec())]);
        let union = made(Combination::Union, keys);
        assert_eq!(union.len(), names.len() + 1);
        assert_eq!(union.first(), Some(&(3.0, b"0".to_vec())));
        assert_eq!(union.last(), Some(&(8.0, b"7".to_vec())));
        let left = made(Combination::Difference, [(b"sorted", 1.0), (b"set", 1.0)]);
        assert_eq!(left, [(6.0, b"b".to_vec())]);
        let left = made(Combination::Difference, [(b"set", 1.0), (b"sorted", 1.0)]);
        assert_eq!(left.len(), names.len() - 1);
    }
    let found = world.ok(|keyspace| intersection_len(keyspace, &[b"sorted", b"set"], 0));
    assert_eq!(found, 1);
}

#[test]
fn stored_results_replace_whatever_was_there() {
    let mut world = World::new();
    let items: Vec<Scored> = (0..400)
        .map(|number| Scored {
            score: f64::from(number / 3),
            member: format!("{number:04}").into_bytes(),
        })
        .collect();
    let stored = world.ok(|keyspace| store(keyspace, b"large", &items, "zunionstore"));
    assert_eq!(stored, 400);
    let picked = Selection {
        select: Select::Ranks { start: 10, end: 19 },
        direction: Direction::Backward,
        page: None,
    };
    let stored = world.ok(|keyspace| store_range(keyspace, b"large", b"large", &picked));
    assert_eq!(stored, 10);
    world.commit();
    world.compact();
    assert_eq!(world.entries("sub"), 0);
    let found = world.ok(|keyspace| range(keyspace, b"large", &all()));
    assert_eq!(found, items[380..390]);
    let stored = world.ok(|keyspace| store(keyspace, b"large", &[], "zunionstore"));
    assert_eq!(stored, 0);
    world.commit();
    assert_eq!(world.entries("keys"), 0);
}

#[test]
fn picks_are_different_ones_or_as_many_as_asked() -> Outcome<()> {
    let mut world = World::new();
    let names: Vec<_> = (0..500).map(|number| format!("member-{number}")).collect();
    let items: Vec<_> = names.iter().map(|name| (1.0, name.as_str())).collect();
    put(&mut world, KEY, &items);
    let mut rng = Rng::new(5);
    let mut pick = |wanted| world.run(|keyspace| random(keyspace, KEY, wanted, &mut rng));
    for wanted in [0usize, 1, 250, 499, 500, 600] {
        let mut picked = pairs(pick(wanted as i64)?);
        picked.sort_by(|a, b| a.1.cmp(&b.1));
        picked.dedup();
        assert_eq!(picked.len(), wanted.min(500));
    }
    assert_eq!(pick(-2_000)?.len(), 2_000);
    Ok(())
}

#[test]
fn encodings_other_types_and_expiries_are_as_they_should() {
    let mut world = World::new();
    let name = |world: &mut World| {
        world.ok(|keyspace| Ok(keyspace.lookup(KEY)?.map(|record| encoding(&record))))
    };
    put(&mut world, KEY, &[(1.0, "short")]);
    assert_eq!(name(&mut world), Some("listpack"));
    put(&mut world, KEY, &[(1.0, &"long".repeat(20))]);
    assert_eq!(name(&mut world), Some("skiplist"));
    world.ok(|keyspace| remove(keyspace, KEY, ["long".repeat(20).as_bytes()]));
    assert_eq!(name(&mut world), Some("skiplist"), "there is no way back");
    world.ok(|keyspace| {
        let record = keyspace.lookup(KEY)?.expect("it is there");
        let new = record.with_expire(Some(2_000_000));
        keyspace.put(KEY, drumlin_redis_store::Old::Is(Some(&record)), new)
    });
    for number in 0..300 {
        put(&mut world, KEY, &[(f64::from(number), &number.to_string())]);
    }
    let record = world
        .ok(|keyspace| keyspace.lookup(KEY))
        .expect("it is there");
    assert_eq!(record.expire_ms(), Some(2_000_000));
    assert!(record.collection().is_some());
    world.ok(|keyspace| {
        let new = drumlin_redis_store::NewRecord::new(Kind::Set, None, None, 0);
        keyspace.put(b"set", drumlin_redis_store::Old::Unknown, new)
    });
    let refused = world.run(|keyspace| len(keyspace, b"set"));
    assert!(matches!(refused, Err(Failure::WrongType)));
}

fn sign(world: &mut World, member: &str) -> Option<bool> {
    let found = world.ok(|keyspace| score(keyspace, KEY, member.as_bytes()));
    found.map(f64::is_sign_negative)
}

#[test]
fn the_sign_of_zero_is_kept_where_redis_keeps_it() {
    let mut world = World::new();
    put(&mut world, KEY, &[(-0.0, "small")]);
    assert_eq!(
        sign(&mut world, "small"),
        Some(false),
        "a listpack has no -0"
    );
    let long = "long".repeat(20);
    put(&mut world, KEY, &[(-0.0, &long), (-0.0, "other")]);
    assert_eq!(sign(&mut world, "small"), Some(false));
    assert_eq!(sign(&mut world, &long), Some(true));
    assert_eq!(sign(&mut world, "other"), Some(true));
    // Over 2 KiB, and a listpack all the same.
    let items: Vec<Scored> = (0..100)
        .map(|number| Scored {
            score: -0.0,
            member: format!("a member of some length {number:03}").into_bytes(),
        })
        .collect();
    world.ok(|keyspace| store(keyspace, KEY, &items, "zunionstore"));
    let found = world.ok(|keyspace| range(keyspace, KEY, &all()));
    assert!(found.iter().all(|item| item.score.is_sign_positive()));
}

#[test]
fn many_members_at_once_are_those_that_came_one_by_one() {
    let (mut world, mut rng) = (World::new(), Rng::new(6));
    let members: Vec<_> = (0..3_000).map(|_| a_member(&mut rng, 2_000)).collect();
    let items: Vec<_> = members
        .iter()
        .map(|member| (below(&mut rng, 100) as f64, member.as_slice()))
        .collect();
    for lowers in [false, true] {
        let options = AddOptions {
            only_less: lowers,
            ..AddOptions::default()
        };
        let (at_once, singly) = world.ok(|keyspace| {
            let at_once = add(keyspace, b"at once", &items, options)?;
            let mut singly = Added::default();
            for item in &items {
                let one = add(keyspace, b"singly", &[*item], options)?;
                singly.added += one.added;
                singly.updated += one.updated;
            }
            Ok((at_once, singly))
        });
        assert_eq!(
            (at_once.added, at_once.updated),
            (singly.added, singly.updated)
        );
        let found = world.ok(|keyspace| range(keyspace, b"at once", &all()));
        assert_eq!(
            found,
            world.ok(|keyspace| range(keyspace, b"singly", &all()))
        );
        world.ok(|keyspace| {
            let select = Select::Ranks { start: 0, end: -1 };
            remove_range(keyspace, b"at once", &select)?;
            remove_range(keyspace, b"singly", &select)
        });
    }
}
