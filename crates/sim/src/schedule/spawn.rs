//! Threads that are tasks.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::thread;

use drumlin_base::sync::tasks::{self, Tasks};
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{JoinHandle, Spawner};
use parking_lot::Mutex;

use super::{End, Scheduler};

thread_local! {
    static IS_TASK: Cell<bool> = const { Cell::new(false) };
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the messages of tasks that panic, instead of printing them.
fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if IS_TASK.get() {
                LAST_PANIC.with_borrow_mut(|last| *last = info.to_string().replace('\n', " "));
            } else {
                usual(info);
            }
        }));
    });
}

/// A task that was started.
struct Started {
    scheduler: Arc<Scheduler>,
    over: Arc<AtomicBool>,
}

impl std::fmt::Debug for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Started").finish_non_exhaustive()
    }
}

fn place(over: &Arc<AtomicBool>) -> usize {
    Arc::as_ptr(over).addr()
}

impl JoinHandle for Started {
    fn join(self: Box<Self>) -> Result<()> {
        while !self.over.load(Ordering::Acquire) {
            self.scheduler.park(place(&self.over), None);
        }
        Ok(())
    }
}

/// Starts `body` as a task that waits for its turn.
fn start(
    scheduler: &Arc<Scheduler>,
    name: &str,
    body: Box<dyn FnOnce() + Send>,
) -> Result<Started> {
    let task = scheduler.add(name);
    let over = Arc::new(AtomicBool::new(false));
    let (shared, ended) = (Arc::clone(scheduler), Arc::clone(&over));
    let run = move || {
        tasks::enter(Arc::clone(&shared) as Arc<dyn Tasks>);
        IS_TASK.set(true);
        let mut state = shared.state.lock();
        shared.wait_for_turn(&mut state, task);
        drop(state);
        let outcome = catch_unwind(AssertUnwindSafe(body));
        ended.store(true, Ordering::Release);
        shared.wake(place(&ended), true);
        tasks::leave();
        let panicked = outcome.err().map(|_| LAST_PANIC.take());
        shared.leave(panicked);
    };
    let thread = thread::Builder::new().name(name.to_owned());
    let thread = thread.stack_size(1 << 20).spawn(run).map_err(|source| {
        let message = format!("cannot start the thread {name}: {source}");
        Error::new(ErrorKind::Io, message)
    })?;
    scheduler.started(task, thread);
    Ok(Started {
        scheduler: Arc::clone(scheduler),
        over,
    })
}

/// The engine's spawner: each thread is a task of the scheduler.
#[derive(Debug)]
pub struct Tasked(pub Arc<Scheduler>);

impl Spawner for Tasked {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
        let started = start(&self.0, name, body)?;
        self.0.step();
        Ok(Box::new(started))
    }
}

/// One simulation at a time: the process has one list of retired values that guards still protect, with a lock
/// that would pass between simulations, and each wakes only its own tasks.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs `body` as the first task of `scheduler`, and all it starts, to the end. Waits while another
/// simulation of the process runs.
pub fn simulate(scheduler: &Arc<Scheduler>, body: impl FnOnce() + Send + 'static) -> End {
    let _alone = ALONE.lock();
    quiet_panics();
    if let Err(error) = start(scheduler, "main", Box::new(body)) {
        return End::Failed(error.to_string());
    }
    let mut state = scheduler.state.lock();
    loop {
        match &state.end {
            Some(end) => return end.clone(),
            None => scheduler.over.wait(&mut state),
        }
    }
}
