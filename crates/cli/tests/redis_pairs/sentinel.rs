//! Goal: Debian's redis-sentinel fails over between two servers of ours, again and again under load, and no write is lost that
//! WAIT 1 acknowledged: with the primary killed, and with it halted and let go on later. Method: writers that ask the sentinel
//! where the primary is, and remember what was acknowledged; at the end all of it is on both servers, whose data are the same.
//! `SENTINEL_ROUNDS` says how often; twice otherwise. The sentinel's periods are shortened by its own SENTINEL DEBUG.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drumlin_fs::{Env, JoinHandle};
use drumlin_resp::Value;
use drumlin_testkit::temp_dir;

use crate::node::{Client, Node, Process, ask, free_port, text, text_of, until, write_file};

/// No write is taken that no replica will have.
const CAREFUL: &str = "min-replicas-to-write 1\nmin-replicas-max-lag 2\n";
const WRITERS: u64 = 3;
/// Acknowledged writes between two failovers.
const WRITES: u64 = 60;

/// The sentinel, with periods as short as it takes them.
fn sentinel(dir: &Path, primary: u16) -> (Process, u16) {
    let (port, file) = (free_port(), dir.join("sentinel.conf"));
    let text = format!(
        "port {port}\ndir {}\nsentinel monitor it 127.0.0.1 {primary} 1\n\
         sentinel down-after-milliseconds it 500\nsentinel failover-timeout it 2000\n",
        dir.display()
    );
    write_file(&file, &text);
    let process = Process::start(Command::new("redis-sentinel").arg(&file));
    until("the sentinel", || ask(port, "PING"));
    let periods = "SENTINEL DEBUG info-period 200 ping-period 100 ask-period 100 publish-period 200 \
                   tilt-trigger 60000 tilt-period 1000";
    assert_eq!(text_of(port, periods), "OK");
    (process, port)
}

/// Where the sentinel says that the primary is.
fn primary(sentinel: u16) -> Option<u16> {
    let place = ask(sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME it")?;
    text(place.as_items()?.get(1)?).parse().ok()
}

/// What the writers share with the test.
#[derive(Default)]
struct Told {
    ends: AtomicBool,
    count: AtomicU64,
    /// The keys of writes that WAIT acknowledged.
    keys: Mutex<Vec<String>>,
}

/// Writes to whoever is the primary, until it is told to end.
fn write_on(writer: u64, sentinel: u16, told: &Told) {
    let (mut connection, mut number) = (None, 0);
    let clock = Env::system().clock;
    while !told.ends.load(Ordering::Relaxed) {
        let Some(client) = &mut connection else {
            connection = primary(sentinel).and_then(Client::connect);
            clock.sleep(Duration::from_millis(10));
            continue;
        };
        number += 1;
        let key = format!("w:{writer}:{number}");
        let lines = [&format!("SET {key} {number}"), "WAIT 1 500"];
        match client.ask(&lines).as_deref() {
            Some([Value::Simple(_), Value::Integer(1..)]) => {
                told.keys.lock().expect("whole").push(key);
                told.count.fetch_add(1, Ordering::Relaxed);
            }
            // Not the primary any more, or one without a replica, or gone.
            _ => connection = None,
        }
    }
}

fn writers(sentinel: u16, told: &Arc<Told>) -> Vec<Box<dyn JoinHandle>> {
    let spawner = Env::system().spawner;
    let spawn = |writer: u64| {
        let told = Arc::clone(told);
        let run = Box::new(move || write_on(writer, sentinel, &told));
        spawner.spawn("writer", run).expect("a thread")
    };
    (0..WRITERS).map(spawn).collect()
}

/// One failover. The primary is killed, or halted until another one is found.
fn fail_over(nodes: &mut [Node; 2], sentinel: u16, told: &Told, is_killed: bool) {
    let target = told.count.load(Ordering::Relaxed) + WRITES;
    until("a replica, and writes", || {
        (told.count.load(Ordering::Relaxed) >= target).then_some(())
    });
    let old = primary(sentinel).expect("there is one");
    let [first, second] = nodes;
    let (from, to) = match first.port == old {
        true => (first, second),
        false => (second, first),
    };
    match (is_killed, &from.process) {
        (true, _) => from.process = None,
        (false, Some(process)) => process.signal("-STOP"),
        (false, None) => panic!("it runs"),
    }
    until("another primary", || {
        primary(sentinel).filter(|it| *it == to.port)
    });
    until("its role", || {
        to.info().contains("role:master").then_some(())
    });
    match &from.process {
        None => from.begin(),
        Some(process) => process.signal("-CONT"),
    }
    until("the old one as a replica", || {
        let is_up = from.info().contains("master_link_status:up");
        (is_up && to.info().contains("state=online")).then_some(())
    });
    let wanted = format!("replicaof 127.0.0.1 {}", to.port);
    until("the new roles in the files", || {
        (from.followed().as_ref() == Some(&wanted) && to.followed().is_none()).then_some(())
    });
}

/// All acknowledged writes are on both.
fn check(nodes: &[Node; 2], told: &Told) {
    let keys = told.keys.lock().expect("whole");
    for node in nodes {
        let mut client = Client::connect(node.port).expect("the server is there");
        for key in keys.iter() {
            let value = client.ask(&[&format!("GET {key}")]).expect("a reply");
            assert_eq!(
                Some(text(&value[0]).as_str()),
                key.rsplit(':').next(),
                "{key}"
            );
        }
    }
    let [one, two] = nodes.each_ref().map(|it| text_of(it.port, "DEBUG DIGEST"));
    assert_eq!(one, two);
}

#[test]
fn a_sentinel_fails_over_and_nothing_acknowledged_is_lost() {
    let version = Command::new("redis-sentinel").arg("--version").output();
    if version.is_err() {
        println!("SKIPPED: redis-sentinel is not installed; `make deps` installs it");
        return;
    }
    let rounds = std::env::var("SENTINEL_ROUNDS").map_or(2, |it| it.parse().expect("a number"));
    let dir = temp_dir();
    let one = Node::start(dir.path(), "one", CAREFUL);
    let more = format!("{CAREFUL}replicaof 127.0.0.1 {}\n", one.port);
    let two = Node::start(dir.path(), "two", &more);
    let (_process, sentinel) = sentinel(dir.path(), one.port);
    until("the replica at the sentinel", || {
        text_of(sentinel, "SENTINEL MASTER it")
            .contains("num-slaves")
            .then_some(())
    });
    let (mut nodes, told) = ([one, two], Arc::new(Told::default()));
    let threads = writers(sentinel, &told);
    for round in 0..rounds {
        fail_over(&mut nodes, sentinel, &told, round % 2 == 0);
        if round % 10 == 9 {
            println!(
                "{} failovers, {} writes",
                round + 1,
                told.count.load(Ordering::Relaxed)
            );
        }
    }
    told.ends.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("no panic");
    }
    let last = primary(sentinel).expect("there is one");
    until("the last writes at the replica", || {
        matches!(ask(last, "WAIT 1 1000"), Some(Value::Integer(1))).then_some(())
    });
    check(&nodes, &told);
}
