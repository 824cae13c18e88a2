//! Goal: a replica has what its primary has, whatever is killed: the replica, the primary, or the connection, while both load
//! all data and while the stream goes on. Method: one writer of all types in pipelines, and deaths by SIGKILL at moments drawn from
//! a seed; then writes rest, WAIT says when the replica is as far, and DEBUG DIGEST compares all data. `REPLICA_KILLS` says how
//! often, 6 times otherwise; `REPLICA_KEYS` how many keys there are at first, 5,000 otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_fs::{Env, JoinHandle};
use drumlin_resp::Value;
use drumlin_testkit::temp_dir;

use crate::node::{Client, Node, ask, text_of, until};

/// Commands that the writer sends before it waits.
const PIPELINE: u64 = 50;
/// Keys of a type.
const KEYS: u64 = 400;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |it| it.parse().expect("a number"))
}

/// What the writer and the test share.
#[derive(Default)]
struct Orders {
    ends: AtomicBool,
    rests: AtomicBool,
    /// The writer has seen that it is to rest.
    is_resting: AtomicBool,
    /// Writes that were answered.
    count: AtomicU64,
    port: AtomicU16,
}

fn line(rng: &mut Rng) -> String {
    let (key, value) = (rng.below(KEYS), rng.below(1 << 40));
    match rng.below(12) {
        0..=2 => format!("SET s{key} {value}"),
        3 => format!("APPEND s{key} {value}"),
        4 => format!("RPUSH l{key} {value} {value}"),
        5 => format!("LPOP l{key}"),
        6 => format!("HSET h{key} f{} {value}", value % 50),
        7 => format!("ZADD z{key} {} m{}", value % 1_000, value % 70),
        8 => format!("SADD S{key} {}", value % 100),
        9 => format!("SPOP S{key}"),
        10 => format!("SET v{key} {value} PX {}", 50 + value % 1_000),
        _ => format!("EVAL redis.call('INCRBYFLOAT','n{key}','0.5')redis.call('DEL','s{key}') 0"),
    }
}

fn write_on(orders: &Orders, seed: u64) {
    let (clock, mut rng, mut connection) = (Env::system().clock, Rng::new(seed), None);
    while !orders.ends.load(Ordering::Acquire) {
        if orders.rests.load(Ordering::Acquire) {
            orders.is_resting.store(true, Ordering::Release);
            clock.sleep(Duration::from_millis(5));
            continue;
        }
        let Some(client) = &mut connection else {
            connection = Client::connect(orders.port.load(Ordering::Relaxed));
            clock.sleep(Duration::from_millis(10));
            continue;
        };
        let lines: Vec<_> = (0..PIPELINE).map(|_| line(&mut rng)).collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        match client.ask(&lines) {
            Some(values) => {
                let error = values.iter().find(|it| matches!(it, Value::Error(_)));
                assert!(error.is_none(), "{error:?}");
                orders.count.fetch_add(PIPELINE, Ordering::Relaxed);
            }
            None => connection = None,
        }
    }
}

fn writer(orders: &Arc<Orders>) -> Box<dyn JoinHandle> {
    let shared = Arc::clone(orders);
    let run = Box::new(move || write_on(&shared, 1));
    let thread = Env::system().spawner.spawn("writer", run);
    thread.expect("a thread")
}

fn fill(port: u16, keys: u64) {
    let mut client = Client::connect(port).expect("the server is there");
    for first in (0..keys).step_by(1_000) {
        let line = |key: u64| format!("SET first:{key} {}", "x".repeat(100 + (key % 200) as usize));
        let lines: Vec<_> = (first..keys.min(first + 1_000)).map(line).collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        client.ask(&lines).expect("the server is there");
    }
}

/// Waits until some more writes are answered.
fn await_writes(orders: &Orders) {
    let target = orders.count.load(Ordering::Relaxed) + 4 * PIPELINE;
    until("writes", || {
        (orders.count.load(Ordering::Relaxed) >= target).then_some(())
    });
}

/// Lets the writes rest, and compares once the replica has all of them.
fn compare(primary: &Node, replica: &Node, orders: &Orders) {
    orders.is_resting.store(false, Ordering::Release);
    orders.rests.store(true, Ordering::Release);
    until("the rest", || {
        orders.is_resting.load(Ordering::Acquire).then_some(())
    });
    until("the replica", || {
        primary.info().contains("state=online").then_some(())
    });
    // What expires is told by the primary: until it has, both have it or neither.
    let volatile =
        "EVAL local\tc=0;for\ti=0,400\tdo\tc=c+redis.call('EXISTS','v'..i)end;return\tc 0";
    until("the end of what expires", || {
        matches!(ask(primary.port, volatile), Some(Value::Integer(0))).then_some(())
    });
    until("the replica's word", || {
        let told = Client::connect(primary.port)?.ask(&["SET last write", "WAIT 1 1000"])?;
        matches!(told[1], Value::Integer(1)).then_some(())
    });
    let [ours, theirs] = [primary, replica].map(|it| text_of(it.port, "DEBUG DIGEST"));
    assert_eq!(ours, theirs);
    orders.rests.store(false, Ordering::Release);
}

#[test]
fn a_replica_is_equal_whatever_is_killed() {
    let dir = temp_dir();
    let mut primary = Node::start(dir.path(), "primary", "repl-backlog-size 16mb\n");
    fill(primary.port, number("REPLICA_KEYS", 5_000));
    let more = format!("replicaof 127.0.0.1 {}\n", primary.port);
    let mut replica = Node::start(dir.path(), "replica", &more);
    let orders = Arc::new(Orders::default());
    orders.port.store(primary.port, Ordering::Relaxed);
    let (thread, clock) = (writer(&orders), Env::system().clock);
    let (mut rng, mut partial) = (Rng::new(number("REDIS_SEED", 1)), 0);
    for round in 0..number("REPLICA_KILLS", 6) {
        await_writes(&orders);
        clock.sleep(Duration::from_millis(rng.below(150)));
        match round % 3 {
            0 => {
                replica.process = None;
                replica.begin();
            }
            1 => {
                // It goes on where it was.
                until("the replica", || {
                    replica
                        .info()
                        .contains("master_link_status:up")
                        .then_some(())
                });
                let before = partial_syncs(&primary);
                assert!(ask(primary.port, "CLIENT KILL TYPE replica").is_some());
                await_writes(&orders);
                until("a partial resync", || {
                    (partial_syncs(&primary) > before).then_some(())
                });
                partial += 1;
            }
            _ => {
                primary.process = None;
                primary.begin();
            }
        }
        clock.sleep(Duration::from_millis(rng.below(150)));
        if rng.below(2) == 0 {
            compare(&primary, &replica, &orders);
        }
    }
    compare(&primary, &replica, &orders);
    orders.ends.store(true, Ordering::Release);
    thread.join().expect("no panic");
    assert!(partial > 0, "connections were cut");
}

fn partial_syncs(primary: &Node) -> u64 {
    let text = text_of(primary.port, "INFO stats");
    let line = text
        .lines()
        .find_map(|it| it.strip_prefix("sync_partial_ok:"));
    line.expect("it is told").trim().parse().expect("a number")
}
