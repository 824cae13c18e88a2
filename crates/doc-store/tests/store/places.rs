//! Goal: what an index of places finds is what the filter finds in all documents, in the order of distances; and a few of many are found by
//! reading a few. Method: random points, lines and areas, many of them at the poles, at the antimeridian and in the same spot, beside a
//! scan and a sort of everything.

use std::sync::Arc;

use drumlin_base::rng::Rng;
use drumlin_doc::{Document, Filter, Sort};
use drumlin_doc_store::{Access, Hint, NewIndex, PlaceOptions, Step, Store, Walk, plan, plan_with};
use drumlin_fs::StrictMemFileSystem;

use crate::json::doc;
use crate::world::{id_of, name, open};

const SEEDS: u64 = 6;
const DOCUMENTS: u64 = 300;
const QUERIES: u32 = 60;

fn index(key: &str) -> NewIndex {
    NewIndex {
        name: key.to_owned(),
        key: doc(key),
        unique: false,
        sparse: false,
        partial: None,
        expire_after_seconds: None,
        place_options: PlaceOptions::default(),
    }
}

fn share(rng: &mut Rng) -> f64 {
    rng.below(1_000_001) as f64 / 1_000_000.0
}

/// Degrees, around one of a few spots at some scale.
fn spot(rng: &mut Rng) -> [f64; 2] {
    let [east, north] = [
        [0.0, 0.0],
        [179.9999, 10.0],
        [-179.9999, -60.0],
        [30.0, 89.9],
        [-120.0, -89.9999],
        [45.0, 35.26],
        [13.4, 52.5],
    ][rng.below(7) as usize];
    let scale = [180.0, 5.0, 0.1, 0.0001, 0.0][rng.below(5) as usize];
    let east = east + scale * (2.0 * share(rng) - 1.0);
    let north = north + scale * (2.0 * share(rng) - 1.0);
    let east = (east + 540.0).rem_euclid(360.0) - 180.0;
    [east, north.clamp(-90.0, 90.0)]
}

fn pair([east, north]: [f64; 2]) -> String {
    format!("[{east:?}, {north:?}]")
}

/// A point near another one.
fn beside([east, north]: [f64; 2], scale: f64, rng: &mut Rng) -> [f64; 2] {
    let east = east + scale * (2.0 * share(rng) - 1.0);
    let north = north + scale * (2.0 * share(rng) - 1.0);
    [
        (east + 540.0).rem_euclid(360.0) - 180.0,
        north.clamp(-90.0, 90.0),
    ]
}

/// A ring around a spot, at times with a dent.
fn ring(rng: &mut Rng) -> String {
    let [east, north] = spot(rng);
    let size = [30.0, 2.0, 0.05][rng.below(3) as usize];
    let north = north.clamp(-89.0 + size, 89.0 - size);
    let corners = 3 + rng.below(5);
    let mut points: Vec<String> = (0..corners)
        .map(|at| {
            let turn = std::f64::consts::TAU * at as f64 / corners as f64;
            let size = size * (0.3 + 0.7 * share(rng));
            let east = east + size * turn.cos();
            let east = (east + 540.0).rem_euclid(360.0) - 180.0;
            pair([east, north + size * turn.sin()])
        })
        .collect();
    points.push(points[0].clone());
    format!("[{}]", points.join(", "))
}

fn geometry(rng: &mut Rng, kinds: u64) -> String {
    let line = |rng: &mut Rng| {
        let from = spot(rng);
        let to = beside(from, 10.0, rng);
        format!(
            "[{}, {}, {}]",
            pair(from),
            pair(to),
            pair(beside(to, 0.2, rng))
        )
    };
    let (kind, coordinates) = match rng.below(kinds) {
        0 => ("Point", pair(spot(rng))),
        1 => ("LineString", line(rng)),
        2 => ("Polygon", format!("[{}]", ring(rng))),
        3 => (
            "MultiPoint",
            format!("[{}, {}]", pair(spot(rng)), pair(spot(rng))),
        ),
        _ => ("MultiLineString", format!("[{}, {}]", line(rng), line(rng))),
    };
    format!(r#"{{"type": "{kind}", "coordinates": {coordinates}}}"#)
}

/// One whose polygon is sound.
fn sound(rng: &mut Rng, kinds: u64) -> String {
    loop {
        let made = geometry(rng, kinds);
        let test = doc(&format!(
            r#"{{"p": {{"$geoIntersects": {{"$geometry": {made}}}}}}}"#
        ));
        if Filter::new(Document(&test)).is_ok() {
            return made;
        }
    }
}

/// Documents with a place on the sphere, at times one on the plane, and a kind.
fn document(id: u64, kinds: u64, rng: &mut Rng) -> Vec<u8> {
    let place = match rng.below(12) {
        0 => r#""p": null, "#.to_owned(),
        1 => String::new(),
        2 | 3 => format!(r#""p": {}, "#, pair(spot(rng))),
        _ => format!(r#""p": {}, "#, sound(rng, kinds)),
    };
    let flat = match rng.below(6) {
        0 => String::new(),
        1 => format!(r#""f": [{}, {}], "#, pair(spot(rng)), pair(spot(rng))),
        _ => format!(r#""f": {}, "#, pair(spot(rng))),
    };
    let other = match rng.below(3) {
        0 => format!(r#""q": {}, "#, pair(spot(rng))),
        _ => String::new(),
    };
    let [k, z] = [rng.below(3), rng.below(3)];
    doc(&format!(
        r#"{{"_id": {id}, {place}{flat}{other}"k": {k}, "z": {z}}}"#
    ))
}

fn condition(rng: &mut Rng) -> String {
    let center = pair(spot(rng));
    let radians = [3.0, 0.5, 0.01, 0.00001, 0.0][rng.below(5) as usize] * share(rng);
    let degrees = radians * 60.0;
    let near = match rng.below(3) {
        0 => "",
        1 => &format!(r#", "$maxDistance": {}"#, radians * 6_378_100.0),
        _ => &format!(r#", "$minDistance": {}"#, radians * 3_000_000.0),
    };
    match rng.below(10) {
        0 => format!(
            r#"{{"p": {{"$geoIntersects": {{"$geometry": {}}}}}}}"#,
            sound(rng, 5)
        ),
        1 => loop {
            let ring = ring(rng);
            let made = format!(
                r#"{{"p": {{"$geoWithin": {{"$geometry": {{"type": "Polygon", "coordinates": [{ring}]}}}}}}}}"#
            );
            if Filter::new(Document(&doc(&made))).is_ok() {
                break made;
            }
        },
        2 => format!(r#"{{"p": {{"$geoWithin": {{"$centerSphere": [{center}, {radians}]}}}}}}"#),
        3 => format!(r#"{{"f": {{"$geoWithin": {{"$centerSphere": [{center}, {radians}]}}}}}}"#),
        4 => format!(r#"{{"f": {{"$geoWithin": {{"$center": [{center}, {degrees}]}}}}}}"#),
        5 => {
            let from = spot(rng);
            let to = beside(from, degrees, rng);
            format!(
                r#"{{"f": {{"$geoWithin": {{"$box": [{}, {}]}}}}}}"#,
                pair(from),
                pair(to)
            )
        }
        6 => format!(
            r#"{{"f": {{"$geoWithin": {{"$polygon": {}}}}}}}"#,
            ring(rng)
        ),
        7 => format!(r#"{{"f": {{"$near": {center}}}}}"#),
        8 => format!(r#"{{"f": {{"$nearSphere": {center}}}}}"#),
        _ => format!(
            r#"{{"p": {{"$near": {{"$geometry": {{"type": "Point", "coordinates": {center}}}{near}}}}}}}"#
        ),
    }
}

/// What a plan finds, in pieces of seven.
fn walked(store: &Store, filter: &Filter, hint: Option<&Hint>) -> (Vec<Vec<u8>>, bool) {
    let reads = store.reads();
    let collection = reads.collection(&name()).expect("a collection");
    let sort = Sort::default();
    let plan = match hint {
        Some(hint) => plan_with(&collection, filter, &sort, hint)
            .unwrap_or_else(|it| panic!("{filter:?} by {hint:?}: {it}")),
        None => plan(&reads, &collection, filter, &sort, u64::MAX).expect("a plan"),
    };
    let is_by_index = !matches!(plan.access, Access::Collection(_));
    let mut walk = Walk::new(plan);
    let mut all = Vec::new();
    loop {
        let mut left = 7;
        let is_over = walk.go_on(&store.reads(), &collection, &mut |_, document| {
            if filter.matches(document)? {
                all.push(document.0.to_vec());
            }
            left -= 1;
            Ok(left > 0)
        });
        if is_over.expect("reads") {
            return (all, is_by_index);
        }
    }
}

/// Each place by an index that has it alone, before, and behind another field.
const KEYS: [&str; 6] = [
    r#"{"p": "2dsphere"}"#,
    r#"{"p": "2dsphere", "z": 1}"#,
    r#"{"k": -1, "p": "2dsphere"}"#,
    r#"{"f": "2d"}"#,
    r#"{"f": "2d", "k": -1}"#,
    r#"{"p": "2dsphere", "q": "2dsphere"}"#,
];

fn run(seed: u64) {
    let mut rng = Rng::new(seed);
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    store.create(&name()).expect("creates");
    // In some stores there are points alone.
    let kinds = if rng.one_in(3) { 1 } else { 5 };
    let keys = KEYS.map(index);
    let (before, after) = keys.split_at(rng.below(7) as usize);
    store.create_indexes(&name(), before).expect("builds");
    let mut all: Vec<Vec<u8>> = (0..DOCUMENTS)
        .map(|id| document(id, kinds, &mut rng))
        .collect();
    for document in &all {
        let done = store.insert(&name(), &[Document(document)], true);
        let done = done.expect("inserts").expect("a collection");
        assert_eq!(
            done.errors,
            [],
            "{}",
            drumlin_doc::show(Document(document).as_value())
        );
    }
    store.create_indexes(&name(), after).expect("builds");
    for id in 0..DOCUMENTS / 4 {
        let new = document(id, kinds, &mut rng);
        let done = store.modify(&name(), &id_of(&new), &mut |_| {
            Ok(Step::Replace(new.clone()))
        });
        done.expect("replaces");
        all[id as usize] = new;
    }
    let reads = store.reads();
    let collection = reads.collection(&name()).expect("a collection");
    reads.check(&collection).expect("whole");
    let mut by_index = 0;
    for _ in 0..QUERIES {
        let of_place = condition(&mut rng);
        let of_kind = match rng.below(4) {
            0 => format!(r#""k": {}, "#, rng.below(3)),
            1 => format!(r#""z": {}, "#, rng.below(3)),
            _ => String::new(),
        };
        let text = of_place.replacen('{', &format!("{{{of_kind}"), 1);
        let filter = Filter::new(Document(&doc(&text))).unwrap_or_else(|it| panic!("{text}: {it}"));
        let mut expected: Vec<_> = all
            .iter()
            .filter(|it| filter.matches(Document(it)).expect("an answer"))
            .cloned()
            .collect();
        let near = filter.near();
        let distance = |it: &[u8]| {
            let found = near
                .and_then(|(path, near)| near.nearest(Document(it), path).expect("nobody ends it"));
            found.map_or(0.0, |(distance, _)| distance)
        };
        expected.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
        let of = if text.contains(r#""f""#) { 'f' } else { 'p' };
        let served = KEYS
            .iter()
            .filter(|key| key.starts_with(&format!(r#"{{"{of}""#)));
        let hints = served.map(|key| Some(Hint::Name((*key).to_owned())));
        for hint in hints.chain([None]) {
            let (mut found, is_by_index) = walked(&store, &filter, hint.as_ref());
            by_index += u32::from(is_by_index);
            let is_near = near.is_some();
            if is_near {
                let distances: Vec<_> = found.iter().map(|it| distance(it)).collect();
                assert!(distances.is_sorted(), "seed {seed}: {text}: {distances:?}");
            }
            found.sort();
            let mut expected = expected.clone();
            expected.sort();
            let show = |all: &[Vec<u8>]| -> Vec<String> {
                let one = |it: &Vec<u8>| drumlin_doc::show(Document(it).as_value());
                all.iter().map(one).collect()
            };
            assert_eq!(
                show(&found),
                show(&expected),
                "seed {seed}: {text} by {hint:?}"
            );
        }
    }
    assert!(by_index > QUERIES, "indexes serve nothing");
}

#[test]
fn an_index_of_places_finds_what_the_filter_finds() {
    for seed in 0..SEEDS {
        run(seed);
    }
}

#[test]
fn the_nearest_few_of_many_are_found_by_reading_few() {
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    store.create(&name()).expect("creates");
    let keys = [r#"{"p": "2dsphere"}"#, r#"{"f": "2d"}"#];
    store
        .create_indexes(&name(), &keys.map(index))
        .expect("builds");
    let mut rng = Rng::new(5);
    // A third of them are in one town.
    let documents: Vec<_> = (0..30_000)
        .map(|id| {
            let place = match rng.below(3) {
                0 => beside([13.4, 52.5], 0.2, &mut rng),
                _ => [
                    360.0 * share(&mut rng) - 180.0,
                    180.0 * share(&mut rng) - 90.0,
                ],
            };
            let place = pair(place);
            doc(&format!(r#"{{"_id": {id}, "p": {place}, "f": {place}}}"#))
        })
        .collect();
    for some in documents.chunks(1000) {
        let some: Vec<_> = some.iter().map(|it| Document(it)).collect();
        store.insert(&name(), &some, true).expect("inserts");
    }
    for center in [
        [13.4, 52.5],
        [-150.0, -20.0],
        [14.5, 52.5],
        [180.0, 0.0],
        [0.0, 90.0],
    ] {
        for operator in [
            format!(r#""p": {{"$nearSphere": {}}}"#, pair(center)),
            format!(r#""f": {{"$near": {}}}"#, pair(center)),
        ] {
            let filter = Filter::new(Document(&doc(&format!("{{{operator}}}")))).expect("a filter");
            let reads = store.reads();
            let collection = reads.collection(&name()).expect("a collection");
            let plan = plan(&reads, &collection, &filter, &Sort::default(), 10).expect("a plan");
            let mut walk = Walk::new(plan);
            let mut left = 10;
            walk.go_on(&reads, &collection, &mut |_, _| {
                left -= 1;
                Ok(left > 0)
            })
            .expect("reads");
            assert_eq!(left, 0);
            let read = (walk.documents_examined, walk.keys_examined);
            assert!(
                read.0 <= 15 && read.1 <= 2000,
                "{operator}: {read:?} for ten"
            );
        }
    }
}

#[test]
fn what_is_said_of_places_outlives_the_store() {
    let files = Arc::new(StrictMemFileSystem::new());
    let store = open(files.clone()).expect("opens");
    store.create(&name()).expect("creates");
    let options = PlaceOptions {
        bits: Some(20),
        min: Some(-1000.5),
        max: Some(1000.0),
        ..PlaceOptions::default()
    };
    let flat = NewIndex {
        place_options: options,
        unique: true,
        ..index(r#"{"f": "2d"}"#)
    };
    let partial = NewIndex {
        partial: Some(doc(r#"{"k": {"$gt": 1}}"#)),
        ..index(r#"{"p": "2dsphere"}"#)
    };
    store
        .create_indexes(&name(), &[flat.clone(), partial])
        .expect("builds");
    let insert = |store: &Store, document: &str| {
        let document = doc(document);
        let done = store.insert(&name(), &[Document(&document)], true);
        let errors = done.expect("inserts").expect("a collection").errors;
        errors.first().map(|(_, refusal)| refusal.code.number())
    };
    assert_eq!(insert(&store, r#"{"_id": 1, "f": [900, 0], "p": 3}"#), None);
    assert_eq!(
        insert(&store, r#"{"_id": 2, "f": [1, 1], "k": 2, "p": [0, 0]}"#),
        None
    );
    drop(store);
    let store = open(files).expect("opens again");
    let reads = store.reads();
    let collection = reads.collection(&name()).expect("a collection");
    reads.check(&collection).expect("whole");
    let [first, second] = collection.indexes.as_slice() else {
        panic!("two indexes");
    };
    assert_eq!(first.place_options, options);
    assert_eq!(second.place_options.version, Some(3));
    assert_eq!(
        store.create_indexes(&name(), &[flat]).expect("is there"),
        (3, 3)
    );
    // Outside, in the same square as another one, and no place.
    assert_eq!(insert(&store, r#"{"_id": 3, "f": [1001, 0]}"#), Some(13027));
    assert_eq!(
        insert(&store, r#"{"_id": 3, "f": [900.0001, 0]}"#),
        Some(11000)
    );
    assert_eq!(insert(&store, r#"{"_id": 3, "k": 2, "p": 3}"#), Some(16755));
    let near = |text: &str| {
        let filter = Filter::new(Document(&doc(text))).expect("a filter");
        let reads = store.reads();
        let sort = Sort::default();
        plan(&reads, &collection, &filter, &sort, 1).map(|_| walked(&store, &filter, None).0.len())
    };
    assert_eq!(near(r#"{"f": {"$near": [950, 1]}}"#).expect("a plan"), 2);
    // A partial index has not all that may be near.
    assert!(near(r#"{"p": {"$nearSphere": [0, 0]}}"#).is_err());
    let of_some = r#"{"k": 2, "p": {"$nearSphere": [0, 0]}}"#;
    assert_eq!(near(of_some).expect("a plan"), 1);
}

#[test]
fn the_first_of_many_in_one_spot_come_without_the_others() {
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    store.create(&name()).expect("creates");
    let keys = [
        r#"{"p": "2dsphere"}"#,
        r#"{"f": "2d"}"#,
        r#"{"l": "2dsphere"}"#,
    ];
    store
        .create_indexes(&name(), &keys.map(index))
        .expect("builds");
    const COUNT: usize = 5000;
    let line = r#"{"type": "LineString", "coordinates": [[10, 10], [40, 40]]}"#;
    let documents: Vec<_> = (0..COUNT)
        .map(|id| {
            doc(&format!(
                r#"{{"_id": {id}, "p": [10, 10], "f": [10, 10], "l": {line}}}"#
            ))
        })
        .collect();
    for some in documents.chunks(1000) {
        let some: Vec<_> = some.iter().map(|it| Document(it)).collect();
        store.insert(&name(), &some, true).expect("inserts");
    }
    for center in ["[10, 10]", "[10.0000001, 10]", "[-70, 3]"] {
        for operator in [
            format!(r#""p": {{"$nearSphere": {center}}}"#),
            format!(r#""l": {{"$nearSphere": {center}}}"#),
            format!(r#""f": {{"$near": {center}}}"#),
        ] {
            let filter = Filter::new(Document(&doc(&format!("{{{operator}}}")))).expect("a filter");
            let (mut found, _) = walked(&store, &filter, None);
            found.sort();
            found.dedup();
            assert_eq!(found.len(), COUNT, "{operator}");
            let reads = store.reads();
            let collection = reads.collection(&name()).expect("a collection");
            let plan = plan(&reads, &collection, &filter, &Sort::default(), 1).expect("a plan");
            let mut walk = Walk::new(plan);
            let one = walk.go_on(&reads, &collection, &mut |_, _| Ok(false));
            assert!(!one.expect("reads"));
            let read = walk.documents_examined;
            assert!(
                center != "[10, 10]" || read < 1100,
                "{operator}: {read} for one"
            );
        }
    }
}

#[test]
fn a_hint_at_an_index_of_places_finds_what_has_a_place() {
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    store.create(&name()).expect("creates");
    let keys = [r#"{"p": "2dsphere"}"#, r#"{"f": "2d"}"#];
    store
        .create_indexes(&name(), &keys.map(index))
        .expect("builds");
    let documents = [
        r#"{"_id": 1, "p": [1, 1], "f": [1, 1]}"#,
        r#"{"_id": 2, "k": 1}"#,
        r#"{"_id": 3, "p": null, "f": null}"#,
    ];
    for document in documents {
        let document = doc(document);
        let done = store.insert(&name(), &[Document(&document)], true);
        assert_eq!(done.expect("inserts").expect("a collection").errors, []);
    }
    let all = Filter::new(Document(&doc("{}"))).expect("a filter");
    for key in keys {
        let (found, _) = walked(&store, &all, Some(&Hint::Name(key.to_owned())));
        assert_eq!(found, [doc(documents[0])], "{key}");
    }
    // Without one a condition on other fields has all.
    assert_eq!(walked(&store, &all, None).0.len(), 3);
}

#[test]
fn a_document_with_terabytes_of_keys_is_refused() {
    let long = "a".repeat(4 << 20);
    let numbers: Vec<String> = (0..300_000).map(|it| it.to_string()).collect();
    let numbers = numbers.join(", ");
    for (key, id, a, code) in [
        (
            r#"{"p": "2dsphere", "a": 1, "b": 1}"#,
            "i",
            &*long,
            Some(201),
        ),
        (
            r#"{"p": "2dsphere", "b": 1, "a": 1}"#,
            "i",
            &*long,
            Some(201),
        ),
        (r#"{"p": "2dsphere", "b": 1}"#, &*long, "a", Some(201)),
        (r#"{"b": 1}"#, &*long, "a", Some(201)),
        (r#"{"a": 1, "b": 1}"#, "i", &*long, Some(201)),
        (r#"{"a": 1}"#, &*long, "a", None),
    ] {
        let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
        store.create(&name()).expect("creates");
        store
            .create_indexes(&name(), &[index(key)])
            .expect("builds");
        let document = doc(&format!(
            r#"{{"_id": "{id}", "p": [1, 1], "a": "{a}", "b": [{numbers}]}}"#
        ));
        let done = store.insert(&name(), &[Document(&document)], true);
        let errors = done.expect("inserts").expect("a collection").errors;
        let refused = errors.first().map(|(_, refusal)| refusal.code.number());
        assert_eq!(refused, code, "{key}");
    }
}
