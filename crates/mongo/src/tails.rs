//! Connections that wait for new documents of capped collections.
//!
//! Who is to wait says so here before it looks for documents, and the event loop keeps its message. Whoever inserts marks those that
//! wait for the collection and wakes the loop, which has their messages answered again. So no news is missed between the look and the
//! wait, and no thread is held. Where there is no loop nobody waits.

use std::collections::HashMap;
use std::sync::Arc;

use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use drumlin_doc_store::Collection;
use drumlin_fs::net::Waker;

#[derive(Debug)]
struct Tail {
    /// The collection.
    uuid: [u8; 16],
    has_news: bool,
}

#[derive(Debug, Default)]
struct State {
    /// By the numbers of the connections.
    waiting: HashMap<u64, Tail>,
    waker: Option<Arc<dyn Waker>>,
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
    pub(crate) fn begin(&self, connection: u64, collection: &Collection) {
        let mut state = self.state.lock();
        let tail = Tail {
            uuid: collection.uuid,
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
        state.waiting.remove(&connection);
        self.count.store(state.waiting.len(), Ordering::SeqCst);
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// There is news of a collection, or of all of them.
    pub(crate) fn news(&self, of: Option<&Collection>) {
        if self.is_empty() || drumlin_base::bug!("mongo-tails-untold") {
            return;
        }
        let mut state = self.state.lock();
        let mut is_any = false;
        for tail in state.waiting.values_mut() {
            let is_meant = of.is_none_or(|collection| collection.uuid == tail.uuid);
            tail.has_news |= is_meant;
            is_any |= is_meant;
        }
        if is_any {
            self.has_news.store(true, Ordering::Release);
            // A wake that fails costs those that wait the loop's longest turn.
            drop(state.waker.as_ref().map(|waker| waker.wake()));
        }
    }

    /// The connections that there is news for, if there was any since the last call.
    pub(crate) fn take_news(&self) -> Vec<u64> {
        if !self.has_news.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        let state = self.state.lock();
        let with_news = state.waiting.iter().filter(|(_, tail)| tail.has_news);
        with_news.map(|(connection, _)| *connection).collect()
    }

    /// Whether there was news for the connection since it began to wait.
    pub(crate) fn has_news(&self, connection: u64) -> bool {
        let state = self.state.lock();
        let tail = state.waiting.get(&connection);
        tail.is_some_and(|tail| tail.has_news)
    }
}
