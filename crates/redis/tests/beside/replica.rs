//! Goal: a server of ours follows a redis-server that is written to, loses the connection, goes on, and stands alone at last
//! with the same data. Method: random additions to values of all types, before, while and after the data comes; WAIT says when
//! all of it is here, so nothing depends on time.

use drumlin_base::rng::Rng;
use drumlin_fs::net::{Address, Network, PosixNetwork};
use drumlin_resp::Value;
use drumlin_testkit::redis::{self, Reply, Server};

use crate::dump::{KEYS, TYPES, addition, all, same};
use crate::pair::{Ours, Words, ask_redis, same_facts, words};

/// A port that is free for now.
pub(crate) fn free_port() -> String {
    let any = "127.0.0.1:0".parse::<core::net::SocketAddr>().expect("one");
    let listener = PosixNetwork::new().listen(&Address::Tcp(any), Default::default());
    match listener.expect("listens").local_address() {
        Address::Tcp(address) => address.port().to_string(),
        other => panic!("{other} is no TCP address"),
    }
}

/// The number of a stream's key.
fn stream(rng: &mut Rng) -> u64 {
    TYPES - 1 + TYPES * rng.below(KEYS / TYPES)
}

fn write(theirs: &mut Server, rng: &mut Rng, count: u64) {
    for _ in 0..count {
        let line = match rng.below(30) {
            0 => format!("DEL k{}", rng.below(KEYS)),
            1 => format!("PEXPIRE k{} 100000000", rng.below(KEYS)),
            2 => format!("SELECT {}", rng.below(3)),
            3 => "MULTI".to_owned(),
            4 => "EXEC".to_owned(),
            5 => format!("RENAME k{} gone", rng.below(KEYS)),
            6 => format!("SPOP k{} 3", 2 + TYPES * rng.below(KEYS / TYPES)),
            7 => format!("LPOP k{} 2", 1 + TYPES * rng.below(KEYS / TYPES)),
            9 => format!("XGROUP CREATE k{} g 0", stream(rng)),
            10 => format!(
                "XREADGROUP GROUP g c{} COUNT 2 STREAMS k{} >",
                rng.below(2),
                stream(rng)
            ),
            11 => format!("XACK k{} g 1-1 1-2 1-3", stream(rng)),
            12 => format!("XDEL k{} 1-2", stream(rng)),
            8 => "EVAL return{redis.call('INCR','counter'),redis.call('APPEND','text',1)} 0"
                .to_owned(),
            _ => addition(rng),
        };
        let command: Words = words(&line);
        let arguments: Vec<_> = command.iter().map(Vec::as_slice).collect();
        theirs.ask(&arguments);
    }
    theirs.say(&["EXEC"]);
}

/// Waits until all writes are here, and compares.
fn compare(theirs: &mut Server, ours: &Ours) {
    theirs.ok(&["SET", "last", "write"]);
    let replicas = theirs.say(&["WAIT", "1", "60000"]);
    assert_eq!(
        replicas,
        Reply::Integer(1),
        "{:?}",
        ours.ask(&[words("INFO replication")])
    );
    for db in 0..3 {
        let mut commands = vec![words(&format!("SELECT {db}"))];
        commands.extend(all("k"));
        for key in 0..KEYS {
            commands.push(words(&format!("XPENDING k{key} g")));
        }
        let (ours, theirs) = (ours.ask(&commands), ask_redis(theirs, &commands));
        assert_eq!(ours[0], theirs[0]);
        same(ours[1..].to_vec(), theirs[1..].to_vec());
    }
    for line in [
        "GET counter",
        "GET text",
        "DBSIZE",
        "GET last",
        "FUNCTION LIST",
    ] {
        let command = [words(line)];
        assert_eq!(ours.ask(&command), ask_redis(theirs, &command), "{line}");
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) | Value::Error(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other}"),
    }
}

fn follow(diskless: &str, seed: u64) {
    if !redis::installed() {
        return;
    }
    let port = free_port();
    let settings = [
        "--port",
        &port,
        "--repl-diskless-sync",
        diskless,
        "--repl-diskless-sync-delay",
        "0",
    ];
    let mut theirs = Server::start(tempfile::tempdir().expect("a directory"), &settings);
    let data = tempfile::tempdir().expect("a directory");
    let ours = Ours::start(data.path());
    let mut rng = Rng::new(seed);
    ours.ask(&[
        words("SET mine 1"),
        words("SELECT 2"),
        words("RPUSH old 1 2"),
    ]);
    write(&mut theirs, &mut rng, 600);
    if diskless == "yes" {
        // As a user of its own, who may do nothing else.
        let user = "ACL SETUSER follower on >secret +ping +psync +replconf";
        let user: Vec<_> = user.split(' ').collect();
        theirs.ok(&user);
        ours.ask(&[words("CONFIG SET masteruser follower masterauth secret")]);
    }
    let library = |name: &str| {
        let code = "redis.register_function('f', function() return 7 end)";
        format!("#!lua name={name}\n{code}")
    };
    theirs.ask(&[b"FUNCTION", b"LOAD", library("theirs").as_bytes()]);
    let mine = library("mine").into_bytes();
    ours.ask(&[vec![b"FUNCTION".to_vec(), b"LOAD".to_vec(), mine]]);
    let answer = ours.ask(&[words(&format!("REPLICAOF 127.0.0.1 {port}"))]);
    assert_eq!(answer, [Value::Simple(b"OK".to_vec())]);
    write(&mut theirs, &mut rng, 600);
    compare(&mut theirs, &ours);
    let refused = [
        "SET a 1",
        "EVAL return{redis.call('SET','a',1)} 0",
        "MULTI",
        "SET a 1",
        "EXEC",
        "ROLE",
        "INFO replication",
        "EXISTS mine",
        &format!("REPLICAOF 127.0.0.1 {port}"),
        "REPLICAOF 127.0.0.1 x",
    ];
    let answers = ours.ask(&refused.map(words));
    let texts: Vec<_> = answers.iter().map(text).collect();
    let readonly = "READONLY You can't write against a read only replica.";
    assert_eq!(texts[0], readonly);
    assert!(texts[1].starts_with("READONLY"), "{}", texts[1]);
    assert_eq!(texts[3], readonly);
    assert!(texts[4].starts_with("EXECABORT"), "{}", texts[4]);
    assert_eq!(
        answers[5].as_items().expect("a role")[3],
        Value::Bulk(b"connected".to_vec())
    );
    assert!(texts[6].contains("master_link_status:up"), "{}", texts[6]);
    assert_eq!(answers[7], Value::Integer(0));
    assert_eq!(
        answers[8],
        Value::Simple(b"OK Already connected to specified master".to_vec())
    );
    assert_eq!(texts[9], "ERR Invalid master port");
    // The connection is lost, and the stream goes on where it was.
    for _ in 0..3 {
        write(&mut theirs, &mut rng, 50);
        assert_eq!(
            theirs.say(&["CLIENT", "KILL", "TYPE", "replica"]),
            Reply::Integer(1)
        );
        write(&mut theirs, &mut rng, 50);
        compare(&mut theirs, &ours);
    }
    if diskless == "yes" {
        let clients = theirs.say(&["CLIENT", "LIST", "TYPE", "replica"]).text();
        assert!(clients.contains("user=follower"), "{clients}");
    }
    let stats = theirs.say(&["INFO", "stats"]).text();
    assert!(stats.contains("sync_full:1\r\n"), "{stats}");
    assert!(stats.contains("sync_partial_ok:3\r\n"), "{stats}");
    let answers = ours.ask(&["REPLICAOF NO ONE", "SET a 1", "ROLE"].map(words));
    assert_eq!(
        answers[..2],
        [Value::Simple(b"OK".to_vec()), Value::Simple(b"OK".to_vec())]
    );
    assert_eq!(
        answers[2].as_items().expect("a role")[0],
        Value::Bulk(b"master".to_vec())
    );
}

#[test]
fn a_primary_s_data_and_writes_come_by_a_file_of_a_known_length() {
    follow("no", 1);
}

#[test]
fn a_primary_s_data_and_writes_come_up_to_a_mark() {
    follow("yes", 2);
}

#[test]
fn the_facts_of_replication_commands_are_redis_s() {
    same_facts("replicaof slaveof replconf role psync sync wait");
}
