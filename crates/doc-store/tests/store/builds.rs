//! Goal: an index that is built while its collection is written has what an index has that was there before. Method: threads that
//! insert, change and remove documents beside builds of every kind of index; then all entries are compared with the documents.

use std::sync::Arc;

use drumlin_base::rng::Rng;
use drumlin_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use drumlin_doc::{Code, Document};
use drumlin_doc_store::{Failure, NewIndex, PlaceOptions, Step, Store};
use drumlin_fs::StrictMemFileSystem;

use crate::json::doc;
use crate::world::{id_of, name, open};

const DOCUMENTS: u64 = 1500;

fn index(name: &str, key: &str) -> NewIndex {
    NewIndex {
        name: name.to_owned(),
        key: doc(key),
        unique: name.starts_with("unique"),
        sparse: name.starts_with("sparse"),
        partial: name
            .starts_with("partial")
            .then(|| doc(r#"{"a": {"$gt": 5}}"#)),
        expire_after_seconds: None,
        place_options: PlaceOptions::default(),
    }
}

/// A document: `u` is another one in each.
fn document(rng: &mut Rng, id: u64) -> Vec<u8> {
    let a = match rng.below(4) {
        0 => format!("[{}, {}]", rng.below(20), rng.below(20)),
        1 => "null".to_owned(),
        _ => format!("{}", rng.below(20)),
    };
    doc(&format!(
        r#"{{"_id": {id}, "a": {a}, "u": {}, "v": {}}}"#,
        id * 3,
        rng.below(9)
    ))
}

fn insert(store: &Store, document: &[u8]) -> u64 {
    let done = store.insert(&name(), &[Document(document)], true);
    done.expect("inserts").expect("a collection").count
}

fn filled() -> Store {
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    store.create(&name()).expect("creates");
    let mut rng = Rng::new(3);
    for id in 0..DOCUMENTS {
        assert_eq!(insert(&store, &document(&mut rng, id)), 1);
    }
    store
}

/// Writes until `is_over`; how often.
fn write(store: &Store, seed: u64, is_over: &AtomicBool) -> u64 {
    let mut rng = Rng::new(seed);
    let mut writes = 0;
    while !is_over.load(Ordering::Acquire) {
        let id = rng.below(DOCUMENTS * 2);
        let new = document(&mut rng, id);
        let change = |step: Step| {
            let done = store.modify(&name(), &id_of(&new), &mut |_| Ok(step.clone()));
            done.expect("changes");
        };
        match rng.below(4) {
            0 => drop(insert(store, &new)),
            1 => change(Step::Delete),
            _ => change(Step::Replace(new.clone())),
        }
        writes += 1;
    }
    writes
}

fn check(store: &Store) {
    let reads = store.reads();
    let collection = reads.collection(&name()).expect("a collection");
    reads.check(&collection).expect("whole");
}

#[test]
fn an_index_built_beside_writers_is_true() {
    let store = filled();
    let kinds = [
        index("a", r#"{"a": 1}"#),
        index("unique", r#"{"u": 1}"#),
        index("sparse", r#"{"v": -1, "a": 1}"#),
        index("partial", r#"{"a": 1, "u": -1}"#),
    ];
    let beside = AtomicU64::new(0);
    for round in 0..12 {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (store, is_over, beside) = (&store, &is_over, &beside);
                scope.spawn(move || {
                    let writes = write(store, round * 10 + thread, is_over);
                    beside.fetch_add(writes, Ordering::AcqRel);
                });
            }
            let made = store.create_indexes(&name(), &kinds);
            is_over.store(true, Ordering::Release);
            made.expect("builds");
        });
        check(&store);
        store.drop_indexes(&name(), &|_| true).expect("drops them");
    }
    assert!(beside.load(Ordering::Acquire) > 100, "writers went on");
}

#[test]
fn a_build_whose_documents_share_a_unique_key_fails_and_leaves_nothing() {
    let store = filled();
    let unique = [index("unique", r#"{"v": 1}"#)];
    let failure = store.create_indexes(&name(), &unique).err();
    let is_duplicate = |failure: Option<Failure>| matches!(failure, Some(Failure::Refused(why)) if why.code == Code::DuplicateKey);
    assert!(is_duplicate(failure));
    check(&store);
    // The same name with another key: nothing is left of it.
    let made = store.create_indexes(&name(), &[index("unique", r#"{"u": 1}"#)]);
    assert_eq!(made.expect("builds"), (1, 2));
    check(&store);
}

#[test]
fn unique_keys_that_change_hands_are_of_their_last_document() {
    let unique = [index("unique", r#"{"u": 1}"#)];
    for _ in 0..10 {
        let store = filled();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // From behind: documents that the build has not come to.
                for id in (0..DOCUMENTS).rev() {
                    let heir = format!(r#"{{"_id": {}, "u": {}}}"#, id + 9000, id * 3);
                    insert(&store, &doc(&heir));
                    let gone = id_of(&doc(&format!(r#"{{"_id": {id}}}"#)));
                    let removed = store.modify(&name(), &gone, &mut |_| Ok(Step::Delete));
                    removed.expect("removes it");
                }
            });
            // It may meet two of one key.
            while store.create_indexes(&name(), &unique).is_err() {}
        });
        check(&store);
    }
}

#[test]
fn a_collection_that_is_dropped_ends_the_build_of_its_index() {
    for round in 0..20 {
        let store = filled();
        let made = std::thread::scope(|scope| {
            let builder =
                scope.spawn(|| store.create_indexes(&name(), &[index("a", r#"{"a": 1}"#)]));
            let mut rng = Rng::new(round);
            for _ in 0..rng.below(2000) {
                std::thread::yield_now();
            }
            store.drop_collection(&name()).expect("drops it");
            builder.join().expect("ends")
        });
        match made {
            Ok(_) => {}
            Err(Failure::Refused(why)) => assert!(
                [Code::IndexBuildAborted, Code::NamespaceNotFound].contains(&why.code),
                "{why:?}"
            ),
            Err(failure) => panic!("{failure:?}"),
        }
        assert!(store.reads().collection(&name()).is_none());
        store.create(&name()).expect("creates");
        check(&store);
    }
}
