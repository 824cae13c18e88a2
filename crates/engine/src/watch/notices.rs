//! Notices for the listener, kept until no lock is held.
//!
//! Most of them arise under the state's lock or the writers' lead, and a listener may ask the store anything. So they
//! are noted there, and delivered by the thread that next ends a call or a job. One thread delivers at a time, in
//! the order of noting; a listener gets the notices of its own calls when it returns. Behind a listener that does not
//! keep up, [`WAITING_MAX`] of them wait; later ones are lost, but for changes of health.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use drumlin_base::Error;
use drumlin_base::sync::Mutex;
use drumlin_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::watch::events::{
    CompactionInfo, EventListener, FlushInfo, Health, IngestInfo, MemtableInfo, PressureInfo,
};

/// One call of the listener.
#[derive(Debug)]
pub(crate) enum Notice {
    FlushBegun(FlushInfo),
    CompactionBegun(CompactionInfo),
    Flushed(FlushInfo),
    Compacted(CompactionInfo),
    Ingested(IngestInfo),
    MemtableSealed(MemtableInfo),
    PressureChanged(PressureInfo),
    BackgroundFailed(Error),
    HealthChanged {
        from: Health,
        to: Health,
        cause: String,
    },
    WriteWaited {
        micros: u64,
        why: &'static str,
    },
}

/// The most notices that wait, changes of health aside.
const WAITING_MAX: usize = 1024;

/// See the module.
pub(crate) struct Notices {
    listener: Option<Arc<dyn EventListener>>,
    waiting: Mutex<Waiting>,
    has_any: AtomicBool,
    /// Jobs that were told of.
    jobs: AtomicU64,
    /// Held by the thread that delivers.
    delivering: AtomicBool,
}

/// The notices to be delivered, oldest first.
#[derive(Debug, Default)]
struct Waiting {
    notices: VecDeque<Notice>,
    /// Notices that found no room since one was last delivered.
    lost: u64,
}

impl Waiting {
    fn push(&mut self, notice: Notice) {
        let has_room = self.notices.len() < WAITING_MAX || drumlin_base::bug!("notices-unbounded");
        match has_room || matches!(notice, Notice::HealthChanged { .. }) {
            true => self.notices.push_back(notice),
            false => self.lost += 1,
        }
    }

    /// The next one, and how many were lost since the one before.
    fn pop(&mut self) -> (Option<Notice>, u64) {
        let next = match drumlin_base::bug!("newest-notice-told-first") {
            true => self.notices.pop_back(),
            false => self.notices.pop_front(),
        };
        (next, std::mem::take(&mut self.lost))
    }
}

impl Notices {
    /// For `listener`; without one nothing is noted.
    pub(crate) fn new(listener: Option<Arc<dyn EventListener>>) -> Self {
        Self {
            listener,
            waiting: Mutex::default(),
            has_any: AtomicBool::new(false),
            jobs: AtomicU64::new(0),
            delivering: AtomicBool::new(false),
        }
    }

    /// Whether anybody hears them.
    pub(crate) fn are_heard(&self) -> bool {
        self.listener.is_some()
    }

    /// The number of a job that begins.
    pub(crate) fn next_job(&self) -> u64 {
        self.jobs.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Queues the notice that `notice` makes. Cheap, under any lock.
    pub(crate) fn note(&self, notice: impl FnOnce() -> Notice) {
        if self.are_heard() {
            self.waiting.lock().push(notice());
            self.has_any.store(true, Ordering::SeqCst);
        }
    }

    /// Delivers every notice, unless another thread, or a caller of this one, is delivering: that one goes on with
    /// them.
    ///
    /// Requires: the caller holds no lock that an operation of the store takes.
    #[inline]
    pub(crate) fn deliver(&self) {
        if self.has_any.load(Ordering::SeqCst) {
            self.deliver_all();
        }
    }

    /// Whether there are notices that nobody is delivering.
    pub(crate) fn are_waiting(&self) -> bool {
        self.has_any.load(Ordering::SeqCst) && !self.delivering.load(Ordering::SeqCst)
    }

    #[cold]
    fn deliver_all(&self) {
        let Some(listener) = &self.listener else {
            return;
        };
        let is_my_turn = || {
            !self.delivering.swap(true, Ordering::SeqCst)
                || drumlin_base::bug!("told-while-telling")
        };
        while self.has_any.load(Ordering::SeqCst) && is_my_turn() {
            let _turn = Turn(&self.delivering);
            loop {
                let (next, lost) = {
                    let mut waiting = self.waiting.lock();
                    let popped = waiting.pop();
                    self.has_any.store(popped.0.is_some(), Ordering::SeqCst);
                    popped
                };
                if lost > 0 {
                    tracing::warn!(lost, "the listener is slow and does not hear of all events");
                }
                let Some(next) = next else { break };
                // The thread that delivers has work of the store to end.
                if catch_unwind(AssertUnwindSafe(|| next.call(&**listener))).is_err() {
                    tracing::error!(?next, "the listener panicked");
                }
            }
        }
    }
}

/// Ends the turn of the thread that delivers.
struct Turn<'a>(&'a AtomicBool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").finish_non_exhaustive()
    }
}

impl Notice {
    fn call(&self, listener: &dyn EventListener) {
        match self {
            Self::Flushed(info) => listener.flushed(info),
            Self::FlushBegun(info) => listener.flush_begun(info),
            Self::CompactionBegun(info) => listener.compaction_begun(info),
            Self::Compacted(info) => listener.compacted(info),
            Self::Ingested(info) => listener.ingested(info),
            Self::MemtableSealed(info) => listener.memtable_sealed(info),
            Self::PressureChanged(info) => listener.pressure_changed(info),
            Self::BackgroundFailed(error) => listener.background_failed(error),
            Self::HealthChanged { from, to, cause } => listener.health_changed(*from, *to, cause),
            Self::WriteWaited { micros, why } => listener.write_waited(*micros, why),
        }
    }
}

/// Delivers the notices of a call when it is dropped, at the call's end.
pub(crate) struct DeliverAtEnd<'a>(pub(crate) &'a Notices);

impl Drop for DeliverAtEnd<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.deliver();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;

    /// Hears waits by their length; notes two more in its first call, and asks for their delivery.
    #[derive(Default)]
    struct Listener {
        notices: OnceLock<Arc<Notices>>,
        heard: Mutex<Vec<String>>,
    }

    impl EventListener for Listener {
        fn write_waited(&self, micros: u64, _why: &str) {
            self.heard.lock().push(format!("begin {micros}"));
            let notices = self.notices.get().expect("it is told by them");
            if micros == 1 {
                wait(notices, 11);
                wait(notices, 12);
            }
            notices.deliver();
            self.heard.lock().push(format!("end {micros}"));
        }
    }

    fn wait(notices: &Notices, micros: u64) {
        notices.note(|| Notice::WriteWaited { micros, why: "" });
    }

    #[test]
    fn one_is_told_after_the_other_in_the_order_they_were_noted_in() {
        let listener = Arc::new(Listener::default());
        let notices = Arc::new(Notices::new(Some(Arc::clone(&listener) as _)));
        assert!(listener.notices.set(Arc::clone(&notices)).is_ok());
        wait(&notices, 1);
        wait(&notices, 2);
        notices.deliver();
        let told =
            [1, 2, 11, 12].map(|micros| [format!("begin {micros}"), format!("end {micros}")]);
        assert_eq!(*listener.heard.lock(), told.concat());
    }

    /// Notes more than can wait in its first call, and counts what it hears.
    #[derive(Default)]
    struct Slow {
        notices: OnceLock<Arc<Notices>>,
        waits: Mutex<usize>,
        health: Mutex<Vec<Health>>,
    }

    impl EventListener for Slow {
        fn write_waited(&self, micros: u64, _why: &str) {
            *self.waits.lock() += 1;
            if micros == 1 {
                let notices = self.notices.get().expect("it is told by them");
                for _ in 0..WAITING_MAX + 10 {
                    wait(notices, 2);
                }
                notices.note(|| Notice::HealthChanged {
                    from: Health::Healthy,
                    to: Health::WriteStopped,
                    cause: String::new(),
                });
            }
        }

        fn health_changed(&self, _from: Health, to: Health, _cause: &str) {
            self.health.lock().push(to);
        }
    }

    #[test]
    fn behind_a_slow_listener_a_bounded_number_waits_and_every_change_of_health() {
        let listener = Arc::new(Slow::default());
        let notices = Arc::new(Notices::new(Some(Arc::clone(&listener) as _)));
        assert!(listener.notices.set(Arc::clone(&notices)).is_ok());
        wait(&notices, 1);
        notices.deliver();
        assert_eq!(*listener.waits.lock(), 1 + WAITING_MAX);
        assert_eq!(*listener.health.lock(), [Health::WriteStopped]);
        wait(&notices, 3);
        notices.deliver();
        assert_eq!(*listener.waits.lock(), 2 + WAITING_MAX);
    }
}
