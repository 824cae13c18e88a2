//! An entry of the document server's catalog: a store that finds it opens, and is written to, or says that it is damaged.

use std::path::Path;
use std::sync::Arc;

use drumlin::Options;
use drumlin_doc::{Builder, Document};
use drumlin_doc_store::{Failure, Name, Store, StoreOptions};
use drumlin_fs::{Env, FileSystem, StrictMemFileSystem};

use super::expect::{blames_the_bytes, or_blamed};

/// Where the entry of the collection `c` of the database `d` lies.
pub(crate) const KEY: &[u8] = b"cd\0c";

pub(crate) fn open(files: &Arc<StrictMemFileSystem>) -> drumlin::Result<Store> {
    let files: Arc<dyn FileSystem> = Arc::<StrictMemFileSystem>::clone(files);
    let engine = Options {
        env: Env::system().with_files(files),
        background_threads: Some(0),
        memory_budget: Some(1 << 20),
        ..Options::default()
    };
    Store::open(Path::new("/mongo"), StoreOptions { engine })
}

pub(crate) fn run(data: &[u8]) {
    let files = Arc::new(StrictMemFileSystem::new());
    let store = open(&files).expect("opens");
    store.db().put(KEY, data).expect("is taken");
    drop(store);
    let Some(store) = or_blamed(open(&files)) else {
        return;
    };
    let name = Name::new("d", "c");
    let collection = store.collection(&name).expect("it has an entry");
    let mut document = Builder::new();
    document.i32("_id", 1).i32("a", 5);
    let document = document.finish();
    match store.insert(&name, &[Document(&document)], true) {
        Ok(done) => {
            let done = done.expect("it is there");
            assert_eq!(done.count + done.errors.len() as u64, 1);
        }
        Err(Failure::Refused(refusal)) => assert!(!refusal.message.is_empty()),
        Err(Failure::Engine(error)) => blames_the_bytes(&error),
    }
    // Two of its indexes may say that they are one: then it is not whole.
    or_blamed(store.reads().check(&collection));
}
