//! Clients that send reads many at a time, whose connections the loop lends and calls home, beside writers and operators.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_base::sync::Mutex;
use drumlin_fs::net::{NetFault, NetOp, NetRule};
use drumlin_fs::{Clock, Spawner, StrictMemFileSystem};
use drumlin_resp::{Value, encode_command};
use drumlin_sim::schedule::{End, Order, Scheduler, Tasked, simulate};

use crate::client::Client;
use crate::world::{Fsync, STEPS_MAX, World};

/// Keys whose values are numbers that grow.
const KEYS: usize = 3;
/// Values that are more than there is memory for.
const BALLAST: u64 = 300;
const BALLAST_BYTES: usize = 8 << 10;
const READERS: u64 = 4;
/// A pause; it begins with the turn that reads its command, which may have begun a little before.
const PAUSE_MS: u64 = 40;
/// By how much the end of a key may be seen too late: a turn of the loop.
const TIMES_OFF_MS: u64 = 50;

/// What the clients know.
#[derive(Default)]
struct Known {
    is_over: AtomicBool,
    /// The newest number of each key that was acknowledged, and that was sent.
    acknowledged: [AtomicU64; KEYS],
    sent: [AtomicU64; KEYS],
    /// When the key that lives for a while is over at the latest, in ms since 1970; 0 while nobody knows.
    over_ms: AtomicU64,
    /// Commands that were answered, and keys that were looked up.
    commands: AtomicU64,
    looked_up: AtomicU64,
    /// A connection broke: nobody knows how many of its commands ran.
    is_broken: AtomicBool,
    /// Who asks after the first moment is answered after the second one.
    pause: Mutex<(Duration, Duration)>,
}

impl Known {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Counts what was answered, or that it was not.
    fn count(&self, commands: usize, is_whole: bool) {
        self.commands.fetch_add(commands as u64, Ordering::Relaxed);
        self.is_broken.fetch_or(!is_whole, Ordering::Relaxed);
    }

    /// Asks, and counts that.
    fn ask(&self, client: &mut Client, lines: &[&str]) -> Option<Value> {
        let words = |line: &&str| line.split(' ').map(str::to_owned).collect();
        let commands: Vec<Vec<String>> = lines.iter().map(words).collect();
        let reply = client.ask(&commands);
        let is_whole = reply.is_some();
        self.count(if is_whole { commands.len() } else { 0 }, is_whole);
        reply
    }
}

/// What a reader asks for.
#[derive(Clone, Copy)]
enum Read {
    Number(usize),
    Both,
    Ballast(u64),
    Lease,
    /// Its own key is written, and read.
    Own(u64),
    Type,
}

impl Read {
    fn draw(rng: &mut Rng, own: u64) -> Self {
        match rng.below(24) {
            0 => Self::Ballast(rng.below(BALLAST)),
            1 | 2 => Self::Lease,
            3 if rng.one_in(4) => Self::Own(own),
            4..8 => Self::Both,
            8 => Self::Type,
            _ => Self::Number(rng.below(KEYS as u64) as usize),
        }
    }

    fn commands(self, id: u64) -> Vec<String> {
        match self {
            Self::Number(key) => vec![format!("GET n:{key}")],
            Self::Both => vec!["MGET x y".to_owned()],
            Self::Ballast(at) => vec![format!("GET b:{at}")],
            Self::Lease => vec!["GET t".to_owned()],
            Self::Own(value) => vec![format!("SET own:{id} {value}"), format!("GET own:{id}")],
            Self::Type => vec!["TYPE x".to_owned()],
        }
    }

    fn looks_up(self) -> u64 {
        match self {
            Self::Both => 2,
            _ => 1,
        }
    }
}

/// Runs a seed; how many connections were lent.
///
/// # Errors
/// What was wrong.
pub(crate) fn run(seed: u64) -> Result<u64, String> {
    let mut rng = Rng::new(seed ^ 0x1e47);
    let scheduler = Scheduler::new(seed, Order::draw(&mut rng), STEPS_MAX);
    let world = Arc::new(World::new(Fsync::EverySecond, &scheduler, rng.next_u64()));
    let lent = Arc::new(AtomicU64::new(0));
    let shared = Arc::clone(&lent);
    match simulate(&scheduler, move || live(&world, &shared, rng)) {
        End::Failed(why) => Err(why),
        End::Done => Ok(lent.load(Ordering::Relaxed)),
    }
}

fn live(world: &Arc<World>, lent: &AtomicU64, mut rng: Rng) {
    let server = world.start(StrictMemFileSystem::new());
    let known = Arc::new(Known::default());
    let mut first = world.connect().expect("the server is there");
    let value = "v".repeat(BALLAST_BYTES);
    for at in 0..BALLAST {
        let set = format!("SET b:{at} {at}{value}");
        known.ask(&mut first, &[&set]).expect("the server is there");
    }
    let all = ["SET x 0", "SET y 0", "SET n:0 0", "SET n:1 0", "SET n:2 0"];
    known.ask(&mut first, &all).expect("the server is there");
    for (op, fault) in [
        (NetOp::Read, NetFault::Short),
        (NetOp::Write, NetFault::Short),
        (NetOp::Read, NetFault::NotNow),
        (NetOp::Wait, NetFault::Reorder),
        (NetOp::Wait, NetFault::Interrupted),
    ] {
        if rng.one_in(2) {
            let rule = NetRule::one_in(3 + rng.below(9), rng.next_u64(), fault);
            world.network.add_rule(rule.on(op).seeded(rng.next_u64()));
        }
    }
    let kills = rng.one_in(3);
    let spawner = Tasked(Arc::clone(&world.scheduler));
    let mut tasks = Vec::new();
    let mut spawn = |name: &str, body: fn(&World, &Known, (u64, bool), &mut Rng), id: u64| {
        let (world, known, mut rng) = (Arc::clone(world), Arc::clone(&known), rng.fork());
        let body = move || {
            while !known.is_over() {
                body(&world, &known, (id, kills), &mut rng);
            }
        };
        tasks.push(spawner.spawn(name, Box::new(body)).expect("a task"));
    };
    (0..READERS).for_each(|id| spawn("reader", read, id));
    spawn("writer", write, 0);
    spawn("operator", operate, 0);
    let time = Duration::from_millis(300 + rng.below(1_500));
    world.scheduler.sleep(time);
    let ends_at_once = rng.one_in(4);
    if ends_at_once {
        server.stopper.stop().expect("wakes");
        world.scheduler.sleep(Duration::from_millis(5));
    }
    known.is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.join().expect("a panic ends the run");
    }
    if !ends_at_once {
        lent.store(judge(&known, &mut first), Ordering::Relaxed);
        server.stopper.stop().expect("wakes");
    }
    server.thread.join().expect("a panic ends the run");
}

/// Compares what the server counted with what was answered; how many connections it lent.
fn judge(known: &Known, first: &mut Client) -> u64 {
    // It may have been cut off.
    let Some(info) = known.ask(first, &["INFO everything"]) else {
        return 0;
    };
    if !known.is_broken.load(Ordering::Relaxed) {
        let commands = known.commands.load(Ordering::Relaxed);
        // Itself it counts when it has ended.
        assert_eq!(calls(&info) + 1, commands);
        let looked_up = known.looked_up.load(Ordering::Relaxed);
        let [found, missed] = ["keyspace_hits:", "keyspace_misses:"].map(|it| figure(&info, it));
        assert_eq!(found + missed, looked_up);
    }
    figure(&info, "lent_connections:")
}

fn figure(info: &Value, name: &str) -> u64 {
    let text = String::from_utf8_lossy(info.as_bytes().unwrap_or_default()).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|it| it.parse().ok()).expect("a number")
}

/// The calls of all commands, which have ended.
fn calls(info: &Value) -> u64 {
    let text = String::from_utf8_lossy(info.as_bytes().unwrap_or_default()).into_owned();
    let of_one = |line: &str| {
        let (_, figures) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        figures.split(',').next()?.parse::<u64>().ok()
    };
    text.lines().filter_map(of_one).sum()
}

fn number(value: &Value) -> u64 {
    let text = value.as_bytes().and_then(|it| std::str::from_utf8(it).ok());
    let number = text.and_then(|it| it.parse().ok());
    number.unwrap_or_else(|| panic!("{value:?} is no number"))
}

/// A connection's life: reads, many at a time, now and then with a write among them.
fn read(world: &World, known: &Known, (id, _): (u64, bool), rng: &mut Rng) {
    let Some(mut client) = Client::connect(&world.network, &world.scheduler, || known.is_over())
    else {
        return;
    };
    let mut seen = [0; KEYS];
    for own in 0.. {
        if known.is_over() {
            return;
        }
        let reads: Vec<Read> = (0..4 + rng.below(13))
            .map(|_| Read::draw(rng, own))
            .collect();
        let commands: Vec<String> = reads.iter().flat_map(|read| read.commands(id)).collect();
        let mut bytes = Vec::new();
        for command in &commands {
            encode_command(&mut bytes, &command.split(' ').collect::<Vec<_>>());
        }
        let least = [0, 1, 2].map(|key| known.acknowledged[key].load(Ordering::Relaxed));
        let over_ms = known.over_ms.load(Ordering::Relaxed);
        let (began, began_ms) = (world.scheduler.now(), world.scheduler.unix_millis());
        let cut = rng.below(bytes.len() as u64) as usize;
        let (one, other) = bytes.split_at(if rng.one_in(3) { cut } else { 0 });
        let mut replies = Vec::new();
        if client.say(one) && client.say(other) {
            replies.extend((0..commands.len()).map_while(|_| client.reply()));
        }
        known.count(replies.len(), replies.len() == commands.len());
        if replies.len() < commands.len() {
            return;
        }
        let looked_up = reads.iter().map(|read| read.looks_up()).sum();
        known.looked_up.fetch_add(looked_up, Ordering::Relaxed);
        let (from, until) = *known.pause.lock();
        let now = world.scheduler.now();
        assert!(
            began <= from || now >= until,
            "asked at {began:?} and answered at {now:?} in a pause from {from:?} to {until:?}"
        );
        // Not set anew meanwhile.
        let is_same = known.over_ms.load(Ordering::Relaxed) == over_ms;
        let is_over = is_same && over_ms > 0 && began_ms > over_ms + TIMES_OFF_MS;
        let mut replies = replies.iter();
        for read in reads {
            let reply = replies.next().expect("one for each");
            match read {
                Read::Number(key) => {
                    let (value, most) = (number(reply), known.sent[key].load(Ordering::Relaxed));
                    let least = least[key].max(seen[key]);
                    assert!((least..=most).contains(&value), "{value}: {least}..={most}");
                    seen[key] = value;
                }
                Read::Both => match reply.as_items() {
                    Some([x, y]) => assert_eq!(x, y, "one transaction wrote both"),
                    _ => panic!("{reply:?} are no two"),
                },
                Read::Ballast(at) => {
                    let value = reply.as_bytes().expect("it is there");
                    assert_eq!(value.len(), BALLAST_BYTES + at.to_string().len());
                }
                Read::Lease => assert!(!is_over || *reply == Value::Null, "it is over: {reply:?}"),
                Read::Own(value) => {
                    assert_eq!(*reply, Value::Simple(b"OK".to_vec()));
                    assert_eq!(number(replies.next().expect("one for each")), value);
                }
                Read::Type => assert_eq!(*reply, Value::Simple(b"string".to_vec())),
            }
        }
        if rng.one_in(8) {
            // From a moment to longer than a hand waits.
            let micros = 1 << rng.below(19);
            world.scheduler.sleep(Duration::from_micros(micros));
        }
    }
}

/// Writes numbers that grow, two keys at once, and one that lives for a while.
fn write(world: &World, known: &Known, _: (u64, bool), rng: &mut Rng) {
    let Some(mut client) = Client::connect(&world.network, &world.scheduler, || known.is_over())
    else {
        return;
    };
    while !known.is_over() {
        let holds = match rng.below(8) {
            0..5 => {
                let key = rng.below(KEYS as u64) as usize;
                let value = known.sent[key].fetch_add(1, Ordering::Relaxed) + 1;
                let told = known.ask(&mut client, &[&format!("SET n:{key} {value}")]);
                if told.is_some() {
                    known.acknowledged[key].store(value, Ordering::Relaxed);
                }
                told.is_some()
            }
            5 | 6 => {
                let value = rng.below(1_000);
                let sets = [format!("SET x {value}"), format!("SET y {value}")];
                let all = ["MULTI", &sets[0], &sets[1], "EXEC"];
                known.ask(&mut client, &all).is_some()
            }
            _ => {
                let millis = 1 + rng.below(60);
                known.over_ms.store(0, Ordering::Relaxed);
                let told = known.ask(&mut client, &[&format!("SET t 1 PX {millis}")]);
                let over_ms = world.scheduler.unix_millis() + millis;
                if told.is_some() {
                    known.over_ms.store(over_ms, Ordering::Relaxed);
                }
                told.is_some()
            }
        };
        if !holds {
            return;
        }
        let micros = 1 << rng.below(14);
        world.scheduler.sleep(Duration::from_micros(micros));
    }
}

/// Asks for what needs all connections at home.
fn operate(world: &World, known: &Known, (_, kills): (u64, bool), rng: &mut Rng) {
    let Some(mut client) = Client::connect(&world.network, &world.scheduler, || known.is_over())
    else {
        return;
    };
    while !known.is_over() {
        let millis = 1 + rng.below(120);
        world.scheduler.sleep(Duration::from_millis(millis));
        let least = known.commands.load(Ordering::Relaxed);
        let began = world.scheduler.now();
        let lines: &[&str] = match rng.below(9) {
            0 | 1 => &["INFO everything"],
            2 => &["CLIENT PAUSE 40 ALL"],
            3 => &["CLIENT LIST"],
            4 => &[
                "CONFIG SET slowlog-log-slower-than 0",
                "SLOWLOG GET 3",
                "CONFIG SET slowlog-log-slower-than 10000",
            ],
            5 if kills => &["CLIENT KILL TYPE normal SKIPME yes"],
            5 => &["SWAPDB 5 6"],
            6 => &["CONFIG SET notify-keyspace-events KEA"],
            7 => &["CONFIG SET notify-keyspace-events "],
            _ => &["ACL SETUSER default on nopass ~* &* +@all"],
        };
        let Some(reply) = known.ask(&mut client, lines) else {
            return;
        };
        assert!(!matches!(reply, Value::Error(_)), "{lines:?}: {reply:?}");
        if lines[0].starts_with("INFO") {
            let told = calls(&reply);
            assert!(told >= least, "{told} were counted, and {least} answered");
        }
        if lines[0].starts_with("CLIENT PAUSE") {
            let until = began + Duration::from_millis(PAUSE_MS - 5);
            *known.pause.lock() = (world.scheduler.now(), until);
            world.scheduler.sleep(Duration::from_millis(PAUSE_MS));
        }
    }
}
