//! Goal: what callers count on, one by one. Method: small collections.

use std::sync::Arc;

use drumlin_doc::{Code, Document, Refusal, watched};
use drumlin_doc_store::{
    CollectionOptions, Failure, Found, Manner, Name, NewIndex, Pace, PlaceOptions, Step,
    Validation, ValidationLevel, Validator,
};
use drumlin_fs::StrictMemFileSystem;

use crate::json::doc;
use crate::world::{Model, compare, id_of, name, open};

fn code<T: std::fmt::Debug>(outcome: Result<T, Failure>) -> Code {
    match outcome.expect_err("refused") {
        Failure::Refused(refusal) => refusal.code,
        Failure::Engine(error) => panic!("{error}"),
    }
}

#[test]
fn a_validator_is_there_when_the_store_is_opened_again() {
    let files = Arc::new(StrictMemFileSystem::new());
    let store = open(Arc::<StrictMemFileSystem>::clone(&files)).expect("opens");
    let options = CollectionOptions {
        validator: Some(Validator::new(Document(&doc(r#"{"a": {"$gt": 1}}"#))).expect("a filter")),
        validation_level: Some(ValidationLevel::Moderate),
        ..CollectionOptions::default()
    };
    assert!(
        store
            .create_with(&name(), options.clone())
            .expect("creates")
    );
    drop(store);
    let store = open(files).expect("opens again");
    let collection = store.collection(&name()).expect("a collection");
    assert_eq!(collection.options, options);
    let [good, wrong] = [r#"{"_id": 1, "a": 2}"#, r#"{"_id": 2, "a": 1}"#].map(doc);
    let done = store.insert(&name(), &[Document(&wrong), Document(&good)], false);
    let done = done.expect("inserts").expect("a collection");
    assert_eq!((done.count, done.errors.len()), (1, 1));
    assert_eq!(done.errors[0].1.code, Code::DocumentValidationFailure);
    let refused = store.modify(&name(), &id_of(&good), &mut |_| {
        Ok(Step::Replace(doc(r#"{"_id": 1, "a": 0}"#)))
    });
    assert_eq!(code(refused), Code::DocumentValidationFailure);
}

fn numbered(count: i64) -> Vec<Vec<u8>> {
    let all = (0..count).map(|id| doc(&format!(r#"{{"_id": {id}, "a": 0}}"#)));
    all.collect()
}

fn with_validator(given: &str) -> CollectionOptions {
    CollectionOptions {
        validator: Some(Validator::new(Document(&doc(given))).expect("a filter")),
        ..CollectionOptions::default()
    }
}

#[test]
fn an_insert_can_be_ended_between_two_documents() {
    let documents = numbered(500);
    let documents: Vec<_> = documents.iter().map(|it| Document(it)).collect();
    for options in [
        CollectionOptions::default(),
        with_validator(r#"{"a": {"$lt": 1}}"#),
    ] {
        let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
        store.create_with(&name(), options).expect("creates");
        let end = || Err(Refusal::new(Code::MaxTimeMsExpired, "it is over"));
        let ended = watched(end, || store.insert(&name(), &documents, true));
        assert_eq!(code(ended), Code::MaxTimeMsExpired);
        compare(&store, &Model::new());
        let done = store.insert(&name(), &documents, true).expect("inserts");
        assert_eq!(done.expect("a collection").count, 500);
    }
}

#[test]
fn only_the_first_refusals_of_an_insert_say_what_is_not_met() {
    let documents = numbered(2500);
    let documents: Vec<_> = documents.iter().map(|it| Document(it)).collect();
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    let options = with_validator(r#"{"a": {"$gt": 1}}"#);
    store.create_with(&name(), options).expect("creates");
    let done = store.insert(&name(), &documents, false).expect("inserts");
    let done = done.expect("a collection");
    assert_eq!((done.count, done.errors.len()), (0, 2500));
    let info = |refusal: &Refusal| {
        let details = refusal.details.clone().expect("it says which");
        let info = Document(&details).get("errInfo");
        let info = info.and_then(|it| it.as_document()).expect("a document");
        assert!(info.get("failingDocumentId").is_some());
        info.get("details").is_some()
    };
    let has: Vec<bool> = done.errors.iter().map(|(_, it)| info(it)).collect();
    assert!(has[..100].iter().all(|has| *has));
    assert!(!has[200..].iter().any(|has| *has));
}

#[test]
fn a_validator_has_a_longest_length() {
    let filter = |bytes: usize| {
        let text = "x".repeat(bytes);
        Validator::new(Document(&doc(&format!(r#"{{"a": "{text}"}}"#))))
    };
    let most = 1 << 20;
    assert!(filter(most - 100).is_ok());
    let refused = filter(most).expect_err("too long");
    assert_eq!(refused.code, Code::BadValue);
    assert!(refused.message.contains("1048576"), "{refused}");
}

#[test]
fn a_document_is_not_changed_in_another_collection_of_the_name() {
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    store.create(&name()).expect("creates");
    let [document] = [r#"{"_id": 1, "a": 1}"#].map(doc);
    let insert = || store.insert(&name(), &[Document(&document)], true);
    insert().expect("inserts");
    let (of, key) = (name(), id_of(&document));
    let uuid = store.collection(&of).map(|it| it.uuid);
    let found = Found {
        name: &of,
        uuid,
        key: &key,
    };
    let manner = Manner {
        pace: Pace::InTurn,
        validation: Validation::Checked,
    };
    let delete = || store.modify_with(found, manner, &mut |_| Ok(Step::Delete));
    store.drop_collection(&of).expect("drops");
    assert_eq!(delete().expect("there is none").before, None);
    store.create(&of).expect("creates");
    insert().expect("inserts");
    assert_eq!(code(delete()), Code::QueryPlanKilled);
    let left = store.collection(&of).map(|it| it.documents());
    assert_eq!(left, Some(1));
}

#[test]
fn inserts_stop_at_the_first_error_only_if_they_are_ordered() {
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    let documents = [
        r#"{"_id": 1}"#,
        r#"{"_id": 1.0}"#,
        r#"{"_id": 2}"#,
        r#"{"_id": [3]}"#,
        r#"{"_id": 4}"#,
    ]
    .map(doc);
    let documents = documents.each_ref().map(|document| Document(document));
    assert_eq!(
        store.insert(&name(), &documents, true).expect("none"),
        None,
        "no collection"
    );
    store.create(&name()).expect("creates");
    let done = store
        .insert(&name(), &documents, true)
        .expect("inserts")
        .expect("a collection");
    assert_eq!((done.count, done.errors.len(), done.errors[0].0), (1, 1, 1));
    let done = store
        .insert(&name(), &documents, false)
        .expect("inserts")
        .expect("a collection");
    let errors: Vec<_> = done
        .errors
        .iter()
        .map(|(at, refusal)| (*at, refusal.code))
        .collect();
    assert_eq!(
        errors,
        [
            (0, Code::DuplicateKey),
            (1, Code::DuplicateKey),
            (3, Code::InvalidIdField)
        ]
    );
    assert_eq!(done.count, 2);
}

#[test]
fn a_unique_key_that_is_free_again_may_be_taken() {
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    store.create(&name()).expect("creates");
    let index = NewIndex {
        name: "u".to_owned(),
        key: doc(r#"{"u": 1}"#),
        unique: true,
        sparse: false,
        partial: None,
        expire_after_seconds: None,
        place_options: PlaceOptions::default(),
    };
    store
        .create_indexes(&name(), std::slice::from_ref(&index))
        .expect("builds");
    let [first, second] = [r#"{"_id": 1, "u": 5}"#, r#"{"_id": 2, "u": 6}"#].map(doc);
    store
        .insert(&name(), &[Document(&first), Document(&second)], true)
        .expect("inserts");
    let replace = |id: &[u8], new: &str| {
        let new = doc(new);
        store.modify(&name(), &id_of(id), &mut |_| Ok(Step::Replace(new.clone())))
    };
    assert_eq!(
        code(replace(&second, r#"{"_id": 2, "u": 5}"#)),
        Code::DuplicateKey
    );
    replace(&first, r#"{"_id": 1, "u": 7}"#).expect("moves");
    replace(&second, r#"{"_id": 2, "u": 5}"#).expect("takes what is free");
    let other = NewIndex {
        unique: false,
        ..index
    };
    assert_eq!(
        code(store.create_indexes(&name(), &[other])),
        Code::IndexKeySpecsConflict
    );
}

#[test]
fn a_dropped_collection_is_empty_when_it_is_made_anew() {
    let files = Arc::new(StrictMemFileSystem::new());
    let store = open(files).expect("opens");
    let other = Name::new("db", "other");
    for name in [&name(), &other] {
        store.create(name).expect("creates");
        store
            .insert(name, &[Document(&doc(r#"{"_id": 1}"#))], true)
            .expect("inserts");
    }
    assert_eq!(store.drop_collection(&name()).expect("drops"), Some(1));
    assert_eq!(store.drop_collection(&name()).expect("drops"), None);
    store.create(&name()).expect("creates");
    compare(&store, &Model::new());
    assert_eq!(store.collection(&other).expect("there").documents(), 1);
    store.drop_database("db").expect("drops");
    assert_eq!(store.catalog().iter().count(), 0);
}

#[test]
fn names_and_directories_that_are_wrong_are_refused() {
    let files = Arc::new(StrictMemFileSystem::new());
    let store = open(Arc::<StrictMemFileSystem>::clone(&files)).expect("opens");
    for (database, collection) in [
        ("", "c"),
        ("a.b", "c"),
        ("d", ""),
        ("d", "$x"),
        ("d", "system.x"),
        ("d", "a\0"),
    ] {
        assert_eq!(
            code(store.create(&Name::new(database, collection))),
            Code::InvalidNamespace
        );
    }
    store.db().put(b"v", b"drumlin-mongo 9").expect("writes");
    store.sync().expect("syncs");
    drop(store);
    let error = open(files).expect_err("a later format");
    assert!(error.to_string().contains("drumlin-mongo 9"), "{error}");
}

#[test]
fn writers_of_one_document_take_turns_and_unique_keys_are_taken_once() {
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    store.create(&name()).expect("creates");
    let index = NewIndex {
        name: "u".to_owned(),
        key: doc(r#"{"u": 1}"#),
        unique: true,
        sparse: true,
        partial: None,
        expire_after_seconds: None,
        place_options: PlaceOptions::default(),
    };
    store.create_indexes(&name(), &[index]).expect("builds");
    let counter = doc(r#"{"_id": "counter", "n": 0}"#);
    store
        .insert(&name(), &[Document(&counter)], true)
        .expect("inserts");
    let inc = doc(r#"{"$inc": {"n": 1}}"#);
    let update = drumlin_doc::Update::new(Document(&inc)).expect("an update");
    let all = drumlin_doc::Filter::And(Vec::new());
    let work = &|thread: u32| {
        let mut taken = 0;
        for n in 0..50 {
            let counted = store.modify(&name(), &id_of(&counter), &mut |document| {
                let applied = update.apply(document, &all, &drumlin_doc::Moment::default())?;
                Ok(Step::Replace(applied.document))
            });
            counted.expect("counts");
            let own = doc(&format!(r#"{{"_id": "{thread}-{n}", "u": {n}}}"#));
            let done = store
                .insert(&name(), &[Document(&own)], true)
                .expect("inserts");
            taken += done.expect("a collection").count;
        }
        taken
    };
    let taken: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("ends"))
            .sum()
    });
    assert_eq!(taken, 50, "each key once");
    let reads = store.reads();
    let collection = reads.collection(&name()).expect("a collection");
    let counted = reads
        .document(&collection, &id_of(&counter))
        .expect("reads")
        .expect("it is there");
    assert_eq!(
        Document(&counted).get("n").and_then(|n| n.as_whole()),
        Some(200)
    );
    assert_eq!(collection.documents(), 51);
    reads.check(&collection).expect("whole");
}

/// How many documents lie in the store, of collections that are there and of others.
fn stored(store: &drumlin_doc_store::Store) -> usize {
    let families = store.db().families();
    let docs = families.iter().find(|family| family.name() == "docs");
    let mut iter = store
        .db()
        .iter_cf(docs.expect("a family"), drumlin::ReadOptions::default());
    iter.seek_to_first();
    let mut count = 0;
    while iter.valid() {
        count += 1;
        iter.next();
    }
    count
}

#[test]
fn a_renamed_collection_has_all_that_it_had_and_what_was_there_is_gone() {
    let files = Arc::new(StrictMemFileSystem::new());
    let store = open(files.clone()).expect("opens");
    let other = Name::new("other", "d");
    let documents = [r#"{"_id": 1, "u": 1}"#, r#"{"_id": 2, "u": 2}"#].map(doc);
    let documents = documents.each_ref().map(|document| Document(document));
    for (name, count) in [(name(), 2), (other.clone(), 1)] {
        store.create(&name).expect("creates");
        store
            .create_indexes(&name, &crate::world::indexes())
            .expect("builds");
        store
            .insert(&name, &documents[..count], true)
            .expect("inserts");
    }
    let rename = |from: &Name, to: &Name, over| store.rename_collection(from, to, over);
    assert_eq!(code(rename(&name(), &other, false)), Code::NamespaceExists);
    assert_eq!(code(rename(&name(), &name(), true)), Code::IllegalOperation);
    let (missing, wrong) = (Name::new("db", "x"), Name::new("db", "a$b"));
    assert_eq!(
        code(rename(&missing, &other, true)),
        Code::NamespaceNotFound
    );
    assert_eq!(code(rename(&name(), &wrong, true)), Code::InvalidNamespace);
    let uuid = store.collection(&name()).expect("a collection").uuid;
    rename(&name(), &other, true).expect("renames");
    drop(store);
    // What was answered outlives a power cut.
    let files = files.crash_image(1, drumlin_fs::CrashPolicy::KeepNothing);
    let store = open(Arc::new(files)).expect("opens");
    assert!(store.collection(&name()).is_none());
    let collection = store.collection(&other).expect("a collection");
    assert_eq!((collection.uuid, collection.documents()), (uuid, 2));
    store.reads().check(&collection).expect("whole");
    assert_eq!(stored(&store), 2, "nothing is left of the other one");
    let twin = doc(r#"{"_id": 3, "u": 1}"#);
    let done = store
        .insert(&other, &[Document(&twin)], true)
        .expect("tries")
        .expect("a collection");
    assert_eq!(done.errors.len(), 1, "its unique index is there");
}

/// An index over `at` after which documents go, in either direction.
fn expiring(key: &str, partial: Option<&str>) -> NewIndex {
    NewIndex {
        name: "ttl".to_owned(),
        key: doc(key),
        unique: false,
        sparse: false,
        partial: partial.map(doc),
        expire_after_seconds: Some(10),
        place_options: PlaceOptions::default(),
    }
}

#[test]
fn documents_go_when_their_time_is_over_and_not_before() {
    for (key, partial) in [
        (r#"{"at": 1}"#, None),
        (r#"{"at": -1}"#, None),
        (r#"{"at": 1}"#, Some(r#"{"gone": {"$exists": true}}"#)),
    ] {
        let files = Arc::new(StrictMemFileSystem::new());
        let store = open(files.clone()).expect("opens");
        store.create(&name()).expect("creates");
        let documents = [
            r#"{"_id": 1, "at": {"$date": 1000}, "gone": 1}"#,
            r#"{"_id": 2, "at": {"$date": 50000}, "gone": 1}"#,
            r#"{"_id": 3, "at": [{"$date": 90000}, {"$date": 2000}], "gone": 1}"#,
            r#"{"_id": 4, "at": 5, "gone": 1}"#,
            r#"{"_id": 5, "gone": 1}"#,
            r#"{"_id": 6, "at": {"$date": 1000}}"#,
        ]
        .map(doc);
        let documents = documents.each_ref().map(|document| Document(document));
        store.insert(&name(), &documents, true).expect("inserts");
        let index = expiring(key, partial);
        store.create_indexes(&name(), &[index]).expect("builds");
        assert_eq!(store.expire(5_000).expect("looks"), 0);
        let goes = if partial.is_some() { 2 } else { 3 };
        assert_eq!(store.expire(30_000).expect("removes"), goes);
        assert_eq!(store.expire(30_000).expect("removes"), 0);
        drop(store);
        // The index is as it was after it was opened again.
        let store = open(files).expect("opens");
        assert_eq!(store.expire(70_000).expect("removes"), 1);
        let collection = store.collection(&name()).expect("a collection");
        assert_eq!(collection.documents(), 6 - goes - 1);
        store.reads().check(&collection).expect("it is whole");
    }
}

#[test]
fn a_document_whose_time_moved_on_stays() {
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    store.create(&name()).expect("creates");
    let index = NewIndex {
        partial: None,
        ..expiring(r#"{"at": 1}"#, None)
    };
    store.create_indexes(&name(), &[index]).expect("builds");
    // An array has an entry for each date, and goes by the first one that is over.
    let document = doc(r#"{"_id": 1, "at": [{"$date": 1000}, {"$date": 99000}]}"#);
    store
        .insert(&name(), &[Document(&document)], true)
        .expect("inserts");
    let new = doc(r#"{"_id": 1, "at": {"$date": 99000}}"#);
    store
        .modify(&name(), &id_of(&document), &mut |_| {
            Ok(Step::Replace(new.clone()))
        })
        .expect("moves");
    assert_eq!(store.expire(30_000).expect("looks"), 0);
}

#[test]
fn what_an_index_may_not_be_is_refused() {
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    store.create(&name()).expect("creates");
    let plain = expiring(r#"{"a": 1}"#, None);
    let wrong = [
        expiring(r#"{"a": 1, "b": 1}"#, None),
        expiring(r#"{"a": 1}"#, Some(r#"{"a": {"$ne": 1}}"#)),
        expiring(r#"{"a": 1}"#, Some(r#"{"a": {"$regex": "x"}}"#)),
        NewIndex {
            sparse: true,
            ..expiring(r#"{"a": 1}"#, Some(r#"{"a": 1}"#))
        },
    ];
    for index in wrong {
        assert_eq!(
            code(store.create_indexes(&name(), &[index])),
            Code::CannotCreateIndex
        );
    }
    store
        .create_indexes(&name(), std::slice::from_ref(&plain))
        .expect("builds");
    let other = expiring(r#"{"a": 1}"#, Some(r#"{"a": 1}"#));
    assert_eq!(
        code(store.create_indexes(&name(), &[other])),
        Code::IndexKeySpecsConflict
    );
}
