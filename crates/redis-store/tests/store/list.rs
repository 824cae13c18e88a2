//! Goal: a list is its elements in their order, in either form. Method: random pushes, pops, changes and removals beside a
//! `VecDeque`, over the growth from a record to a collection and back to nothing, with commits, compactions and new starts.

use std::collections::VecDeque;

use drumlin_base::rng::Rng;
use drumlin_redis_store::types::list::{End, List};
use drumlin_redis_store::{Direction, Keyspace, Overlay};

use crate::world::World;

const KEY: &[u8] = b"list";

fn element(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.below(40) {
        0 => 600,
        1 => 0,
        _ => rng.below(30),
    };
    let byte = b'a' + rng.below(20) as u8;
    vec![byte; len as usize]
}

fn elements(keys: &Keyspace<'_>, direction: Direction) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    if let Some(list) = List::open(keys, KEY).expect("opens") {
        let first = match direction {
            Direction::Forward => 0,
            Direction::Backward => list.len() - 1,
        };
        let visit = |element: &[u8]| {
            found.push(element.to_vec());
            true
        };
        list.visit(keys, first, direction, visit).expect("walks");
    }
    found
}

/// One change of both.
fn change(keys: &mut Keyspace<'_>, model: &mut VecDeque<Vec<u8>>, rng: &mut Rng, grows: bool) {
    let mut list = List::open_or_new(keys, KEY).expect("opens");
    let len = model.len() as u64;
    let end = [End::Left, End::Right][rng.below(2) as usize];
    match rng.below(if grows { 6 } else { 12 }) {
        0..5 => {
            for _ in 0..=rng.below(5) {
                let element = element(rng);
                list.push(keys, end, &element).expect("pushes");
                match end {
                    End::Left => model.push_front(element),
                    End::Right => model.push_back(element),
                }
            }
        }
        5 if len > 0 => {
            let (at, element) = (rng.below(len), element(rng));
            list.replace(keys, at, &element).expect("replaces");
            model[at as usize] = element;
        }
        6 => {
            let (at, element) = (rng.below(len + 1), element(rng));
            list.insert(keys, at, &element).expect("inserts");
            model.insert(at as usize, element);
        }
        7 if len > 0 => {
            let at = rng.below(len);
            let until = (at + 1 + rng.below(20)).min(len);
            list.remove(keys, at..until).expect("removes");
            model.drain(at as usize..until as usize);
        }
        _ => {
            for _ in 0..=rng.below(8) {
                let popped = list.pop(keys, end).expect("pops");
                let wanted = match end {
                    End::Left => model.pop_front(),
                    End::Right => model.pop_back(),
                };
                assert_eq!(popped, wanted);
            }
        }
    }
    list.save(keys, KEY, None).expect("saves");
}

#[test]
fn lists_keep_their_order_in_both_forms() {
    for seed in 0..8 {
        let mut rng = Rng::new(seed);
        let mut world = World::new();
        let mut model = VecDeque::new();
        for step in 0..1_500u32 {
            let grows = (step / 300).is_multiple_of(2);
            world.ok(|keys| {
                change(keys, &mut model, &mut rng, grows);
                Ok(())
            });
            match rng.below(60) {
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
            if step.is_multiple_of(50) {
                let forward = world.ok(|keys| Ok(elements(keys, Direction::Forward)));
                assert_eq!(model, forward, "seed {seed}, step {step}");
                let mut backward = world.ok(|keys| Ok(elements(keys, Direction::Backward)));
                backward.reverse();
                assert_eq!(model, backward, "seed {seed}, step {step}");
            }
        }
        world.ok(|keys| {
            if let Some(record) = keys.lookup(KEY)? {
                keys.remove(KEY, &record);
            }
            Ok(())
        });
        world.commit();
        world.compact();
        assert_eq!(world.entries("sub"), 0, "seed {seed}");
        assert_eq!(world.entries("live"), 0, "seed {seed}");
    }
}

#[test]
fn positions_count_from_both_ends_and_stop_at_them() {
    let mut world = World::new();
    world.ok(|keys| {
        let mut list = List::open_or_new(keys, KEY)?;
        for element in [b"a", b"b", b"c"] {
            list.push(keys, End::Right, element)?;
        }
        assert_eq!(list.position(-3), Some(0));
        assert_eq!(list.position(-4), None);
        assert_eq!(list.position(3), None);
        assert_eq!(list.position(i64::MIN), None);
        assert_eq!(list.positions(0, -1), 0..3);
        assert_eq!(list.positions(-2, 100), 1..3);
        assert_eq!(list.positions(i64::MIN, i64::MAX), 0..3);
        assert!(list.positions(2, 1).is_empty());
        assert!(list.positions(5, 9).is_empty());
        list.save(keys, KEY, Some("rpush"))
    });
    assert_eq!(
        world
            .ok(|keys| Ok(elements(keys, Direction::Forward)))
            .len(),
        3
    );
}

#[test]
fn a_copy_has_what_the_round_changed() {
    const COPY: &[u8] = b"copy";
    let mut world = World::new();
    let push = |keys: &mut Keyspace<'_>, range: std::ops::Range<u32>| {
        let mut list = List::open_or_new(keys, KEY)?;
        for at in range {
            list.push(keys, End::Left, &at.to_be_bytes())?;
        }
        list.save(keys, KEY, None)
    };
    world.ok(|keys| push(keys, 0..2_000));
    world.commit();
    world.ok(|keys| push(keys, 2_000..2_100));
    world.ok(|keys| {
        let record = keys.lookup(KEY)?.expect("the list");
        keys.copy_record(&record, (0, COPY))
    });
    for _ in 0..2 {
        let list = world.ok(|keys| List::open(keys, COPY)).expect("the copy");
        for at in 0..2_100u32 {
            let found = world.ok(|keys| list.get(keys, u64::from(at)));
            assert_eq!(found, Some((2_099 - at).to_be_bytes().to_vec()));
        }
        world.commit();
        world.overlay = Overlay::new();
    }
}
