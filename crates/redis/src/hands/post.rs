//! Letters between the loop and a hand: connections that are lent, called home and given back, and what was counted.
//!
//! The lock is held to move letters, never over a call of a socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin::{Error, ErrorKind, Result};
use drumlin_base::sync::{Condvar, Mutex};
use drumlin_fs::net::Waker;

use super::lent::Lent;
use super::tally::Tally;
use crate::limits::Limits;

/// What the loop tells a hand besides connections. It does not change while any is lent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(super) limits: Limits,
    /// A command that takes so many microseconds is looked at more closely.
    pub(super) closer_micros: u64,
}

#[derive(Debug, Default)]
struct Letters {
    lent: Vec<Lent>,
    terms: Option<Terms>,
    home: Vec<Lent>,
    tally: Tally,
    /// All connections are to come home.
    is_called: bool,
    /// The hand is to end.
    ends: bool,
    /// It has ended, and nothing more comes of it.
    is_over: bool,
}

/// What a hand is to do.
#[derive(Debug)]
pub(super) enum Asked {
    /// Serve what it has, and these.
    Serve(Vec<Lent>, Option<Terms>),
    /// Give everything back.
    GiveBack,
    End,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Post {
    letters: Mutex<Letters>,
    came_home: Condvar,
    /// A copy of the letters' one, to be looked at between connections.
    is_called: AtomicBool,
    has_home: AtomicBool,
    /// Ends the loop's wait.
    waker: Arc<dyn Waker>,
}

impl Post {
    /// One without letters; `waker` is the loop's.
    pub(super) fn new(waker: Arc<dyn Waker>) -> Self {
        Self {
            letters: Mutex::default(),
            came_home: Condvar::new(),
            is_called: AtomicBool::new(false),
            has_home: AtomicBool::new(false),
            waker,
        }
    }

    // The loop's side.

    /// Lends connections, under these terms.
    pub(super) fn lend(&self, lent: Vec<Lent>, terms: Terms) {
        let mut letters = self.letters.lock();
        letters.lent.extend(lent);
        letters.terms = Some(terms);
    }

    /// Calls all connections home, and waits for them: for one connection to be served, at the most. `wake` ends the hand's wait.
    pub(super) fn call_home(&self, wake: impl FnOnce()) -> Vec<Lent> {
        let mut letters = self.letters.lock();
        letters.is_called = !letters.is_over;
        self.is_called.store(letters.is_called, Ordering::Relaxed);
        drop(letters);
        wake();
        let mut letters = self.letters.lock();
        while letters.is_called {
            letters = self.came_home.wait(letters);
        }
        self.has_home.store(false, Ordering::Relaxed);
        let mut home = std::mem::take(&mut letters.home);
        home.append(&mut letters.lent);
        home
    }

    /// The connections that have come home.
    ///
    /// # Errors
    /// `Aborted` when the hand has ended by itself, by a panic.
    pub(super) fn take_home(&self) -> Result<Vec<Lent>> {
        // Pairs with the store of `bring_home`; the letters themselves are under the lock.
        if !self.has_home.swap(false, Ordering::Acquire) {
            return Ok(Vec::new());
        }
        let mut letters = self.letters.lock();
        match letters.is_over {
            true => Err(Error::new(ErrorKind::Aborted, "a thread of clients ended")),
            false => Ok(std::mem::take(&mut letters.home)),
        }
    }

    /// What was counted since the last call.
    pub(super) fn take_tally(&self) -> Tally {
        std::mem::take(&mut self.letters.lock().tally)
    }

    /// Has the hand end. What it has goes with it.
    pub(super) fn end(&self) {
        self.letters.lock().ends = true;
    }

    // The hand's side.

    /// Whether the connections are called home.
    pub(super) fn is_called(&self) -> bool {
        // A hint: the hand reads its letters after each round.
        self.is_called.load(Ordering::Relaxed)
    }

    /// What the hand is asked.
    pub(super) fn read(&self) -> Asked {
        let mut letters = self.letters.lock();
        if letters.ends {
            return Asked::End;
        }
        if letters.is_called {
            return Asked::GiveBack;
        }
        Asked::Serve(std::mem::take(&mut letters.lent), letters.terms)
    }

    /// Tells what was counted, before those who were answered are told of elsewhere.
    pub(super) fn tell(&self, tally: &mut Tally) {
        self.letters.lock().tally.take_over(tally);
    }

    /// Sends connections home.
    pub(super) fn bring_home(&self, lent: Vec<Lent>) {
        if lent.is_empty() {
            return;
        }
        self.letters.lock().home.extend(lent);
        self.has_home.store(true, Ordering::Release);
        // The loop looks after every wait: a wake that fails costs it until the next one.
        drop(self.waker.wake());
    }

    /// Gives everything back, as it was called home.
    pub(super) fn give_back(&self, lent: Vec<Lent>) {
        let mut letters = self.letters.lock();
        letters.home.extend(lent);
        letters.is_called = false;
        self.is_called.store(false, Ordering::Relaxed);
        drop(letters);
        self.came_home.notify_all();
    }

    /// The hand ends, be it by a panic: nobody waits for it any more.
    pub(super) fn ended(&self) {
        let mut letters = self.letters.lock();
        letters.is_over = true;
        letters.is_called = false;
        drop(letters);
        self.came_home.notify_all();
        self.has_home.store(true, Ordering::Release);
        drop(self.waker.wake());
    }
}
