//! What all connections share.

use std::sync::Arc;
use std::time::Duration;

use drumlin_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use drumlin_doc::{Builder, Document, Kind, Value};
use drumlin_doc_store::{Name, Store};
use drumlin_fs::Env;

use crate::auth::{Peers, Users};
use crate::counters::Counters;
use crate::cursors::Cursors;
use crate::sorting::Scratch;
use crate::tails::Tails;

/// The collections, the open cursors, the clock. Any thread may use it.
#[derive(Debug)]
pub struct Shared {
    pub(crate) store: Store,
    pub(crate) env: Env,
    pub(crate) cursors: Cursors,
    pub(crate) tails: Tails,
    pub(crate) scratch: Arc<Scratch>,
    pub(crate) users: Users,
    pub(crate) peers: Peers,
    pub(crate) connections: AtomicU64,
    /// Whether commands are to end because the server does.
    pub(crate) is_ending: Arc<AtomicBool>,
    pub(crate) counters: Counters,
    /// Seconds between two looks for documents whose time is over, and how many were removed.
    pub(crate) expiry_seconds: AtomicU64,
    pub(crate) expired: AtomicU64,
    began: Duration,
    /// Of the ObjectIds that are made here: five bytes of this process, and a counter.
    process: [u8; 5],
    counter: AtomicU32,
    /// Of this run of the server, as `hello` tells it.
    process_id: [u8; 12],
    /// Of replies that others follow.
    replies: AtomicU32,
    /// Where numbers by chance begin.
    seed: AtomicU64,
}

#[cfg(test)]
impl Shared {
    /// Over a store in memory.
    pub(crate) fn in_memory() -> Arc<Self> {
        let files = Arc::new(drumlin_fs::StrictMemFileSystem::new());
        let env = Env::system().with_files(files);
        let engine = drumlin::Options {
            env: env.clone(),
            background_threads: Some(0),
            memory_budget: Some(4 << 20),
            ..drumlin::Options::default()
        };
        let options = drumlin_doc_store::StoreOptions { engine };
        let store = Store::open(std::path::Path::new("/mongo"), options).expect("opens");
        Self::new(store, env)
    }
}

impl Shared {
    /// Over an open store, with the environment that it was opened in. Everybody may do everything.
    pub fn new(store: Store, env: Env) -> Arc<Self> {
        Self::guarded(store, env, false)
    }

    /// As [`Shared::new`]; with `is_guarded` a connection may do what the roles of its users allow.
    pub fn guarded(store: Store, env: Env, is_guarded: bool) -> Arc<Self> {
        let users = Users::new(&store, is_guarded);
        let began = env.clock.monotonic();
        let process = store.random_bytes();
        let counter = AtomicU32::new(u32::from_le_bytes(store.random_bytes()));
        let seed = AtomicU64::new(u64::from_le_bytes(store.random_bytes()));
        let cursors = Cursors::new(i64::from_le_bytes(store.random_bytes()));
        let scratch = Scratch::new(store.db(), Arc::clone(&env.files));
        let mut shared = Self {
            store,
            env,
            cursors,
            tails: Tails::default(),
            scratch,
            users,
            peers: Peers::default(),
            connections: AtomicU64::new(0),
            is_ending: Arc::default(),
            counters: Counters::new(),
            expiry_seconds: AtomicU64::new(60),
            expired: AtomicU64::new(0),
            began,
            process,
            counter,
            process_id: [0; 12],
            replies: AtomicU32::new(0),
            seed,
        };
        shared.process_id = shared.new_id();
        Arc::new(shared)
    }

    /// Forgets what is known of a connection that is over.
    pub fn forget(&self, connection: u64) {
        self.peers.forget(connection);
        self.tails.end(connection);
    }

    /// Tells those that wait for new documents of a collection that there are some.
    pub(crate) fn tell_tails(&self, name: &Name) {
        if !self.tails.is_empty()
            && let Some(collection) = self.store.collection(name)
        {
            self.tails.inserted(&(name.clone(), collection.uuid));
        }
    }

    /// Tells those that wait for new documents of a collection that is gone.
    pub(crate) fn tell_dropped(&self) {
        self.tails.dropped(&self.store.catalog());
    }

    /// The collections.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The name of this run, which no other run has.
    pub(crate) fn process_id(&self) -> &[u8; 12] {
        &self.process_id
    }

    /// The number of a reply that others follow.
    pub(crate) fn next_reply(&self) -> u32 {
        self.replies.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> i64 {
        i64::try_from(self.env.clock.unix_millis()).unwrap_or(i64::MAX)
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.env.clock.monotonic().saturating_sub(self.began)
    }

    /// A number by chance, from which others are made.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
            .fetch_add(0xD134_2543_DE82_EF95, Ordering::Relaxed)
    }

    /// A new ObjectId.
    pub(crate) fn new_id(&self) -> [u8; 12] {
        let seconds = u32::try_from(self.env.clock.unix_seconds())
            .unwrap_or(u32::MAX)
            .to_be_bytes();
        let count = self.counter.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut id = [0; 12];
        let parts = seconds
            .iter()
            .chain(&self.process)
            .chain(count.iter().skip(1));
        id.iter_mut()
            .zip(parts)
            .for_each(|(place, byte)| *place = *byte);
        id
    }

    /// `document` with its `_id` in front; a new one where it has none.
    pub(crate) fn with_id(&self, document: Document<'_>) -> Vec<u8> {
        let first = document.iter().next();
        if first.is_some_and(|first| first.name == b"_id") {
            return document.0.to_vec();
        }
        let mut out = Builder::with_room(document.0.len() + 20);
        let new = self.new_id();
        let made = Value {
            kind: Kind::ObjectId,
            bytes: &new,
        };
        out.value("_id", document.get("_id").unwrap_or(made));
        for element in document.iter().filter(|element| element.name != b"_id") {
            out.value(element.name, element.value);
        }
        out.finish()
    }
}
