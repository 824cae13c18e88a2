//! Goal: after a power cut or a failure of the disk the store has all that was synced, nothing by halves, and true indexes and
//! counts. Method: the image of the disk after each few operations; a disk that fails at every n-th operation.

use std::sync::Arc;

use drumlin_base::rng::Rng;
use drumlin_doc_store::Failure;
use drumlin_fs::{CrashPolicy, Fault, FaultFileSystem, FaultRule, StrictMemFileSystem};

use crate::world::{Model, compare, indexes, name, open, step};

fn policy(rng: &mut Rng) -> CrashPolicy {
    match rng.below(2) {
        0 => CrashPolicy::KeepNothing,
        _ => CrashPolicy::PrefixInTime,
    }
}

#[test]
fn a_power_cut_leaves_a_moment_that_was() {
    for seed in 0..8 {
        let mut rng = Rng::new(seed);
        let files = Arc::new(StrictMemFileSystem::new());
        let store = open(Arc::<StrictMemFileSystem>::clone(&files)).expect("opens");
        store.create(&name()).expect("creates");
        store.create_indexes(&name(), &indexes()).expect("builds");
        // States since the last sync, the newest last.
        let mut since: Vec<Model> = vec![Model::new()];
        for at in 0..60 {
            let model = since.last().cloned().unwrap_or_default();
            let (outcome, after) = step(&store, &model, &mut rng);
            outcome.expect("nothing fails");
            since.push(after);
            if rng.one_in(8) {
                store.sync().expect("syncs");
                since = since.split_off(since.len() - 1);
            }
            if rng.one_in(6) {
                store.db().flush().expect("flushes");
            }
            if rng.one_in(4) {
                let image = files.crash_image(seed * 1000 + at, policy(&mut rng));
                let copy = open(Arc::new(image)).expect("opens after a power cut");
                let documents = copy.collection(&name()).expect("a collection").documents();
                let mut is_any = false;
                for state in since
                    .iter()
                    .rev()
                    .filter(|state| state.len() as u64 == documents)
                {
                    let all = crate::world::found(
                        &copy,
                        &drumlin_doc::Filter::And(Vec::new()),
                        &drumlin_doc::Sort::default(),
                        None,
                    );
                    if all == state.values().cloned().collect::<Vec<_>>() {
                        compare(&copy, state);
                        is_any = true;
                        break;
                    }
                }
                assert!(
                    is_any,
                    "seed {seed}, operation {at}: {documents} documents are no moment since the sync"
                );
            }
        }
    }
}

#[test]
fn a_cut_while_an_index_is_built_or_a_collection_dropped_leaves_all_or_nothing() {
    for seed in 0..10u64 {
        let mut rng = Rng::new(seed);
        let files = Arc::new(StrictMemFileSystem::new());
        let store = open(Arc::<StrictMemFileSystem>::clone(&files)).expect("opens");
        store.create(&name()).expect("creates");
        let mut model = Model::new();
        for _ in 0..30 {
            let (outcome, after) = step(&store, &model, &mut rng);
            outcome.expect("nothing fails");
            model = after;
        }
        store.sync().expect("syncs");
        // It may be that this set of documents refuses an index: then it is not there.
        let mut names = Vec::new();
        for index in indexes() {
            if store
                .create_indexes(&name(), std::slice::from_ref(&index))
                .is_ok()
            {
                names.push(index.name);
            }
        }
        let copy = open(Arc::new(files.crash_image(seed, policy(&mut rng)))).expect("opens");
        compare(&copy, &model);
        let collection = copy.collection(&name()).expect("a collection");
        let found: Vec<String> = collection
            .indexes
            .iter()
            .map(|index| index.name.clone())
            .collect();
        assert_eq!(found, names, "what is answered is there");
        store.drop_collection(&name()).expect("drops");
        let copy = open(Arc::new(files.crash_image(seed, policy(&mut rng)))).expect("opens");
        assert!(copy.collection(&name()).is_none());
        assert!(copy.create(&name()).expect("creates"));
        compare(&copy, &Model::new());
    }
}

#[test]
fn a_failing_disk_leaves_what_was_answered() {
    let mut met = 0;
    for at in 0..40u64 {
        let mut rng = Rng::new(at);
        let memory = Arc::new(StrictMemFileSystem::new());
        let files = Arc::new(FaultFileSystem::over_memory(&memory));
        let store = open(Arc::<FaultFileSystem>::clone(&files)).expect("opens");
        store.create(&name()).expect("creates");
        store.create_indexes(&name(), &indexes()).expect("builds");
        files.add_rule(FaultRule::once(at, Fault::Io));
        let mut model = Model::new();
        let mut unsure = None;
        for n in 0..30 {
            let (outcome, after) = step(&store, &model, &mut rng);
            match outcome {
                Ok(()) => model = after,
                Err(Failure::Refused(refusal)) => panic!("{refusal}"),
                Err(Failure::Engine(_)) => {
                    met += 1;
                    unsure = Some(after);
                    break;
                }
            }
            if n % 5 == 4 && store.sync().is_err() {
                met += 1;
                break;
            }
        }
        drop(store);
        let store = open(memory).expect("opens when the disk is well again");
        let documents = store.collection(&name()).expect("a collection").documents();
        match unsure {
            Some(after) if documents == after.len() as u64 && after != model => {
                let all = crate::world::found(
                    &store,
                    &drumlin_doc::Filter::And(Vec::new()),
                    &drumlin_doc::Sort::default(),
                    None,
                );
                let is_after = all == after.values().cloned().collect::<Vec<_>>();
                compare(&store, if is_after { &after } else { &model });
            }
            _ => compare(&store, &model),
        }
    }
    assert!(met > 15, "{met} faults were met");
}
