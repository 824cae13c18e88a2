//! Goal: family handles, their ranges from both ends, and typed families show what a map shows. Method: random entries in
//! memtables and tables of families in each order, every kind of bound, both ends moved at random, beside a `BTreeMap`.

#![expect(
    clippy::disallowed_methods,
    reason = "helpers of tests fail by panicking; files are damaged from outside"
)]

use std::collections::BTreeMap;
use std::ops::Bound;

use drumlin::{
    Db, ErrorKind, FamilyHandle, FamilyOptions, KeyOrder, Options, Result, Tuning, TypedFamily,
};
use drumlin_base::rng::Rng;
use drumlin_testkit::memory_dir;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options {
        background_threads: Some(0),
        tuning: Tuning {
            write_buffer_bytes: Some(64 << 10),
            // Some values lie in blob files.
            blob_from_bytes: Some(100),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

fn key(rng: &mut Rng) -> Vec<u8> {
    let len = rng.next_u64() % 4;
    (0..len).map(|_| (rng.next_u64() % 3) as u8 * 127).collect()
}

fn fill(family: &FamilyHandle, rng: &mut Rng) -> Map {
    let mut map = Map::new();
    for round in 0..400 {
        let key = key(rng);
        if rng.next_u64().is_multiple_of(4) {
            family.delete(&key).unwrap();
            map.remove(&key);
        } else {
            let value = vec![round as u8; (rng.next_u64() % 200) as usize];
            family.put(&key, &value).unwrap();
            map.insert(key, value);
        }
        if round % 150 == 100 {
            family.db().flush_cf(family).unwrap();
        }
    }
    map
}

fn bound(rng: &mut Rng) -> Bound<Vec<u8>> {
    match rng.next_u64() % 3 {
        0 => Bound::Unbounded,
        1 => Bound::Included(key(rng)),
        _ => Bound::Excluded(key(rng)),
    }
}

/// The entries of the map in a range, in the order of the family.
fn wanted(
    map: &Map,
    order: &KeyOrder,
    range: &(Bound<Vec<u8>>, Bound<Vec<u8>>),
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let after = |key: &[u8], bound: &Bound<Vec<u8>>| match bound {
        Bound::Unbounded => true,
        Bound::Included(from) => order.compare(key, from).is_ge(),
        Bound::Excluded(from) => order.compare(key, from).is_gt(),
    };
    let before = |key: &[u8], bound: &Bound<Vec<u8>>| match bound {
        Bound::Unbounded => true,
        Bound::Included(to) => order.compare(key, to).is_le(),
        Bound::Excluded(to) => order.compare(key, to).is_lt(),
    };
    let within = map
        .iter()
        .filter(|(key, _)| after(key, &range.0) && before(key, &range.1));
    let mut rows: Vec<_> = within
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    rows.sort_by(|(a, _), (b, _)| order.compare(a, b));
    rows
}

fn check_ranges(family: &FamilyHandle, map: &Map, rng: &mut Rng) {
    for _ in 0..300 {
        let range = (bound(rng), bound(rng));
        let rows = wanted(map, family.order(), &range);
        let mut left = rows.clone();
        let mut walk = family.range(range.clone());
        let only_front = rng.next_u64().is_multiple_of(3);
        while !left.is_empty() || rng.next_u64().is_multiple_of(2) {
            let from_front = only_front || rng.next_u64().is_multiple_of(2);
            let (want, got) = match (from_front, left.is_empty()) {
                (true, true) => (None, walk.next()),
                (false, true) => (None, walk.next_back()),
                (true, false) => (Some(left.remove(0)), walk.next()),
                (false, false) => (left.pop(), walk.next_back()),
            };
            let got = got.map(|it| it.map(|it| (it.key, it.value.to_vec())).unwrap());
            assert_eq!(got, want, "{range:?}");
        }
        let keys: Vec<_> = rows.into_iter().map(|(key, _)| key).rev().collect();
        let walked = family.range(range).keys().rev().collect::<Result<Vec<_>>>();
        assert_eq!(walked.unwrap(), keys);
    }
}

#[test]
fn ranges_show_what_a_map_shows_from_both_ends() {
    let dir = memory_dir();
    let db = Db::open(dir.path(), options()).unwrap();
    for (seed, order) in [KeyOrder::Bytewise, KeyOrder::ReverseBytewise]
        .into_iter()
        .enumerate()
    {
        let made = FamilyOptions {
            order,
            ..FamilyOptions::default()
        };
        let family = db.open_family(&format!("family{seed}"), made).unwrap();
        let mut rng = Rng::new(seed as u64 + 1);
        let map = fill(&family, &mut rng);
        check_ranges(&family, &map, &mut rng);
        let all = wanted(&map, family.order(), &(Bound::Unbounded, Bound::Unbounded));
        assert_eq!(
            family.first().unwrap().map(|it| it.key),
            all.first().map(|it| it.0.clone())
        );
        assert_eq!(
            family.last().unwrap().map(|it| it.key),
            all.last().map(|it| it.0.clone())
        );
        let keys: Vec<_> = all.iter().map(|(key, _)| key).collect();
        let found = family.multi_get(&keys).unwrap();
        assert!(
            found
                .iter()
                .zip(&all)
                .all(|(found, (_, value))| found.as_deref() == Some(value))
        );
    }
}

#[test]
fn prefixes_are_found_up_to_the_highest_byte() {
    let dir = memory_dir();
    let db = Db::open(dir.path(), options()).unwrap();
    let family = db.family("default").unwrap();
    let keys: [&[u8]; 7] = [b"", b"a", b"ab", b"a\xff", b"a\xff\xff", b"b", b"\xff\xff"];
    for key in keys {
        family.put(key, b"").unwrap();
    }
    for prefix in [&b""[..], b"a", b"a\xff", b"\xff", b"\xff\xff", b"c"] {
        let walk = family.prefix(prefix).unwrap().keys();
        let mut want: Vec<&[u8]> = keys
            .into_iter()
            .filter(|key| key.starts_with(prefix))
            .collect();
        want.sort_unstable();
        assert_eq!(
            walk.collect::<Result<Vec<_>>>().unwrap(),
            want,
            "{prefix:?}"
        );
    }
    let reversed = FamilyOptions {
        order: KeyOrder::ReverseBytewise,
        ..FamilyOptions::default()
    };
    let reversed = db.open_family("reversed", reversed).unwrap();
    assert_eq!(
        reversed.prefix("a").unwrap_err().kind(),
        ErrorKind::NotSupported
    );
    assert_eq!(
        reversed.typed::<u8, ()>().unwrap_err().kind(),
        ErrorKind::NotSupported
    );
}

#[test]
fn a_family_is_opened_or_made_and_never_taken_for_another() {
    let dir = memory_dir();
    let db = Db::open(dir.path(), options()).unwrap();
    let missing = db.family("users").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.to_string().contains("users"), "{missing}");
    let users = db.open_family("users", FamilyOptions::default()).unwrap();
    users.put("ann", "1").unwrap();
    let again = db.open_family("users", FamilyOptions::default()).unwrap();
    assert!(again.contains("ann").unwrap() && !again.contains("bob").unwrap());
    let other_order = FamilyOptions {
        order: KeyOrder::ReverseBytewise,
        ..FamilyOptions::default()
    };
    let refused = db.open_family("users", other_order).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    // A range keeps its moment, also when its family goes.
    let mut walk = users.iter();
    users.delete_range("a", "b").unwrap();
    db.drop_family(&users).unwrap();
    assert_eq!(walk.next().unwrap().unwrap().key, b"ann");
    assert!(walk.next_back().is_none() && walk.next().is_none());
    assert_eq!(
        users.put("bob", "2").unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}

#[test]
fn damaged_values_end_a_range_with_the_error() {
    let dir = memory_dir();
    let db = Db::open(dir.path(), options()).unwrap();
    let family = db.family("default").unwrap();
    let mut rng = Rng::new(4);
    for name in ["a", "b"] {
        let value: Vec<u8> = (0..300).map(|_| rng.next_u64() as u8).collect();
        family.put(name, value).unwrap();
    }
    db.flush().unwrap();
    let blobs = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|it| it.unwrap().path());
    for path in blobs.filter(|path| path.extension().is_some_and(|it| it == "blob")) {
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[100..500].fill(0x55);
        std::fs::write(&path, bytes).unwrap();
    }
    let mut walk = family.iter();
    let error = walk.find_map(Result::err).expect("a value is damaged");
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(walk.next().is_none() && walk.next_back().is_none());
    let keys = family.iter().keys().collect::<Result<Vec<_>>>();
    assert_eq!(keys.unwrap(), [b"a", b"b"], "keys need no values");
}

#[test]
fn typed_families_are_ordered_as_their_types() {
    let dir = memory_dir();
    let db = Db::open(dir.path(), options()).unwrap();
    let family = db.open_family("typed", FamilyOptions::default()).unwrap();
    let typed: TypedFamily<(String, i32), String> = family.typed().unwrap();
    let mut map = BTreeMap::new();
    let mut rng = Rng::new(9);
    for round in 0..300 {
        let names = ["", "a", "a\0", "ab", "b"];
        let name = names[(rng.next_u64() % 5) as usize].to_owned();
        let key = (name, rng.next_u64() as i32 % 5);
        typed.put(&key, &round.to_string()).unwrap();
        map.insert(key, round.to_string());
    }
    let all: Vec<_> = map.clone().into_iter().collect();
    assert_eq!(typed.iter().collect::<Result<Vec<_>>>().unwrap(), all);
    let (from, to) = (("a".to_owned(), -1), ("ab".to_owned(), 2));
    let want: Vec<_> = map.range(from.clone()..=to.clone()).rev().collect();
    let got = typed
        .range(from..=to)
        .rev()
        .collect::<Result<Vec<_>>>()
        .unwrap();
    assert!(got.iter().map(|(key, value)| (key, value)).eq(want));
    assert_eq!(typed.first().unwrap().as_ref(), all.first());
    assert_eq!(typed.last().unwrap().as_ref(), all.last());
    // Bytes of another type are told and end nothing.
    family.put("", "no key").unwrap();
    let told: Vec<_> = typed.iter().collect();
    assert_eq!(told.len(), all.len() + 1);
    assert_eq!(told.iter().filter(|it| it.is_err()).count(), 1);
}
