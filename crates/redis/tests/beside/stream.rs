//! Goal: streams answer as Redis's do. Method: random commands over few keys, right and wrong arguments mixed; nodes of five
//! entries, so that rough trims have something to cut.

use std::path::Path;

use drumlin_base::rng::Rng;

use drumlin_resp::Value;

use crate::pair::{Pair, Words, ask_at, pick, random_lines, same_facts, words};

/// Makes lines. Ids are near a clock that goes on, since those of a stream only grow.
pub(crate) struct Maker {
    pub(crate) clock: u64,
}

impl Maker {
    fn of(rng: &mut Rng, usual: &[&str], odd: &[&str]) -> String {
        let choices = if rng.below(15) == 0 { odd } else { usual };
        pick(rng, choices).to_owned()
    }

    fn key(rng: &mut Rng) -> String {
        Self::of(rng, &["s1", "s2", "s1", "future"], &["string", "none"])
    }

    /// An id that may be there.
    fn id(&self, rng: &mut Rng) -> String {
        let odd = [
            "-",
            "+",
            "x",
            "1-x",
            "''",
            "05-06",
            "+7",
            "$",
            ">",
            "0",
            "0-0",
            "7-*",
            "99999999999999-1",
            "99999999999999-3",
            "18446744073709551615-18446744073709551615",
        ];
        if rng.below(12) == 0 {
            return pick(rng, &odd).to_owned();
        }
        let ms = self.clock.saturating_sub(rng.below(25));
        match rng.below(3) {
            0 => ms.to_string(),
            _ => format!("{ms}-{}", rng.below(3)),
        }
    }

    fn bound(&self, rng: &mut Rng) -> String {
        match rng.below(6) {
            0 => pick(rng, &["-", "+"]).to_owned(),
            1 => format!("({}", self.id(rng)),
            _ => self.id(rng),
        }
    }

    fn trim(&self, rng: &mut Rng) -> String {
        let sign = pick(rng, &["", "~", "~", "="]);
        let limit = match rng.below(5) {
            0 => format!(
                "LIMIT {}",
                Self::of(rng, &["0", "5", "9", "20"], &["-1", "x"])
            ),
            _ => String::new(),
        };
        let to = match rng.below(2) {
            0 => format!(
                "MAXLEN {sign} {}",
                Self::of(rng, &["0", "3", "7", "12", "20"], &["-1", "x"])
            ),
            _ => format!("minid {sign} {}", self.id(rng)),
        };
        let more = Self::of(rng, &["", ""], &["MAXLEN 1", "MINID", "foo", "LIMIT 1"]);
        format!("{to} {limit} {more}")
    }

    fn addition(&mut self, rng: &mut Rng) -> String {
        self.clock += rng.below(3);
        let key = Self::key(rng);
        let options = match rng.below(8) {
            0 => self.trim(rng),
            1 => "NOMKSTREAM".to_owned(),
            _ => String::new(),
        };
        let id = match rng.below(10) {
            _ if key == "future" => "*".to_owned(),
            0..6 => format!("{}-*", self.clock),
            6..8 => format!("{}-{}", self.clock, rng.below(3)),
            8 => self.clock.to_string(),
            _ => self.id(rng),
        };
        let mut line = format!("XADD {key} {options} {id}");
        for _ in 0..=rng.below(2) {
            let value = Self::of(rng, &["v", "17", "some", "-5000"], &["''", "70000000000"]);
            line = format!("{line} {} {value}", pick(rng, &["f", "g", "f"]));
        }
        if rng.below(30) == 0 {
            line.push_str(" odd");
        }
        line
    }

    fn look(&self, rng: &mut Rng) -> String {
        let key = Self::key(rng);
        let count = Self::of(
            rng,
            &["", "", "COUNT 2", "COUNT 7"],
            &["COUNT 0", "COUNT x", "COUNT", "foo", "COUNT -1"],
        );
        match rng.below(6) {
            0 => format!("XLEN {key}"),
            1 => format!(
                "XRANGE {key} {} {} {count}",
                self.bound(rng),
                self.bound(rng)
            ),
            2 => format!(
                "XREVRANGE {key} {} {} {count}",
                self.bound(rng),
                self.bound(rng)
            ),
            3 => format!("XRANGE {key} - +"),
            4 => format!("OBJECT ENCODING {key}"),
            _ => {
                let block = Self::of(
                    rng,
                    &["", "", "BLOCK 1"],
                    &["BLOCK x", "BLOCK -1", "GROUP a b", "NOACK"],
                );
                let (one, two) = (self.id(rng), self.id(rng));
                match rng.below(3) {
                    0 => format!(
                        "XREAD {block} {count} STREAMS {key} {} {one} {two}",
                        Self::key(rng)
                    ),
                    1 => format!("XREAD {count} {block} STREAMS {key} {one}"),
                    _ => format!(
                        "XREAD {count} STREAMS {key} $ {}",
                        Self::of(rng, &[""], &["1"])
                    ),
                }
            }
        }
    }

    fn removal(&mut self, rng: &mut Rng) -> String {
        let mut key = Self::key(rng);
        let what = rng.below(20);
        if (16..19).contains(&what) && key == "future" {
            // An id of its own would be one of the present.
            key = "s1".to_owned();
        }
        match what {
            0..9 => format!("XDEL {key} {} {}", self.id(rng), self.id(rng)),
            9..16 => format!("XTRIM {key} {}", self.trim(rng)),
            16 => format!("DEL {key}"),
            17 => format!("COPY {key} s2 REPLACE"),
            18 => format!("RENAME {key} s1"),
            _ => {
                let more = Self::of(
                    rng,
                    &["", "ENTRIESADDED 1000", "MAXDELETEDID 3-1"],
                    &[
                        "ENTRIESADDED 1",
                        "ENTRIESADDED -1",
                        "ENTRIESADDED",
                        "MAXDELETEDID x",
                        "foo",
                    ],
                );
                match key == "future" {
                    true => "XSETID future 99999999999999-9".to_owned(),
                    false => format!("XSETID {key} {} {more}", self.id(rng)),
                }
            }
        }
    }

    /// A command of groups. No time since a delivery is between 0 and a million ms but by IDLE.
    fn grouped(&self, rng: &mut Rng) -> String {
        let key = Self::key(rng);
        let group = Self::of(rng, &["g1", "g2", "g1"], &["none"]);
        let consumer = pick(rng, &["a", "b", "c"]);
        let id = self.id(rng);
        let odd_count = ["COUNT 0", "COUNT x", "COUNT", "COUNT -1", "foo"];
        match rng.below(28) {
            22..25 => format!(
                "XAUTOCLAIM {key} {group} {consumer} {} {} {}",
                Self::of(rng, &["0", "0", "1000000"], &["-1", "x"]),
                Self::of(rng, &["0", "0-0", &id], &["-", "(5", "x"]),
                Self::of(rng, &["", "COUNT 1", "COUNT 2 JUSTID"], &odd_count)
            ),
            25 => format!("XINFO GROUPS {key}"),
            26 => format!("XINFO CONSUMERS {key} {group}"),
            27 => {
                let odd = [
                    "foo",
                    "FULL COUNT",
                    "FULL COUNT x",
                    "FULL COUNT -1",
                    "COUNT 2",
                ];
                format!(
                    "XINFO STREAM {key} {}",
                    Self::of(rng, &["", "FULL COUNT 3", "FULL"], &odd)
                )
            }
            0..3 => {
                let from = Self::of(rng, &["$", "0", "0-0"], &[&id]);
                let usual = ["", "MKSTREAM", "ENTRIESREAD 3"];
                let odd = ["ENTRIESREAD -1", "ENTRIESREAD -2", "ENTRIESREAD x", "foo"];
                let more = Self::of(rng, &usual, &odd);
                format!("XGROUP CREATE {key} {group} {from} {more}")
            }
            3 => format!(
                "XGROUP SETID {key} {group} {} {}",
                Self::of(rng, &["$", "0", &id], &["-", "+", "x"]),
                Self::of(rng, &["", "ENTRIESREAD 2"], &["MKSTREAM", "ENTRIESREAD"])
            ),
            4 => match rng.below(3) {
                0 => format!("XGROUP DESTROY {key} {group}"),
                1 => format!("XGROUP DELCONSUMER {key} {group} {consumer}"),
                _ => format!("XGROUP CREATECONSUMER {key} {group} {consumer}"),
            },
            5..12 => {
                let count = Self::of(rng, &["", "COUNT 2", "COUNT 1 NOACK", "NOACK"], &odd_count);
                let from = Self::of(rng, &[">", ">", ">", "0", &id], &["$", "x"]);
                let block = Self::of(rng, &["", "", "BLOCK 1"], &["BLOCK x"]);
                match rng.below(4) {
                    0 => format!(
                        "XREADGROUP GROUP {group} {consumer} {count} STREAMS s1 {key} {from} >"
                    ),
                    _ => format!(
                        "XREADGROUP GROUP {group} {consumer} {count} {block} STREAMS {key} {from}"
                    ),
                }
            }
            12..15 => format!("XACK {key} {group} {id} {}", self.id(rng)),
            15 => format!("XPENDING {key} {group}"),
            16 | 17 => format!(
                "XPENDING {key} {group} {} {} {} {} {}",
                Self::of(rng, &["", "", "IDLE 1000000"], &["IDLE x", "IDLE"]),
                self.bound(rng),
                self.bound(rng),
                Self::of(rng, &["10", "2"], &["0", "-1", "x", ""]),
                Self::of(rng, &["", "a", "b"], &["none"])
            ),
            _ => {
                let idle = Self::of(rng, &["0", "0", "1000000"], &["-1", "x"]);
                let usual = [
                    "",
                    "JUSTID",
                    "FORCE",
                    "IDLE 5000000",
                    "FORCE RETRYCOUNT 7",
                    "TIME 5",
                ];
                let odd = [
                    "LASTID 3-3",
                    "RETRYCOUNT x",
                    "foo",
                    "IDLE",
                    "IDLE -5",
                    "FORCE JUSTID",
                ];
                let more = Self::of(rng, &usual, &odd);
                format!(
                    "XCLAIM {key} {group} {consumer} {idle} {id} {} {more}",
                    self.id(rng)
                )
            }
        }
    }

    pub(crate) fn grouped_line(&mut self, rng: &mut Rng) -> String {
        match rng.below(10) {
            0..7 => self.grouped(rng),
            _ => self.line(rng),
        }
    }

    pub(crate) fn line(&mut self, rng: &mut Rng) -> String {
        match rng.below(20) {
            0..9 => self.addition(rng),
            9..15 => self.look(rng),
            _ => self.removal(rng),
        }
    }
}

pub(crate) const FIRST: &[&str] = &[
    "CONFIG SET stream-node-max-entries 5",
    "SET string text",
    "DEL s1 s2 future",
    "XADD future 99999999999999-1 f v",
];

#[test]
fn streams_answer_as_redis_does() {
    let mut maker = Maker { clock: 30 };
    random_lines(1_500, FIRST, |rng| maker.line(rng), |_, value| Some(value));
}

/// What is the same in both: all but the time of a delivery, and what Redis's tree looks like. Its nodes are told as its keys, too,
/// and an exact MINID leaves one without entries where later ones in it were deleted before.
pub(crate) fn without_idle(command: &Words, value: Value) -> Option<Value> {
    if command[0] == b"XINFO" {
        return Some(without_times(value));
    }
    let is_list = command[0] == b"XPENDING" && command.len() > 3;
    let Some(items) = value.as_items().filter(|_| is_list) else {
        return Some(value);
    };
    let of_entry = |item: &Value| match item.as_items() {
        Some([id, consumer, _, deliveries]) => {
            let parts = [id, consumer, deliveries];
            Value::Array(parts.map(Value::clone).to_vec())
        }
        _ => item.clone(),
    };
    Some(Value::Array(items.iter().map(of_entry).collect()))
}

/// As [`without_idle`], of XINFO.
pub(crate) fn without_times(value: Value) -> Value {
    const OTHER: [&[u8]; 4] = [
        b"radix-tree-keys",
        b"radix-tree-nodes",
        b"idle",
        b"seen-time",
    ];
    let strip = |name: Option<&Value>, value: Value| {
        let is_other = name.is_some_and(|name| OTHER.iter().any(|it| is_text(name, it)));
        match value {
            Value::Integer(_) if is_other => Value::Integer(0),
            // A time of the present.
            Value::Integer(number) if number > 1_000_000_000_000 => Value::Integer(1),
            value => without_times(value),
        }
    };
    match value {
        Value::Array(items) => {
            let names: Vec<_> = std::iter::once(None)
                .chain(items.iter().cloned().map(Some))
                .collect();
            let stripped = items.into_iter().zip(names);
            Value::Array(
                stripped
                    .map(|(it, name)| strip(name.as_ref(), it))
                    .collect(),
            )
        }
        Value::Map(pairs) => {
            let stripped = pairs.into_iter();
            Value::Map(
                stripped
                    .map(|(name, it)| (name.clone(), strip(Some(&name), it)))
                    .collect(),
            )
        }
        value => value,
    }
}

fn is_text(value: &Value, text: &[u8]) -> bool {
    matches!(value, Value::Bulk(bytes) if bytes == text)
}

#[test]
fn groups_answer_as_redis_s_do() {
    let mut maker = Maker { clock: 30 };
    random_lines(1_500, FIRST, |rng| maker.grouped_line(rng), without_idle);
}

#[test]
fn the_facts_of_their_commands_are_redis_s() {
    same_facts(
        "xack xadd xautoclaim xclaim xdel xgroup xinfo xlen xpending xrange xread xreadgroup xrevrange xsetid xtrim",
    );
    let Some(pair) = Pair::start() else {
        return;
    };
    let commands = [
        "XADD k * f v",
        "XREAD BLOCK 1 COUNT 2 STREAMS a b 0 0",
        "XREAD COUNT 2 a 0",
        "XREADGROUP GROUP g c NOACK STREAMS a >",
        "XGROUP CREATE k g 0",
    ];
    let commands = commands.map(|line| words(&format!("COMMAND GETKEYS {line}")));
    pair.same("2", &commands, |_| true);
}

/// Goal: those who wait are answered as Redis's clients are. Method: a client waits, as INFO tells, and another changes the key.
#[test]
fn clients_that_wait_are_answered_as_redis_s_are() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let before = [
        "DEL a b",
        "XADD a 1-1 f v",
        "XGROUP CREATE a g $",
        "XADD b 5-5 f v",
    ];
    let read = "XREAD BLOCK 0 STREAMS b a $ $";
    let group = "XREADGROUP GROUP g c BLOCK 0 STREAMS a >";
    let cases = [
        (read, "XADD a 2-2 f v g w"),
        (read, "XADD b 5-6 f v"),
        (group, "XADD a 2-2 f v"),
        (group, "XGROUP DESTROY a g"),
        (group, "DEL a"),
        (group, "SET a text"),
        (group, "RENAME b a"),
        (group, "FLUSHDB"),
        (group, "SWAPDB 0 1"),
    ];
    for (wait, change) in cases {
        let mut lines: Vec<_> = before.iter().map(|line| words(line)).collect();
        lines.push(words(wait));
        let after = [
            words(change),
            words("XINFO GROUPS a"),
            words("XPENDING a g"),
            words("INFO errorstats"),
        ];
        let answers = |socket: &Path| {
            std::thread::scope(|scope| {
                let waits = scope.spawn(|| ask_at(socket, &lines));
                let is_blocked = || match ask_at(socket, &[words("INFO clients")]).remove(0) {
                    Value::Bulk(text) => {
                        String::from_utf8_lossy(&text).contains("blocked_clients:1")
                    }
                    _ => false,
                };
                while !is_blocked() {
                    assert!(!waits.is_finished(), "{wait} does not wait");
                }
                let changed = ask_at(socket, &[words(change)]);
                let answered = waits.join().expect("answered");
                (changed, answered, ask_at(socket, &after))
            })
        };
        let ours = answers(pair.ours.socket());
        let theirs = answers(&pair.theirs.path().join("socket"));
        assert_eq!(ours, theirs, "{wait}, then {change}");
    }
}
