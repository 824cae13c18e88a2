//! Goal: a capped collection has the newest documents in the order of their insertion, within its bounds, whatever is done to it and
//! wherever it is cut off. Method: random operations beside a list in memory; writers in several threads with a reader at their heels;
//! power cuts and a reopened store after a few operations each.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use drumlin::ErrorKind;
use drumlin_base::rng::Rng;
use drumlin_doc::{Code, Document, Filter, Refusal, Sort, watched};
use drumlin_doc_store::{
    Bounds, CollectionOptions, Failure, Hint, Manner, Name, NewIndex, Pace, PlaceOptions, Step,
    Store, Validation, Walk,
};
use drumlin_fs::{CrashPolicy, StrictMemFileSystem};

use crate::json::doc;
use crate::world::{found, name, open};

/// The oldest first.
type Model = Vec<Vec<u8>>;

const BOUNDS: Bounds = Bounds {
    size_bytes: 2048,
    documents_max: Some(20),
};

fn create(store: &Store, bounds: Bounds) {
    let options = CollectionOptions {
        capped: Some(bounds),
        ..CollectionOptions::default()
    };
    assert!(store.create_with(&name(), options).expect("creates"));
    let index = |name: &str, key: &str, unique| NewIndex {
        name: name.to_owned(),
        key: doc(key),
        unique,
        sparse: false,
        partial: None,
        expire_after_seconds: None,
        place_options: PlaceOptions::default(),
    };
    let indexes = [
        index("a", r#"{"a": 1}"#, false),
        index("u", r#"{"u": 1}"#, true),
    ];
    store.create_indexes(&name(), &indexes).expect("builds");
}

fn size(model: &Model) -> u64 {
    model.iter().map(|it| it.len() as u64).sum()
}

fn field(document: &[u8], field: &str) -> Option<i64> {
    Document(document).get(field).and_then(|it| it.as_whole())
}

fn key_of(store: &Store, document: &[u8]) -> Option<Vec<u8>> {
    let reads = store.reads();
    let collection = reads.collection(&name()).expect("a collection");
    let id = Document(document).get("_id").expect("an id");
    reads.key_of(&collection, id).expect("reads")
}

/// One random change of both.
fn step(store: &Store, model: &Model, next: &mut i64, rng: &mut Rng) -> Model {
    let mut after = model.clone();
    let pick = rng.below(model.len().max(1) as u64) as usize;
    match rng.below(8) {
        0 if !model.is_empty() => {
            let key = key_of(store, &after.remove(pick)).expect("it is there");
            let done = store.modify(&name(), &key, &mut |_| Ok(Step::Delete));
            assert_eq!(done.expect("deletes").step, Step::Delete);
        }
        1 if !model.is_empty() => {
            let old = &model[pick];
            let key = key_of(store, old).expect("it is there");
            let (id, u) = (field(old, "_id"), field(old, "u"));
            let text = "x".repeat(rng.below(200) as usize);
            let new = doc(&format!(
                r#"{{"_id": {}, "u": {}, "a": "{text}"}}"#,
                id.expect("an id"),
                u.expect("a number")
            ));
            after[pick].clone_from(&new);
            let done = store.modify(&name(), &key, &mut |_| Ok(Step::Replace(new.clone())));
            assert!(done.expect("replaces").before.is_some());
        }
        _ => {
            // At times with an `_id` or a `u` of one that is there, or was.
            *next += 1;
            let id = match rng.below(4) {
                0 => *next - rng.below(30) as i64,
                _ => *next,
            };
            let u = match rng.below(6) {
                0 => *next - rng.below(30) as i64,
                _ => *next,
            };
            let most = if rng.one_in(30) { 4000 } else { 300 };
            let text = "y".repeat(rng.below(most) as usize);
            // Their order is not that of the numbers.
            let new = doc(&format!(
                r#"{{"_id": {}, "u": {}, "a": "{text}"}}"#,
                -id, -u
            ));
            let is_taken = model
                .iter()
                .any(|it| field(it, "_id") == Some(-id) || field(it, "u") == Some(-u));
            let done = store.insert(&name(), &[Document(&new)], true);
            let done = done.expect("nothing fails").expect("a collection");
            assert_eq!(done.count, u64::from(!is_taken));
            if is_taken {
                assert_eq!(done.errors[0].1.code, Code::DuplicateKey);
            } else {
                after.push(new);
                while after.len() > 1 && (after.len() > 20 || size(&after) > 2048) {
                    after.remove(0);
                }
            }
        }
    }
    after
}

fn all(store: &Store, hint: Option<&Hint>) -> Model {
    found(store, &Filter::And(Vec::new()), &Sort::default(), hint)
}

/// Whether the store is what the model is, and its indexes and counts are right.
fn compare(store: &Store, model: &Model) {
    let reads = store.reads();
    let collection = reads.collection(&name()).expect("a collection");
    reads.check(&collection).expect("whole");
    assert_eq!(collection.bounds(), Some(&BOUNDS));
    assert_eq!(collection.documents(), model.len() as u64);
    assert_eq!(collection.bytes(), size(model));
    assert_eq!(all(store, None), *model);
    let mut backwards = all(store, Some(&Hint::Natural { is_reverse: true }));
    backwards.reverse();
    assert_eq!(backwards, *model);
    for document in model {
        let by_id = doc(&format!(
            r#"{{"_id": {}}}"#,
            field(document, "_id").expect("one")
        ));
        let filter = Filter::new(Document(&by_id)).expect("a filter");
        assert_eq!(
            found(store, &filter, &Sort::default(), None),
            [document.as_slice()]
        );
    }
    let sort = Sort::new(Document(&doc(r#"{"_id": 1}"#))).expect("a sort");
    let mut sorted = model.clone();
    sorted.sort_by_key(|it| field(it, "_id"));
    let of_store = found(store, &Filter::And(Vec::new()), &sort, Some(&Hint::Id));
    assert_eq!(of_store, sorted);
}

#[test]
fn the_newest_documents_are_there_in_their_order() {
    for seed in 0..4 {
        let mut rng = Rng::new(seed);
        let files = Arc::new(StrictMemFileSystem::new());
        let mut store = open(Arc::<StrictMemFileSystem>::clone(&files)).expect("opens");
        create(&store, BOUNDS);
        let (mut model, mut next) = (Model::new(), 0);
        for at in 0..300 {
            model = step(&store, &model, &mut next, &mut rng);
            if at % 5 == 0 {
                compare(&store, &model);
            }
            if rng.one_in(40) {
                store.db().flush().expect("flushes");
            }
            if rng.one_in(60) {
                drop(store);
                store = open(Arc::<StrictMemFileSystem>::clone(&files)).expect("opens again");
                compare(&store, &model);
            }
        }
    }
}

#[test]
fn a_power_cut_leaves_the_collection_as_it_was_at_a_moment() {
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let files = Arc::new(StrictMemFileSystem::new());
        let store = open(Arc::<StrictMemFileSystem>::clone(&files)).expect("opens");
        create(&store, BOUNDS);
        let mut next = 0;
        // States since the last sync, the newest last.
        let mut since: Vec<Model> = vec![Model::new()];
        for at in 0..120 {
            let model = since.last().cloned().unwrap_or_default();
            since.push(step(&store, &model, &mut next, &mut rng));
            if rng.one_in(10) {
                store.sync().expect("syncs");
                since = since.split_off(since.len() - 1);
            }
            if rng.one_in(12) {
                store.db().flush().expect("flushes");
            }
            if rng.one_in(5) {
                let policy = match rng.below(2) {
                    0 => CrashPolicy::KeepNothing,
                    _ => CrashPolicy::PrefixInTime,
                };
                let image = Arc::new(files.crash_image(seed * 1000 + at, policy));
                let copy = open(image).expect("opens after a power cut");
                let documents = all(&copy, None);
                let state = since.iter().rev().find(|state| **state == documents);
                let state = state.unwrap_or_else(|| {
                    panic!("seed {seed}, operation {at}: no moment since the sync was like that")
                });
                compare(&copy, state);
                // It goes on behind what is there.
                let mut more = next + 1000;
                let after = step(&copy, state, &mut more, &mut rng);
                compare(&copy, &after);
            }
        }
    }
}

#[test]
fn who_follows_the_end_sees_all_that_several_writers_insert() {
    const WRITERS: i64 = 3;
    const EACH: i64 = 400;
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    let bounds = Bounds {
        size_bytes: 1 << 20,
        documents_max: None,
    };
    create(&store, bounds);
    let insert = |id: i64| {
        let new = doc(&format!(r#"{{"_id": {id}, "u": {id}}}"#));
        let done = store.insert(&name(), &[Document(&new)], true);
        assert_eq!(done.expect("inserts").expect("a collection").count, 1);
    };
    insert(-1);
    let mut seen: Vec<i64> = Vec::new();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let insert = &insert;
            scope.spawn(move || (0..EACH).for_each(|n| insert(writer * EACH + n)));
        }
        let collection = store.collection(&name()).expect("a collection");
        let mut walk = Walk::tail(&collection);
        while (seen.len() as i64) < 1 + WRITERS * EACH {
            let reads = store.reads();
            let is_over = walk.go_on(&reads, &collection, &mut |_, document| {
                seen.extend(field(document.0, "_id"));
                Ok(true)
            });
            assert!(is_over.expect("its place is there"));
        }
    });
    for writer in 0..WRITERS {
        let own = (writer * EACH)..((writer + 1) * EACH);
        let of_writer: Vec<_> = seen.iter().filter(|id| own.contains(id)).collect();
        assert!(of_writer.is_sorted(), "each writer's come in its order");
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len() as i64, 1 + WRITERS * EACH);
    let reads = store.reads();
    let collection = reads.collection(&name()).expect("a collection");
    reads.check(&collection).expect("whole");
}

#[test]
fn writers_side_by_side_stay_within_the_bounds() {
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    create(&store, BOUNDS);
    let work = |writer: i64| {
        let mut rng = Rng::new(writer as u64);
        for n in 0..300 {
            let id = writer * 1000 + n;
            let text = "z".repeat(rng.below(120) as usize);
            let new = doc(&format!(r#"{{"_id": {id}, "u": {id}, "a": "{text}"}}"#));
            let done = store.insert(&name(), &[Document(&new)], true);
            assert_eq!(done.expect("inserts").expect("a collection").count, 1);
            if rng.one_in(3)
                && let Some(key) = key_of(&store, &new)
            {
                let done = store.modify(&name(), &key, &mut |_| Ok(Step::Delete));
                done.expect("deletes");
            }
            let reads = store.reads();
            let collection = reads.collection(&name()).expect("a collection");
            let mut model = Model::new();
            let mut walk = Walk::tail(&collection);
            let is_over = walk.go_on(&reads, &collection, &mut |_, document| {
                model.push(document.0.to_vec());
                Ok(true)
            });
            is_over.expect("reads");
            assert!(model.len() <= 20 && size(&model) <= 2048, "of one moment");
        }
    };
    std::thread::scope(|scope| {
        let work = &work;
        for writer in 0..2 {
            scope.spawn(move || work(writer));
        }
    });
    let model = all(&store, None);
    compare(&store, &model);
}

#[test]
fn who_follows_the_end_is_told_that_its_place_is_gone() {
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    create(&store, BOUNDS);
    let insert = |ids: std::ops::Range<i64>| {
        for id in ids {
            let new = doc(&format!(r#"{{"_id": {id}, "u": {id}}}"#));
            store
                .insert(&name(), &[Document(&new)], true)
                .expect("inserts");
        }
    };
    let collection = store.collection(&name()).expect("a collection");
    let mut walk = Walk::tail(&collection);
    let go_on = |walk: &mut Walk| {
        let mut ids = Vec::new();
        let reads = store.reads();
        let is_over = walk.go_on(&reads, &collection, &mut |_, document| {
            ids.extend(field(document.0, "_id"));
            Ok(true)
        });
        is_over.map(|_| ids)
    };
    assert_eq!(go_on(&mut walk).expect("empty"), Vec::<i64>::new());
    assert!(walk.is_at_beginning());
    insert(0..3);
    assert_eq!(go_on(&mut walk).expect("reads"), [0, 1, 2]);
    insert(3..22);
    let expected: Vec<i64> = (3..22).collect();
    assert_eq!(go_on(&mut walk).expect("its place is there"), expected);
    insert(22..42);
    let lost = go_on(&mut walk).expect_err("its place was given up");
    assert!(matches!(lost, Failure::Refused(it) if it.code == Code::CappedPositionLost));
}

#[test]
fn a_conversion_keeps_the_newest_whole_or_not_at_all() {
    for seed in 0..12u64 {
        let mut rng = Rng::new(seed);
        let files = Arc::new(StrictMemFileSystem::new());
        let store = open(Arc::<StrictMemFileSystem>::clone(&files)).expect("opens");
        store.create(&name()).expect("creates");
        let mut before = Model::new();
        for id in 0..60i64 {
            let text = "w".repeat(rng.below(100) as usize);
            let new = doc(&format!(r#"{{"_id": {id}, "u": {id}, "a": "{text}"}}"#));
            store
                .insert(&name(), &[Document(&new)], true)
                .expect("inserts");
            before.push(new);
        }
        store.sync().expect("syncs");
        let mut after = before.clone();
        while after.len() > 20 || size(&after) > 2048 {
            after.remove(0);
        }
        let other = Name::new("db", "other");
        store
            .convert_to_capped(&name(), &other, BOUNDS)
            .expect("copies");
        assert_eq!(all(&store, None), before);
        store
            .convert_to_capped(&name(), &name(), BOUNDS)
            .expect("converts");
        compare(&store, &after);
        let image = files.crash_image(seed, CrashPolicy::KeepNothing);
        let copy = open(Arc::new(image)).expect("opens after a power cut");
        compare(&copy, &after);
        let reads = copy.reads();
        let collection = reads.collection(&other).expect("it was made");
        reads.check(&collection).expect("whole");
        assert_eq!(collection.documents(), after.len() as u64);
        let new = doc(r#"{"_id": 100, "u": 100}"#);
        copy.insert(&name(), &[Document(&new)], true)
            .expect("inserts");
        assert_eq!(all(&copy, None).last(), Some(&new));
    }
}

/// A collection of many documents, with long entries of an index, whose bounds became as narrow as ten documents; they are synced.
fn narrowed(files: &Arc<StrictMemFileSystem>, many: i64) -> (Store, Model) {
    let store = open(Arc::<StrictMemFileSystem>::clone(files)).expect("opens");
    let bounds = Bounds {
        size_bytes: 1 << 30,
        documents_max: None,
    };
    create(&store, bounds);
    let text = "v".repeat(1000);
    let all: Model = (0..many)
        .map(|id| doc(&format!(r#"{{"_id": {id}, "u": {id}, "a": "{text}{id}"}}"#)))
        .collect();
    let news: Vec<_> = all.iter().map(|it| Document(it)).collect();
    let done = store.insert(&name(), &news, true).expect("inserts");
    assert_eq!(done.expect("a collection").count, many as u64);
    let narrow = |options: &mut CollectionOptions| {
        let bounds = options.capped.as_mut().expect("it is capped");
        bounds.documents_max = Some(10);
        Ok(())
    };
    store.change_options(&name(), narrow).expect("changes");
    store.sync().expect("syncs");
    (store, all)
}

fn is_whole(store: &Store) -> Model {
    let reads = store.reads();
    let collection = reads.collection(&name()).expect("a collection");
    reads.check(&collection).expect("whole");
    let found = all(store, None);
    assert_eq!(collection.documents(), found.len() as u64);
    assert_eq!(collection.bytes(), size(&found));
    found
}

#[test]
fn many_documents_are_given_up_in_turn_and_by_batches() {
    const MANY: i64 = 4000;
    let files = Arc::new(StrictMemFileSystem::new());
    let (store, before) = narrowed(&files, MANY);
    let new = doc(r#"{"_id": -1, "u": -1}"#);
    let at_once = Manner {
        pace: Pace::AtOnce,
        validation: Validation::Checked,
    };
    let refused = store.insert_with(&name(), &[Document(&new)], true, at_once);
    let refused = refused.expect_err("it would have to wait");
    assert!(matches!(refused, Failure::Engine(it) if it.kind() == ErrorKind::Incomplete));
    assert_eq!(is_whole(&store), before, "nothing was done");
    let images = Rc::new(RefCell::new(Vec::new()));
    let look = {
        let (files, images) = (Arc::clone(&files), Rc::clone(&images));
        move || {
            let mut images = images.borrow_mut();
            let seed = images.len() as u64;
            let policy = match seed % 2 {
                0 => CrashPolicy::KeepAll,
                _ => CrashPolicy::PrefixInTime,
            };
            images.push(files.crash_image(seed, policy));
            Ok(())
        }
    };
    let done = watched(look, || store.insert(&name(), &[Document(&new)], true));
    assert_eq!(done.expect("inserts").expect("a collection").count, 1);
    let mut after = before[before.len() - 9..].to_vec();
    after.push(new);
    assert_eq!(is_whole(&store), after);
    // A cut between two batches leaves it without its oldest documents, and counted.
    let mut sizes = Vec::new();
    for image in images.take() {
        let copy = open(Arc::new(image)).expect("opens after a power cut");
        let found = is_whole(&copy);
        assert_eq!(found, before[before.len() - found.len()..]);
        sizes.push(found.len());
    }
    sizes.sort_unstable();
    sizes.dedup();
    assert!(sizes.len() > 2, "it was cut between batches: {sizes:?}");
}

#[test]
fn who_ends_an_insert_leaves_what_was_not_given_up_yet() {
    let files = Arc::new(StrictMemFileSystem::new());
    let (store, before) = narrowed(&files, 1000);
    let new = doc(r#"{"_id": -1, "u": -1}"#);
    let end = || Err(Refusal::new(Code::MaxTimeMsExpired, "it is over"));
    let ended = watched(end, || store.insert(&name(), &[Document(&new)], true));
    let ended = ended.expect_err("it is ended");
    assert!(matches!(ended, Failure::Refused(it) if it.code == Code::MaxTimeMsExpired));
    let found = is_whole(&store);
    assert_eq!(found, before[before.len() - found.len()..]);
    let done = store.insert(&name(), &[Document(&new)], true);
    assert_eq!(done.expect("inserts").expect("a collection").count, 1);
    assert_eq!(is_whole(&store).len(), 10);
}
