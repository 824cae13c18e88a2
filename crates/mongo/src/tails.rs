//! Connections that wait for new documents of capped collections.
//!
//! Who is to wait says so here before it looks for documents, and the event loop keeps its message. Whoever inserts marks those that
//! wait for the collection and wakes the loop, which has their messages answered again. So no news is missed between the look and the
//! wait, and no thread is held. Where there is no loop nobody waits.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use drumlin_doc_store::{Catalog, Name};
use drumlin_fs::net::Waker;

/// A collection, which may be dropped and made anew under its name: that name, and its own number.
pub(crate) type Tailed = (Name, [u8; 16]);

/// What a connection waits for.
#[derive(Clone, Debug)]
struct Tail {
    tailed: Tailed,
    cursor: i64,
    has_news: bool,
}

#[derive(Debug, Default)]
struct State {
    /// By the numbers of the connections.
    waiting: HashMap<u64, Tail>,
    /// The connections, by collection and by cursor. Invariant: those of `waiting`, and no others.
    of_collections: HashMap<Tailed, HashSet<u64>>,
    of_cursors: HashMap<i64, HashSet<u64>>,
    /// Those that there was news for since the loop looked.
    with_news: Vec<u64>,
    waker: Option<Arc<dyn Waker>>,
}

impl State {
    fn remove(&mut self, connection: u64) {
        if let Some(tail) = self.waiting.remove(&connection) {
            remove(&mut self.of_collections, &tail.tailed, connection);
            remove(&mut self.of_cursors, &tail.cursor, connection);
        }
    }
}

fn remove<K: Eq + Hash>(all: &mut HashMap<K, HashSet<u64>>, key: &K, connection: u64) {
    if let Some(some) = all.get_mut(key) {
        some.remove(&connection);
        if some.is_empty() {
            all.remove(key);
        }
    }
}

/// See the module. Any thread may use it.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    state: Mutex<State>,
    /// How many wait: where nobody does, an insert costs no lock.
    count: AtomicUsize,
    /// Whether there was news since the loop looked.
    has_news: AtomicBool,
}

impl Tails {
    /// Has `waker` wake the loop that keeps messages.
    pub(crate) fn set_waker(&self, waker: Arc<dyn Waker>) {
        self.state.lock().waker = Some(waker);
    }

    /// From now on there may be news for the connection.
    pub(crate) fn begin(&self, connection: u64, cursor: i64, tailed: Tailed) {
        let mut state = self.state.lock();
        state.remove(connection);
        let of_collection = state.of_collections.entry(tailed.clone()).or_default();
        of_collection.insert(connection);
        state
            .of_cursors
            .entry(cursor)
            .or_default()
            .insert(connection);
        let tail = Tail {
            tailed,
            cursor,
            has_news: false,
        };
        state.waiting.insert(connection, tail);
        self.count.store(state.waiting.len(), Ordering::SeqCst);
    }

    /// The connection does not wait any more.
    pub(crate) fn end(&self, connection: u64) {
        if self.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        state.remove(connection);
        self.count.store(state.waiting.len(), Ordering::SeqCst);
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// A collection has new documents. Costs as much as there are connections that wait for these.
    pub(crate) fn inserted(&self, tailed: &Tailed) {
        if self.is_empty() || drumlin_base::bug!("mongo-tails-untold") {
            return;
        }
        let mut state = self.state.lock();
        let told = state.of_collections.get(tailed).cloned();
        self.tell(&mut state, told.into_iter().flatten());
    }

    /// Cursors were closed.
    pub(crate) fn killed(&self, cursors: &[i64]) {
        if self.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        let told = cursors.iter().filter_map(|id| state.of_cursors.get(id));
        let told: Vec<u64> = told.flatten().copied().collect();
        self.tell(&mut state, told);
    }

    /// Collections were dropped or got other names: who waits for one that the catalog does not have any more is told. Costs a look-up
    /// for each collection that is waited for.
    pub(crate) fn dropped(&self, catalog: &Catalog) {
        if self.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        let is_gone =
            |(name, uuid): &Tailed| catalog.get(name).is_none_or(|found| found.uuid != *uuid);
        let gone = state.of_collections.iter().filter(|(it, _)| is_gone(it));
        let told: Vec<u64> = gone.flat_map(|(_, all)| all).copied().collect();
        self.tell(&mut state, told);
    }

    fn tell(&self, state: &mut State, connections: impl IntoIterator<Item = u64>) {
        let mut is_any = false;
        for connection in connections {
            let tail = state.waiting.get_mut(&connection);
            if let Some(tail) = tail.filter(|tail| !tail.has_news) {
                tail.has_news = true;
                state.with_news.push(connection);
                is_any = true;
            }
        }
        if is_any {
            self.has_news.store(true, Ordering::Release);
            // A wake that fails costs those that wait the loop's longest turn.
            drop(state.waker.as_ref().map(|waker| waker.wake()));
        }
    }

    /// The connections that there was news for since the last call. Some may have ended their wait meanwhile, or begun another one.
    pub(crate) fn take_news(&self) -> Vec<u64> {
        match self.has_news.swap(false, Ordering::AcqRel) {
            true => std::mem::take(&mut self.state.lock().with_news),
            false => Vec::new(),
        }
    }

    /// Whether there was news for the connection since it began to wait.
    pub(crate) fn has_news(&self, connection: u64) -> bool {
        let state = self.state.lock();
        let tail = state.waiting.get(&connection);
        tail.is_some_and(|tail| tail.has_news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Shared;

    fn tailed(number: u8) -> Tailed {
        (Name::new("d", "c"), [number; 16])
    }

    /// Connections 1 and 2 wait for a collection by the cursors 11 and 12, 3 for another one.
    fn tails() -> Tails {
        let tails = Tails::default();
        for (connection, cursor, number) in [(1, 11, 1), (2, 12, 1), (3, 13, 2)] {
            tails.begin(connection, cursor, tailed(number));
        }
        tails
    }

    fn news(tails: &Tails) -> Vec<u64> {
        let mut news = tails.take_news();
        news.sort_unstable();
        news
    }

    #[test]
    fn new_documents_are_news_for_those_of_their_collection_once() {
        let tails = tails();
        tails.inserted(&tailed(1));
        tails.inserted(&tailed(1));
        assert_eq!(news(&tails), [1, 2]);
        assert!(tails.has_news(1) && !tails.has_news(3));
        assert_eq!(news(&tails), Vec::<u64>::new());
        tails.inserted(&tailed(9));
        assert_eq!(news(&tails), Vec::<u64>::new());
        // It has its message answered, and begins anew.
        tails.begin(1, 11, tailed(1));
        tails.inserted(&tailed(1));
        assert_eq!(news(&tails), [1]);
        tails.end(2);
        tails.begin(1, 20, tailed(2));
        tails.inserted(&tailed(1));
        assert_eq!(news(&tails), Vec::<u64>::new());
        tails.inserted(&tailed(2));
        assert_eq!(news(&tails), [1, 3]);
    }

    #[test]
    fn a_closed_cursor_is_news_for_its_connection() {
        let tails = tails();
        tails.killed(&[12, 99]);
        assert_eq!(news(&tails), [2]);
        tails.end(1);
        tails.killed(&[11]);
        assert_eq!(news(&tails), Vec::<u64>::new());
        for connection in 1..=3 {
            tails.end(connection);
        }
        let state = tails.state.lock();
        assert!(tails.is_empty() && state.of_cursors.is_empty() && state.of_collections.is_empty());
    }

    #[test]
    fn a_change_of_the_catalog_is_news_for_those_whose_collection_is_gone() {
        let shared = Shared::in_memory();
        let store = shared.store();
        let tails = Tails::default();
        for (connection, name) in [(1, "a"), (2, "b")] {
            let name = Name::new("d", name);
            store.create(&name).expect("creates");
            let collection = store.collection(&name).expect("a collection");
            tails.begin(connection, connection as i64, (name, collection.uuid));
        }
        tails.dropped(&store.catalog());
        assert_eq!(news(&tails), Vec::<u64>::new());
        let (b, c) = (Name::new("d", "b"), Name::new("d", "c"));
        store.rename_collection(&b, &c, false).expect("renames");
        tails.dropped(&store.catalog());
        assert_eq!(news(&tails), [2]);
        let a = Name::new("d", "a");
        store.drop_collection(&a).expect("drops");
        store.create(&a).expect("creates");
        tails.dropped(&store.catalog());
        assert_eq!(news(&tails), [1]);
    }
}
