//! Runs a list of workloads against one store, in order, and prints the results.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use drumlin_base::metrics::Counter;
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{Env, JoinHandle};

use crate::codecs::BlockWork;
use crate::flags::Flags;
use crate::gate::Gate;
use crate::keygen::KeyOrder;
use crate::mersenne::Mersenne64;
use crate::pace::WritePace;
use crate::records::Records;
use crate::report;
use crate::reporter::Reporter;
use crate::stats::{RunStats, ThreadStats};
use crate::store::Store;
use crate::watch;
use crate::workloads::{Shared, Work, Worker};

/// One name of `--benchmarks`, understood.
#[derive(Clone, Debug)]
struct Plan {
    name: String,
    action: Action,
    /// The flags as this workload changes them.
    flags: Flags,
    repeats: usize,
    warmups: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// Threads do this; `fresh` empties the store first; `beside` adds a writing thread.
    Run {
        work: Work,
        fresh: bool,
        beside: bool,
    },
    /// Random writes watched second by second; `fresh` empties the store first.
    Watch {
        plan: watch::Plan,
        fresh: bool,
    },
    Print(&'static str),
    WaitForBackground,
    Flush,
    /// Bytes of the directory, and of the entries in the key space.
    Size,
}

/// Runs workloads on a store of type `S`.
pub struct Runner<'o, S: Store> {
    env: Env,
    flags: Flags,
    store: Option<Arc<S>>,
    records: Option<Arc<Records>>,
    threads_started: u64,
    out: &'o mut dyn Write,
}

impl<S: Store> std::fmt::Debug for Runner<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner")
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}

impl<'o, S: Store> Runner<'o, S> {
    /// A runner that prints to `out`. A seed of 0 is replaced by one from the clock.
    pub fn new(mut flags: Flags, env: Env, out: &'o mut dyn Write) -> Self {
        if flags.seed == 0 {
            flags.seed = env.clock.unix_seconds().max(1);
        }
        Self {
            env,
            flags,
            store: None,
            records: None,
            threads_started: 0,
            out,
        }
    }

    /// Runs every workload of `--benchmarks` and closes the store.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown workload, before anything ran; else the first error of the
    /// store, naming the workload; `Io` when the output cannot be written.
    pub fn run(&mut self) -> Result<()> {
        self.read_records()?;
        let names = self
            .flags
            .benchmarks
            .split(',')
            .filter(|name| !name.is_empty());
        let plans: Vec<Plan> = names
            .map(|name| plan(name, &self.flags))
            .collect::<Result<_>>()?;
        let header = report::header(&S::version(), &self.flags);
        self.print(&header)?;
        if !self.flags.use_existing_db {
            S::destroy(&self.flags, &self.env)?;
        }
        self.open()?;
        for plan in &plans {
            self.carry_out(plan)
                .map_err(|error| error.context(&plan.name))?;
        }
        if self.flags.statistics
            && let Some(text) = self.store.as_ref().and_then(|store| store.statistics())
        {
            self.print(&format!("STATISTICS:\n{text}\n"))?;
        }
        self.close()
    }

    /// Reads `--records`, if given; `--num` is then how many there are.
    fn read_records(&mut self) -> Result<()> {
        if self.flags.records.is_empty() {
            return Ok(());
        }
        let most = match self.flags.is_given("num") {
            true => self.flags.num,
            false => u64::MAX,
        };
        let records = Records::read(&self.env, Path::new(&self.flags.records), most)?;
        self.flags.num = records.count();
        self.records = Some(Arc::new(records));
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        self.store = Some(Arc::new(S::open(&self.flags, &self.env)?));
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let Some(store) = self.store.take() else {
            return Ok(());
        };
        match Arc::into_inner(store) {
            Some(store) => store.close(),
            None => Err(Error::new(ErrorKind::Busy, "a thread still uses the store")),
        }
    }

    fn store(&self) -> Result<&Arc<S>> {
        let closed = || Error::new(ErrorKind::Aborted, "the store is not open");
        self.store.as_ref().ok_or_else(closed)
    }

    fn print(&mut self, text: &str) -> Result<()> {
        self.out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush())
            .map_err(|error| Error::new(ErrorKind::Io, format!("cannot print: {error}")))
    }

    fn carry_out(&mut self, plan: &Plan) -> Result<()> {
        match plan.action {
            Action::Run { work, fresh, .. } => {
                if fresh && self.flags.use_existing_db {
                    let name = &plan.name;
                    let line = format!("{name:<12} : skipped (--use_existing_db is true)\n");
                    return self.print(&line);
                }
                if fresh {
                    self.start_afresh()?;
                }
                if !matches!(work, Work::Block(_)) {
                    let line = format!("DB path: [{}]\n", self.flags.db);
                    self.print(&line)?;
                }
                self.repeat(plan, work)
            }
            Action::Watch { plan: load, fresh } => {
                if fresh && !self.flags.use_existing_db {
                    self.start_afresh()?;
                }
                self.watch(plan, &load)
            }
            Action::Print(property) => {
                let text = self.store()?.property(property);
                self.print(&format!("\n{}\n", text.as_deref().unwrap_or("(failed)")))
            }
            Action::WaitForBackground => {
                self.print(&format!("waitforcompaction({}): started\n", self.flags.db))?;
                self.store()?.wait_for_background()?;
                self.print(&format!("waitforcompaction({}): finished\n", self.flags.db))
            }
            Action::Flush => {
                self.store()?.flush()?;
                self.print("flush memtable\n")
            }
            Action::Size => {
                // Obsolete files that are not removed yet are no part of the stored data.
                self.store()?.wait_for_background()?;
                let stored = directory_bytes(&self.env, Path::new(&self.flags.db))?;
                let entry_bytes = (self.flags.key_size + self.flags.value_size) as u64;
                let made_up = self.flags.num * entry_bytes;
                let raw = self
                    .records
                    .as_ref()
                    .map_or(made_up, |records| records.bytes());
                self.print(&report::size_line(stored, raw, self.flags.num))
            }
        }
    }

    fn start_afresh(&mut self) -> Result<()> {
        self.close()?;
        S::destroy(&self.flags, &self.env)?;
        self.open()
    }

    /// Runs a watched load, prints each second as it ends and the summary after them.
    fn watch(&mut self, plan: &Plan, load: &watch::Plan) -> Result<()> {
        let flags = &plan.flags;
        let store = Arc::clone(self.store()?);
        self.print(&format!(
            "{}: {} threads, values of {} bytes, {} keys\n{}",
            plan.name,
            flags.threads,
            flags.value_size,
            flags.num,
            watch::heading()
        ))?;
        let env = self.env.clone();
        let report = watch::run(&store, flags, &env, load, &mut |second| {
            self.print(&watch::line(second))
        })?;
        self.print(&watch::summary(&report))?;
        if flags.report_path.is_empty() {
            return Ok(());
        }
        watch::save(&env, Path::new(&flags.report_path), &plan.name, &report)
    }

    fn repeat(&mut self, plan: &Plan, work: Work) -> Result<()> {
        for _ in 0..plan.warmups {
            self.run_once(plan, work)?;
        }
        let mut rates = Vec::with_capacity(plan.repeats);
        for _ in 0..plan.repeats {
            rates.push(report::rates(&self.run_once(plan, work)?));
        }
        self.print(&report::repeat_lines(&plan.name, &rates))
    }

    fn run_once(&mut self, plan: &Plan, work: Work) -> Result<RunStats> {
        let beside = matches!(plan.action, Action::Run { beside: true, .. });
        let threads = plan.flags.threads + usize::from(beside);
        let reporter = Reporter::start(&plan.flags, &self.env)?;
        let crew = Arc::new(Crew {
            store: Arc::clone(self.store()?),
            flags: plan.flags.clone(),
            shared: Shared {
                running: AtomicUsize::new(threads),
                write_limit: WritePace::new(
                    plan.flags.benchmark_write_rate_limit,
                    Arc::clone(&self.env.clock),
                ),
                clock: Arc::clone(&self.env.clock),
                records: self.records.clone(),
            },
            gate: Gate::default(),
            progress: reporter.as_ref().map(Reporter::operations),
            finished: Mutex::new(Vec::with_capacity(threads)),
        });
        let mut handles: Vec<Box<dyn JoinHandle>> = Vec::with_capacity(threads);
        let mut started = Ok(());
        for index in 0..threads {
            self.threads_started += 1;
            let seed = plan.flags.seed.wrapping_add(self.threads_started);
            let member = Arc::clone(&crew);
            let body = Box::new(move || member.work(index, seed, work));
            match self.env.spawner.spawn(&format!("bench-{index}"), body) {
                Ok(handle) => handles.push(handle),
                Err(error) => started = Err(error),
            }
        }
        if started.is_ok() {
            crew.gate.open(threads);
        } else {
            crew.gate.call_off();
        }
        let joined = handles.into_iter().try_for_each(JoinHandle::join);
        drop(reporter);
        started.and(joined)?;
        let finished = crew.finished.lock().unwrap_or_else(PoisonError::into_inner);
        self.report(plan, &finished)
    }

    fn report(&mut self, plan: &Plan, finished: &[(ThreadStats, Result<()>)]) -> Result<RunStats> {
        if let Some((_, Err(error))) = finished.iter().find(|(_, result)| result.is_err()) {
            return Err(error.duplicate());
        }
        let (beside, main): (Vec<&ThreadStats>, Vec<&ThreadStats>) = finished
            .iter()
            .map(|(stats, _)| stats)
            .partition(|stats| stats.companion);
        let mut run = RunStats::merge(&main).unwrap_or_default();
        if plan.flags.num != self.flags.num {
            run.remark = format!("({} ops)", plan.flags.num);
        }
        self.print(&report::run_line(&plan.name, &run))?;
        if let Some(beside) = RunStats::merge(&beside) {
            self.print(&report::run_line("+ writer", &beside))?;
        }
        Ok(run)
    }
}

/// The threads of one run and their shared state.
struct Crew<S> {
    store: Arc<S>,
    flags: Flags,
    shared: Shared,
    gate: Gate,
    progress: Option<Arc<Counter>>,
    finished: Mutex<Vec<(ThreadStats, Result<()>)>>,
}

impl<S: Store> Crew<S> {
    /// The body of thread `index`. The store's handle is dropped with it.
    fn work(&self, index: usize, seed: u64, work: Work) {
        let random = Mersenne64::new(seed);
        if !self.gate.wait() {
            return;
        }
        let clock = &self.shared.clock;
        let stats = ThreadStats::start(clock, self.flags.histogram, self.progress.clone());
        let mut worker = Worker {
            store: &*self.store,
            flags: &self.flags,
            shared: &self.shared,
            random,
            stats,
            index,
        };
        let result = worker.run(work);
        worker.stats.stop(clock);
        let stats = worker.stats;
        // Relaxed: see `Worker::write_beside`.
        self.shared.running.fetch_sub(1, Ordering::Relaxed);
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.push((stats, result));
    }
}

/// Understands one name of `--benchmarks`: the workload, and `[X<repeats>-W<warmups>]` after it.
fn plan(text: &str, flags: &Flags) -> Result<Plan> {
    let (name, arguments) = match text.split_once('[') {
        Some((name, rest)) => (name, rest.strip_suffix(']')),
        None => (text, Some("")),
    };
    let arguments = arguments.ok_or_else(|| {
        Error::invalid_argument(format!("'{text}' opens a bracket that it does not close"))
    })?;
    let mut plan = Plan {
        name: name.to_owned(),
        action: Action::Flush,
        flags: flags.clone(),
        repeats: 1,
        warmups: 0,
    };
    for argument in arguments.split('-').filter(|argument| !argument.is_empty()) {
        let count = argument.get(1..).and_then(|count| count.parse().ok());
        match (argument.as_bytes().first(), count) {
            (Some(b'X'), Some(count)) => plan.repeats = count,
            (Some(b'W'), Some(count)) => plan.warmups = count,
            _ => {
                let message = format!("'{argument}' in '{text}' is neither X<count> nor W<count>");
                return Err(Error::invalid_argument(message));
            }
        }
    }
    plan.action = action(name, &mut plan.flags)?;
    if matches!(
        plan.action,
        Action::Run {
            work: Work::Fill(KeyOrder::UniqueRandom),
            ..
        }
    ) {
        // Two threads would write every key twice.
        plan.flags.threads = 1;
    }
    Ok(plan)
}

fn action(name: &str, flags: &mut Flags) -> Result<Action> {
    if !flags.records.is_empty() && matches!(name, "queue" | "stall" | "sustain") {
        let message = format!("{name} writes made-up entries, not --records");
        return Err(Error::invalid_argument(message));
    }
    let (mut fresh, mut beside) = (false, false);
    let work = match name {
        "fillseq" | "fillrandom" | "filluniquerandom" | "fillbatch" | "fillsync" | "fill100K" => {
            fresh = true;
            Work::Fill(fill_order(name, flags))
        }
        "overwrite" => Work::Fill(KeyOrder::Random),
        "readrandom" => Work::ReadRandom { extra: 0 },
        "readmissing" => Work::ReadRandom { extra: 1 },
        "readhot" => Work::ReadHot,
        "multireadrandom" => Work::MultiReadRandom,
        "readseq" => Work::ReadForward,
        "readreverse" => Work::ReadBackward,
        "seekrandom" => Work::SeekRandom,
        "deleteseq" => Work::Delete(KeyOrder::Ascending),
        "deleterange" => Work::DeleteRange,
        "queue" => Work::Queue,
        "deleterandom" => Work::Delete(KeyOrder::Random),
        "readwhilewriting" => {
            beside = true;
            Work::ReadWhileWriting
        }
        "multireadwhilewriting" => {
            beside = true;
            Work::MultiReadWhileWriting
        }
        "seekrandomwhilewriting" => {
            beside = true;
            Work::SeekWhileWriting
        }
        "compact" => {
            flags.threads = 1;
            Work::Compact
        }
        "stall" => {
            stall_defaults(flags);
            let plan = watch::Plan::stall(flags);
            return Ok(Action::Watch { plan, fresh: true });
        }
        "sustain" => {
            let plan = watch::Plan::sustain(flags);
            return Ok(Action::Watch { plan, fresh: false });
        }
        "waitforcompaction" => return Ok(Action::WaitForBackground),
        "flush" => return Ok(Action::Flush),
        "size" => return Ok(Action::Size),
        "stats" => return Ok(Action::Print("rocksdb.stats")),
        "levelstats" => return Ok(Action::Print("rocksdb.levelstats")),
        "sstables" => return Ok(Action::Print("rocksdb.sstables")),
        _ => match BlockWork::parse(name, &flags.compression_type) {
            Some(block) => Work::Block(block),
            None => {
                let message = format!("there is no workload called '{name}'");
                return Err(Error::invalid_argument(message));
            }
        },
    };
    Ok(Action::Run {
        work,
        fresh,
        beside,
    })
}

/// Bytes of all files in `dir`, but for those that go while it is listed.
///
/// # Errors
/// The file system's.
pub fn directory_bytes(env: &Env, dir: &Path) -> Result<u64> {
    let mut total = 0;
    for name in env.files.list(dir)? {
        match env.files.info(&dir.join(name)) {
            Ok(info) if !info.is_dir => total += info.size,
            Ok(_) => {}
            // Files come and go while the directory is listed.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(total)
}

/// The load the stall benchmark is about, where the flags do not say otherwise: two writers, values
/// of 10 KB, a store of 5 GB.
fn stall_defaults(flags: &mut Flags) {
    if !flags.is_given("threads") {
        flags.threads = 2;
    }
    if !flags.is_given("value_size") {
        flags.value_size = 10_000;
    }
    if !flags.is_given("num") {
        flags.num = 500_000;
    }
}

/// The order a fill writes in; the smaller fills also change the flags. fillsync and fill100K
/// write a thousandth of the keys, as in LevelDB. (RocksDB's db_bench means to, but goes on for
/// `--num` operations.)
pub fn fill_order(name: &str, flags: &mut Flags) -> KeyOrder {
    match name {
        "fillseq" => return KeyOrder::Ascending,
        "fillbatch" => {
            flags.batch_size = 1000;
            return KeyOrder::Ascending;
        }
        "filluniquerandom" => return KeyOrder::UniqueRandom,
        "fillsync" => {
            flags.num = (flags.num / 1000).max(1);
            flags.sync = true;
        }
        "fill100K" => {
            flags.num = (flags.num / 1000).max(1);
            flags.value_size = 100_000;
        }
        _ => {}
    }
    KeyOrder::Random
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
