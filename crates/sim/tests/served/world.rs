//! One run of one seed: the server is opened, serves, and ends with a power cut or in order, some times over.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_base::sync::Mutex;
use drumlin_fs::net::{MemNetwork, NetFault, NetOp, NetRule};
use drumlin_fs::{
    Clock, CrashPolicy, Env, Fault, FaultFileSystem, FaultRule, JoinHandle, OpKind, Spawner,
    StrictMemFileSystem,
};
use drumlin_redis::{Config, Server, ServerOptions, Stopper};
use drumlin_resp::Value;
use drumlin_sim::schedule::{End, Order, Scheduler, Tasked, simulate};

use crate::call::Call;
use crate::client::{Client, SOCKET};
use crate::linear::{self, Told};
use crate::prefix::{self, Demand, Seen, Write};

/// Places a switch is possible at before a run counts as one that never ends.
pub(crate) const STEPS_MAX: u64 = 8_000_000;
/// Groups of keys, each with a history of its own.
const GROUPS: usize = 2;
/// By how much a time to live may be off: a turn of the loop on a slow disk.
const TIMES_OFF_MS: u64 = 2_000;

/// By how much the wait for a key may be short: a turn of the loop begins before it reads the command.
const WAITS_OFF: Duration = Duration::from_millis(20);

/// When replies to writes are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fsync {
    Always,
    EverySecond,
}

/// What happened in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    hash: u64,
    steps: u64,
    pub(crate) cuts: u64,
    /// Calls that were answered, and that were not.
    pub(crate) answered: u64,
    pub(crate) open: u64,
    /// Acknowledged writes that a power cut rightly took.
    pub(crate) lost: u64,
    /// Faults of the disk and of the network.
    injected: u64,
}

impl Outcome {
    pub(crate) fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.cuts += other.cuts;
        self.answered += other.answered;
        self.open += other.open;
        self.lost += other.lost;
        self.injected += other.injected;
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            steps,
            cuts,
            answered,
            open,
            lost,
            injected,
            ..
        } = self;
        write!(
            f,
            "{steps} steps, {cuts} power cuts, {answered} calls answered, {open} left open, {lost} writes lost as may be, \
             {injected} faults"
        )
    }
}

/// What all clients were told.
#[derive(Debug, Default)]
struct History {
    /// When each beginning and each reply was, in their order.
    moments: Vec<Duration>,
    groups: [Vec<Told>; GROUPS],
    writes: Vec<Write>,
    saved: u64,
    /// When the power was cut last; none after an orderly end.
    cut: Option<Duration>,
    outcome: Outcome,
}

impl History {
    /// The next moment, which is at `now`.
    fn moment(&mut self, now: Duration) -> u64 {
        self.moments.push(now);
        self.moments.len() as u64
    }

    /// The first moment at `time` or later.
    fn moment_at(&self, time: Duration) -> u64 {
        self.moments.partition_point(|it| *it < time) as u64 + 1
    }
}

/// The state that all tasks share.
pub(crate) struct World {
    fsync: Fsync,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) network: MemNetwork,
    history: Mutex<History>,
    /// The round is over: replies that come now are not counted.
    is_over: AtomicBool,
    /// The disk may fail.
    fails: AtomicBool,
    unique: AtomicU64,
    leases: Mutex<BTreeMap<u64, Lease>>,
}

/// A client's key that lives for a while: surely until `from`, and no longer than until `until`.
#[derive(Clone, Copy, Debug)]
struct Lease {
    value: u64,
    from: u64,
    until: u64,
}

/// A server that runs.
pub(crate) struct Running {
    pub(crate) stopper: Stopper,
    pub(crate) thread: Box<dyn JoinHandle>,
    pub(crate) memory: StrictMemFileSystem,
    pub(crate) files: FaultFileSystem,
}

/// Runs a seed.
///
/// # Errors
/// What was wrong.
pub(crate) fn run(seed: u64, fsync: Fsync) -> Result<Outcome, String> {
    let mut rng = Rng::new(seed ^ 0x5e7e);
    let scheduler = Scheduler::new(seed, Order::draw(&mut rng), STEPS_MAX);
    let world = Arc::new(World::new(fsync, &scheduler, rng.next_u64()));
    let shared = Arc::clone(&world);
    match simulate(&scheduler, move || live(&shared, rng)) {
        End::Failed(why) => return Err(why),
        End::Done => {}
    }
    let mut history = world.history.lock();
    for (group, told) in history.groups.iter().enumerate() {
        linear::check(group, told)?;
    }
    let groups = history.groups.iter().flatten();
    let (answered, open): (Vec<&Told>, _) = groups.partition(|told| told.answered.is_some());
    let (answered, open) = (answered.len() as u64, open.len() as u64);
    history.outcome.answered += answered;
    history.outcome.open += open;
    history.outcome.hash = scheduler.hash();
    history.outcome.steps = scheduler.steps();
    history.outcome.injected += world.network.injected();
    Ok(history.outcome)
}

/// The steps of a server to which somebody has said half a command, for so long.
pub(crate) fn steps_after_half_a_command(silence: Duration) -> u64 {
    let scheduler = Scheduler::new(1, Order::Random(1), STEPS_MAX);
    let world = Arc::new(World::new(Fsync::EverySecond, &scheduler, 1));
    let steps = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&steps);
    let end = simulate(&scheduler, move || {
        let server = world.start(StrictMemFileSystem::new());
        let mut client = world.connect().expect("the server is there");
        client.say(b"*1\r\n$4\r\nPI");
        let before = world.scheduler.steps();
        world.scheduler.sleep(silence);
        counted.store(world.scheduler.steps() - before, Ordering::Relaxed);
        client.say(b"NG\r\n");
        assert_eq!(client.reply(), Some(Value::Simple(b"PONG".to_vec())));
        server.stopper.stop().expect("wakes");
        server.thread.join().expect("a panic ends the run");
    });
    assert!(matches!(end, End::Done), "{end:?}");
    steps.load(Ordering::Relaxed)
}

fn live(world: &Arc<World>, mut rng: Rng) {
    let mut disk = StrictMemFileSystem::new();
    for _ in 0..1 + rng.below(3) {
        let server = world.start(disk);
        world.look();
        world.break_things(&server, &mut rng);
        disk = world.work(server, &mut rng);
        world.network.clear_rules();
    }
    let server = world.start(disk);
    world.look();
    server.stopper.stop().expect("wakes");
    server.thread.join().expect("a panic ends the run");
}

impl World {
    pub(crate) fn new(fsync: Fsync, scheduler: &Arc<Scheduler>, seed: u64) -> Self {
        Self {
            fsync,
            scheduler: Arc::clone(scheduler),
            network: MemNetwork::new(Arc::clone(scheduler) as _, seed),
            history: Mutex::default(),
            is_over: AtomicBool::new(false),
            fails: AtomicBool::new(false),
            unique: AtomicU64::new(0),
            leases: Mutex::default(),
        }
    }

    fn now(&self) -> Duration {
        self.scheduler.now()
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Opens the server on `memory`.
    pub(crate) fn start(&self, memory: StrictMemFileSystem) -> Running {
        let files = FaultFileSystem::over_memory(&memory);
        files.set_clock(Arc::clone(&self.scheduler) as _);
        let mut config = Config::default();
        let fsync = match self.fsync {
            Fsync::Always => "always",
            Fsync::EverySecond => "everysec",
        };
        for (name, value) in [
            ("dir", "/redis"),
            ("port", "0"),
            ("unixsocket", SOCKET),
            ("appendfsync", fsync),
            ("maxmemory", "2mb"),
            ("io-threads", "3"),
        ] {
            let set = config.set_at_start(name.as_bytes(), value.as_bytes());
            set.expect("a setting");
        }
        let env = Env {
            files: Arc::new(files.clone()),
            clock: Arc::clone(&self.scheduler) as _,
            spawner: Arc::new(Tasked(Arc::clone(&self.scheduler))),
            seed: 7,
        };
        let server = Server::open(ServerOptions {
            config,
            env,
            network: Arc::new(self.network.clone()),
        });
        let server = server.unwrap_or_else(|error| panic!("opening after a power cut: {error:?}"));
        self.is_over.store(false, Ordering::Relaxed);
        self.fails.store(false, Ordering::Relaxed);
        let stopper = server.stopper();
        let broken = files.clone();
        let serve = move || {
            let outcome = server.run();
            let may_fail = broken.injected() > 0;
            assert!(outcome.is_ok() || may_fail, "it ended: {outcome:?}");
        };
        let thread = Tasked(Arc::clone(&self.scheduler)).spawn("server", Box::new(serve));
        Running {
            stopper,
            thread: thread.expect("a task"),
            memory,
            files,
        }
    }

    /// The weather of a round: a network that is late and breaks, a disk that is slow or fails.
    fn break_things(&self, server: &Running, rng: &mut Rng) {
        let mut on_net = |n: u64, op: NetOp, fault: NetFault| {
            let rule = NetRule::one_in(n, rng.next_u64(), fault);
            self.network.add_rule(rule.on(op).seeded(rng.next_u64()));
        };
        on_net(3, NetOp::Read, NetFault::Short);
        on_net(3, NetOp::Write, NetFault::Short);
        on_net(5, NetOp::Read, NetFault::NotNow);
        on_net(2, NetOp::Wait, NetFault::Reorder);
        on_net(9, NetOp::Wait, NetFault::Interrupted);
        if rng.one_in(2) {
            let slow = NetFault::Slow {
                least: Duration::ZERO,
                most: Duration::from_millis(1 + rng.below(50)),
            };
            for op in [NetOp::Write, NetOp::Ready, NetOp::Connect] {
                let rule = NetRule::one_in(4, rng.next_u64(), slow);
                self.network.add_rule(rule.on(op).seeded(rng.next_u64()));
            }
        }
        if rng.one_in(3) {
            let rule = NetRule::one_in(60, rng.next_u64(), NetFault::Reset);
            self.network
                .add_rule(rule.on(NetOp::Read).seeded(rng.next_u64()));
        }
        for op in [OpKind::Append, OpKind::Sync, OpKind::Read] {
            if rng.one_in(2) {
                let least = Duration::from_micros(1 << rng.below(11));
                let slow = Fault::Slow {
                    least,
                    most: least * 8,
                };
                let rule = FaultRule::one_in(1 + rng.below(5), rng.next_u64(), slow);
                server.files.add_rule(rule.seeded(rng.next_u64()).on(op));
            }
        }
        if rng.one_in(4) {
            self.fails.store(true, Ordering::Relaxed);
            let at = rng.below(60);
            let rule = FaultRule::once(at, Fault::Io).on_changes();
            server.files.add_rule(rule);
        }
    }

    /// Lets clients work until they are done, or for a while; the disk after that.
    fn work(self: &Arc<Self>, server: Running, rng: &mut Rng) -> StrictMemFileSystem {
        let spawner = Tasked(Arc::clone(&self.scheduler));
        let clients = 1 + rng.below(4);
        let left = Arc::new(AtomicU64::new(clients));
        let mut tasks = Vec::new();
        for client in 0..clients {
            let (world, mut rng) = (Arc::clone(self), rng.fork());
            let left = Arc::clone(&left);
            let body = move || {
                match world.fsync {
                    Fsync::Always => world.call(client, &mut rng),
                    Fsync::EverySecond => world.write(&mut rng),
                }
                left.fetch_sub(1, Ordering::Relaxed);
            };
            let task = spawner.spawn(&format!("client {client}"), Box::new(body));
            tasks.push(task.expect("a task"));
        }
        let until = self.now() + Duration::from_millis(1 << rng.below(14));
        while left.load(Ordering::Relaxed) > 0 && self.now() < until {
            self.scheduler.sleep(Duration::from_millis(5));
        }
        self.end(server, tasks, rng)
    }

    /// Ends a round with a power cut or in order; the disk after it.
    fn end(
        &self,
        server: Running,
        tasks: Vec<Box<dyn JoinHandle>>,
        rng: &mut Rng,
    ) -> StrictMemFileSystem {
        let fails = self.fails.load(Ordering::Relaxed);
        let is_orderly = !fails && rng.one_in(4);
        // From here on nobody counts a reply; the power cut comes after that.
        self.is_over.store(true, Ordering::Relaxed);
        let (seed, policy) = (rng.next_u64(), policy(rng));
        let image = (!is_orderly).then(|| server.memory.crash_image(seed, policy));
        server.stopper.stop().expect("wakes");
        for task in tasks.into_iter().chain([server.thread]) {
            task.join().expect("a panic ends the run");
        }
        let mut history = self.history.lock();
        history.outcome.injected += server.files.injected();
        history.outcome.cuts += u64::from(!is_orderly);
        history.cut = match (is_orderly, fails) {
            (true, _) => None,
            (false, false) => Some(self.now()),
            // The engine takes no more writes after a sync that failed: they may have been long ago.
            (false, true) => Some(Duration::ZERO),
        };
        drop(history);
        image.unwrap_or_else(|| server.memory.crash_image(seed, CrashPolicy::KeepNothing))
    }

    /// Reads everything, with nobody else there, and judges it.
    fn look(&self) {
        let client = Client::connect(&self.network, &self.scheduler, || false);
        let mut client = client.expect("the server is there");
        match self.fsync {
            Fsync::Always => {
                for group in 0..GROUPS {
                    for call in Call::reads() {
                        self.tell(&mut client, group, call);
                    }
                }
                let leases: Vec<u64> = self.leases.lock().keys().copied().collect();
                for owner in leases {
                    assert!(self.look_at_lease(&mut client, owner), "it holds");
                }
            }
            Fsync::EverySecond => self.judge(&mut client),
        }
    }

    /// Calls until it has called enough.
    fn call(&self, own: u64, rng: &mut Rng) {
        let mut client = None;
        for _ in 0..4 + rng.below(9) {
            self.nap(rng);
            let connected = client.take().or_else(|| self.connect());
            let Some(mut connection) = connected else {
                return;
            };
            let holds = match rng.below(12) {
                0 => connection.ask(&[vec!["COMPACT".to_owned()]]).is_some(),
                1 => self.lease(&mut connection, own, rng),
                2 => self.look_at_lease(&mut connection, own),
                _ => {
                    let unique = self.unique.fetch_add(1, Ordering::Relaxed);
                    let group = rng.below(GROUPS as u64) as usize;
                    self.tell(&mut connection, group, Call::draw(rng, unique))
                }
            };
            client = holds.then_some(connection);
        }
    }

    fn nap(&self, rng: &mut Rng) {
        let micros = 1 << rng.below(19);
        self.scheduler.sleep(Duration::from_micros(micros));
    }

    pub(crate) fn connect(&self) -> Option<Client> {
        Client::connect(&self.network, &self.scheduler, || self.is_over())
    }

    /// A call, its beginning and its end; whether the connection holds.
    fn tell(&self, client: &mut Client, group: usize, call: Call) -> bool {
        let commands = call.commands(group);
        let (began, waits) = (self.now(), call.waits().saturating_sub(WAITS_OFF));
        let index = {
            let mut history = self.history.lock();
            let began = history.moment(self.now());
            history.groups[group].push(Told {
                call,
                began,
                answered: None,
            });
            history.groups[group].len() - 1
        };
        let Some(reply) = client.ask(&commands) else {
            return false;
        };
        if !self.counts(&reply) {
            return true;
        }
        let mut history = self.history.lock();
        let at = history.moment(self.now());
        let earliest = history.moment_at(began + waits);
        let told = &mut history.groups[group][index];
        if reply == Value::NullArray {
            // Who waited in vain found nothing at the end of its time, not at the beginning.
            told.began = told.began.max(earliest);
        }
        told.answered = Some((at, reply));
        true
    }

    /// Whether a reply tells something: it came in time, and is no error, which only a failing disk explains.
    fn counts(&self, reply: &Value) -> bool {
        if self.is_over() {
            return false;
        }
        let is_error = matches!(reply, Value::Error(_));
        let may_fail = self.fails.load(Ordering::Relaxed);
        assert!(!is_error || may_fail, "on a disk that is well: {reply:?}");
        !is_error
    }

    /// Writes a key that is to live for a while.
    fn lease(&self, client: &mut Client, own: u64, rng: &mut Rng) -> bool {
        let value = self.unique.fetch_add(1, Ordering::Relaxed);
        let millis = 1 + rng.below(8_000);
        self.leases.lock().remove(&own);
        let began_ms = self.scheduler.unix_millis();
        let set = format!("SET t:{own} {value} PX {millis}");
        let words = set.split(' ').map(str::to_owned).collect();
        let Some(reply) = client.ask(&[words]) else {
            return false;
        };
        if self.counts(&reply) {
            let from = began_ms + millis;
            let until = self.scheduler.unix_millis() + millis;
            let lease = Lease { value, from, until };
            self.leases.lock().insert(own, lease);
        }
        true
    }

    /// Whether the connection holds; a key that lived too long or too short ends the run.
    fn look_at_lease(&self, client: &mut Client, owner: u64) -> bool {
        let began_ms = self.scheduler.unix_millis();
        let get = vec!["GET".to_owned(), format!("t:{owner}")];
        let Some(reply) = client.ask(&[get]) else {
            return false;
        };
        let Some(lease) = self.leases.lock().get(&owner).copied() else {
            return true;
        };
        if !self.counts(&reply) {
            return true;
        }
        let now_ms = self.scheduler.unix_millis();
        let value = Value::Bulk(lease.value.to_string().into_bytes());
        if now_ms + TIMES_OFF_MS < lease.from {
            assert_eq!(reply, value, "{lease:?} is not over at {now_ms}");
        } else if began_ms > lease.until + TIMES_OFF_MS {
            assert_eq!(reply, Value::Null, "{lease:?} is over at {began_ms}");
        }
        true
    }

    /// Writes until it has written enough.
    fn write(&self, rng: &mut Rng) {
        let mut client = None;
        for _ in 0..20 + rng.below(60) {
            self.nap(rng);
            let connected = client.take().or_else(|| self.connect());
            let Some(mut connection) = connected else {
                return;
            };
            let holds = match rng.below(30) {
                0 => connection.ask(&[vec!["COMPACT".to_owned()]]).is_some(),
                1 => self.save(&mut connection),
                _ => self.write_one(&mut connection),
            };
            client = holds.then_some(connection);
        }
    }

    fn save(&self, client: &mut Client) -> bool {
        let began = self.history.lock().moment(self.now());
        let Some(reply) = client.ask(&[vec!["SAVE".to_owned()]]) else {
            return false;
        };
        if self.counts(&reply) {
            let mut history = self.history.lock();
            history.saved = history.saved.max(began);
        }
        true
    }

    fn write_one(&self, client: &mut Client) -> bool {
        let number = self.unique.fetch_add(1, Ordering::Relaxed);
        let index = {
            let mut history = self.history.lock();
            let began = history.moment(self.now());
            history.writes.push(Write {
                number,
                began,
                acknowledged: None,
            });
            history.writes.len() - 1
        };
        let Some(reply) = client.ask(&prefix::commands(number)) else {
            return false;
        };
        if self.counts(&reply) {
            let mut history = self.history.lock();
            let at = history.moment(self.now());
            history.writes[index].acknowledged = Some((at, self.now()));
            history.outcome.answered += 1;
        }
        true
    }

    /// Compares what is there with what was written.
    fn judge(&self, client: &mut Client) {
        let mut ask = |command: &str| {
            let words = command.split(' ').map(str::to_owned).collect();
            client.ask(&[words]).expect("the server is there")
        };
        let asked = [
            ask("KEYS s:*"),
            ask("LRANGE l 0 -1"),
            ask("ZRANGE z 0 -1"),
            ask("HKEYS h"),
        ];
        let seen: Seen = asked.map(|reply| numbers(&reply));
        let mut history = self.history.lock();
        let known: BTreeSet<u64> = history.writes.iter().map(|it| it.number).collect();
        let strange: Vec<&u64> = seen
            .iter()
            .flatten()
            .filter(|it| !known.contains(it))
            .collect();
        assert!(
            strange.is_empty(),
            "nobody wrote {strange:?}, or they were lost"
        );
        let demand = Demand {
            cut: history.cut,
            saved: history.saved,
        };
        let there = prefix::check(&history.writes, &seen, demand);
        let there = there.unwrap_or_else(|why| panic!("{why}"));
        let is_lost = |it: &&Write| it.acknowledged.is_some() && !there.contains(&it.number);
        let lost = history.writes.iter().filter(is_lost).count();
        history.outcome.lost += lost as u64;
        history.outcome.open += history
            .writes
            .iter()
            .filter(|it| it.acknowledged.is_none())
            .count() as u64;
        history.writes.retain(|it| there.contains(&it.number));
        // What was there after a power cut is there for ever.
        for write in &mut history.writes {
            write.acknowledged = Some((0, Duration::ZERO));
        }
    }
}

/// The numbers at the ends of some texts.
fn numbers(reply: &Value) -> BTreeSet<u64> {
    let Value::Array(texts) = reply else {
        panic!("no array: {reply:?}");
    };
    let number = |text: &Value| match text {
        Value::Bulk(text) => {
            let text = std::str::from_utf8(text).expect("a number");
            text.trim_start_matches("s:").parse().expect("a number")
        }
        other => panic!("no text: {other:?}"),
    };
    let numbers: Vec<u64> = texts.iter().map(number).collect();
    let set: BTreeSet<u64> = numbers.iter().copied().collect();
    assert_eq!(
        set.len(),
        numbers.len(),
        "something is there twice: {numbers:?}"
    );
    set
}

pub(crate) fn policy(rng: &mut Rng) -> CrashPolicy {
    CrashPolicy::ALL[rng.below(CrashPolicy::ALL.len() as u64) as usize]
}
