//! Goal: fields of hashes expire at their times, are not seen after them, and leave nothing. Method: random commands against a
//! map with deadlines, under a clock that the test moves, with the worker, commits, compactions and new starts in between.

use std::collections::BTreeMap;

use drumlin_base::rng::Rng;
use drumlin_redis_store::types::field_expiry::{
    Condition, Expired, Persisted, each, expire, load, persist,
};
use drumlin_redis_store::types::hash::{
    add, draw, encoding, get, len, remove, sample, scan, set, set_new,
};
use drumlin_redis_store::{Direction, Failure, FieldTimes, Keyspace, Old, Outcome, sub_rest};

use crate::world::World;

const KEY: &[u8] = b"hash";
const OTHER: &[u8] = b"other";
const CONDITIONS: [Condition; 5] = [
    Condition::Always,
    Condition::IfNone,
    Condition::IfAny,
    Condition::IfLater,
    Condition::IfEarlier,
];

/// Values with their deadlines.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model(BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>);

impl Model {
    fn pass(&mut self, now_ms: u64) {
        self.0
            .retain(|_, (_, until)| until.is_none_or(|ms| ms >= now_ms));
    }

    fn expire(&mut self, field: &[u8], ms: u64, condition: Condition, now_ms: u64) -> Expired {
        let Some((_, until)) = self.0.get_mut(field) else {
            return Expired::NoField;
        };
        let is_kept = match (condition, *until) {
            (Condition::Always, _) | (Condition::IfEarlier | Condition::IfNone, None) => false,
            (Condition::IfNone, Some(_)) | (Condition::IfAny | Condition::IfLater, None) => true,
            (Condition::IfAny, Some(_)) => false,
            (Condition::IfLater, Some(before)) => ms <= before,
            (Condition::IfEarlier, Some(before)) => ms >= before,
        };
        if is_kept {
            return Expired::Kept;
        }
        if ms <= now_ms {
            self.0.remove(field);
            return Expired::Deleted;
        }
        *until = Some(ms);
        Expired::Set
    }
}

struct Run {
    world: World,
    model: Model,
    rng: Rng,
    fields: u64,
}

impl Run {
    fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    fn field(&mut self) -> Vec<u8> {
        let number = self.rng.below(self.fields);
        match number % 40 {
            7 => vec![b'x'; number as usize + 300],
            _ => number.to_string().into_bytes(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        match self.below(30) {
            0 => vec![b'v'; 700],
            1..8 => b"text".to_vec(),
            _ => self.below(1_000).to_string().into_bytes(),
        }
    }

    fn ok<T>(&mut self, command: impl FnOnce(&mut Keyspace<'_>) -> Outcome<T>) -> T {
        self.world.ok(command)
    }

    fn write(&mut self) {
        let (field, value) = (self.field(), self.value());
        match self.below(10) {
            0..6 => {
                let added = self.ok(|keyspace| set(keyspace, KEY, [(&field[..], &value[..])]));
                let before = self.model.0.insert(field, (value, None));
                assert_eq!(added, u64::from(before.is_none()));
            }
            6 => {
                let is_new = self.ok(|keyspace| set_new(keyspace, KEY, &field, &value));
                assert_eq!(is_new, !self.model.0.contains_key(&field));
                self.model.0.entry(field).or_insert((value, None));
            }
            7 => {
                let removed = self.ok(|keyspace| remove(keyspace, KEY, [&field[..]]));
                let before = self.model.0.remove(&field);
                assert_eq!(removed, u64::from(before.is_some()));
            }
            _ => {
                let before = self.model.0.get(&field);
                let text = before.map(|(value, _)| String::from_utf8_lossy(value).into_owned());
                let number = text.map_or(Some(0), |text| text.parse::<i64>().ok());
                let sum = self.world.run(|keyspace| add(keyspace, KEY, &field, 3));
                match number {
                    None => assert!(matches!(sum, Err(Failure::Refused(_)))),
                    Some(number) => {
                        assert_eq!(sum.expect("a sum"), number + 3);
                        let entry = self.model.0.entry(field).or_default();
                        entry.0 = (number + 3).to_string().into_bytes();
                    }
                }
            }
        }
    }

    fn time(&mut self) {
        let fields = [self.field(), self.field()];
        let given = fields.iter().map(Vec::as_slice);
        if self.below(6) == 0 {
            let done = self.ok(|keyspace| persist(keyspace, KEY, given));
            for (field, done) in fields.iter().zip(done) {
                let wanted = match self.model.0.get_mut(field).map(|(_, until)| until.take()) {
                    None => Persisted::NoField,
                    Some(None) => Persisted::NoExpiry,
                    Some(Some(_)) => Persisted::Done,
                };
                assert_eq!(done, wanted);
            }
            return;
        }
        let now_ms = self.world.now_ms;
        let ms = (now_ms + self.below(60)).saturating_sub(3);
        let condition = CONDITIONS[self.below(5) as usize];
        let done = self.ok(|keyspace| expire(keyspace, KEY, given, ms, condition));
        for (field, done) in fields.iter().zip(done) {
            assert_eq!(done, self.model.expire(field, ms, condition, now_ms));
        }
    }

    /// Every field gets a deadline, and all of them pass before the worker comes.
    fn all_end(&mut self) {
        let fields: Vec<_> = self.model.0.keys().cloned().collect();
        let ms = self.world.now_ms + 5;
        let given = fields.iter().map(Vec::as_slice);
        self.ok(|keyspace| expire(keyspace, KEY, given, ms, Condition::Always));
        for (_, until) in self.model.0.values_mut() {
            *until = Some(ms);
        }
        self.look();
        self.world.now_ms = ms + self.below(2);
        self.model.pass(self.world.now_ms);
    }

    fn look(&mut self) {
        let field = self.field();
        let found = self.ok(|keyspace| get(keyspace, KEY, &field));
        let found = found.map(|value| (value.to_vec(), value.expire_ms()));
        assert_eq!(found.as_ref(), self.model.0.get(&field));
        let count = self.ok(|keyspace| len(keyspace, KEY));
        assert_eq!(count as usize, self.model.0.len());
        let is_there = self.ok(|keyspace| Ok(keyspace.lookup(KEY)?.is_some()));
        assert_eq!(is_there, !self.model.0.is_empty());
        let keys = self.ok(|keyspace| keyspace.count()).0;
        assert_eq!(keys, u64::from(is_there));
    }

    fn compare_whole(&mut self) {
        let mut found = Model::default();
        self.ok(|keyspace| {
            each(keyspace, KEY, |(field, value, until)| {
                found.0.insert(field.to_vec(), (value.to_vec(), until));
            })
        });
        assert_eq!(found, self.model);
        let (mut cursor, mut scanned) = (0, BTreeMap::new());
        loop {
            let (next, pairs) = self.ok(|keyspace| scan(keyspace, KEY, cursor, 9));
            scanned.extend(pairs);
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        let there = self.model.0.iter();
        let there = there.map(|(field, (value, _))| (field.clone(), value.clone()));
        assert_eq!(scanned, there.collect());
        let (wanted, mut rng) = (self.below(self.fields), Rng::new(self.below(100)));
        let picked = self.ok(|keyspace| sample(keyspace, KEY, wanted, &mut rng));
        assert_eq!(picked.len(), self.model.0.len().min(wanted as usize));
        let drawn = self.ok(|keyspace| match draw(keyspace, KEY)? {
            Some(mut draw) => draw.next(keyspace, &mut rng),
            None => Ok(None),
        });
        assert_eq!(drawn.is_some(), !self.model.0.is_empty());
        let all = picked.iter().chain(&drawn);
        all.for_each(|(field, _)| assert!(self.model.0.contains_key(field)));
    }

    /// To another key and back, or as a copy.
    fn rename(&mut self) {
        let copies = self.below(2) == 0;
        self.ok(|keyspace| {
            let Some(record) = keyspace.lookup(KEY)? else {
                return Ok(());
            };
            if copies {
                keyspace.copy_record(&record, (0, OTHER))?;
                keyspace.remove(KEY, &record);
            } else {
                keyspace.move_record(KEY, &record, (0, OTHER))?;
            }
            let record = keyspace.lookup(OTHER)?.expect("it came");
            keyspace.move_record(OTHER, &record, (0, KEY))
        });
    }

    fn work(&mut self, most: usize) {
        while self.ok(|keyspace| keyspace.expire_due(most, false)).more {}
    }

    fn step(&mut self) {
        match self.below(20) {
            0..8 => self.write(),
            8..16 => self.time(),
            16 => {
                self.world.now_ms += self.below(12);
                self.model.pass(self.world.now_ms);
            }
            17 => self.work(3),
            18 if self.below(5) == 0 => self.all_end(),
            _ => {}
        }
        self.look();
        match self.below(200) {
            0..6 => self.world.commit(),
            6 => {
                self.world.commit();
                self.world.compact();
            }
            8 => self.rename(),
            _ => {}
        }
    }
}

fn run(seed: u64, fields: u64, steps: usize) -> Run {
    let mut run = Run {
        world: World::new(),
        model: Model::default(),
        rng: Rng::new(seed),
        fields,
    };
    for step in 0..steps {
        run.step();
        if step % 50 == 0 {
            run.compare_whole();
        }
        if step % 500 == 499 {
            run.world.commit();
            run.world = run.world.reopen(false);
        }
    }
    run
}

/// After all deadlines nothing is left but the fields without one, whoever looks.
fn end(mut run: Run) {
    run.write();
    run.ok(|keyspace| set(keyspace, KEY, [(&b"last"[..], &b"v"[..])]));
    run.model.0.insert(b"last".to_vec(), (b"v".to_vec(), None));
    let ms = run.world.now_ms + 900;
    run.ok(|keyspace| expire(keyspace, KEY, [&b"last"[..]], ms, Condition::Always));
    run.model.expire(b"last", ms, Condition::Always, 0);
    run.work(100);
    run.world.commit();
    run.rename();
    run.world.now_ms += 1_000;
    run.model.pass(run.world.now_ms);
    run.compare_whole();
    run.work(100);
    run.compare_whole();
    let rest: Vec<_> = run.model.0.keys().cloned().collect();
    run.ok(|keyspace| remove(keyspace, KEY, rest.iter().map(Vec::as_slice)));
    run.world.commit();
    run.world.compact();
    for family in ["keys", "sub", "ttl", "live"] {
        assert_eq!(run.world.entries(family), 0, "{family}");
    }
}

#[test]
fn a_small_hash_is_a_map_with_deadlines() {
    (0..4).for_each(|seed| end(run(seed, 6, 1_500)));
}

#[test]
fn a_hash_that_grows_is_a_map_with_deadlines() {
    end(run(10, 80, 2_000));
    end(run(11, 700, 4_000));
}

/// A thousand fields beyond what stays whole.
fn a_large_hash(world: &mut World, until: impl Fn(u64) -> u64) {
    let names: Vec<_> = (0..1_500u64).map(|number| number.to_string()).collect();
    world.ok(|keyspace| {
        let pairs = names.iter().map(|name| (name.as_bytes(), &b"value"[..]));
        set(keyspace, KEY, pairs)?;
        for (number, name) in names.iter().enumerate() {
            let ms = until(number as u64);
            expire(keyspace, KEY, [name.as_bytes()], ms, Condition::Always)?;
        }
        Ok(())
    });
    world.commit();
}

#[test]
fn what_expired_is_deleted_in_steps_and_takes_no_room() {
    let mut world = World::new();
    a_large_hash(&mut world, |number| 1_000_010 + number % 3);
    assert_eq!(world.entries("sub"), 3_000);
    let told = |world: &World| -> Vec<_> {
        let events = world.overlay.events_since(world.start()).iter();
        events.map(|event| event.name).collect()
    };
    world.now_ms = 1_000_011;
    let step = world.ok(|keyspace| keyspace.expire_due(200, true));
    assert_eq!((step.more, step.expired), (true, 0));
    assert_eq!(told(&world), ["hexpired"]);
    while world.ok(|keyspace| keyspace.expire_due(200, true)).more {}
    assert_eq!(world.ok(|keyspace| len(keyspace, KEY)), 1_000);
    world.commit();
    assert_eq!(world.entries("sub"), 2_000);
    world.now_ms = 1_000_020;
    assert!(world.ok(|keyspace| keyspace.lookup(KEY)).is_none());
    while world.ok(|keyspace| keyspace.expire_due(5_000, true)).more {}
    assert_eq!(told(&world).last(), Some(&"del"));
    world.commit();
    world.compact();
    for family in ["keys", "sub", "ttl", "live"] {
        assert_eq!(world.entries(family), 0, "{family}");
    }
}

#[test]
fn a_hash_that_moved_expires_where_it_is() {
    for (is_large, copies, db) in [
        (false, false, 0),
        (true, true, 0),
        (true, false, 3),
        (false, true, 3),
    ] {
        let mut world = World::new();
        if is_large {
            a_large_hash(&mut world, |_| 1_000_010);
        } else {
            let fields = [(&b"f"[..], &b"v"[..], Some(1_000_010))];
            world.ok(|keyspace| load(keyspace, KEY, fields));
        }
        world.ok(|keyspace| {
            let record = keyspace.lookup(KEY)?.expect("it is there");
            if copies {
                keyspace.copy_record(&record, (db, OTHER))?;
                keyspace.remove(KEY, &record);
                return Ok(());
            }
            keyspace.move_record(KEY, &record, (db, OTHER))
        });
        world.now_ms = 1_000_011;
        while world.ok(|keyspace| keyspace.expire_due(5_000, false)).more {}
        world.commit();
        world.compact();
        for family in ["keys", "sub", "ttl", "live"] {
            assert_eq!(world.entries(family), 0, "{family}, {copies}, {db}");
        }
    }
}

/// The key and its fields have expiries, either first.
#[test]
fn a_key_that_expires_takes_its_fields_along() {
    for (is_large, key_ms, seen) in [
        (false, 1_000_005, 0),
        (true, 1_000_005, 0),
        (false, 1_000_010, 1),
        (true, 1_000_010, 1),
        (false, 1_000_030, 1),
        (true, 1_000_030, 1),
    ] {
        let mut world = World::new();
        if is_large {
            a_large_hash(&mut world, |_| 1_000_010);
        }
        world.ok(|keyspace| {
            load(keyspace, KEY, [(&b"f"[..], &b"v"[..], Some(1_000_010))])?;
            let record = keyspace.lookup(KEY)?.expect("it is there");
            let new = record.with_expire(Some(key_ms));
            keyspace.put(KEY, Old::Is(Some(&record)), new)
        });
        for now_ms in [1_000_008, 1_000_020, 1_000_040] {
            world.now_ms = now_ms;
            let found = world.ok(|keyspace| keyspace.lookup(KEY)).is_some();
            assert_eq!(found, now_ms == 1_000_008 && seen == 1, "{now_ms}");
            while world.ok(|keyspace| keyspace.expire_due(5_000, false)).more {}
            world.commit();
        }
        world.compact();
        for family in ["keys", "sub", "ttl", "live"] {
            assert_eq!(world.entries(family), 0, "{family}, {key_ms}");
        }
    }
}

#[test]
fn a_time_that_no_field_has_any_more_changes_nothing() {
    let mut world = World::new();
    a_large_hash(&mut world, |number| 1_000_010 + number);
    world.ok(|keyspace| {
        expire(keyspace, KEY, [&b"0"[..]], 2_000_000, Condition::Always)?;
        Ok(())
    });
    world.commit();
    world.now_ms = 1_000_011;
    let step = world.ok(|keyspace| keyspace.expire_due(100, true));
    assert!(!step.more);
    let touched = world.overlay.touched_since(world.start());
    assert_eq!(touched.count(), 0);
    world.commit();
    let times = world.ok(|keyspace| Ok(keyspace.lookup(KEY)?.and_then(|it| it.field_times())));
    let (first_ms, last_ms) = (1_000_011, 2_000_000);
    assert_eq!(times, Some(FieldTimes { first_ms, last_ms }));
}

#[test]
fn a_power_cut_brings_no_expired_field_back() {
    let mut world = World::new();
    a_large_hash(&mut world, |number| 1_000_010 + number);
    world.store.db().sync_wal().expect("syncs");
    world.now_ms = 1_000_100;
    while world.ok(|keyspace| keyspace.expire_due(1_000, false)).more {}
    assert_eq!(world.ok(|keyspace| len(keyspace, KEY)), 1_410);
    world.commit();
    let mut world = world.reopen(true);
    assert_eq!(world.ok(|keyspace| len(keyspace, KEY)), 1_410);
    while world.ok(|keyspace| keyspace.expire_due(1_000, false)).more {}
    assert_eq!(world.ok(|keyspace| len(keyspace, KEY)), 1_410);
    world.commit();
    assert_eq!(world.entries("sub"), 2 * 1_410);
}

#[test]
fn changes_are_told_and_encodings_are_those_of_redis() {
    let mut world = World::new();
    world.ok(|keyspace| {
        set(keyspace, KEY, [(&b"f"[..], &b"v"[..]), (b"g", b"w")])?;
        expire(keyspace, KEY, [&b"f"[..]], 2_000_000, Condition::Always)?;
        let record = keyspace.lookup(KEY)?.expect("it is there");
        assert_eq!(encoding(&record), "listpackex");
        expire(keyspace, KEY, [&b"f"[..]], 2_000_000, Condition::IfNone)?;
        persist(keyspace, KEY, [&b"f"[..], b"g"])?;
        persist(keyspace, KEY, [&b"f"[..]])?;
        expire(keyspace, KEY, [&b"f"[..], b"g"], 5, Condition::Always)?;
        assert!(keyspace.lookup(KEY)?.is_none());
        Ok(())
    });
    let events = world.overlay.events_since(world.start()).iter();
    let names: Vec<_> = events.map(|event| event.name).collect();
    assert_eq!(names, ["hset", "hexpire", "hpersist", "hdel", "del"]);
}

#[test]
fn fields_of_files_come_with_their_expiries() {
    let mut world = World::new();
    let fields = [
        (&b"a"[..], &b"1"[..], None),
        (b"b", b"2", Some(u64::MAX)),
        (b"c", b"3", Some(7)),
    ];
    let added = world.ok(|keyspace| load(keyspace, KEY, fields));
    assert_eq!((added, world.ok(|keyspace| len(keyspace, KEY))), (3, 2));
    let added = world.ok(|keyspace| load(keyspace, KEY, [(&b"a"[..], &b"4"[..], Some(9))]));
    assert_eq!((added, world.ok(|keyspace| len(keyspace, KEY))), (0, 1));
}

#[test]
fn the_bytes_are_those_of_the_description() {
    let mut world = World::new();
    world.now_ms = 0;
    world.ok(|keyspace| load(keyspace, KEY, [(&b"a"[..], &b"xy"[..], Some(1))]));
    world.commit();
    let wanted = b"\x21\x02\0\0\0\0\0\x01\0\0\0\0\0\x01\x01\x01\0\0\0\0\0\x01\x01a\x02xy";
    assert_eq!(world.first_stored(), wanted);
}

/// Goal: damaged expiries are errors. Method: payloads and entries that no writer makes.
#[test]
fn damaged_times_are_refused() {
    let timed = b"\x01\x01\0\0\0\0\0\x09\x01a\x01b";
    for (times, payload) in [
        // The record has no times.
        ((None, None), &timed[..]),
        // They are not those of the fields.
        ((Some(8), Some(9)), timed),
        ((Some(9), None), timed),
        ((Some(9), Some(9)), b"\x01\x01\0\0\0\0"),
        (
            (Some(9), Some(9)),
            b"\x01\x01\xff\xff\xff\xff\xff\xff\x01a\x01b",
        ),
        ((Some(9), Some(9)), b"\x01\x02\x01a\x01b"),
    ] {
        let mut record = match times {
            (Some(first), last) => {
                let mut record = vec![0x21, 2, 0, 0, 0, 0, 0, first];
                match last {
                    Some(last) => record.extend([0, 0, 0, 0, 0, last]),
                    None => record.extend([0xff; 6]),
                }
                record
            }
            _ => vec![0x20],
        };
        record.extend_from_slice(payload);
        let mut world = World::new();
        world.now_ms = 1;
        world.put_stored(KEY, &record);
        let failed = world.run(|keyspace| len(keyspace, KEY));
        assert!(matches!(failed, Err(Failure::Engine(_))), "{payload:?}");
    }
    for payload in [
        &b"\x02"[..],
        b"\x02\x00",
        b"\x02\x03",
        b"\x02\x02",
        b"\x02\x01\x00",
    ] {
        let mut world = World::new();
        world.now_ms = 1;
        let head = [
            &b"\x25\x02\0\0\0\0\0\x09\xff\xff\xff\xff\xff\xff"[..],
            &[0; 8],
        ]
        .concat();
        world.put_stored(KEY, &[&head, payload].concat());
        let failed = world.run(|keyspace| len(keyspace, KEY));
        assert!(matches!(failed, Err(Failure::Engine(_))), "{payload:?}");
    }
}

/// Goal: entries by time that do not fit their hash are errors of the worker. Method: one that is cut, one too many, none.
#[test]
fn damaged_entries_by_time_are_refused() {
    for name in [Some(&b"t\xff"[..]), Some(b"t\0\0\0\x0f\x42\x4ax"), None] {
        let mut world = World::new();
        a_large_hash(&mut world, |_| 1_000_010);
        world.ok(|keyspace| {
            let of = keyspace.lookup(KEY)?.and_then(|it| it.collection());
            let of = of.expect("a collection");
            if let Some(name) = name {
                keyspace.sub_put(of, name, Vec::new());
                return Ok(());
            }
            let mut all = Vec::new();
            let mut walk = keyspace.sub_walk(of, b"t", b"u", Direction::Forward);
            while let Some((key, _)) = walk.next()? {
                all.push(sub_rest(key).to_vec());
            }
            drop(walk);
            all.iter().for_each(|rest| keyspace.sub_delete(of, rest));
            Ok(())
        });
        world.now_ms = 1_000_011;
        let steps = (0..10).map(|_| world.run(|keyspace| keyspace.expire_due(1_000, false)));
        let failed = steps.filter_map(Result::err).next();
        assert!(matches!(failed, Some(Failure::Engine(_))), "{name:?}");
    }
}
