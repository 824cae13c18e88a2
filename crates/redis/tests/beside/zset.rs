//! Goal: sorted sets answer as Redis's do. Method: random commands over few keys, right and wrong arguments mixed.

use drumlin_base::rng::Rng;

use crate::pair::{Pair, Words, pick, seeds, words};

const MEMBERS: &[&str] = &["a", "b", "c", "d", "aa", "ab", "mm", "z", "''", "1", "007"];
const NUMBERS: &[&str] = &[
    "0", "1", "2", "3", "-1", "-7", "12", "3.1", "0.1", "inf", "-inf",
];
const ODD_NUMBERS: &[&str] = &[
    "nan", "x", "''", "-0", "1e999", "5e-324", "1e17", "0x10", "1e", "+inf", ".5", "1.", "infinity",
];
const BOUNDS: &[&str] = &[
    "0", "(0", "1", "(2", "5", "-inf", "+inf", "(inf", "3.1", "(-7",
];
const ODD_BOUNDS: &[&str] = &["nan", "(x", "''", "(", "[1", "1e999"];
const LEX: &[&str] = &["-", "+", "[a", "(a", "[ab", "(b", "[mm", "(z", "[", "("];
const ODD_LEX: &[&str] = &["a", "''", "+a", "-a", "1"];
const RANKS: &[&str] = &["0", "1", "2", "-1", "-2", "5", "-100", "100"];

pub(crate) struct Maker {
    pub(crate) rng: Rng,
    /// Members of a large sorted set besides.
    pub(crate) large: bool,
}

impl Maker {
    fn one_in(&mut self, chance: u64) -> bool {
        self.rng.next_u64().is_multiple_of(chance)
    }

    fn of(&mut self, usual: &[&str], odd: &[&str]) -> String {
        let choices = if self.one_in(12) { odd } else { usual };
        pick(&mut self.rng, choices).to_owned()
    }

    fn key(&mut self) -> &'static str {
        let keys = ["k1", "k2", "k3", "k1", "k2", "k3", "k1", "string", "none"];
        pick(&mut self.rng, &keys)
    }

    fn member(&mut self) -> String {
        match self.large && !self.one_in(4) {
            true => format!("member-{}", self.rng.next_u64() % 2_000),
            false if self.one_in(30) => "long".repeat(20),
            false => pick(&mut self.rng, MEMBERS).to_owned(),
        }
    }

    fn limit(&mut self) -> String {
        match self.one_in(3) {
            true => {
                let offset = self.of(&["0", "1", "2"], &["-1", "x"]);
                let count = self.of(&["1", "2", "5", "-1"], &["0", "x"]);
                format!("LIMIT {offset} {count}")
            }
            false => String::new(),
        }
    }

    fn keys(&mut self) -> String {
        let count = 1 + self.rng.next_u64() % 3;
        let key = |maker: &mut Self| match maker.one_in(6) {
            true => "set",
            false => maker.key(),
        };
        let keys: Vec<_> = (0..count).map(|_| key(self)).collect();
        let told = match self.one_in(15) {
            true => pick(&mut self.rng, &["0", "-1", "9", "x"]).to_owned(),
            false => count.to_string(),
        };
        format!("{told} {}", keys.join(" "))
    }

    fn addition(&mut self) -> String {
        let options = [
            "nx", "xx", "gt", "LT", "ch", "ch gt", "xx ch lt", "nx gt", "incr", "nx incr",
        ];
        let options = match self.one_in(3) {
            true => pick(&mut self.rng, &options),
            false => "",
        };
        let mut line = format!("ZADD {} {options}", self.key());
        for _ in 0..=self.rng.next_u64() % 3 {
            let score = self.of(NUMBERS, ODD_NUMBERS);
            line = format!("{line} {score} {}", self.member());
        }
        if self.one_in(40) {
            line.push_str(" 1");
        }
        line
    }

    fn range(&mut self) -> String {
        let rev = pick(&mut self.rng, &["", "REV"]);
        let scores = self.of(&["", "WITHSCORES"], &["foo", "LIMIT 1", "BYLEX"]);
        let (key, limit) = (self.key(), self.limit());
        match self.rng.next_u64() % 3 {
            0 => {
                let (start, end) = (self.of(RANKS, &["x"]), self.of(RANKS, &["x"]));
                let names = ["ZRANGE", "ZREVRANGE", "ZRANGESTORE to"];
                let name = pick(&mut self.rng, &names);
                format!("{name} {key} {start} {end} {scores}")
            }
            1 => {
                let (min, max) = (self.of(BOUNDS, ODD_BOUNDS), self.of(BOUNDS, ODD_BOUNDS));
                let names = [
                    "ZRANGEBYSCORE",
                    "ZREVRANGEBYSCORE",
                    "ZRANGE",
                    "ZRANGESTORE to",
                ];
                let name = pick(&mut self.rng, &names);
                let by = match name.ends_with("SCORE") {
                    true => String::new(),
                    false => format!("BYSCORE {rev}"),
                };
                format!("{name} {key} {min} {max} {by} {scores} {limit}")
            }
            _ => {
                let (min, max) = (self.of(LEX, ODD_LEX), self.of(LEX, ODD_LEX));
                let names = ["ZRANGEBYLEX", "ZREVRANGEBYLEX", "ZRANGE", "ZRANGESTORE to"];
                let name = pick(&mut self.rng, &names);
                let by = match name.ends_with("LEX") {
                    true => String::new(),
                    false => format!("BYLEX {rev}"),
                };
                // Only where scores are equal has the range a meaning.
                format!("{name} equal {min} {max} {by} {limit}")
            }
        }
    }

    fn combination(&mut self) -> String {
        let (keys, to) = (self.keys(), self.of(&["to", "to", "k1"], &["string"]));
        let scores = self.of(&["", "WITHSCORES"], &["foo", "WEIGHTS 1"]);
        let weights = self.of(
            &["", "", "WEIGHTS 2 1", "WEIGHTS -1 0 inf", "WEIGHTS 0.5"],
            &["WEIGHTS x x"],
        );
        let aggregate = self.of(
            &["", "AGGREGATE max", "AGGREGATE MIN"],
            &["AGGREGATE x", "AGGREGATE"],
        );
        match self.rng.next_u64() % 7 {
            0 => format!("ZUNION {keys} {weights} {aggregate} {scores}"),
            1 => format!("ZINTER {keys} {weights} {aggregate} {scores}"),
            2 => format!("ZDIFF {keys} {scores}"),
            3 => format!("ZUNIONSTORE {to} {keys} {weights} {aggregate}"),
            4 => format!("ZINTERSTORE {to} {keys} {weights} {aggregate}"),
            5 => format!("ZDIFFSTORE {to} {keys}"),
            _ => {
                let limit = self.of(
                    &["", "LIMIT 1", "LIMIT 0"],
                    &["LIMIT -1", "LIMIT x", "LIMIT"],
                );
                format!("ZINTERCARD {keys} {limit}")
            }
        }
    }

    fn removal(&mut self) -> String {
        let key = self.key();
        let (min, max) = (self.of(BOUNDS, ODD_BOUNDS), self.of(BOUNDS, ODD_BOUNDS));
        match self.rng.next_u64() % 7 {
            0 | 1 => format!("ZREM {key} {} {}", self.member(), self.member()),
            2 => format!(
                "ZREMRANGEBYRANK {key} {} {}",
                self.of(&["3", "5"], RANKS),
                4
            ),
            3 => format!("ZREMRANGEBYSCORE {key} {min} {max}"),
            4 => format!(
                "ZREMRANGEBYLEX equal {} {}",
                self.of(LEX, ODD_LEX),
                self.of(LEX, ODD_LEX)
            ),
            5 => {
                let name = pick(&mut self.rng, &["ZPOPMIN", "ZPOPMAX"]);
                let count = self.of(&["", "1", "2", "0"], &["-1", "x", "1 1"]);
                format!("{name} {key} {count}")
            }
            _ => {
                let end = self.of(&["MIN", "max"], &["foo"]);
                let count = self.of(
                    &["", "COUNT 2"],
                    &["COUNT 0", "COUNT", "COUNT 1 COUNT 1", "foo"],
                );
                let keys = self.keys();
                match self.one_in(3) {
                    true => format!("BZMPOP 0.01 {keys} {end} {count}"),
                    false => format!("ZMPOP {keys} {end} {count}"),
                }
            }
        }
    }

    fn look(&mut self) -> String {
        let (key, member) = (self.key(), self.member());
        let (min, max) = (self.of(BOUNDS, ODD_BOUNDS), self.of(BOUNDS, ODD_BOUNDS));
        match self.rng.next_u64() % 11 {
            0 => format!("ZSCORE {key} {member}"),
            1 => format!("ZMSCORE {key} {member} {}", self.member()),
            2 => format!("ZCARD {key}"),
            3 => format!("ZCOUNT {key} {min} {max}"),
            4 => format!(
                "ZLEXCOUNT equal {} {}",
                self.of(LEX, ODD_LEX),
                self.of(LEX, ODD_LEX)
            ),
            5 => format!("ZRANK {key} {member}"),
            6 => format!("ZREVRANK {key} {member}"),
            7 => format!(
                "ZRANDMEMBER {key} {}",
                self.of(&["0"], &["x", "1 foo", "1 2 3"])
            ),
            8 => format!("OBJECT ENCODING {key}"),
            9 => format!("ZSCAN {key} x"),
            _ => format!("ZRANGE {key} 0 -1 WITHSCORES"),
        }
    }

    pub(crate) fn line(&mut self) -> String {
        match self.rng.next_u64() % 20 {
            0..7 => self.addition(),
            7 => format!(
                "ZINCRBY {} {} {}",
                self.key(),
                self.of(NUMBERS, ODD_NUMBERS),
                self.member()
            ),
            8 => format!("ZADD equal 0 {} 0 {}", self.member(), self.member()),
            9..12 => self.range(),
            12..14 => self.combination(),
            14..16 => self.removal(),
            _ => self.look(),
        }
    }
}

/// A random pick may differ; the commands that make it are compared by what they leave, which is nothing.
pub(crate) fn compares(command: &Words) -> bool {
    !(command[0] == b"ZRANDMEMBER" && command.get(2).is_none_or(|count| count != b"0"))
}

/// Commands that [`run`] makes.
const OF_A_SEED: u64 = 10_000;

fn run(seed: u64, large: bool) {
    let Some(pair) = Pair::start() else {
        return;
    };
    let mut maker = Maker {
        rng: Rng::new(seed),
        large,
    };
    for round in 0..40 {
        let mut commands = vec![words("SET string text"), words("SADD set a b 1 007 none")];
        commands.extend((0..250).map(|_| words(&maker.line())));
        pair.same(["2", "3"][round % 2], &commands, compares);
    }
}

#[test]
fn small_sorted_sets_answer_as_redis_does() {
    seeds(OF_A_SEED, OF_A_SEED, |seed| run(seed, false));
}

#[test]
fn large_sorted_sets_answer_as_redis_does() {
    seeds(OF_A_SEED, OF_A_SEED, |seed| run(seed + 1, true));
}

#[test]
fn members_come_by_scan_whatever_the_form() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let commands = [
        words("ZADD k 1 a 1e17 b 3.1 c -0 d inf e"),
        words("ZSCAN k 0"),
        words("ZSCAN k 0 MATCH [ab] COUNT 100"),
        words("ZSCAN none 0 foo"),
        words("ZSCAN k 0 foo"),
        words("ZSCAN k 0 COUNT 0"),
    ];
    pair.same("2", &commands, |_| true);
    pair.same("3", &commands, |_| true);
}

#[test]
fn the_keys_of_their_commands_are_redis_s() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let commands = [
        "ZADD k 1 a",
        "ZRANGESTORE to k 0 1",
        "ZUNION 2 a b",
        "ZUNIONSTORE to 2 a b WEIGHTS 1 2",
        "BZMPOP 0 2 a b MIN",
        "ZMPOP 3 a b",
        "ZUNION 0 a",
        "ZINTERCARD x a",
        "BZPOPMIN a b 0",
    ];
    let commands = commands.map(|line| words(&format!("COMMAND GETKEYS {line}")));
    pair.same("2", &commands, |_| true);
}
