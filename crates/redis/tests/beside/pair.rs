//! A redis-server and a server of ours.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::rng::Rng;
use drumlin_fs::net::PosixNetwork;
use drumlin_fs::{Env, JoinHandle};
use drumlin_redis::{Config, Server, ServerOptions, Stopper};
use drumlin_resp::{ReplyLimits, ReplyParser, Value, encode_command};
use drumlin_testkit::redis;
use tempfile::TempDir;

/// A command and its arguments.
pub(crate) type Words = Vec<Vec<u8>>;

/// The words of a line; `''` is an empty one.
pub(crate) fn words(line: &str) -> Words {
    let words = line.split_whitespace();
    words
        .map(|word| if word == "''" { "" } else { word })
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

/// One of `choices`.
pub(crate) fn pick<'c>(rng: &mut Rng, choices: &[&'c str]) -> &'c str {
    choices[(rng.next_u64() % choices.len() as u64) as usize]
}

/// Calls `run` with one seed after the other, each of which makes `of_a_seed` commands: as many as `REDIS_COMMANDS` asks for, from the
/// seed `REDIS_SEED` on; as `count` does, from 1 on, otherwise.
#[expect(clippy::print_stdout, reason = "a failed test shows its seed")]
pub(crate) fn seeds(count: u64, of_a_seed: u64, mut run: impl FnMut(u64)) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let count: u64 = number("REDIS_COMMANDS").unwrap_or(count);
    let first: u64 = number("REDIS_SEED").unwrap_or(1);
    for seed in first..first + count.div_ceil(of_a_seed) {
        println!("seed {seed}");
        run(seed);
    }
}

/// Runs commands of `line` on both, which may keep something of their own from line to line: as many as [`seeds`] says, `count`
/// without that. Each seed has its servers and a protocol.
pub(crate) fn random_lines(
    count: u64,
    first_lines: &[&str],
    mut line: impl FnMut(&mut Rng) -> String,
    told: impl Fn(&Words, Value) -> Option<Value>,
) {
    const OF_A_SEED: u64 = 10_000;
    seeds(count, count.min(OF_A_SEED), |seed| {
        let Some(pair) = Pair::start() else {
            return;
        };
        let mut rng = Rng::new(seed);
        for round in 0..count.min(OF_A_SEED).div_ceil(500) {
            let mut commands: Vec<_> = first_lines.iter().map(|line| words(line)).collect();
            commands.extend((0..500).map(|_| words(&line(&mut rng))));
            pair.same_as_told(["2", "3"][(round % 2) as usize], &commands, &told);
        }
    });
}

/// The facts of commands are Redis's: name, arity, flags and the places of the keys.
pub(crate) fn same_facts(names: &str) {
    let Some(pair) = Pair::start() else {
        return;
    };
    let commands: Vec<_> = names
        .split_whitespace()
        .map(|name| words(&format!("COMMAND INFO {name}")))
        .collect();
    pair.same_as_told("2", &commands, |_, value| {
        let facts = value.as_items()?.first()?.as_items()?.get(..6)?.to_vec();
        Some(Value::Array(facts))
    });
}

/// A server of ours with its data in a directory. It ends with this.
pub(crate) struct Ours {
    stopper: Stopper,
    thread: Option<Box<dyn JoinHandle>>,
    socket: PathBuf,
    data: PathBuf,
    _dir: TempDir,
}

/// The configuration of one whose data is in `data`.
pub(crate) fn config_of(data: &Path) -> Config {
    let mut config = Config::default();
    let settings = [
        ("dir", data.to_str().expect("UTF-8")),
        ("port", "0"),
        ("enable-debug-command", "yes"),
    ];
    for (name, value) in settings {
        let set = config.set_at_start(name.as_bytes(), value.as_bytes());
        set.expect("a setting");
    }
    config
}

impl Ours {
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_with(data, &[])
    }

    /// One with further settings.
    pub(crate) fn start_with(data: &Path, settings: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("socket");
        let mut config = config_of(data);
        for (name, value) in settings {
            let set = config.set_at_start(name.as_bytes(), value.as_bytes());
            set.expect("a setting");
        }
        let path = socket.to_str().expect("UTF-8").as_bytes();
        config.set_at_start(b"unixsocket", path).expect("a setting");
        for (name, value) in settings {
            let set = config.set_at_start(name.as_bytes(), value.as_bytes());
            set.expect("a setting");
        }
        let env = Env::system();
        let server = Server::open(ServerOptions {
            config,
            env: env.clone(),
            network: Arc::new(PosixNetwork::new()),
        });
        let server = server.expect("opens");
        let stopper = server.stopper();
        let serve = Box::new(move || server.run().expect("serves"));
        let thread = env.spawner.spawn("server", serve).expect("a thread");
        Self {
            stopper,
            thread: Some(thread),
            socket,
            data: data.to_owned(),
            _dir: dir,
        }
    }

    fn stop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stopper.stop().expect("wakes");
            thread.join().expect("ends");
        }
    }

    /// Ends it, and starts one with the same data.
    pub(crate) fn restart(&mut self) {
        self.stop();
        *self = Self::start(&self.data);
    }

    /// The replies to `commands` on a connection of their own.
    pub(crate) fn ask(&self, commands: &[Words]) -> Vec<Value> {
        ask_at(&self.socket, commands)
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }
}

/// The replies of the server at `socket` to `commands`.
pub(crate) fn ask_at(socket: &Path, commands: &[Words]) -> Vec<Value> {
    let bytes = encode(commands);
    let mut replies = values(&redis::answers_until_closed(socket, &bytes));
    assert_eq!(replies.len(), commands.len() + 1, "all are answered");
    replies.pop();
    replies
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The commands and QUIT.
fn encode(commands: &[Words]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for command in commands {
        encode_command(&mut bytes, command);
    }
    encode_command(&mut bytes, &["QUIT"]);
    bytes
}

/// The replies of a redis-server to `commands` on a connection of their own.
pub(crate) fn ask_redis(server: &redis::Server, commands: &[Words]) -> Vec<Value> {
    let mut replies = values(&server.answers_until_closed(&encode(commands)));
    assert_eq!(replies.len(), commands.len() + 1, "Redis answers all");
    replies.pop();
    replies
}

/// See the module. Both end with it.
pub(crate) struct Pair {
    pub(crate) theirs: redis::Server,
    pub(crate) ours: Ours,
    _dir: TempDir,
}

impl Pair {
    /// `None` where there is no redis-server, which it says.
    pub(crate) fn start() -> Option<Self> {
        if !redis::installed() {
            return None;
        }
        let theirs = redis::Server::start(tempfile::tempdir().expect("a directory"), &[]);
        let dir = tempfile::tempdir().expect("a directory");
        let ours = Ours::start(&dir.path().join("data"));
        Some(Self {
            theirs,
            ours,
            _dir: dir,
        })
    }

    /// Sends both the same on a connection in the protocol `2` or `3`, and compares the replies that `compares` names.
    pub(crate) fn same(
        &self,
        protocol: &str,
        commands: &[Words],
        compares: impl Fn(&Words) -> bool,
    ) {
        self.same_as_told(protocol, commands, |command, value| {
            compares(command).then_some(value)
        });
    }

    /// As [`Pair::same`]; `told` makes of each reply what has to be the same.
    pub(crate) fn same_as_told(
        &self,
        protocol: &str,
        commands: &[Words],
        told: impl Fn(&Words, Value) -> Option<Value>,
    ) {
        let hello = [words(&format!("HELLO {protocol}"))];
        let sent = [&hello[..], commands].concat();
        let (ours, theirs) = (self.ours.ask(&sent), ask_redis(&self.theirs, &sent));
        let pairs = ours.into_iter().zip(theirs).skip(1);
        for (at, (ours, theirs)) in pairs.enumerate() {
            let lines = commands[at.saturating_sub(40)..=at].iter().map(|command| {
                let words = command.iter().map(|word| String::from_utf8_lossy(word));
                words.collect::<Vec<_>>().join(" ")
            });
            let same = told(&commands[at], ours.clone()) == told(&commands[at], theirs.clone());
            assert!(
                same,
                "ours: {ours}\nRedis's: {theirs}\nto the last of these in RESP{protocol}:\n{}",
                lines.collect::<Vec<_>>().join("\n")
            );
        }
    }
}

fn values(bytes: &[u8]) -> Vec<Value> {
    let mut parser = ReplyParser::new(ReplyLimits::default());
    parser.push(bytes);
    let mut values = Vec::new();
    while let Some(value) = parser.value().expect("a reply") {
        values.push(value);
    }
    values
}
