//! Goal: strings, keys, expiry, databases and transactions answer as Redis's do. Method: random commands over few keys, right
//! and wrong arguments mixed.

use drumlin_base::rng::Rng;

use crate::pair::{Pair, Words, pick, seeds, words};

const KEYS: &[&str] = &["k1", "k2", "k3", "k4", "zset", "k1", "k2", "none"];
const VALUES: &[&str] = &[
    "a",
    "''",
    "10",
    "-7",
    "3.1",
    "007",
    "9223372036854775807",
    "-9223372036854775808",
    "+5",
    "some-text-that-is-longer-than-an-embedded-string-may-be",
    "1e3",
    "abcdefghij",
    "99999999999999999999",
];
const NUMBERS: &[&str] = &["0", "1", "-1", "5", "100", "-3", "2"];
const ODD_NUMBERS: &[&str] = &[
    "x",
    "''",
    "1.5",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "01",
];
/// Seconds since 1970 far from now, both ways, as both servers have their own clock.
const SECONDS: &[&str] = &["1", "9999999999", "8888888888", "7777777777"];
const ODD_SECONDS: &[&str] = &[
    "0",
    "-1",
    "x",
    "9223372036854775807",
    "-9223372036854775808",
    "''",
];

/// DBSIZE is not among the commands: Redis counts keys that have expired until it deletes them.
pub(crate) struct Maker {
    pub(crate) rng: Rng,
}

impl Maker {
    fn one_in(&mut self, chance: u64) -> bool {
        self.rng.next_u64().is_multiple_of(chance)
    }

    fn of(&mut self, usual: &[&str], odd: &[&str]) -> String {
        let choices = if self.one_in(10) { odd } else { usual };
        pick(&mut self.rng, choices).to_owned()
    }

    fn key(&mut self) -> &'static str {
        pick(&mut self.rng, KEYS)
    }

    fn value(&mut self) -> &'static str {
        pick(&mut self.rng, VALUES)
    }

    fn number(&mut self) -> String {
        self.of(NUMBERS, ODD_NUMBERS)
    }

    fn keys(&mut self) -> String {
        let count = 1 + self.rng.next_u64() % 3;
        let keys: Vec<_> = (0..count).map(|_| self.key()).collect();
        keys.join(" ")
    }

    fn pairs(&mut self) -> String {
        let count = 1 + self.rng.next_u64() % 3;
        let pairs: Vec<_> = (0..count)
            .map(|_| format!("{} {}", self.key(), self.value()))
            .collect();
        match self.one_in(15) {
            true => format!("{} odd", pairs.join(" ")),
            false => pairs.join(" "),
        }
    }

    fn set_options(&mut self) -> String {
        let seconds = self.of(SECONDS, ODD_SECONDS);
        match self.rng.next_u64() % 12 {
            0 => "NX".to_owned(),
            1 => "xx".to_owned(),
            2 => "GET".to_owned(),
            3 => "nx get".to_owned(),
            4 => "KEEPTTL".to_owned(),
            5 => format!("exat {seconds}"),
            6 => format!("PXAT {seconds}000"),
            7 => format!("XX EXAT {seconds} GET"),
            8 => pick(
                &mut self.rng,
                &["NX XX", "EX", "KEEPTTL EXAT 9999999999", "what"],
            )
            .to_owned(),
            _ => String::new(),
        }
    }

    fn conditions(&mut self) -> &'static str {
        let choices = [
            "", "", "nx", "XX", "gt", "LT", "xx gt", "nx gt", "gt lt", "zz", "xx lt",
        ];
        pick(&mut self.rng, &choices)
    }

    pub(crate) fn line(&mut self) -> String {
        let (key, other, value) = (self.key(), self.key(), self.value());
        let number = self.number();
        match self.rng.next_u64() % 61 {
            0..=5 => format!("SET {key} {value} {}", self.set_options()),
            6 => format!("SETNX {key} {value}"),
            7 => format!("GETSET {key} {value}"),
            8 | 9 => format!("GET {key}"),
            10 => format!("MGET {}", self.keys()),
            11 => format!("MSET {}", self.pairs()),
            12 => format!("MSETNX {}", self.pairs()),
            13 => format!("APPEND {key} {value}"),
            14 => format!("STRLEN {key}"),
            15 => format!("GETRANGE {key} {number} {}", self.number()),
            16 => format!("SUBSTR {key} {number} {}", self.number()),
            17 => {
                let offset = self.of(&["0", "1", "5", "30"], &["-1", "x", "536870912"]);
                format!("SETRANGE {key} {offset} {value}")
            }
            18 => format!("INCR {key}"),
            19 => format!("DECR {key}"),
            20 if self.one_in(2) => {
                let number = self.of(&["0.1", "-7.25", "1e3", "3"], &["x", "''", "inf", "1e4932"]);
                format!("INCRBYFLOAT {key} {number}")
            }
            20 => format!("INCRBY {key} {number}"),
            21 => format!("DECRBY {key} {number}"),
            22 => format!("GETDEL {key}"),
            23 => {
                let seconds = self.of(SECONDS, ODD_SECONDS);
                let options = ["", "persist", "EXAT", "what"];
                match pick(&mut self.rng, &options) {
                    "EXAT" => format!("GETEX {key} EXAT {seconds}"),
                    other => format!("GETEX {key} {other}"),
                }
            }
            24 | 25 => format!("DEL {}", self.keys()),
            26 => format!("UNLINK {}", self.keys()),
            27 => format!("EXISTS {} {key}", self.keys()),
            28 => format!("TOUCH {}", self.keys()),
            29 => format!("TYPE {key}"),
            30 | 31 => {
                let seconds = self.of(SECONDS, ODD_SECONDS);
                format!("EXPIREAT {key} {seconds} {}", self.conditions())
            }
            32 => {
                let seconds = self.of(SECONDS, ODD_SECONDS);
                format!("PEXPIREAT {key} {seconds}123 {}", self.conditions())
            }
            33 => format!(
                "EXPIRE {key} {}",
                self.of(&["-1", "0", "-100"], ODD_NUMBERS)
            ),
            34 => format!(
                "PEXPIRE {key} {}",
                self.of(&["-1", "0", "-100"], ODD_NUMBERS)
            ),
            35 => format!("PERSIST {key}"),
            36 | 37 => format!("EXPIRETIME {key}"),
            38 => format!("PEXPIRETIME {key}"),
            39 => format!("RENAME {key} {other}"),
            40 => format!("RENAMENX {key} {other}"),
            41 => format!(
                "MOVE {key} {}",
                self.of(&["0", "1", "2"], &["x", "16", "-1"])
            ),
            42 => format!(
                "SELECT {}",
                self.of(&["0", "0", "1"], &["x", "16", "-1", "''"])
            ),
            43 => format!("OBJECT ENCODING {key}"),
            44 => pick(
                &mut self.rng,
                &["PING", "PING hello", "ECHO hi", "ECHO", "PING a b"],
            )
            .to_owned(),
            45 => "MULTI".to_owned(),
            46 | 47 => "EXEC".to_owned(),
            48 => "DISCARD".to_owned(),
            49 => format!("WATCH {}", self.keys()),
            50 => "UNWATCH".to_owned(),
            51 => pick(
                &mut self.rng,
                &[
                    "NOSUCH a b",
                    "GET",
                    "SET a",
                    "EXPIRE a",
                    "OBJECT what k1",
                    "OBJECT",
                ],
            )
            .to_owned(),
            52 if self.one_in(6) => pick(
                &mut self.rng,
                &["FLUSHDB", "FLUSHALL", "FLUSHDB async", "FLUSHALL what"],
            )
            .to_owned(),
            52 => format!(
                "SWAPDB {} {}",
                self.of(&["0", "1"], &["x", "16"]),
                self.of(&["1", "2"], &["x", "-1"])
            ),
            53 => format!("ZADD zset 1 {value}"),
            54 => format!("SETEX {key} {} {value}", self.of(&["0", "-5"], ODD_NUMBERS)),
            55 => format!(
                "PSETEX {key} {} {value}",
                self.of(&["0", "-5"], ODD_NUMBERS)
            ),
            56 => pick(
                &mut self.rng,
                &[
                    "CONFIG GET maxmemory-policy",
                    "CONFIG SET nosuch 1",
                    "CONFIG SET appendfsync what",
                    "CLIENT GETNAME",
                    "CLIENT SETNAME x",
                    "CLIENT NOSUCH",
                    "CONFIG NOSUCH",
                ],
            )
            .to_owned(),
            57 => format!(
                "COPY {key} {other} {}",
                pick(
                    &mut self.rng,
                    &["", "replace", "DB 1", "DB x REPLACE", "what", "db 16"]
                )
            ),
            58 => format!(
                "SETBIT {key} {} {}",
                self.of(&["0", "7", "30", "100"], &["-1", "x", "4294967296"]),
                self.of(&["0", "1"], &["2", "x"])
            ),
            59 => format!(
                "GETBIT {key} {}",
                self.of(&["0", "7", "30", "1000"], &["-1", "x", "4294967296"])
            ),
            _ => {
                let unit = pick(&mut self.rng, &["", "BYTE", "bit", "what"]);
                match self.one_in(4) {
                    true => format!("BITCOUNT {key}"),
                    false => format!("BITCOUNT {key} {number} {} {unit}", self.number()),
                }
            }
        }
    }
}

fn run(seed: u64, protocol: &str, count: usize) {
    let Some(pair) = Pair::start() else {
        return;
    };
    let mut maker = Maker {
        rng: Rng::new(seed),
    };
    for _ in 0..count.div_ceil(500) {
        let commands: Vec<Words> = (0..500).map(|_| words(&maker.line())).collect();
        pair.same(protocol, &commands, |_| true);
    }
}

/// As many as `REDIS_COMMANDS` says, from the seed `REDIS_SEED` on; 20,000 from 1 on otherwise.
#[test]
fn random_commands_of_strings_and_keys_answer_as_redis_does() {
    seeds(20_000, 10_000, |seed| {
        run(seed, ["2", "3"][(seed % 2) as usize], 10_000);
    });
}
