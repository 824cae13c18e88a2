//! Goal: no write that the server acknowledged is lost with its process, and a transaction is there whole or not at all.
//! Method: clients write to `drumlin redis`, which is killed with SIGKILL at random moments and started again; then all that
//! they wrote is compared with the replies they got. `REDIS_KILLS` says how often; 4 times otherwise.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_fs::Env;
use drumlin_resp::{ReplyLimits, ReplyParser, Value, encode_command};
use drumlin_testkit::redis::Link;
use drumlin_testkit::temp_dir;

const CLIENTS: u64 = 3;
/// Writes that a client sends before it waits for their replies.
const PIPELINE: u64 = 8;
/// Kinds of writes, one after the other.
const KINDS: u64 = 4;

/// The server and the path of its socket.
struct Server {
    child: Child,
    socket: PathBuf,
}

impl Server {
    fn start(dir: &Path, fsync: &str) -> Self {
        let socket = dir.join("socket");
        let mut command = Command::new(env!("CARGO_BIN_EXE_drumlin"));
        command.arg("redis").arg("--dir").arg(dir.join("data"));
        command.args(["--port", "0", "--set", "maxmemory=64mb", "--set"]);
        command.arg(format!("appendfsync={fsync}")).arg("--set");
        command.arg(format!("unixsocket={}", socket.display()));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a process");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let line = lines.next().expect("a line").expect("text");
        assert!(line.starts_with("Serving"), "{line}");
        Self { child, socket }
    }

    fn kill(mut self) {
        self.child.kill().expect("is killed");
        self.child.wait().expect("ends");
    }
}

/// The writes of a client, by number: those before `acknowledged` have to be there, those from `sent` on cannot.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    acknowledged: u64,
    sent: u64,
}

/// The commands of write `number` of `client`.
fn write(client: u64, number: u64) -> Vec<Vec<String>> {
    let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let (number, name) = (&number.to_string(), |kind: &str| format!("{kind}:{client}"));
    match number.parse::<u64>().expect("a number") % KINDS {
        0 => vec![text(&["SET", &format!("s:{client}:{number}"), number])],
        1 => vec![text(&["RPUSH", &name("l"), number])],
        2 => vec![text(&["ZADD", &name("z"), number, number])],
        _ => vec![
            text(&["MULTI"]),
            text(&["SET", &name("a"), number]),
            text(&["HSET", &name("h"), number, number]),
            text(&["SET", &name("b"), number]),
            text(&["EXEC"]),
        ],
    }
}

/// Replies as they come.
struct Client {
    link: Link,
    parser: ReplyParser,
}

impl Client {
    fn connect(socket: &Path) -> Self {
        Self {
            link: Link::connect(socket),
            parser: ReplyParser::new(ReplyLimits::default()),
        }
    }

    fn send<W: AsRef<[u8]>>(&mut self, commands: &[Vec<W>]) -> bool {
        let mut bytes = Vec::new();
        for command in commands {
            encode_command(&mut bytes, command);
        }
        self.link.send(&bytes)
    }

    /// The next reply; none when the server is gone.
    fn reply(&mut self) -> Option<Value> {
        loop {
            if let Some(value) = self.parser.value().expect("a reply") {
                return Some(value);
            }
            let bytes = self.link.receive()?;
            self.parser.push(&bytes);
        }
    }

    fn ask(&mut self, line: &str) -> Value {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        assert!(self.send(&[words]), "the server is there");
        self.reply().expect("the server is there")
    }

    fn number(&mut self, line: &str) -> Option<u64> {
        match self.ask(line) {
            Value::Integer(number) => Some(u64::try_from(number).expect("a count")),
            Value::Bulk(text) => String::from_utf8(text).expect("text").parse().ok(),
            Value::Null => None,
            other => panic!("{line}: {other}"),
        }
    }
}

/// Writes until the server is gone.
fn write_on(mut connection: Client, client: u64, written: &mut Written) {
    loop {
        let first = written.sent;
        let commands: Vec<_> = (first..first + PIPELINE)
            .map(|number| write(client, number))
            .collect();
        written.sent += PIPELINE;
        if !connection.send(&commands.concat()) {
            return;
        }
        for commands in &commands {
            for _ in commands {
                let Some(reply) = connection.reply() else {
                    return;
                };
                assert!(!matches!(reply, Value::Error(_)), "{reply}");
            }
            written.acknowledged += 1;
        }
    }
}

/// Writes of the kind `kind` among the first `count`.
fn of_kind(kind: u64, count: u64) -> u64 {
    (count + KINDS - 1 - kind) / KINDS
}

/// Compares what is there with the replies; how many writes are there from now on.
fn check(connection: &mut Client, client: u64, written: Written) -> u64 {
    let Written { acknowledged, sent } = written;
    let between = |kind: u64, found: u64| {
        let (least, most) = (of_kind(kind, acknowledged), of_kind(kind, sent));
        assert!(
            (least..=most).contains(&found),
            "kind {kind} of client {client}: {found} are there, {least} were acknowledged, {most} sent"
        );
    };
    let found = (acknowledged.saturating_sub(100)..sent)
        .filter(|number| number % KINDS == 0)
        .map(|number| {
            (
                number,
                connection.number(&format!("GET s:{client}:{number}")),
            )
        });
    let mut last = acknowledged;
    for (number, found) in found.collect::<Vec<_>>() {
        assert!(found.is_none_or(|found| found == number));
        assert!(number >= acknowledged || found.is_some(), "SET {number}");
        if found.is_some() {
            last = last.max(number + 1);
        }
    }
    let elements = connection
        .number(&format!("LLEN l:{client}"))
        .expect("a length");
    between(1, elements);
    if elements > 0 {
        // One connection's writes are there up to some moment: the last element tells the length.
        let last = connection.number(&format!("LINDEX l:{client} -1"));
        assert_eq!(last.map(|last| of_kind(1, last + 1)), Some(elements));
    }
    let members = connection
        .number(&format!("ZCARD z:{client}"))
        .expect("a length");
    between(2, members);
    if members > 0 {
        let last = connection.number(&format!("ZRANK z:{client} {}", (members - 1) * KINDS + 2));
        assert_eq!(last, Some(members - 1));
    }
    let fields = connection
        .number(&format!("HLEN h:{client}"))
        .expect("a length");
    between(3, fields);
    let (a, b) = ("GET a:", "GET b:");
    let [a, b] = [a, b].map(|get| connection.number(&format!("{get}{client}")));
    assert_eq!(a, b, "EXEC is whole");
    assert_eq!(a.map_or(0, |a| of_kind(3, a + 1)), fields, "EXEC is whole");
    for (kind, found) in [(1, elements), (2, members), (3, fields)] {
        if found > 0 {
            last = last.max((found - 1) * KINDS + kind + 1);
        }
    }
    last
}

#[test]
fn a_killed_server_has_all_that_it_acknowledged() {
    let kills = std::env::var("REDIS_KILLS").ok();
    let kills: u64 = kills.map_or(4, |text| text.parse().expect("REDIS_KILLS is a number"));
    let dir = temp_dir();
    let mut rng = Rng::new(0x6b69_6c6c);
    let mut all = [Written::default(); CLIENTS as usize];
    for kill in 0..kills {
        let fsync = ["everysec", "always"][(kill % 2) as usize];
        let server = Server::start(dir.path(), fsync);
        let mut connection = Client::connect(&server.socket);
        for (client, written) in (0..).zip(&mut all) {
            // The writes of one connection are there up to some moment; the client goes on from there.
            let last = check(&mut connection, client, *written);
            *written = Written {
                acknowledged: last,
                sent: last,
            };
        }
        drop(connection);
        let pause = Duration::from_millis(5 + rng.below(60));
        let connections: Vec<_> = all
            .iter()
            .map(|_| Client::connect(&server.socket))
            .collect();
        std::thread::scope(|scope| {
            for ((client, written), connection) in (0..).zip(&mut all).zip(connections) {
                scope.spawn(move || write_on(connection, client, written));
            }
            Env::system().clock.sleep(pause);
            server.kill();
        });
    }
    let acknowledged: u64 = all.iter().map(|written| written.acknowledged).sum();
    assert!(acknowledged > kills * 50, "{acknowledged} writes");
}
