//! Goal: MIGRATE moves keys as Redis does, to it and from it, while others are served; and no change that comes meanwhile is lost.
//! Method: the same commands here and there, with a target each; and a target of the test's own, which answers when it likes.

use core::net::SocketAddr;

use drumlin_base::rng::Rng;
use drumlin_fs::net::{
    Address, Connection, Events, Interest, Listener, Network, PosixNetwork, Received, Token,
};
use drumlin_resp::{Value, encode_command};
use drumlin_testkit::redis::{self, Link, Server};

use crate::dump::{KEYS, addition};
use crate::pair::{Ours, Pair, Words, ask_redis, same_facts, words};

fn listen() -> Box<dyn Listener> {
    let any = "127.0.0.1:0".parse::<SocketAddr>().expect("one");
    let listener = PosixNetwork::new().listen(&Address::Tcp(any), Default::default());
    listener.expect("listens")
}

fn port_of(listener: &dyn Listener) -> String {
    match listener.local_address() {
        Address::Tcp(address) => address.port().to_string(),
        other => panic!("{other} is no TCP address"),
    }
}

/// A port that is free for now.
fn free_port() -> String {
    port_of(&*listen())
}

fn redis_at(port: &str) -> Server {
    Server::start(tempfile::tempdir().expect("a directory"), &["--port", port])
}

#[test]
fn replies_and_keys_are_those_of_redis() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let lines = "\
        SET s v\nRPUSH l 1 2 3\nHSET h f v\nZADD z 1 a 2 b\nXADD st 1-1 f v\nSET e v PXAT 99999999999999\n\
        SET k v\nSET busy 1\nSET free 2\nMIGRATE H P s 0 5000\nEXISTS s\nMIGRATE H P none 0 5000\n\
        MIGRATE H P l 2 5000 COPY\nEXISTS l\nMIGRATE H P l 2 5000\nEXISTS l\nMIGRATE H P l 2 5000 replace\n\
        EXISTS l\nMIGRATE H P '' 0 5000 KEYS h z none st\nEXISTS h z st\nMIGRATE H P busy 0 5000 COPY\n\
        MIGRATE H P '' 0 5000 KEYS busy free\nEXISTS busy\nEXISTS free\nMIGRATE H P k 0 5000 AUTH pw\n\
        MIGRATE H P k 0 5000 AUTH2 who pw\nMIGRATE H P k 99 5000\nMIGRATE H P k x 5000\nMIGRATE H P k 0 x\n\
        MIGRATE H P k 0 5000 AUTH\nMIGRATE H P k 0 5000 AUTH2 who\nMIGRATE H P k 0 5000 KEYS a\n\
        MIGRATE H P k 0 5000 WHAT\nMIGRATE H P '' 0 5000 KEYS\nMIGRATE H 1 k 0 5000\nMIGRATE H P k 0\n\
        EXISTS k\nMIGRATE H P e 3 5000\nEXISTS e\nSELECT 5\nSET k 5\nMIGRATE H P k 5 5000\nEXISTS k\n\
        COMMAND GETKEYS MIGRATE H P '' 0 10 COPY KEYS a b\nCOMMAND GETKEYS MIGRATE H P k 0 10 COPY";
    let ports = [free_port(), free_port()];
    let targets = ports.each_ref().map(|port| redis_at(port));
    let commands = |port: &str| -> Vec<Words> {
        let text = lines.replace(" P ", &format!(" {port} "));
        let text = text.replace(" H ", " 127.0.0.1 ");
        text.lines().map(words).collect()
    };
    let ours = pair.ours.ask(&commands(&ports[0]));
    let theirs = ask_redis(&pair.theirs, &commands(&ports[1]));
    for ((ours, theirs), line) in ours.iter().zip(&theirs).zip(lines.lines()) {
        assert_eq!(ours, theirs, "{line}");
    }
    let digest = ["DEBUG DIGEST", "SELECT 3", "PTTL e"].map(words);
    let [mine, other] = targets.each_ref().map(|target| ask_redis(target, &digest));
    assert_eq!(mine[0], other[0]);
    let Value::Integer(left) = mine[2] else {
        panic!("{}", mine[2]);
    };
    assert!(left > 1_000_000_000_000, "{left} ms are left");
    let alone = [
        "SET k v",
        "MULTI",
        "MIGRATE 127.0.0.1 1 k 0 10",
        "EXEC",
        "EXISTS k",
    ];
    let replies = pair.ours.ask(&alone.map(words));
    let refused = replies[3].as_items().expect("replies");
    assert!(matches!(&refused[0], Value::Error(_)), "{}", refused[0]);
    assert_eq!(replies[4], Value::Integer(1));
    same_facts("migrate");
}

#[test]
fn all_types_go_from_redis_to_ours_and_on() {
    if !redis::installed() {
        return;
    }
    let first = Server::start(tempfile::tempdir().expect("a directory"), &[]);
    let mut rng = Rng::new(7);
    let fill: Vec<_> = (0..400).map(|_| words(&addition(&mut rng))).collect();
    ask_redis(&first, &fill);
    let digest = [words("DEBUG DIGEST")];
    let wanted = ask_redis(&first, &digest);
    let keys: Vec<_> = (0..KEYS).map(|key| format!("k{key}")).collect();
    let go = |port: &str| {
        let keys = keys.join(" ");
        [words(&format!(
            "MIGRATE 127.0.0.1 {port} '' 0 60000 KEYS {keys}"
        ))]
    };
    let ok = [Value::Simple(b"OK".to_vec())];
    let dirs = [0, 1].map(|_| tempfile::tempdir().expect("a directory"));
    let ports = [free_port(), free_port(), free_port()];
    let ours = [0, 1].map(|at| Ours::start_with(dirs[at].path(), &[("port", &ports[at])]));
    let last = redis_at(&ports[2]);
    assert_eq!(ask_redis(&first, &go(&ports[0])), ok);
    assert_eq!(ours[0].ask(&digest), wanted);
    assert_eq!(ours[0].ask(&go(&ports[1])), ok);
    assert_eq!(ours[1].ask(&digest), wanted);
    assert_eq!(ours[1].ask(&go(&ports[2])), ok);
    assert_eq!(ask_redis(&last, &digest), wanted);
    for emptied in &ours {
        assert_eq!(emptied.ask(&[words("DBSIZE")]), [Value::Integer(0)]);
    }
}

/// A target that answers when the test says so.
struct Target {
    listener: Box<dyn Listener>,
    network: PosixNetwork,
}

impl Target {
    /// The next connection, once `count` commands have come by it.
    fn take(&mut self, count: usize) -> Box<dyn Connection> {
        let mut poller = self.network.poller().expect("a poller");
        let mut events = Events::with_capacity(1);
        poller
            .register(&*self.listener, Token(0), Interest::Read)
            .expect("registers");
        let mut connection = loop {
            if let Some(connection) = self.listener.accept().expect("accepts") {
                break connection;
            }
            poller.wait(&mut events, None).expect("waits");
        };
        poller
            .register(&*connection, Token(1), Interest::Read)
            .expect("registers");
        let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
        let commands = |read: &[u8]| {
            let heads = read.windows(3).filter(|it| it.starts_with(b"\n*"));
            heads.count() + 1
        };
        // The last command is whole when its end has come.
        while commands(&read) < count || !read.ends_with(b"\r\n") {
            match connection.read(&mut buffer).expect("reads") {
                Received::Bytes(bytes) => read.extend_from_slice(&buffer[..bytes]),
                Received::NotNow => poller.wait(&mut events, None).expect("waits"),
                Received::End => panic!("the source has gone"),
            }
        }
        connection
    }
}

fn send(link: &mut Link, line: &str) {
    let mut bytes = Vec::new();
    encode_command(&mut bytes, &words(line));
    assert!(link.send(&bytes));
}

fn receive(link: &mut Link, bytes: &[u8]) {
    let mut come = Vec::new();
    while come.len() < bytes.len() {
        come.extend(link.receive().expect("an answer"));
    }
    let text = String::from_utf8_lossy(&come);
    assert!(come.starts_with(bytes), "{text}");
}

#[test]
fn a_change_meanwhile_waits_or_keeps_the_key() {
    let dir = tempfile::tempdir().expect("a directory");
    let ours = Ours::start(dir.path());
    let (listener, network) = (listen(), PosixNetwork::new());
    let port = port_of(&*listener);
    let mut target = Target { listener, network };
    let connect = || Link::connect(ours.socket());
    let migrate = |key: &str| format!("MIGRATE 127.0.0.1 {port} {key} 0 600000");
    ours.ask(&[words("SET k old"), words("XADD s 1-1 f v")]);

    // A command that names the key waits, others do not; it sees the key gone.
    let mut source = connect();
    send(&mut source, &migrate("k"));
    let mut connection = target.take(2);
    let mut writer = connect();
    send(&mut writer, "APPEND k more");
    let mut watcher = connect();
    for line in ["MULTI", "APPEND k again"] {
        send(&mut watcher, line);
    }
    receive(&mut watcher, b"+OK\r\n+QUEUED\r\n");
    send(&mut watcher, "EXEC");
    let replies = ours.ask(&["SET other 1", "GET k"].map(words));
    assert_eq!(replies[1], Value::Bulk(b"old".to_vec()));
    connection.write(b"+OK\r\n+OK\r\n").expect("answers");
    receive(&mut source, b"+OK\r\n");
    receive(&mut writer, b":");
    receive(&mut watcher, b"*1\r\n:");
    let Value::Bulk(left) = &ours.ask(&[words("GET k")])[0] else {
        panic!("no key");
    };
    assert!(!left.starts_with(b"old") && left.len() == 9, "{left:?}");

    // One that hides its key changes it: then it stays.
    for (key, change) in [
        ("k", "EVAL return{redis.call('SET','k','script')} 0"),
        (
            "s",
            "EVAL return{redis.call('XGROUP','CREATE','s','g','0')} 0",
        ),
        ("k", "SWAPDB 0 1"),
        ("k", "SWAPDB 0 1"),
    ] {
        ours.ask(&[words("SELECT 1"), words("SET k other"), words("SELECT 0")]);
        send(&mut source, &migrate(key));
        let mut connection = target.take(2);
        let exists = [words(&format!("EXISTS {key}"))];
        let answer = &ours.ask(&[words(change)])[0];
        assert!(!matches!(answer, Value::Error(_)), "{answer}");
        connection.write(b"+OK\r\n+OK\r\n").expect("answers");
        receive(&mut source, b"-IOERR a key was changed");
        assert_eq!(ours.ask(&exists), [Value::Integer(1)], "{change}");
    }

    // What the target refuses stays, and what it has not answered.
    for (answer, told) in [
        (
            "+OK\r\n-BUSYKEY there\r\n",
            "-ERR Target instance replied with error: BUSYKEY there",
        ),
        (
            "-NOAUTH no\r\n+OK\r\n",
            "-ERR Target instance replied with error: NOAUTH no",
        ),
        (
            "+OK\r\n",
            "-IOERR error or timeout reading to target instance",
        ),
    ] {
        send(&mut source, &migrate("k"));
        let mut connection = target.take(2);
        connection.write(answer.as_bytes()).expect("answers");
        drop(connection);
        receive(&mut source, told.as_bytes());
        assert_eq!(ours.ask(&[words("EXISTS k")]), [Value::Integer(1)]);
    }
    // A target that says nothing is not waited for longer than was asked.
    send(&mut source, &format!("MIGRATE 127.0.0.1 {port} k 0 50"));
    receive(
        &mut source,
        b"-IOERR error or timeout reading to target instance",
    );
    // A server that ends does not wait for its target.
    send(&mut source, &migrate("k"));
    let _connection = target.take(2);
}
