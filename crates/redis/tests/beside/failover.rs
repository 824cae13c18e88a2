//! Goal: FAILOVER answers as Redis does, a replica that has all changes takes over (one of ours and a redis-server), writes
//! wait meanwhile and are lost nowhere, and a failover that comes to nothing leaves the primary as it was. Method: writers
//! that go from one server to the other as they are told, and the states of INFO; servers that take no part are paused.

use std::time::Duration;

use drumlin_fs::{Env, JoinHandle};
use drumlin_resp::Value;
use drumlin_testkit::redis::{self, Server};
use tempfile::TempDir;

use crate::pair::{Ours, Pair, ask_redis, same_facts, words};
use crate::replica::free_port;

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn text(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) | Value::Error(bytes) | Value::Simple(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        other => other.to_string(),
    }
}

/// A server of ours at a TCP port too.
struct Node {
    server: Ours,
    port: String,
    _dir: TempDir,
}

impl Node {
    fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let settings = [("port", port.as_str()), ("repl-timeout", "60")];
        let server = Ours::start_with(&dir.path().join("data"), &settings);
        Self {
            server,
            port,
            _dir: dir,
        }
    }

    fn ask(&self, line: &str) -> Value {
        self.server.ask(&[words(line)]).remove(0)
    }

    fn follows(&self, port: &str) {
        assert_eq!(self.ask(&format!("REPLICAOF 127.0.0.1 {port}")), ok());
    }

    /// Waits until INFO says so.
    fn until(&self, said: &str) {
        until(said, || text(&self.ask("INFO replication")));
    }
}

/// Waits until `told` has `said` in it; half a minute at most.
fn until(said: &str, mut told: impl FnMut() -> String) {
    let clock = Env::system().clock;
    let began = clock.monotonic();
    while !told().contains(said) {
        let waited = clock.monotonic().saturating_sub(began);
        assert!(
            waited < Duration::from_secs(30),
            "{said} not in\n{}",
            told()
        );
        clock.sleep(Duration::from_millis(5));
    }
}

#[test]
fn failover_is_refused_as_redis_refuses_it() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let lines = [
        "FAILOVER",
        "FAILOVER ABORT",
        "FAILOVER TO a b",
        "FAILOVER TO a",
        "FAILOVER TO 127.0.0.1 5 FORCE",
        "FAILOVER TIMEOUT 0",
        "FAILOVER TIMEOUT -5",
        "FAILOVER TIMEOUT x",
        "FAILOVER TIMEOUT",
        "FAILOVER FORCE",
        "FAILOVER FORCE FORCE",
        "FAILOVER x",
        "FAILOVER ABORT TIMEOUT 5",
        "PSYNC ? -1 FAILOVER",
        "MULTI",
        "FAILOVER",
        "EXEC",
    ];
    // The last PSYNC makes a replica of Redis's client: without it all is comparable.
    let lines: Vec<_> = lines
        .into_iter()
        .filter(|it| !it.ends_with("z"))
        .map(words)
        .collect();
    pair.same("2", &lines, |_| true);
    same_facts("failover");
}

#[test]
fn failover_is_refused_on_a_replica_and_without_the_right_target() {
    if !redis::installed() {
        return;
    }
    let (ours, dir) = (Node::start(), tempfile::tempdir().expect("a directory"));
    let theirs = Server::start(dir, &["--port", &free_port()]);
    let (one, two) = (Node::start(), Node::start());
    let port = text(
        &ask_redis(&theirs, &[words("CONFIG GET port")])[0]
            .as_items()
            .expect("two")[1],
    );
    one.follows(&ours.port);
    two.follows(&port);
    ours.until("state=online");
    until("state=online", || {
        text(&ask_redis(&theirs, &[words("INFO replication")])[0])
    });
    for line in [
        "FAILOVER FORCE",
        "FAILOVER TO 127.0.0.1 1",
        "FAILOVER TO 127.0.0.1 70000",
        "FAILOVER TO 127.0.0.1 1 FORCE TIMEOUT 5",
    ] {
        let theirs = ask_redis(&theirs, &[words(line)]);
        assert_eq!(ours.server.ask(&[words(line)]), theirs, "{line}");
    }
    let refused = "ERR FAILOVER is not valid when server is a replica.";
    assert_eq!(one.ask("FAILOVER"), Value::Error(refused.into()));
    let answer = one.ask(&format!("PSYNC {} 1 FAILOVER", "a".repeat(40)));
    let refused = "ERR PSYNC FAILOVER replid must match my replid.";
    assert_eq!(answer, Value::Error(refused.into()));
}

/// A client that adds to a counter on whichever of two is the primary, `count` times; what it was told at last.
fn writer(
    sockets: [std::path::PathBuf; 2],
    count: u64,
) -> (std::sync::Arc<std::sync::Mutex<u64>>, Box<dyn JoinHandle>) {
    let told = std::sync::Arc::new(std::sync::Mutex::new(0));
    let shared = std::sync::Arc::clone(&told);
    let run = move || {
        let mut at = 0;
        let mut done = 0;
        while done < count {
            let answer = crate::pair::ask_at(&sockets[at], &[words("INCR counter")]).remove(0);
            match answer {
                Value::Integer(number) => {
                    done += 1;
                    *shared.lock().expect("not poisoned") = number as u64;
                }
                Value::Error(text) if text.starts_with(b"READONLY") => at = 1 - at,
                other => panic!("{other}"),
            }
        }
    };
    let thread = Env::system().spawner.spawn("writer", Box::new(run));
    (told, thread.expect("a thread"))
}

#[test]
fn a_replica_of_ours_takes_over_and_no_write_is_lost() {
    let (one, two) = (Node::start(), Node::start());
    one.ask("SET before 1");
    two.follows(&one.port);
    one.until("state=online");
    const WRITES: u64 = 1_500;
    let sockets = [
        one.server.socket().to_owned(),
        two.server.socket().to_owned(),
    ];
    let (told, thread) = writer(sockets, WRITES);
    for _ in 0..3 {
        for (from, to) in [(&one, &two), (&two, &one)] {
            from.until("state=online");
            let line = match from.port == one.port {
                true => "FAILOVER".to_owned(),
                false => format!("FAILOVER TO 127.0.0.1 {} TIMEOUT 60000", to.port),
            };
            assert_eq!(from.ask(&line), ok());
            to.until("role:master");
            from.until("master_link_status:up");
            from.until("master_failover_state:no-failover");
        }
    }
    thread.join().expect("ends");
    assert_eq!(*told.lock().expect("not poisoned"), WRITES);
    assert_eq!(
        one.ask("GET counter"),
        Value::Bulk(WRITES.to_string().into())
    );
    assert_eq!(one.ask("WAIT 1 60000"), Value::Integer(1));
    assert_eq!(one.ask("DEBUG DIGEST"), two.ask("DEBUG DIGEST"));
    let stats = text(&one.ask("INFO stats")) + &text(&two.ask("INFO stats"));
    assert_eq!(stats.matches("sync_full:1\r\n").count(), 1, "{stats}");
}

#[test]
fn a_redis_server_takes_over_and_gives_back() {
    if !redis::installed() {
        return;
    }
    let ours = Node::start();
    let port = free_port();
    let dir = tempfile::tempdir().expect("a directory");
    let theirs = Server::start(dir, &["--port", &port]);
    ours.ask("SET key value");
    let follow = [words(&format!("REPLICAOF 127.0.0.1 {}", ours.port))];
    assert_eq!(ask_redis(&theirs, &follow), [ok()]);
    ours.until("state=online");
    assert_eq!(ours.ask("FAILOVER TIMEOUT 60000"), ok());
    ours.until("master_link_status:up");
    let info = || text(&ask_redis(&theirs, &[words("INFO replication")])[0]);
    assert!(info().contains("role:master"), "{}", info());
    assert_eq!(ask_redis(&theirs, &[words("SET key other")]), [ok()]);
    until("state=online", info);
    assert_eq!(ask_redis(&theirs, &[words("FAILOVER")]), [ok()]);
    ours.until("role:master");
    assert_eq!(ours.ask("GET key"), Value::Bulk(b"other".to_vec()));
    until("master_failover_state:no-failover", info);
    let stats = text(&ours.ask("INFO stats"));
    assert!(stats.contains("sync_full:1\r\n"), "{stats}");
}

/// A primary and a replica that runs nothing more, and so lacks a write.
fn with_a_sleeper() -> (Node, Node) {
    let (one, two) = (Node::start(), Node::start());
    two.follows(&one.port);
    one.until("state=online");
    let mut link = redis::Link::connect(two.server.socket());
    assert!(link.send(b"CLIENT PAUSE 100000 ALL\r\n"));
    assert_eq!(link.receive().as_deref(), Some(&b"+OK\r\n"[..]));
    one.ask("SET late 1");
    (one, two)
}

#[test]
fn a_failover_ends_when_the_replica_lags_and_writes_go_on() {
    let (ours, _sleeper) = with_a_sleeper();
    assert_eq!(ours.ask("FAILOVER TIMEOUT 100"), ok());
    ours.until("master_failover_state:waiting-for-sync");
    let twice = "ERR FAILOVER already in progress.";
    assert_eq!(ours.ask("FAILOVER"), Value::Error(twice.into()));
    let refused = "ERR REPLICAOF not allowed while failing over.";
    assert_eq!(ours.ask("REPLICAOF NO ONE"), Value::Error(refused.into()));
    // It waits for the end, and reads do not.
    assert_eq!(ours.ask("GET late"), Value::Bulk(b"1".to_vec()));
    assert_eq!(ours.ask("SET late 2"), ok());
    let info = text(&ours.ask("INFO replication"));
    assert!(info.contains("master_failover_state:no-failover"), "{info}");
    assert!(info.contains("role:master"), "{info}");
    // So does one that is called off.
    assert_eq!(ours.ask("FAILOVER"), ok());
    assert_eq!(ours.ask("FAILOVER ABORT"), ok());
    assert_eq!(ours.ask("SET late 3"), ok());
}

#[test]
fn a_failover_by_force_does_not_wait_and_can_be_called_off() {
    let (ours, sleeper) = with_a_sleeper();
    let port = &sleeper.port;
    let line = format!("FAILOVER TO 127.0.0.1 {port} FORCE TIMEOUT 100");
    assert_eq!(ours.ask(&line), ok());
    ours.until("master_failover_state:failover-in-progress");
    assert_eq!(ours.ask("FAILOVER ABORT"), ok());
    assert_eq!(ours.ask("SET late 2"), ok());
    let role = text(&ours.ask("INFO replication"));
    assert!(role.contains("role:master"), "{role}");
}

#[test]
fn a_replica_is_told_where_it_says_that_it_is() {
    let (one, dir) = (Node::start(), tempfile::tempdir().expect("a directory"));
    let settings = [
        ("replica-announce-ip", "10.1.2.3"),
        ("replica-announce-port", "4567"),
    ];
    let two = Ours::start_with(&dir.path().join("data"), &settings);
    let follow = format!("REPLICAOF 127.0.0.1 {}", one.port);
    assert_eq!(two.ask(&[words(&follow)]), [ok()]);
    one.until("slave0:ip=10.1.2.3,port=4567,state=online");
    let answers = two.ask(
        &[
            "CONFIG GET replicaof",
            "REPLICAOF NO ONE",
            "CONFIG GET slaveof",
        ]
        .map(words),
    );
    let value = |at: usize| text(&answers[at].as_items().expect("a pair")[1]);
    assert_eq!(value(0), format!("127.0.0.1 {}", one.port));
    assert_eq!(value(2), "");
}
