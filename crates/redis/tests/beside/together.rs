//! Goal: the server answers as Redis does whatever came before. Method: commands of all types from two clients by turns, so that
//! transactions and watches of one meet the writes of the other; clients that wait until the other changes their keys; scripts
//! that run the same commands; a third client to which all events are told; and in between the store is compacted and opened
//! anew. `REDIS_COMMANDS` and `REDIS_SEED` as elsewhere.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use drumlin_base::rng::Rng;
use drumlin_resp::{ReplyLimits, ReplyParser, Value, encode_command};
use drumlin_testkit::redis::Link;

use crate::pair::{Pair, Words, pick, seeds, words};
use crate::{bits, elements, geo, hyperloglog, list, sort, stream, strings, zset};

/// Commands between two restarts.
const OF_A_LIFE: u64 = 2_000;
const OF_A_SEED: u64 = 10_000;
/// Commands that a client waits for.
const WAITED: u64 = 30;
/// The ending of a text that tells the subscriber that all events before it are there.
const FENCE: &str = "fence";

/// The part of a reply that has to be the same.
type Told = fn(&Words, Value) -> Option<Value>;

/// A command, and how its reply is compared.
#[derive(Clone)]
struct Line {
    command: Words,
    /// The command whose reply comes, which a script may run.
    inner: Words,
    told: Told,
}

impl Line {
    fn told(&self, value: Value) -> Option<Value> {
        (self.told)(&self.inner, unsorted(value))
    }
}

/// The encoding of a sorted set; Redis's SORT changes it. The other encodings are compared.
fn unsorted(value: Value) -> Value {
    match value {
        Value::Bulk(text) if text == b"skiplist" => Value::Bulk(b"listpack".to_vec()),
        value => value,
    }
}

fn text(command: &Words) -> String {
    let words = command.iter().map(|word| String::from_utf8_lossy(word));
    words.collect::<Vec<_>>().join(" ")
}

fn all(_: &Words, value: Value) -> Option<Value> {
    Some(value)
}

fn of_zset(command: &Words, value: Value) -> Option<Value> {
    zset::compares(command).then_some(value)
}

/// As [`sort::told`], where any key may be a set.
fn of_sort(command: &Words, value: Value) -> Option<Value> {
    let sorts = !command.iter().any(|it| it.eq_ignore_ascii_case(b"nosort"));
    match value {
        Value::Array(items) if !sorts => Some(Value::Integer(items.len() as i64)),
        value => sort::told(command, value),
    }
}

/// Lines of all types.
struct Maker {
    strings: strings::Maker,
    elements: elements::Maker,
    zset: zset::Maker,
    list: list::Maker,
    stream: stream::Maker,
}

impl Maker {
    fn new(rng: &mut Rng) -> Self {
        let mut other = || Rng::new(rng.next_u64());
        let large = other().one_in(2);
        Self {
            strings: strings::Maker { rng: other() },
            elements: elements::Maker {
                rng: other(),
                large,
            },
            zset: zset::Maker {
                rng: other(),
                large,
            },
            list: list::Maker {
                rng: other(),
                large,
            },
            stream: stream::Maker { clock: 30 },
        }
    }

    /// Without keys that expire as they are set: Redis has them until something comes across them.
    fn string_line(&mut self) -> String {
        loop {
            let line = self.strings.line();
            let lower = line.to_ascii_lowercase();
            let expires = lower.contains(" exat 1") || lower.contains(" pxat 1000");
            if !(expires && lower.starts_with("set ")) {
                return line;
            }
        }
    }

    /// Without ids of the clock.
    fn stream_line(&mut self, rng: &mut Rng) -> String {
        loop {
            let line = match rng.below(2) {
                0 => self.stream.line(rng),
                _ => self.stream.grouped_line(rng),
            };
            if !line.contains(" * ") && !line.contains("-* ") {
                return line;
            }
        }
    }

    fn line(&mut self, rng: &mut Rng) -> Line {
        let (line, told): (_, Told) = match rng.below(24) {
            0..6 => (self.string_line(), all),
            6..10 => (self.elements.line(), elements::told),
            10..13 => (self.zset.line(), of_zset),
            13..16 => (self.list.line(), all),
            16..20 => (self.stream_line(rng), stream::without_idle),
            20 => (bits::line(rng), all),
            21 => (geo::line(rng), all),
            22 => (hyperloglog::line(rng), all),
            _ => (sort_line(rng), of_sort),
        };
        let inner = words(&line);
        let command = match rng.below(20) {
            0 => scripted("redis.call", &inner),
            1 => scripted("redis.pcall", &inner),
            _ => inner.clone(),
        };
        Line {
            command,
            inner,
            told,
        }
    }
}

/// Without an order by numbers: Redis takes a number out of range that an earlier command met for one of its own.
fn sort_line(rng: &mut Rng) -> String {
    loop {
        let line = sort::settled(rng);
        let lower = line.to_ascii_lowercase();
        if !lower.starts_with("sort") || lower.contains("alpha") || lower.contains("nosort") {
            return line;
        }
    }
}

/// The command, run by a script.
fn scripted(call: &str, command: &Words) -> Words {
    let script = format!("return {call}(unpack(ARGV))");
    let mut words: Words = vec![b"EVAL".to_vec(), script.into_bytes(), b"0".to_vec()];
    words.extend(command.iter().cloned());
    words
}

/// A command that waits for ever, unless its keys are there.
fn waiting(rng: &mut Rng) -> Line {
    let lines = [
        "BLPOP l1 l2 0",
        "BRPOP l3 0",
        "BLMOVE l1 l2 LEFT RIGHT 0",
        "BRPOPLPUSH l2 l3 0",
        "BLMPOP 0 2 l1 l2 LEFT COUNT 2",
        "BZPOPMIN k1 k2 0",
        "BZPOPMAX k3 0",
        "BZMPOP 0 2 k1 k2 MAX COUNT 2",
        "XREAD BLOCK 0 STREAMS s1 s2 $ $",
        "XREADGROUP GROUP g1 c BLOCK 0 STREAMS s1 >",
    ];
    let command = words(pick(rng, &lines));
    Line {
        inner: command.clone(),
        command,
        told: all,
    }
}

/// A connection.
struct Client {
    link: Link,
    parser: ReplyParser,
}

impl Client {
    fn connect(socket: &Path, protocol: &str) -> Self {
        let mut client = Self {
            link: Link::connect(socket),
            parser: ReplyParser::new(ReplyLimits::default()),
        };
        client.ask(&words(&format!("HELLO {protocol}")));
        client
    }

    fn send(&mut self, command: &Words) {
        let mut bytes = Vec::new();
        encode_command(&mut bytes, command);
        assert!(self.link.send(&bytes), "the server is there");
    }

    fn reply(&mut self) -> Value {
        loop {
            if let Some(value) = self.parser.value().expect("a reply") {
                return value;
            }
            let bytes = self.link.receive().expect("the server is there");
            self.parser.push(&bytes);
        }
    }

    /// A reply, if it has come.
    fn reply_now(&mut self) -> Option<Value> {
        let bytes = self.link.received().expect("the server is there");
        self.parser.push(&bytes);
        self.parser.value().expect("a reply")
    }

    fn ask(&mut self, command: &Words) -> Value {
        self.send(command);
        self.reply()
    }
}

/// A server, with two clients, one that is told of the events, and one that looks.
struct Side {
    clients: [Client; 2],
    ids: [i64; 2],
    listener: Client,
    looks: Client,
}

impl Side {
    fn connect(socket: &Path, protocols: [&str; 2]) -> Self {
        let mut looks = Client::connect(socket, "2");
        let mut clients = protocols.map(|protocol| Client::connect(socket, protocol));
        for line in stream::FIRST {
            if line.starts_with("CONFIG") {
                looks.ask(&words(line));
            }
        }
        looks.ask(&words("CONFIG SET notify-keyspace-events AKE hz 500"));
        let mut listener = Client::connect(socket, "2");
        listener.ask(&words("PSUBSCRIBE *"));
        let ids = clients
            .each_mut()
            .map(|client| match client.ask(&words("CLIENT ID")) {
                Value::Integer(id) => id,
                other => panic!("an id is {other}"),
            });
        Self {
            clients,
            ids,
            listener,
            looks,
        }
    }

    /// Whether a client waits.
    fn one_waits(&mut self) -> bool {
        match self.looks.ask(&words("INFO clients")) {
            Value::Bulk(text) => String::from_utf8_lossy(&text).contains("blocked_clients:1"),
            other => panic!("INFO is {other}"),
        }
    }

    /// The reply to what `client` has sent; none if it waits.
    fn reply_or_wait(&mut self, client: usize) -> Option<Value> {
        loop {
            if let Some(value) = self.clients[client].reply_now() {
                return Some(value);
            }
            if self.one_waits() {
                // The reply may have come before this wait of another kind.
                return self.clients[client].reply_now();
            }
        }
    }

    /// All keys of all databases with their values.
    fn data(&mut self) -> Vec<String> {
        let mut data = Vec::new();
        for db in 0..16 {
            self.looks.ask(&words(&format!("SELECT {db}")));
            let keys = self.looks.ask(&words("KEYS *"));
            let mut keys: Vec<_> = keys.as_items().expect("keys").iter().collect();
            keys.sort_by_key(|key| key.to_string());
            for key in keys {
                let Value::Bulk(key) = key else {
                    panic!("a key is {key}");
                };
                data.push(format!("{db} {}", self.value(key)));
            }
        }
        data
    }

    fn value(&mut self, key: &[u8]) -> String {
        let mut ask = |line: &str| {
            let mut command = words(line);
            let place = command.iter().position(|word| word == b"KEY");
            command[place.expect("a place")] = key.to_vec();
            stream::without_idle(&command, self.looks.ask(&command)).expect("a value")
        };
        let kind = ask("TYPE KEY");
        let values = match kind == Value::Simple(b"stream".to_vec()) {
            true => [ask("XRANGE KEY - +"), ask("XINFO STREAM KEY FULL")],
            false => [
                ask("DEBUG DIGEST-VALUE KEY"),
                unsorted(ask("OBJECT ENCODING KEY")),
            ],
        };
        let expires = match ask("EXPIRETIME KEY") {
            // By the clock of each.
            Value::Integer(seconds) if (1 << 30..1 << 32).contains(&seconds) => seconds >> 10,
            Value::Integer(seconds) => seconds,
            other => panic!("an expiry is {other}"),
        };
        let name = String::from_utf8_lossy(key);
        format!("{name} {kind} {expires} {values:?}")
    }

    /// The events since the last time.
    fn events(&mut self) -> Vec<String> {
        self.looks.ask(&words(&format!("PUBLISH events {FENCE}")));
        let mut events = Vec::new();
        loop {
            let event = self.listener.reply();
            // pmessage, the pattern, the channel, the text.
            let Some([_, _, channel, text]) = event.as_items() else {
                panic!("an event is {event}");
            };
            if text == &Value::Bulk(FENCE.into()) {
                return events;
            }
            let event = format!("{channel} {text}");
            // Redis tells of it when it comes across the key.
            if !event.contains("expired") {
                events.push(event);
            }
        }
    }
}

/// Both servers, and what came before.
struct Both {
    ours: Side,
    theirs: Side,
    /// The commands that a client has queued in a transaction.
    queued: [Vec<Line>; 2],
    before: VecDeque<String>,
}

impl Both {
    fn connect(sockets: &[PathBuf; 2], protocols: [&str; 2], before: VecDeque<String>) -> Self {
        Self {
            ours: Side::connect(&sockets[0], protocols),
            theirs: Side::connect(&sockets[1], protocols),
            queued: [Vec::new(), Vec::new()],
            before,
        }
    }

    fn remember(&mut self, client: usize, command: &Words) {
        let line = format!("{client}: {}", text(command));
        self.before.push_back(line);
        if self.before.len() > 3_000 {
            self.before.pop_front();
        }
    }

    /// Compares what both answered to `line` of `client`.
    fn compare(&mut self, client: usize, line: &Line, [ours, theirs]: [Value; 2]) {
        let queued = &mut self.queued[client];
        let is_exec = line.inner[0].eq_ignore_ascii_case(b"EXEC");
        let told = |value: &Value| match value {
            Value::Array(items) if is_exec => {
                let told = queued.iter().zip(items.iter().cloned());
                let told: Vec<_> = told.map(|(line, item)| line.told(item)).collect();
                (told.len() == items.len()).then_some(told)
            }
            value => Some(vec![line.told(value.clone())]),
        };
        let is_same = told(&ours) == told(&theirs);
        let is_queued = matches!(&ours, Value::Simple(text) if text == b"QUEUED");
        if is_queued {
            queued.push(line.clone());
        } else if is_exec || line.inner[0] == b"MULTI" || line.inner[0] == b"DISCARD" {
            queued.clear();
        }
        assert!(
            is_same,
            "ours: {ours}\nRedis's: {theirs}\nto {:?}, the last of these:\n{}",
            self.before.back(),
            self.lines()
        );
    }

    fn lines(&self) -> String {
        let lines: Vec<_> = self.before.iter().map(String::as_str).collect();
        lines.join("\n")
    }

    fn run(&mut self, client: usize, line: &Line) {
        self.remember(client, &line.command);
        let sides = [&mut self.ours, &mut self.theirs];
        let values = sides.map(|side| side.clients[client].ask(&line.command));
        self.compare(client, line, values);
    }

    fn compact(&mut self) {
        let command = words("COMPACT");
        self.remember(2, &command);
        self.ours.looks.ask(&command);
    }

    /// A client waits while the other goes on.
    fn wait(&mut self, waits: usize, maker: &mut Maker, rng: &mut Rng) {
        let line = waiting(rng);
        self.remember(waits, &line.command);
        let sides = [&mut self.ours, &mut self.theirs];
        let replies = sides.map(|side| {
            side.clients[waits].send(&line.command);
            side.reply_or_wait(waits)
        });
        if let [Some(ours), Some(theirs)] = replies {
            self.compare(waits, &line, [ours, theirs]);
            return;
        }
        let [ours, theirs] = &replies;
        assert!(
            ours.is_none() && theirs.is_none(),
            "ours: {ours:?}\nRedis's: {theirs:?}\nto the last of these, one waits:\n{}",
            self.lines()
        );
        for _ in 0..rng.below(WAITED) {
            let other = maker.line(rng);
            // All keys change at once, and Redis takes them in the order of its hash table.
            if other.inner[0] != b"SWAPDB" {
                self.run(1 - waits, &other);
            }
            let still = [self.ours.one_waits(), self.theirs.one_waits()];
            assert!(
                still[0] == still[1],
                "{waits} waits for {}: {still:?}, after {:?}, the last of:\n{}",
                text(&line.command),
                self.before.back(),
                self.lines()
            );
            if !still[0] {
                break;
            }
        }
        let how = pick(rng, &["TIMEOUT", "ERROR"]);
        let sides = [&mut self.ours, &mut self.theirs];
        let values = sides.map(|side| {
            let unblock = format!("CLIENT UNBLOCK {} {how}", side.ids[waits]);
            side.looks.ask(&words(&unblock));
            side.clients[waits].reply()
        });
        self.compare(waits, &line, values);
    }

    fn same_data(&mut self, when: &str) {
        let (ours, theirs) = (self.ours.data(), self.theirs.data());
        let differ: Vec<_> = ours.iter().filter(|it| !theirs.contains(it)).collect();
        let missing: Vec<_> = theirs.iter().filter(|it| !ours.contains(it)).collect();
        assert!(
            differ.is_empty() && missing.is_empty(),
            "{when} ours has: {differ:?}\nRedis: {missing:?}\nafter:\n{}",
            self.lines()
        );
    }

    fn same_events(&mut self) {
        let (ours, theirs) = (self.ours.events(), self.theirs.events());
        let same = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
        let near = |events: &[String]| {
            let events = events.iter().skip(same.saturating_sub(6)).take(12);
            events.cloned().collect::<Vec<_>>().join(", ")
        };
        assert!(
            ours == theirs,
            "our events: {}\nRedis's: {}\nafter:\n{}",
            near(&ours),
            near(&theirs),
            self.lines()
        );
    }
}

fn live(pair: &mut Pair, maker: &mut Maker, rng: &mut Rng, before: &mut VecDeque<String>) {
    let sockets = [
        pair.ours.socket().to_owned(),
        pair.theirs.path().join("socket"),
    ];
    let protocols = [pick(rng, &["2", "3"]), pick(rng, &["2", "3"])];
    let mut both = Both::connect(&sockets, protocols, std::mem::take(before));
    both.same_data("at the start");
    for _ in 0..OF_A_LIFE {
        let client = rng.below(2) as usize;
        match rng.below(400) {
            0..12 => both.wait(client, maker, rng),
            12..16 => both.same_events(),
            16 => both.compact(),
            _ => both.run(client, &maker.line(rng)),
        }
    }
    both.same_events();
    both.same_data("at the end");
    both.before.push_back("restart".to_owned());
    *before = both.before;
}

#[test]
fn all_types_and_clients_together_answer_as_redis_does() {
    seeds(OF_A_SEED, OF_A_SEED, |seed| {
        let Some(mut pair) = Pair::start() else {
            return;
        };
        let mut rng = Rng::new(seed);
        let mut maker = Maker::new(&mut rng);
        let mut before = VecDeque::new();
        for _ in 0..OF_A_SEED / OF_A_LIFE {
            live(&mut pair, &mut maker, &mut rng, &mut before);
            pair.ours.restart();
        }
    });
}
