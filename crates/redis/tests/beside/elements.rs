//! Goal: hashes and sets answer as Redis's do. Method: random commands over few keys, right and wrong arguments mixed. Where
//! Redis has no order, replies are compared as sets.

use drumlin_base::rng::Rng;
use drumlin_resp::Value;

use crate::pair::{Pair, Words, pick, seeds, words};

const NAMES: &[&str] = &["a", "b", "c", "f", "''", "1", "2", "-5", "10", "007", "x"];
const VALUES: &[&str] = &["v", "''", "0", "1", "-1", "12", "3.1", "007", "1e3", "0x10"];
const ODD_VALUES: &[&str] = &[
    "inf",
    "nan",
    "9223372036854775807",
    "-9223372036854775808",
    "1e4931",
];
const INTEGERS: &[&str] = &["0", "1", "-1", "7", "-100"];
const ODD_INTEGERS: &[&str] = &[
    "x",
    "''",
    "1.0",
    "9223372036854775807",
    "-9223372036854775808",
    "+1",
];
const NUMBERS: &[&str] = &["0", "1", "-1", "0.1", "3.1", "-7.25", "1e3", "1e-5"];
const ODD_NUMBERS: &[&str] = &[
    "x", "''", "nan", "inf", "-inf", "1e4932", "1e", ".5", "5.", "0x1p3", "1e17",
];

pub(crate) struct Maker {
    pub(crate) rng: Rng,
    /// Names of large values besides.
    pub(crate) large: bool,
}

impl Maker {
    fn one_in(&mut self, chance: u64) -> bool {
        self.rng.one_in(chance)
    }

    fn of(&mut self, usual: &[&str], odd: &[&str]) -> String {
        let choices = if self.one_in(12) { odd } else { usual };
        pick(&mut self.rng, choices).to_owned()
    }

    fn key(&mut self, of: char) -> String {
        match self.rng.below(20) {
            0 => "string".to_owned(),
            1 => "none".to_owned(),
            2 => if of == 'h' { "s1" } else { "h1" }.to_owned(),
            _ => format!("{of}{}", 1 + self.rng.below(3)),
        }
    }

    fn name(&mut self) -> String {
        match self.large && !self.one_in(4) {
            true => format!("name-{}", self.rng.below(2_000)),
            false if self.one_in(30) => "long".repeat(20),
            false => pick(&mut self.rng, NAMES).to_owned(),
        }
    }

    fn names(&mut self) -> String {
        let most = if self.large { 12 } else { 3 };
        let count = 1 + self.rng.below(most);
        (0..count).map(|_| self.name() + " ").collect()
    }

    fn pairs(&mut self) -> String {
        let most = if self.large { 12 } else { 3 };
        let count = 1 + self.rng.below(most);
        let mut pairs: String = (0..count)
            .map(|_| format!("{} {} ", self.name(), self.of(VALUES, ODD_VALUES)))
            .collect();
        if self.one_in(40) {
            pairs.push_str("more");
        }
        pairs
    }

    fn hash_line(&mut self) -> String {
        let (key, name) = (self.key('h'), self.name());
        match self.rng.below(24) {
            0..5 => format!("HSET {key} {}", self.pairs()),
            5 => format!("HMSET {key} {}", self.pairs()),
            6 => format!("HSETNX {key} {name} {}", self.of(VALUES, ODD_VALUES)),
            7 => format!("HGET {key} {name}"),
            8 => format!("HMGET {key} {}", self.names()),
            9 => format!("HGETALL {key}"),
            10 => format!("HKEYS {key}"),
            11 => format!("HVALS {key}"),
            12 => format!("HLEN {key}"),
            13 => format!("HEXISTS {key} {name}"),
            14 => format!("HSTRLEN {key} {name}"),
            15..18 => format!("HDEL {key} {}", self.names()),
            18 => format!("HINCRBY {key} {name} {}", self.of(INTEGERS, ODD_INTEGERS)),
            19..21 => format!(
                "HINCRBYFLOAT {key} {name} {}",
                self.of(NUMBERS, ODD_NUMBERS)
            ),
            21 => {
                let odd = [
                    "x",
                    "-9223372036854775808",
                    "1 foo",
                    "1 WITHVALUES 2",
                    "''",
                    "9223372036854775807 withvalues",
                ];
                let count = self.of(
                    &[
                        "",
                        "0",
                        "1",
                        "-3",
                        "10000",
                        "10000 WITHVALUES",
                        "-2 withvalues",
                    ],
                    &odd,
                );
                format!("HRANDFIELD {key} {count}")
            }
            22 => {
                let options = self.of(
                    &["COUNT 100000", "COUNT 100000 MATCH *a*"],
                    &["COUNT 0", "COUNT x", "foo", "TYPE hash"],
                );
                format!(
                    "HSCAN {key} {} {options}",
                    self.of(
                        &["0"],
                        &["x", "''", "+0", "-0", "+", "-+1", "18446744073709551616"]
                    )
                )
            }
            _ => format!("OBJECT ENCODING {key}"),
        }
    }

    fn keys(&mut self) -> (u64, String) {
        let count = 1 + self.rng.below(3);
        (count, (0..count).map(|_| self.key('s') + " ").collect())
    }

    fn set_line(&mut self) -> String {
        let (key, name) = (self.key('s'), self.name());
        match self.rng.below(24) {
            0..6 => format!("SADD {key} {}", self.names()),
            6..8 => format!("SREM {key} {}", self.names()),
            8 => format!("SISMEMBER {key} {name}"),
            9 => format!("SMISMEMBER {key} {}", self.names()),
            10 => format!("SMEMBERS {key}"),
            11 => format!("SCARD {key}"),
            // A pick that leaves nothing to chance.
            12 => format!(
                "SPOP {key} {}",
                self.of(&["0", "100000"], &["-1", "x", "1 2", "''"])
            ),
            13 => {
                let odd = ["x", "-9223372036854775808", "1 2", "''"];
                format!(
                    "SRANDMEMBER {key} {}",
                    self.of(&["", "0", "1", "-3", "100000"], &odd)
                )
            }
            14 => format!("SMOVE {key} {} {name}", self.key('s')),
            15..18 => {
                let (_, keys) = self.keys();
                format!(
                    "{} {keys}",
                    pick(&mut self.rng, &["SUNION", "SINTER", "SDIFF"])
                )
            }
            18..21 => {
                let (_, keys) = self.keys();
                let name = pick(&mut self.rng, &["SUNIONSTORE", "SINTERSTORE", "SDIFFSTORE"]);
                format!("{name} {key} {keys}")
            }
            21 => {
                let (count, keys) = self.keys();
                let count = self.of(&[&count.to_string()], &["0", "-1", "9", "x"]);
                let limit = self.of(
                    &["", "LIMIT 1", "LIMIT 0", "limit 3 LIMIT 2"],
                    &["LIMIT -1", "LIMIT x", "LIMIT", "foo"],
                );
                format!("SINTERCARD {count} {keys} {limit}")
            }
            22 => {
                let options = self.of(
                    &["COUNT 100000", "COUNT 100000 MATCH *1*"],
                    &["COUNT 0", "COUNT x", "foo", "TYPE set"],
                );
                format!(
                    "SSCAN {key} {} {options}",
                    self.of(
                        &["0"],
                        &["x", "''", "+0", "-0", "+", "-+1", "18446744073709551616"]
                    )
                )
            }
            _ => format!("OBJECT ENCODING {key}"),
        }
    }

    pub(crate) fn line(&mut self) -> String {
        match self.rng.below(40) {
            0 => format!(
                "DEL {}{}",
                pick(&mut self.rng, &["h", "s"]),
                1 + self.rng.below(3)
            ),
            1 => "SET string text".to_owned(),
            2..21 => self.hash_line(),
            _ => self.set_line(),
        }
    }
}

fn sort(items: &mut [Value]) {
    items.sort_by_key(|item| format!("{item:?}"));
}

/// The part of a reply that chance and the order of a hash table do not decide.
pub(crate) fn told(command: &Words, value: Value) -> Option<Value> {
    let is_choice = [&b"HRANDFIELD"[..], b"SRANDMEMBER"].contains(&command[0].as_slice());
    let takes_all = command.get(2).is_some_and(|count| count.len() > 4);
    let is_list = command[0].starts_with(b"HM") || command[0] == b"SMISMEMBER";
    let is_scan = command[0].ends_with(b"SCAN");
    Some(match value {
        Value::Array(items) if is_choice && !takes_all => {
            let nests = items
                .iter()
                .filter(|item| item.as_items().is_some())
                .count();
            Value::Array(vec![
                Value::Integer(items.len() as i64),
                Value::Integer(nests as i64),
            ])
        }
        Value::Bulk(_) if is_choice => return None,
        Value::Array(mut items) if is_scan => {
            if let Some(Value::Array(found)) = items.get_mut(1) {
                sort(found);
            }
            Value::Array(items)
        }
        Value::Array(mut items) if !is_list => {
            sort(&mut items);
            Value::Array(items)
        }
        Value::Set(mut items) => {
            sort(&mut items);
            Value::Set(items)
        }
        Value::Map(mut pairs) => {
            pairs.sort_by_key(|pair| format!("{pair:?}"));
            Value::Map(pairs)
        }
        other => other,
    })
}

/// Commands that [`run`] makes.
const OF_A_SEED: u64 = 16_000;

fn run(seed: u64, large: bool) {
    let Some(pair) = Pair::start() else {
        return;
    };
    let mut maker = Maker {
        rng: Rng::new(seed),
        large,
    };
    for round in 0..40 {
        let mut commands = vec![words("SET string text")];
        commands.extend((0..400).map(|_| words(&maker.line())));
        pair.same_as_told(["2", "3"][round % 2], &commands, told);
    }
}

#[test]
fn small_hashes_and_sets_answer_as_redis_does() {
    seeds(OF_A_SEED, OF_A_SEED, |seed| run(seed, false));
}

#[test]
fn large_hashes_and_sets_answer_as_redis_does() {
    seeds(OF_A_SEED, OF_A_SEED, |seed| run(seed + 1, true));
}

/// Goal: where Redis has an order, it is ours. Method: small hashes and sets of integers, replies compared as they are.
#[test]
fn fields_and_integers_come_in_the_order_of_redis() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let commands = [
        "HSET h z 1 a 2 m 3",
        "HSET h a 4",
        "HDEL h z",
        "HSET h z 5",
        "HGETALL h",
        "HKEYS h",
        "HVALS h",
        "HSCAN h 0",
        "HRANDFIELD h 5 WITHVALUES",
        "SADD i 10 9 -2 5",
        "SMEMBERS i",
        "SSCAN i 0",
        "SADD j 5 9 77",
        "SUNION i j",
        "SINTER i j",
        "SDIFF i j",
        "SUNIONSTORE k i j",
        "SMEMBERS k",
        "SPOP k 100",
        "EXISTS k",
        "HGETALL none",
        "SMEMBERS none",
        "HSCAN none 0 foo",
        "SSCAN none 0 foo",
        "HINCRBYFLOAT h f 10.5",
        "HINCRBYFLOAT h f 0.1",
        "HINCRBYFLOAT h f 1e17",
        "HINCRBYFLOAT h f -100000000000000000",
    ];
    let commands: Vec<_> = commands.map(words).into();
    for protocol in ["2", "3"] {
        pair.same(protocol, &commands, |_| true);
    }
}

#[test]
fn the_facts_of_their_commands_are_redis_s() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let names = "hdel hexists hget hgetall hincrby hincrbyfloat hkeys hlen hmget hmset hrandfield hscan hset hsetnx hstrlen \
                 hvals sadd scard sdiff sdiffstore sinter sintercard sinterstore sismember smembers smismember smove spop \
                 srandmember srem sscan sunion sunionstore incrbyfloat";
    let commands: Vec<_> = names
        .split_whitespace()
        .map(|name| words(&format!("COMMAND INFO {name}")))
        .collect();
    // Name, arity, flags and the places of the keys.
    pair.same_as_told("2", &commands, |_, value| {
        let facts = value.as_items()?.first()?.as_items()?.get(..6)?.to_vec();
        Some(Value::Array(facts))
    });
    let keys = [
        "SINTERCARD 2 a b LIMIT 1",
        "SMOVE a b c",
        "SUNIONSTORE a b c",
        "HSET a b c",
    ];
    let commands = keys.map(|line| words(&format!("COMMAND GETKEYS {line}")));
    pair.same("2", &commands, |_| true);
}
