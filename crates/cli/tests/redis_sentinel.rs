//! Goal: Debian's redis-sentinel fails over between two servers of ours, again and again under load, and no write is lost that
//! WAIT 1 acknowledged: with the primary killed, and with it halted and let go on later. Method: writers that ask the sentinel
//! where the primary is, and remember what was acknowledged; at the end all of it is on both servers, whose data are the same.
//! `SENTINEL_ROUNDS` says how often; twice otherwise. The sentinel's periods are shortened by its own SENTINEL DEBUG.

use core::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drumlin_fs::net::{Address, Network, PosixNetwork};
use drumlin_fs::{CreateOptions, Env, FileKind, JoinHandle};
use drumlin_resp::{ReplyLimits, ReplyParser, Value, encode_command};
use drumlin_testkit::redis::Link;
use drumlin_testkit::temp_dir;

const WRITERS: u64 = 3;
/// Acknowledged writes between two failovers.
const WRITES: u64 = 60;
const PATIENCE: Duration = Duration::from_secs(60);

fn free_port() -> u16 {
    let any = Address::Tcp("127.0.0.1:0".parse().expect("an address"));
    let listener = PosixNetwork::new().listen(&any, Default::default());
    match listener.expect("listens").local_address() {
        Address::Tcp(address) => address.port(),
        other => panic!("{other} is no TCP address"),
    }
}

/// Commands to a server that may be gone.
struct Client {
    link: Link,
    parser: ReplyParser,
}

impl Client {
    fn connect(port: u16) -> Option<Self> {
        let address = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], port)));
        Some(Self {
            link: Link::try_to(&address)?,
            parser: ReplyParser::new(ReplyLimits::default()),
        })
    }

    /// The replies to lines of words; none when the server is gone.
    fn ask(&mut self, lines: &[&str]) -> Option<Vec<Value>> {
        let mut bytes = Vec::new();
        for line in lines {
            let words: Vec<_> = line.split(' ').collect();
            encode_command(&mut bytes, &words);
        }
        if !self.link.send(&bytes) {
            return None;
        }
        lines.iter().map(|_| self.reply()).collect()
    }

    fn reply(&mut self) -> Option<Value> {
        loop {
            if let Some(value) = self.parser.value().expect("a reply") {
                return Some(value);
            }
            self.parser.push(&self.link.receive()?);
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) | Value::Simple(bytes) | Value::Error(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        other => other.to_string(),
    }
}

fn ask(port: u16, line: &str) -> Option<Value> {
    Client::connect(port)?.ask(&[line])?.pop()
}

/// Waits until `look` finds something.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let clock = Env::system().clock;
    let began = clock.monotonic();
    loop {
        if let Some(found) = look() {
            return found;
        }
        let waited = clock.monotonic().saturating_sub(began);
        assert!(waited < PATIENCE, "{what} does not come");
        clock.sleep(Duration::from_millis(20));
    }
}

/// A process that ends with this.
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::null()).spawn().expect("a process"))
    }

    fn signal(&self, name: &str) {
        let mut command = Command::new("kill");
        let done = command.args([name, &self.0.id().to_string()]).status();
        assert!(done.expect("is there").success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn write_file(path: &Path, text: &str) {
    let files = Env::system().files;
    let file = files.create(path, CreateOptions::new(FileKind::Other));
    let mut file = file.expect("a file");
    file.append(text.as_bytes()).expect("is written");
    file.close().expect("is written");
}

/// A server of ours, and its configuration.
struct Node {
    port: u16,
    file: PathBuf,
    process: Option<Process>,
}

impl Node {
    fn start(dir: &Path, name: &str, more: &str) -> Self {
        let (port, file) = (free_port(), dir.join(format!("{name}.conf")));
        let data = dir.join(name);
        let text = format!(
            "port {port}\ndir {}\nmaxmemory 64mb\nmin-replicas-to-write 1\nmin-replicas-max-lag 2\n{more}",
            data.display()
        );
        write_file(&file, &text);
        let mut node = Self {
            port,
            file,
            process: None,
        };
        node.begin();
        node
    }

    fn begin(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drumlin"));
        self.process = Some(Process::start(command.arg("redis").arg(&self.file)));
        until("the server", || ask(self.port, "PING"));
    }

    /// Empty where the connection is closed, as the sentinel has it done to all clients when it promotes.
    fn info(&self) -> String {
        let info = ask(self.port, "INFO replication");
        info.map(|it| text(&it)).unwrap_or_default()
    }

    /// The line of the file that says whom it follows.
    fn followed(&self) -> Option<String> {
        let text = Env::system().files.read_file(&self.file, 1 << 20);
        let text = String::from_utf8(text.expect("a file")).expect("text");
        let mut lines = text.lines().filter(|it| it.starts_with("replicaof"));
        lines.next().map(str::to_owned)
    }
}

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

fn text_of(port: u16, line: &str) -> String {
    text(&ask(port, line).expect("it is there"))
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
    let one = Node::start(dir.path(), "one", "");
    let more = format!("replicaof 127.0.0.1 {}\n", one.port);
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
