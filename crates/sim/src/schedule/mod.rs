//! One thread at a time, chosen by a seed.
//!
//! Tasks are real threads of which exactly one holds the baton. It is passed on when a task takes
//! one of the code base's locks, waits, sleeps, begins or ends a thread, or calls the file system.
//! Time stands while any task can run and jumps to the next deadline when none can. So a run depends
//! on the seed alone, and a deadlock is detected at once.
//!
//! Invariant: the state of a task that is not running changes only in the hands of the one that is.
//!
//! With `DRUMLIN_SIM_TRACE` set every switch is printed, to find the step at which two runs differ;
//! with `DRUMLIN_SIM_STACKS=A..B` the stack at each of these steps, to find the cause.
//!
//! A simulation that failed is not unwound: its threads stay parked for ever, and keep their
//! values.

mod spawn;

use std::backtrace::Backtrace;
use std::io::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_base::sync::tasks::Tasks;
use drumlin_fs::Clock;
use parking_lot::{Condvar, Mutex, MutexGuard};

pub use spawn::{Tasked, simulate};

/// How the next task is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// At one place in so many, any task that can run.
    Random(u64),
    /// The one of highest priority; at one place in so many the running task gets a new priority.
    /// Finds bugs that need a task to be held up for long.
    Priorities(u64),
}

impl Order {
    /// An order drawn from `rng`.
    pub fn draw(rng: &mut Rng) -> Self {
        let places = 1 << rng.below(9);
        match rng.below(3) {
            0 => Self::Priorities(places * 4),
            _ => Self::Random(places),
        }
    }
}

/// The event a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wants {
    /// Its turn.
    Run,
    /// A place to be woken, or a time.
    Place(usize, Option<Duration>),
    /// A time.
    Time(Duration),
    /// Nothing any more.
    Nothing,
}

impl Wants {
    fn deadline(self) -> Option<Duration> {
        match self {
            Self::Place(_, until) => until,
            Self::Time(until) => Some(until),
            Self::Run | Self::Nothing => None,
        }
    }
}

struct Task {
    name: String,
    wants: Wants,
    priority: u64,
    turn: Arc<Condvar>,
    thread: Option<JoinHandle<()>>,
}

/// How a simulation ended.
#[derive(Clone, Debug)]
pub enum End {
    /// Every task ended.
    Done,
    /// A task panicked, nobody could run, or it took too many steps.
    Failed(String),
}

struct State {
    tasks: Vec<Task>,
    running: usize,
    now: Duration,
    /// The moment the wall clock was set, and its time since 1970 then.
    wall: (Duration, Duration),
    rng: Rng,
    order: Order,
    steps: u64,
    steps_max: u64,
    /// A hash of every switch and of the words given to [`Scheduler::note`].
    hash: u64,
    end: Option<End>,
    /// Whether every switch is printed.
    traces: bool,
    /// The steps whose stacks are printed.
    stacks: Range<u64>,
    /// The thread of the task that ended last. The next task waits until it is gone, with its
    /// thread-local values.
    leaving: Option<JoinHandle<()>>,
}

/// The baton. Clones of the [`Arc`] share it.
pub struct Scheduler {
    state: Mutex<State>,
    over: Condvar,
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler").finish_non_exhaustive()
    }
}

/// The range `A..B` in `DRUMLIN_SIM_STACKS`; empty without.
fn stacks_to_print() -> Range<u64> {
    let text = std::env::var("DRUMLIN_SIM_STACKS").unwrap_or_default();
    let ends = text.split_once("..").map(|(a, b)| (a.parse(), b.parse()));
    match ends {
        Some((Ok(from), Ok(to))) => from..to,
        _ => 0..0,
    }
}

impl State {
    fn mix(&mut self, word: u64) {
        if self.traces {
            let name = self.tasks.get(self.running).map_or("", |task| &task.name);
            // A trace nobody reads is no reason to stop.
            let _ = writeln!(
                std::io::stderr(),
                "{} {:?} {name} {word:x}",
                self.steps,
                self.now
            );
        }
        let mixed = (self.hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.hash = mixed ^ (mixed >> 29);
    }

    /// Prints where the running task is.
    fn print_stack(&self) {
        let name = self.tasks.get(self.running).map_or("", |task| &task.name);
        let stack = Backtrace::force_capture();
        // A trace nobody reads is no reason to stop.
        let _ = writeln!(std::io::stderr(), "step {} of {name}\n{stack}", self.steps);
    }

    /// The task to run next; `None` when none ever will.
    fn next(&mut self) -> Option<usize> {
        loop {
            let ready = |task: &(usize, &Task)| task.1.wants == Wants::Run;
            let all = || self.tasks.iter().enumerate().filter(ready);
            let count = all().count() as u64;
            if count > 0 {
                return match self.order {
                    Order::Random(_) => {
                        let chosen = self.rng.below(count) as usize;
                        all().nth(chosen).map(|(index, _)| index)
                    }
                    Order::Priorities(_) => {
                        all().max_by_key(|(_, task)| task.priority).map(|(i, _)| i)
                    }
                };
            }
            let deadlines = self.tasks.iter().filter_map(|task| task.wants.deadline());
            self.now = self.now.max(deadlines.min()?);
            for task in &mut self.tasks {
                if task.wants.deadline().is_some_and(|at| at <= self.now) {
                    task.wants = Wants::Run;
                }
            }
        }
    }

    fn waiting(&self) -> String {
        let mut lines = Vec::new();
        for task in &self.tasks {
            if task.wants != Wants::Nothing {
                let kind = match task.wants {
                    Wants::Run => "could run",
                    Wants::Place(_, None) => "waits to be woken",
                    Wants::Place(_, Some(_)) => "waits to be woken for a while",
                    Wants::Time(_) | Wants::Nothing => "sleeps",
                };
                lines.push(format!("{} {kind}", task.name));
            }
        }
        lines.join(", ")
    }
}

impl Scheduler {
    /// No task yet, at time zero.
    pub fn new(seed: u64, order: Order, steps_max: u64) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                tasks: Vec::new(),
                running: 0,
                now: Duration::ZERO,
                wall: (Duration::ZERO, Duration::from_secs(1_700_000_000)),
                rng: Rng::new(seed),
                order,
                steps: 0,
                steps_max,
                hash: seed,
                end: None,
                traces: std::env::var_os("DRUMLIN_SIM_TRACE").is_some(),
                stacks: stacks_to_print(),
                leaving: None,
            }),
            over: Condvar::new(),
        })
    }

    /// The virtual time since the beginning.
    pub fn now(&self) -> Duration {
        self.state.lock().now
    }

    /// Sets the wall clock to a time since 1970, forth or back; it goes on from there. Virtual time stays.
    pub fn set_unix_time(&self, unix: Duration) {
        let mut state = self.state.lock();
        state.wall = (state.now, unix);
    }

    /// Places a switch was possible at, so far.
    pub fn steps(&self) -> u64 {
        self.state.lock().steps
    }

    /// A hash of the run so far.
    pub fn hash(&self) -> u64 {
        self.state.lock().hash
    }

    /// Adds `words` to the hash of the run.
    pub fn note(&self, words: &[u64]) {
        let mut state = self.state.lock();
        words.iter().for_each(|word| state.mix(*word));
    }

    /// Sleeps in virtual time.
    pub fn sleep(&self, duration: Duration) {
        let mut state = self.state.lock();
        let until = state.now + duration;
        self.block(&mut state, Wants::Time(until));
    }

    fn add(&self, name: &str) -> usize {
        let mut state = self.state.lock();
        let priority = state.rng.next_u64();
        state.tasks.push(Task {
            name: name.to_owned(),
            wants: Wants::Run,
            priority,
            turn: Arc::new(Condvar::new()),
            thread: None,
        });
        state.tasks.len() - 1
    }

    fn started(&self, task: usize, thread: JoinHandle<()>) {
        if let Some(task) = self.state.lock().tasks.get_mut(task) {
            task.thread = Some(thread);
        }
    }

    fn wants(state: &mut State, task: usize) -> Option<&mut Wants> {
        state.tasks.get_mut(task).map(|task| &mut task.wants)
    }

    /// Waits for the first turn of `task`.
    fn wait_for_turn(&self, state: &mut MutexGuard<'_, State>, task: usize) {
        let Some(turn) = state.tasks.get(task).map(|task| Arc::clone(&task.turn)) else {
            return;
        };
        while state.running != task || state.end.is_some() {
            turn.wait(state);
        }
        if let Some(thread) = state.leaving.take() {
            // A task's panic was caught before its thread ended.
            let _ = MutexGuard::unlocked(state, || thread.join());
        }
    }

    /// The running task wants something; returns when it has it and its turn.
    fn block(&self, state: &mut MutexGuard<'_, State>, wants: Wants) {
        let own = state.running;
        if let Some(own) = Self::wants(state, own) {
            *own = wants;
        }
        self.pass_on(state);
        self.wait_for_turn(state, own);
    }

    /// Gives the baton to the next task.
    fn pass_on(&self, state: &mut MutexGuard<'_, State>) {
        match state.next() {
            Some(next) => {
                state.mix(next as u64);
                if next != state.running {
                    state.running = next;
                    if let Some(task) = state.tasks.get(next) {
                        task.turn.notify_one();
                    }
                }
            }
            None if state.tasks.iter().all(|task| task.wants == Wants::Nothing) => {
                self.end(state, End::Done);
            }
            None => {
                let waiting = state.waiting();
                self.end(state, End::Failed(format!("everybody waits: {waiting}")));
            }
        }
    }

    fn end(&self, state: &mut MutexGuard<'_, State>, end: End) {
        if state.end.is_none() {
            state.end = Some(end);
        }
        self.over.notify_all();
    }

    /// The running task is over; `panicked` has the message of its panic.
    fn leave(&self, panicked: Option<String>) {
        let mut state = self.state.lock();
        let own = state.running;
        if let Some(own) = Self::wants(&mut state, own) {
            *own = Wants::Nothing;
        }
        state.leaving = state.tasks.get_mut(own).and_then(|task| task.thread.take());
        match panicked {
            None => self.pass_on(&mut state),
            Some(why) => {
                let name = state.tasks.get(own).map(|task| task.name.clone());
                let why = format!("{}: {why}", name.unwrap_or_default());
                self.end(&mut state, End::Failed(why));
            }
        }
    }
}

impl Tasks for Scheduler {
    fn step(&self) {
        let mut state = self.state.lock();
        let own = state.running;
        state.steps += 1;
        if state.stacks.contains(&state.steps) {
            state.print_stack();
        }
        if state.steps > state.steps_max {
            let waiting = state.waiting();
            self.end(
                &mut state,
                End::Failed(format!("too many steps: {waiting}")),
            );
            self.wait_for_turn(&mut state, own);
        }
        match state.order {
            Order::Random(places) => {
                if !state.rng.one_in(places) {
                    return;
                }
            }
            Order::Priorities(places) => {
                if state.rng.one_in(places) {
                    let priority = state.rng.next_u64();
                    if let Some(task) = state.tasks.get_mut(own) {
                        task.priority = priority;
                    }
                }
            }
        }
        self.pass_on(&mut state);
        self.wait_for_turn(&mut state, own);
    }

    fn park(&self, place: usize, timeout: Option<Duration>) {
        let mut state = self.state.lock();
        let until = timeout.map(|timeout| state.now + timeout);
        self.block(&mut state, Wants::Place(place, until));
    }

    fn wake(&self, place: usize, all: bool) {
        let mut state = self.state.lock();
        let waits = |task: &Task| matches!(task.wants, Wants::Place(at, _) if at == place);
        let count = state.tasks.iter().filter(|task| waits(task)).count() as u64;
        if count == 0 {
            return;
        }
        let chosen = if all { 0 } else { state.rng.below(count) };
        let range = if all { 0..count } else { chosen..chosen + 1 };
        let mut index = 0;
        for task in &mut state.tasks {
            if waits(task) {
                if range.contains(&index) {
                    task.wants = Wants::Run;
                }
                index += 1;
            }
        }
    }
}

impl Clock for Scheduler {
    fn monotonic(&self) -> Duration {
        self.now()
    }

    fn unix_time(&self) -> Duration {
        let state = self.state.lock();
        let (set_at, set_to) = state.wall;
        set_to + (state.now - set_at)
    }

    fn sleep(&self, duration: Duration) {
        Self::sleep(self, duration);
    }
}
