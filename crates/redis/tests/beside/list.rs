//! Goal: lists answer as Redis's do. Method: random commands over few keys, right and wrong arguments mixed; long lists; clients
//! that wait while another pushes.

use drumlin_base::rng::Rng;

use crate::pair::{Pair, Words, pick, seeds, words};

const KEYS: &[&str] = &["l1", "l2", "l3", "l1", "l2", "string", "none"];
const ELEMENTS: &[&str] = &["a", "b", "c", "''", "1", "22", "a", "b"];
const NUMBERS: &[&str] = &["0", "1", "2", "-1", "-2", "5", "-100", "100", "3"];
const ODD_NUMBERS: &[&str] = &[
    "x",
    "''",
    "1.5",
    "9223372036854775807",
    "-9223372036854775808",
];
const ENDS: &[&str] = &["LEFT", "right", "left", "RIGHT"];

pub(crate) struct Maker {
    pub(crate) rng: Rng,
    /// Elements are long, and many are pushed at once.
    pub(crate) large: bool,
}

impl Maker {
    fn one_in(&mut self, chance: u64) -> bool {
        self.rng.next_u64().is_multiple_of(chance)
    }

    fn key(&mut self) -> &'static str {
        pick(&mut self.rng, KEYS)
    }

    fn number(&mut self) -> &'static str {
        let choices = if self.one_in(12) {
            ODD_NUMBERS
        } else {
            NUMBERS
        };
        pick(&mut self.rng, choices)
    }

    fn end(&mut self) -> &'static str {
        let choices = if self.one_in(15) { &["middle"] } else { ENDS };
        pick(&mut self.rng, choices)
    }

    fn element(&mut self) -> String {
        match self.large && self.one_in(2) {
            true => format!(
                "{}-{}",
                "long".repeat((self.rng.next_u64() % 160) as usize),
                self.rng.next_u64() % 50
            ),
            false => pick(&mut self.rng, ELEMENTS).to_owned(),
        }
    }

    fn elements(&mut self) -> String {
        let most = if self.large { 60 } else { 3 };
        let count = 1 + self.rng.next_u64() % most;
        let elements: Vec<_> = (0..count).map(|_| self.element()).collect();
        elements.join(" ")
    }

    pub(crate) fn line(&mut self) -> String {
        let (key, other, element) = (self.key(), self.key(), self.element());
        let (number, second) = (self.number(), self.number());
        match self.rng.next_u64() % 32 {
            0..3 => format!("RPUSH {key} {}", self.elements()),
            3..5 => format!("LPUSH {key} {}", self.elements()),
            5 => format!("LPUSHX {key} {element}"),
            6 => format!("RPUSHX {key} {element}"),
            7 => format!("LPOP {key}"),
            8 => format!("RPOP {key} {number}"),
            9 => format!("LPOP {key} {number}"),
            10 => format!("LLEN {key}"),
            11 => format!("LINDEX {key} {number}"),
            12 => format!("LSET {key} {number} {element}"),
            13..16 => format!("LRANGE {key} {number} {second}"),
            16 => format!("LTRIM {key} {number} {second}"),
            17 => format!("LREM {key} {number} {element}"),
            18 => {
                let place = pick(&mut self.rng, &["before", "AFTER", "after", "beside"]);
                format!(
                    "LINSERT {key} {place} {} {element}",
                    pick(&mut self.rng, ELEMENTS)
                )
            }
            19 => format!("LPOS {key} {element}"),
            // The lowest number is no rank that Redis 7.0 calculates with.
            20 | 21 if second == "-9223372036854775808" => format!("LLEN {key}"),
            20 => format!("LPOS {key} {element} COUNT {number} RANK {second}"),
            21 => format!("LPOS {key} {element} maxlen {number} rank {second}"),
            22 => format!("LMOVE {key} {other} {} {}", self.end(), self.end()),
            23 => format!("RPOPLPUSH {key} {other}"),
            24 => format!("LMPOP 2 {key} {other} {} count {number}", self.end()),
            25 => format!("LMPOP {number} {key} {}", self.end()),
            26 => format!("BLPOP {key} {other} 0.001"),
            27 => format!("BLMOVE {key} {other} {} {} 0.001", self.end(), self.end()),
            28 => format!("BRPOPLPUSH {key} {other} 0.001"),
            29 => format!("BLMPOP 0.001 2 {key} {other} {}", self.end()),
            30 => {
                let timeout = pick(&mut self.rng, &["x", "-1", "0.001", "nan"]);
                format!("BRPOP {key} {timeout}")
            }
            _ if self.one_in(3) => format!("DEL {key}"),
            _ => format!("TYPE {key}"),
        }
    }
}

/// Commands that [`run`] makes.
const OF_A_SEED: u64 = 6_200;

fn run(seed: u64, large: bool) {
    let Some(pair) = Pair::start() else {
        return;
    };
    let rng = Rng::new(seed);
    let mut maker = Maker { rng, large };
    for round in 0..40 {
        // Redis looks at timeouts as often as `hz` says.
        let mut commands = vec![words("CONFIG SET hz 500"), words("SET string text")];
        for _ in 0..150 {
            commands.push(words(&maker.line()));
        }
        if round % 4 == 3 {
            commands.push(words("MULTI"));
            commands.extend((0..20).map(|_| words(&maker.line())));
            commands.push(words("EXEC"));
        }
        let never = |command: &Words| command.len() > 1;
        pair.same(["2", "3"][round % 2], &commands, never);
    }
}

#[test]
fn short_lists_answer_as_redis_does() {
    seeds(OF_A_SEED, OF_A_SEED, |seed| run(seed, false));
}

#[test]
fn long_lists_answer_as_redis_does() {
    seeds(OF_A_SEED, OF_A_SEED, |seed| run(seed + 1, true));
}
