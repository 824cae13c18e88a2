//! Goal: keys, expiry, collections and databases keep their rules over commits, crashes and compactions. Method: the
//! store as the server uses it, with types left out: records and entries are written by hand.

use drumlin_redis_store::{
    Claims, Collection, Direction, EventClass, Failure, Keyspace, Kind, NewRecord, Old, sub_rest,
};

use crate::world::World;

fn set(keyspace: &mut Keyspace<'_>, key: &[u8], value: &[u8], expire_ms: Option<u64>) {
    let new = NewRecord::string(value, expire_ms);
    keyspace.put(key, Old::Unknown, new).expect("puts");
}

fn get(world: &mut World, key: &[u8]) -> Option<Vec<u8>> {
    world.ok(|keyspace| {
        Ok(keyspace
            .lookup(key)?
            .map(|record| record.payload().to_vec()))
    })
}

/// Makes a collection with `entries` elements.
fn fill(world: &mut World, key: &[u8], entries: u32) -> Collection {
    world.ok(|keyspace| {
        let place = keyspace.new_collection(key)?;
        for entry in 0..entries {
            keyspace.sub_put(place, &entry.to_be_bytes(), b"element".to_vec());
        }
        let new = NewRecord::new(Kind::Set, Some(place), None, 0);
        keyspace.put(key, Old::Unknown, new)?;
        Ok(place)
    })
}

fn elements(world: &mut World, place: Collection, direction: Direction) -> Vec<Vec<u8>> {
    world.ok(|keyspace| {
        let mut walk = keyspace.sub_walk(place, b"", b"", direction);
        let mut found = Vec::new();
        while let Some((key, _)) = walk.next()? {
            found.push(sub_rest(key).to_vec());
        }
        Ok(found)
    })
}

#[test]
fn a_round_sees_its_own_changes_and_a_failed_command_leaves_none() {
    let mut world = World::new();
    world.ok(|keyspace| {
        set(keyspace, b"a", b"1", None);
        Ok(())
    });
    assert_eq!(get(&mut world, b"a").as_deref(), Some(&b"1"[..]));
    let failed = world.run(|keyspace| {
        set(keyspace, b"a", b"2", None);
        set(keyspace, b"b", b"2", None);
        keyspace.clear();
        Err::<(), _>(Failure::WrongType)
    });
    assert!(failed.is_err());
    assert_eq!(get(&mut world, b"a").as_deref(), Some(&b"1"[..]));
    assert_eq!(get(&mut world, b"b"), None);
    world.commit();
    let mut world = world.reopen(false);
    assert_eq!(get(&mut world, b"a").as_deref(), Some(&b"1"[..]));
}

#[test]
fn walks_merge_the_round_over_the_database_both_ways() {
    let mut world = World::new();
    let place = fill(&mut world, b"set", 6);
    world.commit();
    world.ok(|keyspace| {
        keyspace.sub_delete(place, &0u32.to_be_bytes());
        keyspace.sub_delete(place, &3u32.to_be_bytes());
        keyspace.sub_put(place, &4u32.to_be_bytes(), b"new".to_vec());
        keyspace.sub_put(place, &9u32.to_be_bytes(), b"new".to_vec());
        Ok(())
    });
    let mut wanted: Vec<_> = [1u32, 2, 4, 5, 9].map(|n| n.to_be_bytes().to_vec()).into();
    assert_eq!(elements(&mut world, place, Direction::Forward), wanted);
    wanted.reverse();
    assert_eq!(elements(&mut world, place, Direction::Backward), wanted);
    let part = world.ok(|keyspace| {
        let (from, until) = (2u32.to_be_bytes(), 5u32.to_be_bytes());
        let mut walk = keyspace.sub_walk(place, &from, &until, Direction::Forward);
        let mut found = 0;
        while walk.next()?.is_some() {
            found += 1;
        }
        Ok(found)
    });
    assert_eq!(part, 2);
}

#[test]
fn a_blind_write_over_a_collection_kills_it_and_compaction_takes_its_entries() {
    let mut world = World::new();
    fill(&mut world, b"set", 1_000);
    let kept = fill(&mut world, b"kept", 10);
    world.commit();
    assert_eq!(world.store.collections(), 2);
    world.ok(|keyspace| {
        set(keyspace, b"set", b"a string now", None);
        Ok(())
    });
    world.commit();
    assert_eq!(world.store.collections(), 1);
    assert_eq!(world.entries("sub"), 1_010);
    world.compact();
    assert_eq!(world.entries("sub"), 10);
    assert_eq!(elements(&mut world, kept, Direction::Forward).len(), 10);
}

/// Goal: a collection that is made in the round in which its database was cleared stays. Method: both in one commit, then a
/// compaction.
#[test]
fn a_collection_made_after_a_clear_in_the_same_round_keeps_its_entries() {
    let mut world = World::new();
    fill(&mut world, b"old", 100);
    world.commit();
    world.ok(|keyspace| {
        keyspace.clear();
        Ok(())
    });
    let place = fill(&mut world, b"new", 10);
    world.commit();
    assert_eq!(world.store.collections(), 1);
    world.compact();
    assert_eq!(elements(&mut world, place, Direction::Forward).len(), 10);
    assert_eq!(world.entries("sub"), 10);
}

/// Goal: a power cut that takes a deletion back does not find the elements gone. Method: the deletion is not synced, the
/// compaction runs, the power goes.
#[test]
fn elements_outlive_a_deletion_that_a_power_cut_takes_back() {
    let mut world = World::new();
    let place = fill(&mut world, b"set", 100);
    world.commit();
    world.store.db().sync_wal().expect("syncs");
    world.store.db().flush().expect("flushes");
    world.ok(|keyspace| {
        let record = keyspace.lookup(b"set")?.expect("it is there");
        keyspace.remove(b"set", &record);
        Ok(())
    });
    world.commit();
    let db = world.store.db();
    db.compact_range(&db.column_family("sub").expect("a family"), None, None)
        .expect("compacts");
    let mut world = world.reopen(true);
    if world.ok(|keyspace| Ok(keyspace.lookup(b"set")?.is_some())) {
        assert_eq!(elements(&mut world, place, Direction::Forward).len(), 100);
    }
}

#[test]
fn a_renamed_collection_keeps_its_elements() {
    let mut world = World::new();
    let place = fill(&mut world, b"set", 50);
    world.commit();
    world.ok(|keyspace| {
        let record = keyspace.lookup(b"set")?.expect("it is there");
        keyspace.move_record(b"set", &record, (5, b"other"))
    });
    world.commit();
    world.ok(|keyspace| {
        set(keyspace, b"set", b"string", None);
        Ok(())
    });
    world.commit();
    world.compact();
    let mut world = world.reopen(false);
    world.db = 5;
    let found = world.ok(|keyspace| Ok(keyspace.lookup(b"other")?.and_then(|it| it.collection())));
    assert_eq!(found, Some(place));
    assert_eq!(elements(&mut world, place, Direction::Forward).len(), 50);
    assert_eq!(world.store.collections(), 1);
}

#[test]
fn expired_keys_are_unseen_at_once_and_gone_after_a_step_or_a_compaction() {
    let mut world = World::new();
    world.ok(|keyspace| {
        set(keyspace, b"soon", b"v", Some(1_000_100));
        set(keyspace, b"large", &[b'v'; 5_000], Some(1_000_100));
        set(keyspace, b"prolonged", b"v", Some(1_000_100));
        set(keyspace, b"prolonged", b"v", Some(2_000_000));
        set(keyspace, b"for ever", b"v", None);
        Ok(())
    });
    world.commit();
    world.now_ms = 1_000_100;
    assert!(
        get(&mut world, b"soon").is_some(),
        "in its last millisecond"
    );
    world.now_ms += 1;
    assert_eq!(get(&mut world, b"soon"), None);
    let counted = world.ok(|keyspace| keyspace.count());
    assert_eq!(counted, (4, 3), "they count until the worker comes");
    let step = world.ok(|keyspace| keyspace.expire_due(100, false));
    assert_eq!((step.expired, step.more), (2, false));
    assert_eq!(world.ok(|keyspace| keyspace.count()), (2, 1));
    world.commit();
    assert_eq!(
        world.entries("keys"),
        3,
        "the large one is deleted, the small one left to the filter"
    );
    world.compact();
    assert_eq!(world.entries("keys"), 2);
    assert_eq!(world.entries("ttl"), 1);
    world.now_ms = 999_000;
    assert_eq!(
        world.store.now_ms(world.now_ms),
        1_000_101,
        "the clock went back"
    );
    let mut world = world.reopen(false);
    assert_eq!(get(&mut world, b"soon"), None);
    assert!(get(&mut world, b"prolonged").is_some());
}

/// Goal: what a command finds expired is deleted once, unless the command has written it, with events before its own; and is the worker's
/// where that has been. Method: one that is looked at and overwritten, one that is looked at twice, one that a walk goes by.
#[test]
fn what_a_command_finds_expired_is_deleted_once() {
    let mut world = World::new();
    world.ok(|keyspace| {
        for key in [b"large".as_slice(), b"soon", b"walked"] {
            set(keyspace, key, &[b'v'; 5_000], Some(1_000_100));
        }
        Ok(())
    });
    world.commit();
    world.now_ms = 1_000_101;
    let (gone, events) = world.ok(|keyspace| {
        keyspace.note_expired();
        let mark = keyspace.overlay().mark();
        assert!(keyspace.lookup(b"large")?.is_none() && keyspace.lookup(b"large")?.is_none());
        assert!(keyspace.lookup(b"soon")?.is_none());
        set(keyspace, b"soon", b"new", None);
        keyspace.event(EventClass::String, "set", b"soon");
        assert!(keyspace.scan(0, 100)?.keys.len() == 1);
        let found = keyspace.take_expired();
        let gone = keyspace.expire_found(found.due, mark)?;
        let overlay = keyspace.overlay();
        let names = overlay.events_since(mark).iter().map(|event| event.name);
        let events: Vec<&str> = names.collect();
        assert_eq!(overlay.gone_since(mark).count(), 2);
        Ok((gone, events))
    });
    assert_eq!(gone.len(), 3);
    assert_eq!(events, ["expired", "expired", "expired", "set"]);
    assert!(get(&mut world, b"soon").is_some());
    assert_eq!(world.ok(|keyspace| keyspace.count()), (1, 0));
    world.ok(|keyspace| {
        set(keyspace, b"later", b"v", Some(1_000_200));
        Ok(())
    });
    world.commit();
    world.now_ms = 1_000_300;
    world.ok(|keyspace| keyspace.expire_due(100, false));
    let due = world.ok(|keyspace| {
        keyspace.note_expired();
        assert!(keyspace.lookup(b"later")?.is_none());
        Ok(keyspace.take_expired().due)
    });
    assert_eq!(due, [], "the worker has been there");
}

#[test]
fn scan_gives_every_key_that_stays_while_others_come_and_go() {
    let mut world = World::new();
    let name = |n: u32| format!("key{n}").into_bytes();
    world.ok(|keyspace| {
        (0..500).for_each(|n| set(keyspace, &name(n), b"v", None));
        Ok(())
    });
    world.commit();
    let (mut cursor, mut round) = (0, 0u32);
    let mut seen = std::collections::BTreeSet::new();
    loop {
        let page = world.ok(|keyspace| keyspace.scan(cursor, 10));
        assert!(page.keys.len() <= 12, "{} keys", page.keys.len());
        seen.extend(page.keys.into_iter().map(|(key, _)| key));
        cursor = page.cursor;
        if cursor == 0 {
            break;
        }
        round += 1;
        world.ok(|keyspace| {
            set(keyspace, &name(1_000 + round), b"v", None);
            let gone = name(400 + round);
            if let Some(record) = keyspace.lookup(&gone)? {
                keyspace.remove(&gone, &record);
            }
            Ok(())
        });
        if round.is_multiple_of(7) {
            world.commit();
        }
    }
    assert!((0..400).all(|n| seen.contains(&name(n))));
}

#[test]
fn databases_are_apart_cleared_at_once_and_exchanged() {
    let mut world = World::new();
    world.ok(|keyspace| {
        set(keyspace, b"k", b"zero", None);
        keyspace.select(1);
        set(keyspace, b"k", b"one", None);
        Ok(())
    });
    fill(&mut world, b"set", 10);
    world.commit();
    world.ok(|keyspace| {
        keyspace.swap(0, 1);
        Ok(())
    });
    assert_eq!(get(&mut world, b"k").as_deref(), Some(&b"one"[..]));
    world.commit();
    let mut world = world.reopen(false);
    assert_eq!(get(&mut world, b"k").as_deref(), Some(&b"one"[..]));
    world.db = 1;
    world.ok(|keyspace| {
        set(keyspace, b"before", b"", None);
        keyspace.clear();
        set(keyspace, b"after", b"", None);
        Ok(())
    });
    assert_eq!(world.ok(|keyspace| keyspace.count()), (1, 0));
    world.commit();
    assert_eq!(world.ok(|keyspace| keyspace.count()), (1, 0));
    assert_eq!(world.store.collections(), 0);
    world.compact();
    assert_eq!(world.entries("sub"), 0);
    assert_eq!(world.entries("live"), 0);
    world.db = 0;
    assert_eq!(get(&mut world, b"k").as_deref(), Some(&b"one"[..]));
}

/// Goal: records that were read ahead change nothing. Method: rounds of random commands against a map, each with some keys
/// read ahead, twice or not there among them.
#[test]
fn records_read_ahead_are_those_of_the_round() {
    let mut world = World::new();
    let mut model = std::collections::BTreeMap::<Vec<u8>, Vec<u8>>::new();
    let mut state = 5u64;
    let mut below = move |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % bound
    };
    for round in 0..600u64 {
        let keys: Vec<Vec<u8>> = (0..below(40))
            .map(|_| vec![b'k', below(24) as u8])
            .collect();
        world.ok(|keyspace| {
            let wanted: Vec<(u16, &[u8])> = keys.iter().map(|key| (0, key.as_slice())).collect();
            keyspace.read_ahead(&wanted);
            Ok(())
        });
        for _ in 0..below(30) {
            let key = vec![b'k', below(24) as u8];
            let value = round.to_be_bytes().to_vec();
            let (deed, fails) = (below(12), below(4) == 0);
            let before = model.clone();
            let outcome = world.run(|keyspace| {
                let found = keyspace.lookup(&key)?;
                let payload = found.as_ref().map(|it| it.payload().to_vec());
                assert_eq!(payload.as_ref(), model.get(&key));
                match (deed, found) {
                    (0, _) if round % 50 == 7 => {
                        keyspace.clear();
                        model.clear();
                    }
                    (1..4, Some(record)) => {
                        keyspace.remove(&key, &record);
                        model.remove(&key);
                    }
                    (4..8, _) => {
                        set(keyspace, &key, &value, None);
                        model.insert(key.clone(), value);
                    }
                    _ => {}
                }
                match fails {
                    true => Err(Failure::WrongType),
                    false => Ok(()),
                }
            });
            if outcome.is_err() {
                model = before;
            }
        }
        world.commit();
    }
}

/// Goal: whatever changes a claimed key is seen, and nothing else. Method: changes of every sort, each in a round of its own.
#[test]
fn claims_see_changes_of_records_entries_and_databases() {
    type Change = fn(&mut Keyspace<'_>, Collection);
    let changes: [(&str, Change, [bool; 2]); 8] = [
        ("nothing", |_, _| {}, [false, false]),
        (
            "another",
            |keys, _| set(keys, b"c", b"1", None),
            [false, false],
        ),
        (
            "a record",
            |keys, _| set(keys, b"a", b"2", None),
            [true, false],
        ),
        (
            "an entry",
            |keys, of| keys.sub_put(of, b"x", Vec::new()),
            [false, true],
        ),
        (
            "an entry that goes",
            |keys, of| keys.sub_delete(of, &0_u32.to_be_bytes()),
            [false, true],
        ),
        (
            "another database",
            |keys, _| {
                keys.select(1);
                set(keys, b"a", b"2", None);
                keys.clear();
            },
            [false, false],
        ),
        ("the database", |keys, _| keys.clear(), [true, true]),
        ("an exchange", |keys, _| keys.swap(0, 1), [true, true]),
    ];
    for (name, change, wanted) in changes {
        let mut world = World::new();
        world.ok(|keyspace| {
            set(keyspace, b"a", b"1", Some(5_000_000));
            Ok(())
        });
        let place = fill(&mut world, b"b", 3);
        world.commit();
        let keys = [&b"a"[..], b"b", b"none"].map(<[u8]>::to_vec);
        let mut claims = world.ok(|keyspace| Claims::new(keyspace, &keys));
        assert_eq!(
            [0, 1, 2, 3].map(|at| claims.has(at)),
            [true, true, false, false]
        );
        assert_eq!(
            [0, 1].map(|at| claims.expire_ms(at)),
            [Some(5_000_000), None]
        );
        world.ok(|keyspace| {
            change(keyspace, place);
            Ok(())
        });
        claims.see(&world.overlay);
        assert_eq!([0, 1].map(|at| claims.is_changed(at)), wanted, "{name}");
    }
}
