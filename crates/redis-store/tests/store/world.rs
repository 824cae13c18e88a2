//! A store in memory.

use std::path::Path;
use std::sync::Arc;

use drumlin::{Env, Options, ReadOptions, WriteBatch, WriteOptions};
use drumlin_fs::{CrashPolicy, StrictMemFileSystem};
use drumlin_redis_store::{
    Keyspace, Mark, NewRecord, Old, Outcome, Overlay, ReadFrom, Store, StoreOptions,
};

/// A store over a file system in memory, the changes of the present round, and the time of its commands.
pub(crate) struct World {
    files: Arc<StrictMemFileSystem>,
    pub(crate) store: Store,
    pub(crate) overlay: Overlay,
    pub(crate) now_ms: u64,
    pub(crate) db: u16,
}

fn open(files: &Arc<StrictMemFileSystem>) -> Store {
    let env = Env::system().with_files(Arc::<StrictMemFileSystem>::clone(files));
    let engine = Options {
        env: env.with_seed(1),
        background_threads: Some(0),
        memory_budget: Some(64 << 20),
        ..Options::default()
    };
    Store::open(Path::new("/redis"), StoreOptions { engine }).expect("opens")
}

impl World {
    pub(crate) fn new() -> Self {
        let files = Arc::new(StrictMemFileSystem::new());
        Self {
            store: open(&files),
            files,
            overlay: Overlay::new(),
            now_ms: 1_000_000,
            db: 0,
        }
    }

    /// Runs one command: its changes stay in the overlay, or are taken back if it fails.
    pub(crate) fn run<T>(
        &mut self,
        command: impl FnOnce(&mut Keyspace<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        let view = self.store.view();
        let mark = self.overlay.mark();
        let now_ms = self.store.now_ms(self.now_ms);
        let (overlay, from) = (&mut self.overlay, ReadFrom::Disk);
        let mut keyspace = Keyspace::new(&self.store, &view, overlay, self.db, now_ms, from);
        let outcome = command(&mut keyspace);
        if outcome.is_err() {
            self.overlay.undo(mark);
        }
        outcome
    }

    /// Runs one command that succeeds.
    pub(crate) fn ok<T>(&mut self, command: impl FnOnce(&mut Keyspace<'_>) -> Outcome<T>) -> T {
        self.run(command).expect("the command succeeds")
    }

    /// The mark of an overlay without changes.
    pub(crate) fn start(&self) -> Mark {
        Overlay::new().mark()
    }

    /// Writes the overlay.
    pub(crate) fn commit(&mut self) {
        self.store.commit(&mut self.overlay).expect("commits");
    }

    /// Flushes and compacts everything. Deletions are durable before.
    pub(crate) fn compact(&mut self) {
        let db = self.store.db();
        db.sync_wal().expect("syncs");
        db.flush().expect("flushes");
        for family in db.families() {
            db.compact_range(&family, None, None).expect("compacts");
        }
    }

    /// Ends the process, with `power_cut` also all that was not synced, and opens the store again.
    pub(crate) fn reopen(self, power_cut: bool) -> Self {
        let policy = match power_cut {
            true => CrashPolicy::KeepNothing,
            false => CrashPolicy::KeepAll,
        };
        let files = Arc::new(self.files.crash(1, policy));
        Self {
            store: open(&files),
            files,
            overlay: Overlay::new(),
            now_ms: self.now_ms,
            db: self.db,
        }
    }

    /// Puts the bytes of a record on disk as they are.
    pub(crate) fn put_stored(&mut self, key: &[u8], record: &[u8]) {
        self.ok(|keyspace| keyspace.put(key, Old::Unknown, NewRecord::string(b"", None)));
        self.commit();
        let db = self.store.db();
        let family = db.column_family("keys").expect("a family");
        let mut iter = db.iter_cf(&family, ReadOptions::default());
        iter.seek_to_first();
        while !iter.key().ends_with(key) {
            iter.next();
        }
        let mut batch = WriteBatch::new();
        let put = batch.put_cf(family.id(), iter.key(), record);
        put.expect("fits");
        db.write(batch, &WriteOptions::default()).expect("writes");
    }

    /// The bytes of the record that comes first on disk.
    pub(crate) fn first_stored(&self) -> Vec<u8> {
        let db = self.store.db();
        let family = db.column_family("keys").expect("a family");
        let mut iter = db.iter_cf(&family, ReadOptions::default());
        iter.seek_to_first();
        iter.value().to_vec()
    }

    /// Entries of a family on disk.
    pub(crate) fn entries(&self, family: &str) -> usize {
        let db = self.store.db();
        let family = db.column_family(family).expect("a family");
        let mut iter = db.iter_cf(&family, ReadOptions::default());
        iter.seek_to_first();
        let mut entries = 0;
        while iter.valid() {
            entries += 1;
            iter.next();
        }
        entries
    }
}
