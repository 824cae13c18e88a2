//! Goal: a server of several loops on the network in memory runs by its seed alone, loses no byte but with a
//! connection, and forgets no connection, under any fault of the network. Method: an echo server and its clients under
//! the simulated scheduler, where minutes of silence cost nothing; each seed draws faults, sizes and the order of
//! threads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_base::sync::Mutex;
use drumlin_fs::net::{
    Acceptor, Address, Connection, Events, Interest, ListenOptions, Listener, MemNetwork,
    NetErrorKind, NetFault, NetOp, NetRule, Network, Poller, Received, Sent, Token, Waker,
};
use drumlin_fs::{Clock, JoinHandle, Spawner};
use drumlin_sim::schedule::{End, Order, Scheduler, Tasked, simulate};

/// Places a switch is possible at before a run counts as one that never ends.
const STEPS_MAX: u64 = 3_000_000;
const LISTENER: Token = Token(0);
const KEEPALIVE: Duration = Duration::from_secs(3);
const CLIENTS: u64 = 4;
const LOOPS: usize = 2;

fn address() -> Address {
    Address::Tcp("10.0.0.1:6379".parse().expect("it is one"))
}

/// A connection of the server, and the bytes it has to send back.
struct Session {
    connection: Box<dyn Connection>,
    output: Vec<u8>,
    ended: bool,
    interest: Interest,
}

impl Session {
    /// Reads once, writes once; whether the connection goes on.
    fn turn(&mut self, poller: &dyn Poller, token: Token) -> bool {
        let mut buffer = [0; 700];
        if !self.ended && self.output.len() < 5000 {
            match self.connection.read(&mut buffer) {
                Ok(Received::Bytes(count)) => self.output.extend_from_slice(&buffer[..count]),
                Ok(Received::End) => self.ended = true,
                Ok(Received::NotNow) => {}
                Err(_) => return false,
            }
        }
        match self.connection.write(&self.output) {
            Ok(Sent::Bytes(count)) => drop(self.output.drain(..count)),
            Ok(Sent::NotNow) => {}
            Err(_) => return false,
        }
        if self.ended && self.output.is_empty() {
            return false;
        }
        let reads = !self.ended && self.output.len() < 5000;
        let wanted = match (reads, self.output.is_empty()) {
            (true, true) => Interest::Read,
            (true, false) => Interest::ReadWrite,
            (false, _) => Interest::Write,
        };
        if wanted != self.interest {
            let outcome = poller.reregister(&*self.connection, token, wanted);
            outcome.expect("it is registered");
            self.interest = wanted;
        }
        true
    }
}

/// State that the loops share.
struct Server {
    clock: Arc<Scheduler>,
    mailboxes: Vec<Mutex<Vec<Box<dyn Connection>>>>,
    wakers: Vec<Arc<dyn Waker>>,
    stops: AtomicBool,
    accepted: AtomicU64,
}

impl Server {
    /// Gives new connections to the loops in turn.
    fn accept(&self, acceptor: &mut Acceptor, poller: &dyn Poller) {
        let now = self.clock.monotonic();
        while let Some(mut connection) = acceptor.accept(poller, now).expect("it pauses") {
            connection
                .set_keepalive(Some(KEEPALIVE))
                .expect("it is taken");
            let turn = self.accepted.fetch_add(1, Ordering::Relaxed) as usize % LOOPS;
            self.mailboxes[turn].lock().push(connection);
            self.wakers[turn].wake().expect("it is there");
        }
    }

    fn run(&self, index: usize, mut poller: Box<dyn Poller>, listener: Option<Box<dyn Listener>>) {
        let accept = |listener| Acceptor::new(listener, &*poller, LISTENER);
        let mut acceptor = listener.map(|listener| accept(listener).expect("it is new"));
        let mut sessions = BTreeMap::new();
        let mut last = LISTENER;
        let mut events = Events::with_capacity(3);
        loop {
            let now = self.clock.monotonic();
            let timeout = acceptor
                .as_ref()
                .and_then(|acceptor| acceptor.wait_at_most(now));
            poller.wait(&mut events, timeout).expect("it waits");
            if self.stops.load(Ordering::Relaxed) {
                assert!(
                    sessions.is_empty(),
                    "{} connections are left",
                    sessions.len()
                );
                return;
            }
            for connection in std::mem::take(&mut *self.mailboxes[index].lock()) {
                last = Token(last.0 + 1);
                let interest = Interest::Read;
                let outcome = poller.register(&*connection, last, interest);
                outcome.expect("it is new");
                let session = Session {
                    connection,
                    output: Vec::new(),
                    ended: false,
                    interest,
                };
                sessions.insert(last, session);
            }
            if let Some(acceptor) = &mut acceptor {
                let now = self.clock.monotonic();
                acceptor.resume(&*poller, now).expect("it is registered");
            }
            for event in events.iter() {
                let Some(session) = sessions.get_mut(&event.token) else {
                    let acceptor = acceptor.as_mut().expect("nothing else has this token");
                    self.accept(acceptor, &*poller);
                    continue;
                };
                if !session.turn(&*poller, event.token) {
                    sessions.remove(&event.token);
                }
            }
        }
    }
}

/// Connects, trying again when it is refused.
fn connect(network: &MemNetwork, clock: &Scheduler) -> Box<dyn Connection> {
    loop {
        if let Ok(mut connection) = network.connect(&address()) {
            connection
                .set_keepalive(Some(KEEPALIVE))
                .expect("it is taken");
            let mut poller = network.poller().expect("it is made");
            let outcome = poller.register(&*connection, Token(1), Interest::Write);
            outcome.expect("it is new");
            let mut events = Events::with_capacity(1);
            loop {
                match connection.connected() {
                    Ok(true) => return connection,
                    Ok(false) => poller.wait(&mut events, None).expect("it waits"),
                    Err(_) => break,
                }
            }
        }
        clock.sleep(Duration::from_millis(50));
    }
}

/// Sends random bytes and receives them back. Returns whether the connection held.
fn converse(network: &MemNetwork, clock: &Scheduler, mut rng: Rng) -> bool {
    let mut connection = connect(network, clock);
    let mut poller = network.poller().expect("it is made");
    let interest = Interest::ReadWrite;
    poller
        .register(&*connection, Token(1), interest)
        .expect("it is new");
    let mut bytes = vec![0; rng.below(20_000) as usize];
    rng.fill(&mut bytes);
    let (mut sent, mut heard) = (0, Vec::new());
    let mut events = Events::with_capacity(1);
    let mut buffer = [0; 1000];
    loop {
        poller.wait(&mut events, None).expect("it waits");
        if sent < bytes.len() {
            let until = bytes.len().min(sent + 1 + rng.below(3000) as usize);
            match connection.write(&bytes[sent..until]) {
                Ok(Sent::Bytes(count)) => sent += count,
                Ok(Sent::NotNow) => {}
                Err(error) => return broken(&error),
            }
        }
        if sent == bytes.len() {
            sent += 1;
            if connection.shutdown_write().is_err() {
                return false;
            }
            let outcome = poller.reregister(&*connection, Token(1), Interest::Read);
            outcome.expect("it is registered");
        }
        match connection.read(&mut buffer) {
            Ok(Received::Bytes(count)) => heard.extend_from_slice(&buffer[..count]),
            Ok(Received::NotNow) => {}
            Ok(Received::End) if heard.len() < bytes.len() => return false,
            Ok(Received::End) => break,
            Err(error) => return broken(&error),
        }
        assert!(bytes.starts_with(&heard), "other bytes than were sent");
    }
    assert!(bytes == heard);
    true
}

fn broken(error: &drumlin_base::Error) -> bool {
    let kind = NetErrorKind::of(error);
    let may_be = [NetErrorKind::Disconnected, NetErrorKind::TimedOut];
    assert!(may_be.contains(&kind), "{error:?}");
    false
}

/// The faults of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weather {
    Calm,
    /// Everything is late, in pieces and in another order, and nothing breaks.
    Rough,
    /// Connections break as well.
    Storm,
}

fn add_rules(network: &MemNetwork, weather: Weather, rng: &mut Rng) {
    let slow = NetFault::Slow {
        least: Duration::ZERO,
        most: Duration::from_millis(1 + rng.below(300)),
    };
    let mut add = |n: u64, op: NetOp, fault: NetFault| {
        let rule = NetRule::one_in(n, rng.next_u64(), fault);
        network.add_rule(rule.on(op).seeded(rng.next_u64()));
    };
    if weather == Weather::Calm {
        return;
    }
    for op in [NetOp::Read, NetOp::Write] {
        add(3, op, NetFault::Short);
        add(5, op, NetFault::NotNow);
    }
    for op in [NetOp::Write, NetOp::Ready, NetOp::Connect] {
        add(4, op, slow);
    }
    add(2, NetOp::Wait, NetFault::Reorder);
    add(9, NetOp::Wait, NetFault::Interrupted);
    add(2, NetOp::Accept, NetFault::TooManyFiles);
    add(2, NetOp::Connect, NetFault::Refused);
    if weather == Weather::Storm {
        for fault in [NetFault::Reset, NetFault::Vanish, NetFault::HalfOpen] {
            add(150, NetOp::Read, fault);
            add(150, NetOp::Write, fault);
        }
    }
}

/// The result of a run.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    hash: u64,
    steps: u64,
    time: Duration,
    injected: u64,
    held: u64,
}

fn serve(scheduler: &Arc<Scheduler>, network: &MemNetwork, rng: &mut Rng, held: &Arc<AtomicU64>) {
    let spawner = Tasked(Arc::clone(scheduler));
    let spawn = |name: String, body: Box<dyn FnOnce() + Send>| -> Box<dyn JoinHandle> {
        spawner.spawn(&name, body).expect("threads are there")
    };
    let pollers: Vec<_> = (0..LOOPS)
        .map(|_| network.poller().expect("it is made"))
        .collect();
    let server = Arc::new(Server {
        clock: Arc::clone(scheduler),
        mailboxes: (0..LOOPS).map(|_| Mutex::default()).collect(),
        wakers: pollers.iter().map(|poller| poller.waker()).collect(),
        stops: AtomicBool::new(false),
        accepted: AtomicU64::new(0),
    });
    let listener = network.listen(&address(), ListenOptions::default());
    let mut listener = Some(listener.expect("nobody else listens"));
    let mut loops = Vec::new();
    for (index, poller) in pollers.into_iter().enumerate() {
        let (server, listener) = (Arc::clone(&server), listener.take());
        let body = move || server.run(index, poller, listener);
        loops.push(spawn(format!("loop {index}"), Box::new(body)));
    }
    let mut clients = Vec::new();
    for index in 0..CLIENTS {
        let (network, clock, mut rng) = (network.clone(), Arc::clone(scheduler), rng.fork());
        let held = Arc::clone(held);
        let body = move || {
            for _ in 0..2 {
                let whole = converse(&network, &clock, rng.fork());
                held.fetch_add(u64::from(whole), Ordering::Relaxed);
            }
        };
        clients.push(spawn(format!("client {index}"), Box::new(body)));
    }
    for client in clients {
        client.join().expect("a panic ends the run");
    }
    // The listener is left. A peer that has vanished is given up within twice the keepalive.
    let begin = scheduler.now();
    while network.open_sources() > 1 {
        scheduler.sleep(Duration::from_secs(1));
        let waited = scheduler.now() - begin;
        assert!(
            waited < KEEPALIVE * 4,
            "{} are open",
            network.open_sources()
        );
    }
    server.stops.store(true, Ordering::Relaxed);
    for waker in &server.wakers {
        waker.wake().expect("it is there");
    }
    for task in loops {
        task.join().expect("a panic ends the run");
    }
    assert_eq!(network.open_sources(), 0);
}

fn run(seed: u64, weather: Weather) -> Outcome {
    let mut rng = Rng::new(seed);
    let scheduler = Scheduler::new(seed, Order::draw(&mut rng), STEPS_MAX);
    let network = MemNetwork::new(Arc::clone(&scheduler) as _, rng.next_u64());
    network.set_capacity(1 + rng.below(9000) as usize);
    add_rules(&network, weather, &mut rng);
    let held = Arc::new(AtomicU64::new(0));
    let (shared, at, kept) = (Arc::clone(&scheduler), network.clone(), Arc::clone(&held));
    let end = simulate(&scheduler, move || serve(&shared, &at, &mut rng, &kept));
    assert!(matches!(end, End::Done), "seed {seed}: {end:?}");
    Outcome {
        hash: scheduler.hash(),
        steps: scheduler.steps(),
        time: scheduler.now(),
        injected: network.injected(),
        held: held.load(Ordering::Relaxed),
    }
}

#[test]
fn in_calm_and_rough_weather_every_byte_comes_back() {
    for seed in 0..20 {
        for weather in [Weather::Calm, Weather::Rough] {
            let outcome = run(seed, weather);
            assert_eq!(outcome.held, CLIENTS * 2, "seed {seed}");
            assert_eq!(outcome.injected > 100, weather == Weather::Rough);
        }
    }
}

#[test]
fn in_a_storm_connections_break_and_none_is_forgotten() {
    let outcomes: Vec<_> = (100..140).map(|seed| run(seed, Weather::Storm)).collect();
    let held: u64 = outcomes.iter().map(|outcome| outcome.held).sum();
    let all = CLIENTS * 2 * outcomes.len() as u64;
    assert!(held > 20 && held < all - 20, "{held} of {all} held");
}

#[test]
fn a_seed_does_the_same_again() {
    for seed in 200..205 {
        assert_eq!(run(seed, Weather::Storm), run(seed, Weather::Storm));
    }
    let other = run(205, Weather::Storm).hash;
    assert_ne!(run(206, Weather::Storm).hash, other);
}

/// Runs `body` as the only task, with a connection: this side's, and the other's.
fn alone(
    body: impl FnOnce(&Scheduler, &MemNetwork, (Box<dyn Connection>, Box<dyn Connection>))
    + Send
    + 'static,
) {
    let scheduler = Scheduler::new(1, Order::Random(1), 10_000);
    let shared = Arc::clone(&scheduler);
    let end = simulate(&scheduler, move || {
        let network = MemNetwork::new(Arc::clone(&shared) as _, 1);
        let listener = network.listen(&address(), ListenOptions::default());
        let mut listener = listener.expect("nobody else listens");
        let client = network.connect(&address()).expect("it is there");
        let server = listener.accept().expect("it can").expect("there is one");
        body(&shared, &network, (client, server));
    });
    assert!(matches!(end, End::Done), "{end:?}");
}

fn wait(network: &MemNetwork, connection: &dyn Connection, timeout: Option<Duration>) -> usize {
    let mut poller = network.poller().expect("it is made");
    let outcome = poller.register(connection, Token(1), Interest::Read);
    outcome.expect("it is new");
    let mut events = Events::with_capacity(1);
    poller.wait(&mut events, timeout).expect("it waits");
    events.len()
}

#[test]
fn a_wait_takes_its_timeout_of_simulated_time() {
    alone(|clock, network, (_client, server)| {
        let hour = Duration::from_secs(3600);
        assert_eq!(wait(network, &*server, Some(hour)), 0);
        assert_eq!(clock.now(), hour);
    });
}

#[test]
fn late_bytes_end_a_wait_when_they_arrive() {
    alone(|clock, network, (mut client, server)| {
        let minute = Duration::from_secs(60);
        let rule = NetRule::once(0, NetFault::slow(minute)).on(NetOp::Write);
        network.add_rule(rule);
        client.write(b"late").expect("there is room");
        assert_eq!(wait(network, &*server, None), 1);
        assert_eq!(clock.now(), minute);
    });
}

#[test]
fn a_peer_that_vanished_is_given_up_by_keepalive_and_by_writes() {
    let vanish = || NetRule::once(0, NetFault::Vanish).on(NetOp::Write);
    alone(move |clock, network, (mut client, mut server)| {
        let idle = Duration::from_secs(300);
        server.set_keepalive(Some(idle)).expect("it is taken");
        network.add_rule(vanish());
        client.write(b"lost").expect("there is room");
        assert_eq!(wait(network, &*server, None), 1);
        assert_eq!(clock.now(), idle * 2);
        let error = server.read(&mut [0]).expect_err("it has failed");
        assert_eq!(NetErrorKind::of(&error), NetErrorKind::TimedOut);
        // This side has written and has no keepalive.
        assert_eq!(wait(network, &*client, None), 1);
        assert!(clock.now() > Duration::from_secs(15 * 60));
        let error = client.write(b"x").expect_err("it has failed");
        assert_eq!(NetErrorKind::of(&error), NetErrorKind::TimedOut);
    });
}

#[test]
fn a_half_open_connection_is_found_by_keepalive() {
    alone(|clock, network, (_client, mut server)| {
        let idle = Duration::from_secs(30);
        server.set_keepalive(Some(idle)).expect("it is taken");
        network.add_rule(NetRule::once(0, NetFault::HalfOpen).on(NetOp::Read));
        assert_eq!(server.read(&mut [0]).expect("silence"), Received::NotNow);
        assert_eq!(wait(network, &*server, None), 1);
        assert_eq!(clock.now(), idle);
        let error = server.read(&mut [0]).expect_err("it has failed");
        assert_eq!(NetErrorKind::of(&error), NetErrorKind::Disconnected);
    });
}

#[test]
fn everybody_waiting_for_ever_is_found_out() {
    let scheduler = Scheduler::new(1, Order::Random(1), 10_000);
    let shared = Arc::clone(&scheduler);
    let end = simulate(&scheduler, move || {
        let network = MemNetwork::new(shared as _, 1);
        let mut poller = network.poller().expect("it is made");
        let outcome = poller.wait(&mut Events::with_capacity(1), None);
        outcome.expect("nobody comes back");
    });
    let End::Failed(why) = end else {
        panic!("it ended");
    };
    assert!(why.contains("everybody waits"), "{why}");
}

#[test]
fn the_wall_clock_jumps_forth_and_back_and_the_other_does_not() {
    alone(|clock, _, _| {
        let day = Duration::from_secs(86_400);
        let begin = clock.unix_time();
        clock.sleep(day);
        assert_eq!(clock.unix_time(), begin + day);
        clock.set_unix_time(begin - day);
        clock.sleep(Duration::from_millis(1500));
        assert_eq!(clock.unix_time(), begin - day + Duration::from_millis(1500));
        assert_eq!(clock.unix_millis() % 1000, 500);
        clock.set_unix_time(begin + day * 9);
        assert_eq!(clock.unix_seconds(), (begin + day * 9).as_secs());
        assert_eq!(clock.now(), day + Duration::from_millis(1500));
    });
}
