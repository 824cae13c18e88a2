//! The keys that are on their way.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin::Result;
use drumlin_fs::{Env, JoinHandle};
use drumlin_redis_store::{Claims, Overlay};
use parking_lot::Mutex;

use super::request::Request;

/// How a try ended.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    /// The keys that the target has taken, by their places in the request.
    pub(crate) taken: Vec<usize>,
    /// The reply, if it is an error, without its `-`.
    pub(crate) error: Option<String>,
    /// None of the keys was there any more.
    pub(crate) found_none: bool,
    pub(crate) micros: u64,
}

/// A migration whose thread runs, or has ended.
pub(crate) struct Running {
    pub(crate) request: Arc<Request>,
    /// On its keys.
    pub(crate) claims: Claims,
    /// The thread's outcome.
    pub(crate) letter: Arc<Mutex<Option<Delivered>>>,
    pub(crate) stops: Arc<AtomicBool>,
    pub(crate) thread: Option<Box<dyn JoinHandle>>,
    /// Nobody waits for it any more, and nothing comes of it.
    pub(crate) is_abandoned: bool,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Running").field(&self.request).finish()
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Migrations {
    pub(crate) env: Env,
    /// Those that wait for the end of the round, or for a thread.
    pub(crate) asked: VecDeque<Request>,
    pub(crate) running: Vec<Running>,
}

impl Migrations {
    /// Without any.
    pub(crate) fn new(env: &Env) -> Self {
        Self {
            env: env.clone(),
            asked: VecDeque::new(),
            running: Vec::new(),
        }
    }

    /// Whether there is none.
    pub(crate) fn is_idle(&self) -> bool {
        self.asked.is_empty() && self.running.is_empty()
    }

    /// Whether `key` is on its way.
    pub(crate) fn has(&self, db: u16, key: &[u8]) -> bool {
        let running = self.running.iter().filter(|it| !it.is_abandoned);
        let all = running.map(|it| &*it.request).chain(&self.asked);
        let mut of_db = all.filter(|request| request.db == db);
        of_db.any(|request| request.names.contains(key))
    }

    /// Notes which keys a round changes.
    pub(crate) fn see(&mut self, overlay: &Overlay) {
        for running in &mut self.running {
            running.claims.see(overlay);
        }
    }

    /// Gives all of them up: no key of theirs is deleted, and nobody is answered.
    pub(crate) fn abandon(&mut self) {
        self.asked.clear();
        for running in &mut self.running {
            running.is_abandoned = true;
            running.stops.store(true, Ordering::Release);
        }
    }

    /// Those that have ended, with their outcomes.
    ///
    /// # Errors
    /// A panic of a thread.
    pub(crate) fn take_ended(&mut self) -> Result<Vec<(Running, Delivered)>> {
        let mut ended = Vec::new();
        let mut at = 0;
        while let Some(running) = self.running.get(at) {
            let delivered = running.letter.lock().take();
            let Some(delivered) = delivered else {
                at += 1;
                continue;
            };
            let mut running = self.running.remove(at);
            if let Some(thread) = running.thread.take() {
                thread.join()?;
            }
            ended.push((running, delivered));
        }
        Ok(ended)
    }

    /// Gives all of them up and waits for their threads.
    ///
    /// # Errors
    /// A panic of a thread.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.abandon();
        let threads = self.running.drain(..).filter_map(|it| it.thread);
        let threads: Vec<_> = threads.collect();
        threads.into_iter().try_for_each(|thread| thread.join())
    }
}
