//! A clock that moves only when told, and threads that run only when told.
//!
//! With these, the in-memory file system and a seed, a run depends on nothing but its inputs.

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, Result};
use parking_lot::{Condvar, Mutex};

use crate::clock::Clock;
use crate::spawner::{JoinHandle, Spawner};

/// A clock moved by hand. A sleep moves it by its length and returns at once. Clones share it.
#[derive(Clone, Debug)]
pub struct ManualClock {
    now: Arc<Mutex<Now>>,
}

#[derive(Debug)]
struct Now {
    monotonic: Duration,
    unix: Duration,
}

impl ManualClock {
    /// A clock at monotonic zero and the given wall time.
    pub fn new(unix_seconds: u64) -> Self {
        let now = Now {
            monotonic: Duration::ZERO,
            unix: Duration::from_secs(unix_seconds),
        };
        Self {
            now: Arc::new(Mutex::new(now)),
        }
    }

    /// Lets time pass, on both readings.
    pub fn advance(&self, duration: Duration) {
        let mut now = self.now.lock();
        now.monotonic = now.monotonic.saturating_add(duration);
        now.unix = now.unix.saturating_add(duration);
    }

    /// Sets the wall time, forth or back; the monotonic reading stays.
    pub fn set_unix_seconds(&self, seconds: u64) {
        self.set_unix_time(Duration::from_secs(seconds));
    }

    /// Sets the wall time since 1970, forth or back; the monotonic reading stays.
    pub fn set_unix_time(&self, unix: Duration) {
        self.now.lock().unix = unix;
    }
}

impl Clock for ManualClock {
    fn monotonic(&self) -> Duration {
        self.now.lock().monotonic
    }

    fn unix_time(&self) -> Duration {
        self.now.lock().unix
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

/// The real time without a call after which every thread counts as waiting.
const QUIET: Duration = Duration::from_micros(200);

/// A clock for several threads that stands while any of them works and jumps to the end of the
/// shortest sleep once all of them wait: seconds of sleeping pass in moments, in the right order.
/// All threads are taken to wait when none has read the clock for a short while, so long work
/// without a look at the clock may count as some time. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct IdleClock {
    shared: Arc<Sleepers>,
}

#[derive(Debug, Default)]
struct Sleepers {
    night: Mutex<Night>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct Night {
    now: Duration,
    /// The end of each sleep, by a number of its own.
    ends: BTreeSet<(Duration, u64)>,
    /// Grows with every call.
    calls: u64,
}

impl IdleClock {
    /// A clock at zero, on both readings.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Clock for IdleClock {
    fn monotonic(&self) -> Duration {
        let mut night = self.shared.night.lock();
        night.calls += 1;
        night.now
    }

    fn unix_time(&self) -> Duration {
        self.monotonic()
    }

    fn sleep(&self, duration: Duration) {
        let mut night = self.shared.night.lock();
        night.calls += 1;
        let end = (night.now + duration, night.calls);
        night.ends.insert(end);
        while night.now < end.0 {
            let before = night.calls;
            let waited = self.shared.woken.wait_for(&mut night, QUIET);
            let quiet = waited.timed_out() && night.calls == before;
            if quiet && night.ends.first() == Some(&end) {
                assert!(night.now <= end.0, "time does not go back");
                night.now = end.0;
                self.shared.woken.notify_all();
            }
        }
        night.calls += 1;
        night.ends.remove(&end);
    }
}

type Body = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Arc<Mutex<Outcome>>, Body)>,
    refuses: bool,
}

#[derive(Debug)]
enum Outcome {
    Waiting,
    Done,
    Panicked(String),
}

/// Queues the bodies it is given; [`QueueSpawner::run_one`] runs the oldest on the calling thread,
/// and joining a queued body runs everything up to it. For bodies that end by themselves: a loop
/// that waits for work would wait for ever. Clones share the queue.
#[derive(Clone, Default)]
pub struct QueueSpawner {
    queue: Arc<Mutex<Queue>>,
}

impl std::fmt::Debug for QueueSpawner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueueSpawner")
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}

impl QueueSpawner {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bodies not run yet.
    pub fn waiting(&self) -> usize {
        self.queue.lock().waiting.len()
    }

    /// From now on: whether spawning fails, as on a system out of threads.
    pub fn set_refuses(&self, refuses: bool) {
        self.queue.lock().refuses = refuses;
    }

    /// Runs the oldest body to its end; false if there is none.
    pub fn run_one(&self) -> bool {
        // The guard must be dropped before the body runs, which may spawn.
        let next = self.queue.lock().waiting.pop_front();
        let Some((outcome, body)) = next else {
            return false;
        };
        let result = catch_unwind(AssertUnwindSafe(body));
        *outcome.lock() = match result {
            Ok(()) => Outcome::Done,
            Err(payload) => Outcome::Panicked(crate::system::panic_message(&*payload).to_owned()),
        };
        true
    }

    /// Runs bodies, also those they spawn, until none is left, and returns their number.
    pub fn run_all(&self) -> usize {
        let mut count = 0;
        while self.run_one() {
            count += 1;
        }
        count
    }
}

impl Spawner for QueueSpawner {
    fn spawn(&self, name: &str, body: Body) -> Result<Box<dyn JoinHandle>> {
        let mut queue = self.queue.lock();
        if queue.refuses {
            let message = format!("cannot start the thread {name}: there are no more");
            return Err(Error::new(ErrorKind::Io, message));
        }
        let outcome = Arc::new(Mutex::new(Outcome::Waiting));
        queue.waiting.push_back((Arc::clone(&outcome), body));
        Ok(Box::new(Queued {
            name: name.to_owned(),
            outcome,
            spawner: self.clone(),
        }))
    }
}

#[derive(Debug)]
struct Queued {
    name: String,
    outcome: Arc<Mutex<Outcome>>,
    spawner: QueueSpawner,
}

impl JoinHandle for Queued {
    fn join(self: Box<Self>) -> Result<()> {
        while matches!(*self.outcome.lock(), Outcome::Waiting) {
            if !self.spawner.run_one() {
                let message = format!("the thread {} waits for itself", self.name);
                return Err(Error::new(ErrorKind::Aborted, message));
            }
        }
        match &*self.outcome.lock() {
            Outcome::Panicked(why) => Err(Error::new(
                ErrorKind::Aborted,
                format!("the thread {} panicked: {why}", self.name),
            )),
            Outcome::Done | Outcome::Waiting => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn time_passes_by_hand_and_by_sleep() {
        let clock = ManualClock::new(100);
        clock.sleep(Duration::from_millis(1500));
        assert_eq!(clock.monotonic(), Duration::from_millis(1500));
        assert_eq!((clock.unix_seconds(), clock.unix_millis()), (101, 101_500));
        clock.set_unix_seconds(5);
        assert_eq!(clock.unix_seconds(), 5);
        assert_eq!(clock.monotonic(), Duration::from_millis(1500));
    }

    /// The time that three threads that sleep 1100, 1200 and 1300 seconds take together.
    fn sleep_in_three_threads() -> u64 {
        let clock = IdleClock::new();
        std::thread::scope(|scope| {
            for seconds in [300, 100, 200] {
                let clock = &clock;
                scope.spawn(move || {
                    let begin = clock.monotonic().as_secs();
                    clock.sleep(Duration::from_secs(seconds));
                    clock.sleep(Duration::from_secs(1000));
                    assert!(clock.monotonic().as_secs() >= begin + seconds + 1000);
                });
            }
        });
        clock.monotonic().as_secs()
    }

    #[test]
    fn sleeps_of_many_threads_pass_side_by_side_and_take_no_time() {
        // On a busy machine a thread may begin when the others have slept: one after the other they take 3600.
        // One time of many shows that they can sleep side by side.
        let mut times = (0..100).map(|_| sleep_in_three_threads());
        let side_by_side = times.find(|took| {
            assert!((1300..=3600).contains(took), "{took}");
            *took < 3000
        });
        assert!(side_by_side.is_some());
    }

    #[test]
    fn bodies_run_in_order_when_told() {
        let spawner = QueueSpawner::new();
        let order = Arc::new(AtomicU32::new(0));
        let push = |digit: u32| {
            let order = Arc::clone(&order);
            let body = move || {
                order.store(order.load(Ordering::SeqCst) * 10 + digit, Ordering::SeqCst);
            };
            spawner.spawn("t", Box::new(body)).unwrap()
        };
        let (_one, two, _three) = (push(1), push(2), push(3));
        assert_eq!(order.load(Ordering::SeqCst), 0);
        two.join().unwrap();
        assert_eq!(order.load(Ordering::SeqCst), 12);
        assert_eq!(spawner.run_all(), 1);
        assert_eq!(order.load(Ordering::SeqCst), 123);
    }

    #[test]
    fn panics_and_refusals_are_errors() {
        let spawner = QueueSpawner::new();
        let body = || std::panic::resume_unwind(Box::new("no"));
        let handle = spawner.spawn("bad", Box::new(body)).unwrap();
        let error = handle.join().unwrap_err();
        assert_eq!(error.to_string(), "the thread bad panicked: no");
        spawner.set_refuses(true);
        let refused = spawner.spawn("t", Box::new(|| {}));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Io);
    }
}
