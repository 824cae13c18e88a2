//! Goal: one budget over the engine and the server, and clients that cannot take more than their part of it. Method: clients
//! that send and do not read; the figures are those of INFO, and of the process's memory nothing is asserted.

use drumlin_redis::Config;
use drumlin_resp::encode_command;
use drumlin_testkit::redis::Link;

use crate::ours::Ours;

/// A number of INFO, all sections of it.
fn figure(server: &Ours, name: &str) -> u64 {
    let info = server.say(&["INFO everything"]);
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name}:")));
    let line = line.unwrap_or_else(|| panic!("INFO has no {name}"));
    line.parse().expect("a number")
}

fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_command(&mut bytes, words);
    bytes
}

/// A server with a megabyte in `large`.
fn with_a_megabyte(settings: &[(&str, &str)]) -> Ours {
    let server = Ours::start(settings);
    let value = "x".repeat(1 << 20);
    assert!(
        server
            .say(&[&format!("SET large {value}")])
            .starts_with("+OK")
    );
    server
}

/// Connections that have asked for so many megabytes, and read none.
fn slow_readers(server: &Ours, count: usize, megabytes: usize) -> Vec<Link> {
    let asked = command(&["GET", "large"]).repeat(megabytes);
    let link = || {
        let mut link = server.link();
        assert!(link.send(&asked));
        link
    };
    (0..count).map(|_| link()).collect()
}

/// Waits for `is_so`: the server does what it does in turns of its loop.
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    assert!((0..10_000).any(|_| is_so()), "{what}");
}

#[test]
fn config_set_changes_the_budget_while_the_server_runs() {
    let server = Ours::start(&[("maxmemory", "64mb")]);
    assert_eq!(figure(&server, "budget_limit"), 64 << 20);
    assert!(
        server
            .say(&["CONFIG SET maxmemory 100mb"])
            .starts_with("+OK")
    );
    assert_eq!(figure(&server, "budget_limit"), 100 << 20);
    assert!(server.say(&["CONFIG SET maxmemory 1"]).starts_with("+OK"));
    assert_eq!(figure(&server, "budget_limit"), 16 << 20);
    assert!(server.say(&["CONFIG SET maxmemory 0"]).starts_with("+OK"));
    assert!(figure(&server, "budget_limit") >= 64 << 20);
}

#[test]
fn what_the_server_holds_is_charged_by_name() {
    let server = with_a_megabyte(&[("maxmemory", "256mb")]);
    let before = figure(&server, "budget_clients");
    let links = slow_readers(&server, 4, 4);
    wait_for("replies are charged", || {
        figure(&server, "budget_clients") > before + (4 << 20)
    });
    drop(links);
    wait_for("and given back", || {
        figure(&server, "budget_clients") < before + (1 << 20)
    });
    server.say(&["EVAL return(string.rep('x',3000000)) 0"]);
    assert!(figure(&server, "budget_scripts") > 10_000);
    let mut reader = server.link();
    assert!(reader.send(&command(&["CLIENT", "TRACKING", "ON"])));
    let gets = (0..1_000).flat_map(|at| command(&["GET", &format!("key:{at}")]));
    assert!(reader.send(&gets.collect::<Vec<u8>>()));
    wait_for("tracked keys are charged", || {
        figure(&server, "budget_tracking") > 100_000
    });
}

#[test]
fn the_largest_clients_are_cut_off_and_the_others_served() {
    let server = with_a_megabyte(&[("maxmemory-clients", "12mb")]);
    let mut small = server.link();
    let links = slow_readers(&server, 24, 8);
    wait_for("some are cut off", || {
        figure(&server, "evicted_clients") > 8
    });
    assert!(figure(&server, "budget_clients") <= 12 << 20);
    assert!(small.send(&command(&["PING"])));
    assert_eq!(small.receive().as_deref(), Some(&b"+PONG\r\n"[..]));
    drop(links);
}

#[test]
fn a_client_that_asked_not_to_be_cut_off_stays_and_stops_nobody() {
    let server = with_a_megabyte(&[]);
    let set = server.say(&["CONFIG SET maxmemory-clients 1mb"]);
    assert!(set.starts_with("+OK"), "{set}");
    let mut kept = server.link();
    assert!(kept.send(&command(&["CLIENT", "NO-EVICT", "ON"])));
    assert_eq!(kept.receive().as_deref(), Some(&b"+OK\r\n"[..]));
    assert!(kept.send(&command(&["GET", "large"]).repeat(8)));
    wait_for("it holds its replies", || {
        figure(&server, "budget_clients") > 1 << 20
    });
    assert!(server.say(&["PING"]).starts_with("+PONG"));
    let mut received = 0;
    while received < 8 << 20 {
        received += kept.receive().expect("it was not cut off").len();
    }
}

/// Goal: who takes its replies late gets them all. Method: a client that has more than a megabyte to take, and asks for more before it
/// takes any; the replies are whole, of commands of one pipeline, of several, and of one that is answered beside the loop.
#[test]
fn a_client_that_asks_on_before_it_takes_its_replies_gets_them_all() {
    let server = with_a_megabyte(&[]);
    let one = "$1048576\r\n".len() + (1 << 20) + 2;
    let mut late = server.link();
    for _ in 0..6 {
        assert!(late.send(&command(&["GET", "large"]).repeat(2)));
        // The server has read it by then, and once more when it had nothing to do.
        server.say(&["PING"]);
        server.say(&["PING"]);
    }
    assert!(late.send(&command(&["ECHO", "end"])));
    let mut received = Vec::new();
    while !received.ends_with(b"$3\r\nend\r\n") {
        let more = late.receive().expect("it was not cut off");
        received.extend_from_slice(&more);
    }
    assert_eq!(received.len(), 12 * one + "$3\r\nend\r\n".len());

    let fill = "for i = 1, 60000 do redis.call('SET', 'a-key-of-thirty-letters-' .. i, '') end";
    server.say(&[&format!("EVAL {} 0", fill.replace(' ', "\t"))]);
    assert!(late.send(&command(&["KEYS", "*"])));
    server.say(&["DBSIZE"]);
    assert!(late.send(&command(&["ECHO", "end"])));
    let mut received = Vec::new();
    while !received.ends_with(b"$3\r\nend\r\n") {
        received.extend_from_slice(&late.receive().expect("it was not cut off"));
    }
    assert!(received.starts_with(b"*60001\r\n"), "{}", received.len());
}

/// Goal: what a client has sent before it ends runs, as with Redis, which runs all that it has read at once. Method: more commands than
/// one turn of the loop takes, without replies, and the connection closed behind them; under `always` replies wait for syncs, too.
#[test]
fn what_a_client_sends_before_it_ends_runs() {
    for fsync in ["everysec", "always"] {
        let server = Ours::start(&[("appendfsync", fsync)]);
        let mut hasty = server.link();
        let mut sent = command(&["CLIENT", "REPLY", "OFF"]);
        sent.extend(command(&["INCR", "n"]).repeat(10_000));
        assert!(hasty.send(&sent));
        drop(hasty);
        wait_for("all of it ran", || {
            server.say(&["GET n"]) == "$5\r\n10000\r\n+OK\r\n"
        });
        wait_for("and it is gone", || {
            figure(&server, "connected_clients") == 1
        });
    }
}

#[test]
fn a_subscriber_that_never_reads_is_cut_off_at_the_soft_limit_in_time() {
    let limit = "pubsub 64mb 2mb 60";
    let server = with_a_megabyte(&[("client-output-buffer-limit", limit)]);
    let mut silent = server.link();
    assert!(silent.send(&command(&["SUBSCRIBE", "news"])));
    let message = "y".repeat(1 << 20);
    let publish = format!("PUBLISH news {message}");
    wait_for("it subscribed", || {
        server.say(&[&publish]).starts_with(":1")
    });
    let publishes = vec![publish.as_str(); 5];
    assert!(!server.say(&publishes).contains(":0"));
    server.pass(30);
    assert!(server.say(&["PUBSUB NUMSUB news"]).contains(":1"));
    server.pass(61);
    wait_for("it is cut off", || {
        server.say(&["PUBSUB NUMSUB news"]).contains(":0")
    });
}

#[test]
fn a_client_that_sends_too_much_ahead_is_cut_off() {
    let server = Ours::start(&[("client-query-buffer-limit", "1mb")]);
    let mut link = server.link();
    // Of one argument, so that nothing of it can run.
    assert!(link.send(b"*2\r\n$4\r\nECHO\r\n$8000000\r\n"));
    let piece = vec![b'z'; 64 << 10];
    assert!(
        (0..10_000).any(|_| !link.send(&piece)),
        "it was not cut off"
    );
    assert!(server.say(&["PING"]).starts_with("+PONG"));
}

#[test]
fn the_part_of_clients_may_be_in_per_cent() {
    let mut config = Config::default();
    assert_eq!(config.set_at_start(b"maxmemory-clients", b"5%"), Ok(()));
    assert_eq!(config.get("maxmemory-clients"), "5%");
    assert!(config.set_at_start(b"maxmemory-clients", b"101%").is_err());
}
