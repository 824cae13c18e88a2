//! A store over files in memory, and the naive model beside it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use drumlin::Options;
use drumlin_base::rng::Rng;
use drumlin_doc::{Document, Filter, Moment, Sort, Update, Value, keystring};
use drumlin_doc_store::{
    Failure, Hint, Name, NewIndex, Outcome, PlaceOptions, Step, Store, StoreOptions, Walk, plan,
    plan_with,
};
use drumlin_fs::{Env, FileSystem};

use crate::json::doc;

pub(crate) fn open(files: Arc<dyn FileSystem>) -> drumlin::Result<Store> {
    let engine = Options {
        env: Env {
            files,
            ..Env::system()
        },
        background_threads: Some(0),
        memory_budget: Some(4 << 20),
        ..Options::default()
    };
    Store::open(Path::new("/store"), StoreOptions { engine })
}

pub(crate) fn name() -> Name {
    Name::new("db", "c")
}

/// The indexes of the tests.
pub(crate) fn indexes() -> Vec<NewIndex> {
    let index = |name: &str, key: &str, unique| NewIndex {
        name: name.to_owned(),
        key: doc(key),
        unique,
        sparse: name.starts_with("sparse"),
        partial: name
            .starts_with("partial")
            .then(|| doc(r#"{"b": {"$exists": true}, "u": {"$gt": 20}}"#)),
        expire_after_seconds: None,
        place_options: PlaceOptions::default(),
    };
    vec![
        index("a", r#"{"a": 1}"#, false),
        index("ab", r#"{"a": -1, "b.c": 1}"#, false),
        index("sparse-b", r#"{"b.c": 1}"#, false),
        index("unique-u", r#"{"u": 1}"#, true),
        index("partial", r#"{"u": 1, "b": 1}"#, false),
    ]
}

/// Documents by the key of their `_id`.
pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A value of few, so that they meet.
fn value(rng: &mut Rng, depth: u32) -> String {
    match rng.below(if depth > 1 { 6 } else { 8 }) {
        0 | 1 => format!("{}", rng.below(6)),
        2 => format!("{}.5", rng.below(3)),
        3 => format!(r#""{}""#, ["x", "y", ""][rng.below(3) as usize]),
        4 => "null".to_owned(),
        5 => "true".to_owned(),
        6 => {
            let items: Vec<_> = (0..rng.below(4)).map(|_| value(rng, depth + 1)).collect();
            format!("[{}]", items.join(","))
        }
        _ => format!(r#"{{"c": {}}}"#, value(rng, depth + 1)),
    }
}

/// A document, without fields at times.
pub(crate) fn document(rng: &mut Rng) -> Vec<u8> {
    let id = match rng.below(3) {
        0 => format!(r#""{}""#, rng.below(40)),
        _ => format!("{}", rng.below(40)),
    };
    let mut fields = vec![format!(r#""_id": {id}"#)];
    for field in ["a", "b", "u"] {
        if !rng.one_in(4) {
            let value = match field {
                "u" => format!("{}", rng.below(60)),
                _ => value(rng, 0),
            };
            fields.push(format!(r#""{field}": {value}"#));
        }
    }
    doc(&format!("{{{}}}", fields.join(", ")))
}

pub(crate) fn filter(rng: &mut Rng) -> String {
    let field = ["a", "b.c", "u", "_id", "b"][rng.below(5) as usize];
    let operand = value(rng, 1);
    let test = match rng.below(11) {
        0 | 1 => operand,
        2 => format!(r#"{{"$gt": {operand}}}"#),
        3 => format!(r#"{{"$gte": 1, "$lt": {operand}}}"#),
        4 => format!(
            r#"{{"$in": [{operand}, {}, {}]}}"#,
            value(rng, 1),
            rng.below(9)
        ),
        5 => format!(r#"{{"$ne": {operand}}}"#),
        6 => format!(r#"{{"$elemMatch": {{"$gte": {operand}, "$lte": 4}}}}"#),
        7 => r#"{"$exists": false}"#.to_owned(),
        9 => format!(
            r#"{{"$regex": "{}"}}"#,
            ["^x", "^", "y$", "^x?"][rng.below(4) as usize]
        ),
        10 => r#"{"$regex": "^X", "$options": "i", "$lt": "y"}"#.to_owned(),
        _ => format!(r#"{{"$lte": {operand}}}"#),
    };
    match rng.below(5) {
        4 => format!(
            r#"{{"{field}": {test}, "$expr": {{"$lt": ["$u", {}]}}}}"#,
            rng.below(60)
        ),
        0 => {
            let other = filter(rng);
            let other = &other[1..other.len() - 1];
            if other.starts_with(&format!(r#""{field}""#)) {
                return format!("{{{other}}}");
            }
            format!(r#"{{"{field}": {test}, {other}}}"#)
        }
        1 => format!(r#"{{"$or": [{{"{field}": {test}}}, {}]}}"#, filter(rng)),
        _ => format!(r#"{{"{field}": {test}}}"#),
    }
}

pub(crate) fn update(rng: &mut Rng) -> String {
    let operand = value(rng, 0);
    let field = ["a", "b", "b.c"][rng.below(3) as usize];
    match rng.below(5) {
        0 => format!(r#"{{"$set": {{"{field}": {operand}}}}}"#),
        1 => format!(r#"{{"$unset": {{"{field}": ""}}}}"#),
        2 => format!(r#"{{"$push": {{"{field}": {operand}}}}}"#),
        3 => format!(r#"{{"$inc": {{"u": {}}}}}"#, rng.below(5)),
        _ => format!(r#"{{"$set": {{"u": {}}}}}"#, rng.below(60)),
    }
}

pub(crate) fn id_of(document: &[u8]) -> Vec<u8> {
    Document(document)
        .get("_id")
        .map(keystring::key_of)
        .expect("an id")
}

fn unique(document: &[u8]) -> Vec<u8> {
    keystring::key_of(Document(document).get("u").unwrap_or(Value::NULL))
}

/// Whether the indexes that there are let `document` take the place of the one with its `_id`.
fn is_free(store: &Store, model: &Model, document: &[u8]) -> bool {
    let collection = store.collection(&name()).expect("a collection");
    let has = |name: &str| collection.indexes.iter().any(|index| index.name == name);
    let own = id_of(document);
    let is_taken = model
        .iter()
        .any(|(id, other)| *id != own && unique(other) == unique(document));
    !(has("unique-u") && is_taken || has("ab") && is_parallel(document))
}

/// Whether both fields of one index are arrays.
fn is_parallel(document: &[u8]) -> bool {
    let array = |path: &str| {
        let path = drumlin_doc::Path::new(path);
        drumlin_doc::value_at(Document(document), &path)
            .is_some_and(|value| value.as_array().is_some())
    };
    array("a") && (array("b") || array("b.c"))
}

/// One random change of the store, and what the model is after it; the model is changed only if the store answered.
pub(crate) fn step(store: &Store, model: &Model, rng: &mut Rng) -> (Outcome<()>, Model) {
    let mut after = model.clone();
    let outcome = match rng.below(5) {
        0..=2 => {
            let new = document(rng);
            let is_new = !model.contains_key(&id_of(&new)) && is_free(store, model, &new);
            if is_new {
                after.insert(id_of(&new), new.clone());
            }
            let done = store.insert(&name(), &[Document(&new)], true);
            done.map(|done| assert_eq!(done.expect("a collection").count, u64::from(is_new)))
        }
        3 => change(store, &mut after, rng),
        _ => {
            let Some(id) = pick(model, rng) else {
                return (Ok(()), after);
            };
            after.remove(&id);
            store
                .modify(&name(), &id, &mut |_| Ok(Step::Delete))
                .map(|modified| assert!(modified.before.is_some()))
        }
    };
    (outcome, after)
}

fn pick(model: &Model, rng: &mut Rng) -> Option<Vec<u8>> {
    let at = rng.below(model.len().max(1) as u64) as usize;
    model.keys().nth(at).cloned()
}

fn change(store: &Store, model: &mut Model, rng: &mut Rng) -> Outcome<()> {
    let Some(id) = pick(model, rng) else {
        return Ok(());
    };
    let bytes = doc(&update(rng));
    let update = Update::new(Document(&bytes)).expect("an update");
    let apply = |document: Document<'_>| {
        update.apply(document, &Filter::And(Vec::new()), &Moment::default())
    };
    let expected = apply(Document(&model[&id]))
        .ok()
        .map(|applied| applied.document);
    let expected = expected.filter(|document| is_free(store, model, document));
    let done = store.modify(&name(), &id, &mut |document| {
        Ok(Step::Replace(apply(document)?.document))
    });
    match done {
        Ok(_) => {
            model.insert(id, expected.expect("the model refuses it"));
            Ok(())
        }
        Err(Failure::Refused(_)) => {
            assert!(expected.is_none(), "the store refuses what the model does");
            Ok(())
        }
        Err(failure) => {
            // It may have been done all the same.
            model.extend(expected.map(|document| (id, document)));
            Err(failure)
        }
    }
}

/// The documents of the store, by any plan that there is for `filter`.
pub(crate) fn found(
    store: &Store,
    filter: &Filter,
    sort: &Sort,
    hint: Option<&Hint>,
) -> Vec<Vec<u8>> {
    let reads = store.reads();
    let collection = reads.collection(&name()).expect("a collection");
    let plan = match hint {
        Some(hint) => plan_with(&collection, filter, sort, hint).expect("an index"),
        None => plan(&reads, &collection, filter, sort, u64::MAX).expect("a plan"),
    };
    let is_sorted = plan.is_sorted;
    let mut walk = Walk::new(plan);
    let mut all = Vec::new();
    // In pieces of three, each with a moment of its own.
    loop {
        let mut left = 3;
        let reads = store.reads();
        let is_over = walk.go_on(&reads, &collection, &mut |_, document| {
            if filter.matches(document)? {
                all.push(document.0.to_vec());
            }
            left -= 1;
            Ok(left > 0)
        });
        if is_over.expect("reads") {
            break;
        }
    }
    if is_sorted {
        let keys: Vec<_> = all
            .iter()
            .map(|document| sort.key_of(Document(document)))
            .collect();
        assert!(keys.is_sorted(), "the plan says that it sorts");
    }
    all
}

/// Whether the store is what the model is.
pub(crate) fn compare(store: &Store, model: &Model) {
    let reads = store.reads();
    let collection = reads.collection(&name()).expect("a collection");
    reads.check(&collection).expect("whole");
    let all = found(store, &Filter::And(Vec::new()), &Sort::default(), None);
    assert_eq!(all, model.values().cloned().collect::<Vec<_>>());
    assert_eq!(collection.documents(), model.len() as u64);
}
