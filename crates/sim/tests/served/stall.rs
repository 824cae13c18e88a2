//! A server whose engine takes no writes for a while, again and again, until a power cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_fs::{Fault, FaultRule, FileKind, OpKind, Spawner, StrictMemFileSystem};
use drumlin_resp::Value;
use drumlin_sim::schedule::{End, Order, Scheduler, Tasked, simulate};

use crate::client::Client;
use crate::world::{Fsync, Running, STEPS_MAX, World, policy};

/// Bytes of a value of the ballast.
const BALLAST_BYTES: usize = 8 << 10;
/// Elements of the list before all this, which make it a tree of some nodes.
const ELEMENTS: u64 = 400;

/// What the clients know.
#[derive(Default)]
struct Known {
    is_over: AtomicBool,
    /// Elements of the list that were sent, that were acknowledged, and that have to outlive a power cut.
    sent: AtomicU64,
    acknowledged: AtomicU64,
    safe: AtomicU64,
    /// Rounds that had to wait for the engine.
    stalls: AtomicU64,
}

impl Known {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Runs a seed; how many rounds had to wait for the engine.
///
/// # Errors
/// What was wrong.
pub(crate) fn run(seed: u64, fsync: Fsync) -> Result<u64, String> {
    let mut rng = Rng::new(seed ^ 0x57a1);
    let scheduler = Scheduler::new(seed, Order::draw(&mut rng), STEPS_MAX);
    let world = Arc::new(World::new(fsync, &scheduler, rng.next_u64()));
    let known = Arc::new(Known::default());
    let shared = Arc::clone(&known);
    match simulate(&scheduler, move || live(&world, &shared, fsync, rng)) {
        End::Failed(why) => Err(why),
        End::Done => Ok(known.stalls.load(Ordering::Relaxed)),
    }
}

fn live(world: &Arc<World>, known: &Arc<Known>, fsync: Fsync, mut rng: Rng) {
    let server = world.start(StrictMemFileSystem::new());
    for op in [OpKind::Append, OpKind::Sync] {
        let slow = Fault::slow(Duration::from_millis(20 << rng.below(4)));
        let rule = FaultRule::always(slow).on(op).of_kind(FileKind::Table);
        server.files.add_rule(rule);
    }
    let slow = Fault::slow(Duration::from_millis(1 << rng.below(6)));
    let rule = FaultRule::one_in(2, rng.next_u64(), slow);
    server
        .files
        .add_rule(rule.on(OpKind::Sync).of_kind(FileKind::Wal));
    let mut first = world.connect().expect("the server is there");
    while known.sent.load(Ordering::Relaxed) < ELEMENTS {
        push(&mut first, known, fsync);
    }
    let spawner = Tasked(Arc::clone(&world.scheduler));
    let mut tasks = Vec::new();
    let mut spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
        tasks.push(spawner.spawn(name, body).expect("a task"));
    };
    for ballast in 0..2u64 {
        let (world, known, mut rng) = (Arc::clone(world), Arc::clone(known), rng.fork());
        spawn(
            "ballast",
            Box::new(move || fill(&world, &known, ballast, &mut rng)),
        );
    }
    let (of_pusher, of_known) = (Arc::clone(world), Arc::clone(known));
    spawn(
        "pusher",
        Box::new(move || {
            let mut client = of_pusher.connect().expect("the server is there");
            while !of_known.is_over() && push(&mut client, &of_known, fsync) {}
        }),
    );
    let (of_reader, of_known) = (Arc::clone(world), Arc::clone(known));
    spawn("reader", Box::new(move || read(&of_reader, &of_known)));
    if fsync == Fsync::EverySecond {
        let (of_saver, of_known) = (Arc::clone(world), Arc::clone(known));
        spawn("saver", Box::new(move || save(&of_saver, &of_known)));
    }
    world
        .scheduler
        .sleep(Duration::from_millis(500 + rng.below(8_000)));
    let stalls = stalled_rounds(&mut first);
    known.stalls.store(stalls, Ordering::Relaxed);
    // From here on nobody counts a reply; the power cut comes after that.
    known.is_over.store(true, Ordering::Relaxed);
    let safe = known.safe.load(Ordering::Relaxed);
    let image = server.memory.crash_image(rng.next_u64(), policy(&mut rng));
    let Running {
        stopper,
        thread,
        files,
        ..
    } = server;
    files.clear_rules();
    stopper.stop().expect("wakes");
    for task in tasks.into_iter().chain([thread]) {
        task.join().expect("a panic ends the run");
    }
    look(world, image, safe);
}

/// Appends the next number to the list; whether the connection holds.
fn push(client: &mut Client, known: &Known, fsync: Fsync) -> bool {
    let number = known.sent.fetch_add(1, Ordering::Relaxed);
    let Some(reply) = ask(client, &format!("RPUSH l {number:040}")) else {
        return false;
    };
    if !known.is_over() {
        assert_eq!(reply, Value::Integer(number as i64 + 1));
        known.acknowledged.store(number + 1, Ordering::Relaxed);
        if fsync == Fsync::Always {
            known.safe.store(number + 1, Ordering::Relaxed);
        }
    }
    true
}

/// Writes values that do not compress.
fn fill(world: &World, known: &Known, ballast: u64, rng: &mut Rng) {
    let mut client = world.connect().expect("the server is there");
    for at in 0u64.. {
        let letters = (0..BALLAST_BYTES).map(|_| char::from(b'!' + rng.below(90) as u8));
        let value: String = letters.collect();
        if known.is_over() || ask(&mut client, &format!("SET b:{ballast}:{at} {value}")).is_none() {
            return;
        }
    }
}

/// Reads the end of the list: all that was acknowledged before is there, in order, and nothing that was not sent.
fn read(world: &World, known: &Known) {
    let mut client = world.connect().expect("the server is there");
    while !known.is_over() {
        let least = known.acknowledged.load(Ordering::Relaxed);
        let Some(reply) = ask(&mut client, "LRANGE l -3 -1") else {
            return;
        };
        let most = known.sent.load(Ordering::Relaxed);
        let last = check_end(&reply);
        assert!(last < most, "{last} is read, {most} were sent");
        assert!(
            known.is_over() || last + 1 >= least,
            "{last} is the last, {least} were there"
        );
        world.scheduler.sleep(Duration::from_millis(3));
    }
}

/// The last of some numbers, which follow one another.
fn check_end(reply: &Value) -> u64 {
    let number = |it: &Value| {
        let text = it.as_bytes().and_then(|it| std::str::from_utf8(it).ok());
        text.and_then(|it| it.parse().ok()).expect("a number")
    };
    let numbers: Vec<u64> = reply
        .as_items()
        .expect("a list")
        .iter()
        .map(number)
        .collect();
    assert!(
        numbers.is_sorted_by(|one, next| one + 1 == *next),
        "{numbers:?}"
    );
    *numbers.last().expect("the list has elements")
}

/// Saves again and again.
fn save(world: &World, known: &Known) {
    let mut client = world.connect().expect("the server is there");
    while !known.is_over() {
        let before = known.acknowledged.load(Ordering::Relaxed);
        let Some(reply) = ask(&mut client, "SAVE") else {
            return;
        };
        if !known.is_over() {
            assert_eq!(reply, Value::Simple(b"OK".to_vec()));
            known.safe.fetch_max(before, Ordering::Relaxed);
        }
        world.scheduler.sleep(Duration::from_millis(7));
    }
}

/// What the list has after the power cut: all numbers up to one, which are `safe` or more.
fn look(world: &Arc<World>, image: StrictMemFileSystem, safe: u64) {
    let server = world.start(image);
    let mut client = world.connect().expect("the server is there");
    let reply = ask(&mut client, "LRANGE l 0 -1").expect("a reply");
    let there = match reply.as_items() {
        Some([]) => 0,
        _ => check_end(&reply) + 1,
    };
    assert!(there >= safe, "{there} are there, {safe} should be");
    server.stopper.stop().expect("wakes");
    server.thread.join().expect("a panic ends the run");
}

fn stalled_rounds(client: &mut Client) -> u64 {
    let info = ask(client, "INFO stats").expect("a reply");
    let text = String::from_utf8_lossy(info.as_bytes().unwrap_or_default()).into_owned();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("stalled_rounds:"));
    line.and_then(|it| it.parse().ok()).expect("a number")
}

fn ask(client: &mut Client, line: &str) -> Option<Value> {
    client.ask(&[line.split(' ').map(str::to_owned).collect()])
}
