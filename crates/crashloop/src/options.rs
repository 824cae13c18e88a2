//! Options from a seed: each process opens the directory with others.

use std::sync::Arc;

use drumlin::{DirectoryFormat, Env, Options, StringAppend};
use drumlin_fs::FileSystem;
use drumlin_metamorphic::Choice;

/// The options that follow from `seed`, on `files`, with threads.
pub(crate) fn options(seed: u64, files: Arc<dyn FileSystem>) -> Options {
    let mut options = Choice::random(seed).options;
    options.format = DirectoryFormat::RocksDb;
    options.family.merge_operator = Some(Arc::new(StringAppend::default()));
    options.background_threads = Some(1 + (seed % 3) as usize);
    // A table for each write keeps a disk busy with nothing else.
    let buffer = options
        .tuning
        .write_buffer_bytes
        .map(|bytes| bytes.max(8 << 10));
    options.tuning.write_buffer_bytes = buffer;
    options.sync = false;
    options.env = Env::system().with_files(files).with_seed(seed);
    options
}
