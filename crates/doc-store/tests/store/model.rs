//! Goal: each plan finds what the filter finds in all documents, once, in the order it says. Method: random documents, filters and
//! sorts beside a map, with every index as a hint.

use std::sync::Arc;

use drumlin_base::rng::Rng;
use drumlin_doc::{Document, Filter, Sort};
use drumlin_doc_store::Hint;
use drumlin_fs::StrictMemFileSystem;

use crate::json::doc;
use crate::world::{Model, compare, filter, found, indexes, name, open, step};

fn run(seed: u64, indexed_from: usize) {
    let mut rng = Rng::new(seed);
    let store = open(Arc::new(StrictMemFileSystem::new())).expect("opens");
    assert!(store.create(&name()).expect("creates"));
    let mut model = Model::new();
    let sorts = [
        r#"{}"#,
        r#"{"a": 1}"#,
        r#"{"_id": -1}"#,
        r#"{"a": 1, "b.c": -1}"#,
        r#"{"u": -1}"#,
    ]
    .map(doc);
    for round in 0..25 {
        if round == indexed_from {
            // With a document whose fields are both arrays, one of the indexes cannot be.
            let built = store.create_indexes(&name(), &indexes());
            if built.is_err() {
                let built = indexes()
                    .into_iter()
                    .filter(|index| index.name != "ab")
                    .collect::<Vec<_>>();
                // Nor where two documents share what is to be unique.
                drop(store.create_indexes(&name(), &built));
            }
        }
        for _ in 0..10 {
            let (outcome, after) = step(&store, &model, &mut rng);
            outcome.expect("nothing fails");
            model = after;
        }
        compare(&store, &model);
        for _ in 0..10 {
            let text = filter(&mut rng);
            let bytes = doc(&text);
            let filter = Filter::new(Document(&bytes)).expect("a filter");
            let sort = Sort::new(Document(&sorts[rng.below(5) as usize])).expect("a sort");
            let mut expected: Vec<_> = model
                .values()
                .filter(|it| filter.matches(Document(it)).expect("an answer"))
                .cloned()
                .collect();
            expected.sort();
            let collection = store.collection(&name()).expect("a collection");
            let mut dense = collection.indexes.iter().collect::<Vec<_>>();
            dense.retain(|index| !index.sparse && index.partial.is_none());
            let hints = dense
                .iter()
                .map(|index| Some(Hint::Name(index.name.clone())));
            for hint in hints.chain([
                None,
                Some(Hint::Id),
                Some(Hint::Natural { is_reverse: true }),
            ]) {
                let mut all = found(&store, &filter, &sort, hint.as_ref());
                all.sort();
                assert_eq!(all, expected, "seed {seed}: {text} by {hint:?}");
            }
        }
    }
}

#[test]
fn every_plan_finds_what_the_filter_finds() {
    for seed in 0..4 {
        run(seed, 0);
    }
}

#[test]
fn indexes_built_later_are_as_true() {
    for seed in 100..103 {
        run(seed, 5);
    }
}
