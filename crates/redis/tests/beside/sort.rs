//! Goal: SORT answers as Redis's does. Method: random lists, sets and sorted sets, sorted by themselves, by other keys and by
//! fields of hashes, with values told and stored; right and wrong arguments mixed.

use drumlin_base::rng::Rng;

use crate::pair::{Pair, Words, pick, random_lines, same_facts, words};
use drumlin_resp::Value;

const KEYS: &[&str] = &[
    "l1", "l2", "s1", "s2", "z1", "z2", "to", "l1", "z1", "none", "w1", "h1",
];
/// None is out of range: Redis calls the numbers of later commands so too.
const ELEMENTS: &[&str] = &[
    "a", "b", "''", "1.5", "0x10", "007", "1e300", "-inf", "x y", "+3",
];

fn element(rng: &mut Rng) -> String {
    match rng.below(40) {
        0 => pick(rng, ELEMENTS).to_owned(),
        1..30 => rng.below(60).to_string(),
        _ => format!("-{}.{}", rng.below(9), rng.below(9)),
    }
}

fn elements(rng: &mut Rng) -> String {
    let most = if rng.one_in(10) { 300 } else { 6 };
    let count = 1 + rng.below(most);
    (0..count).map(|_| element(rng) + " ").collect()
}

fn options(rng: &mut Rng) -> String {
    let mut options = String::new();
    for _ in 0..rng.below(5) {
        let limit = format!("LIMIT {} {}", rng.below(5), rng.below(9));
        let choices = [
            "ASC",
            "desc",
            "ALPHA",
            "alpha",
            "BY w*",
            "by h*->f",
            "BY nosort",
            "BY w*->",
            "BY *",
            "GET #",
            "get w*",
            "GET h*->f",
            "GET fixed",
            "GET h*->",
            "STORE to",
            "limit -2 5",
            "LIMIT 3 -1",
            "LIMIT 500 2",
            &limit,
            &limit,
        ];
        options.push_str(pick(rng, &choices));
        options.push(' ');
    }
    if rng.one_in(20) {
        options.push_str(pick(
            rng,
            &["LIMIT 1", "LIMIT x 1", "what", "BY", "GET", "STORE"],
        ));
    }
    options
}

fn line(rng: &mut Rng) -> String {
    let key = pick(rng, KEYS);
    match rng.below(24) {
        0..3 => format!("RPUSH {} {}", pick(rng, &["l1", "l2"]), elements(rng)),
        3..5 => format!("SADD {} {}", pick(rng, &["s1", "s2"]), elements(rng)),
        5..7 => {
            let items: String = elements(rng)
                .split_whitespace()
                .map(|element| format!("{} {element} ", rng.below(50)))
                .collect();
            format!("ZADD {} {items}", pick(rng, &["z1", "z2"]))
        }
        // Each weight is another: Redis leaves open how equal texts come.
        7 => {
            let at = rng.below(60);
            format!("SET w{at} {}", (at * 37) % 61)
        }
        8 => {
            let at = rng.below(60);
            format!("HSET h{at} f {}", (at * 41) % 61)
        }
        9 => format!(
            "DEL {} w{} h{}",
            pick(rng, &KEYS[..7]),
            rng.below(60),
            rng.below(60)
        ),
        10 => format!("LRANGE {} 0 -1", pick(rng, &["to", "l1"])),
        11 => format!("TTL to {}", pick(rng, &["", "x"])),
        12 => format!("SORT_RO {key} {}", options(rng)),
        13 => "EXPIRE to 1000".to_owned(),
        _ => format!("SORT {key} {}", options(rng)),
    }
}

/// Whether Redis has an order for the reply. Sets and missing weights have none.
pub(crate) fn told(command: &Words, value: Value) -> Option<Value> {
    let text = |at: usize| command.get(at).map(|word| word.to_ascii_lowercase());
    let has = |word: &[u8]| command.iter().any(|other| other.eq_ignore_ascii_case(word));
    let is_sort = text(0).is_some_and(|name| name.starts_with(b"sort"));
    let is_set = text(1).is_some_and(|key| key.starts_with(b"s"));
    let by_text = has(b"alpha") && has(b"by");
    let orders_nothing = has(b"nosort");
    let Value::Array(items) = &value else {
        return Some(value);
    };
    match is_sort && (by_text || (is_set && orders_nothing)) {
        true => Some(Value::Integer(items.len() as i64)),
        false => Some(value),
    }
}

/// As [`line`], without an order that Redis leaves open and that would be stored.
pub(crate) fn settled(rng: &mut Rng) -> String {
    loop {
        let line = line(rng);
        let lower = line.to_ascii_lowercase();
        if !(lower.contains("store") && lower.contains("alpha") && lower.contains("by")) {
            return line;
        }
    }
}

#[test]
fn sorted_elements_are_those_of_redis() {
    let first = ["DEL to l1 l2 s1 s2 z1 z2"];
    random_lines(8_000, &first, settled, told);
}

#[test]
fn texts_are_sorted_by_other_keys() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let lines = [
        "RPUSH l 1 2 3 4 5 6 7",
        "MSET w1 c w2 a w3 '' w5 b w6 aa w7 Z",
        "SORT l BY w* ALPHA",
        "SORT l BY w* ALPHA DESC GET # GET w*",
        "SORT l BY w* ALPHA STORE to",
        "LRANGE to 0 -1",
        "SORT l BY w*",
        "SORT l BY w* LIMIT 0 2",
        "SADD s z 10 9 b a",
        "SORT s BY nosort STORE to",
        "LRANGE to 0 -1",
        "SORT s",
        "SORT s ALPHA DESC LIMIT 1 3",
        "EVAL return(redis.call('sort',KEYS[1],'by','nosort','desc')) 1 s",
    ];
    let commands = lines.map(words);
    pair.same("2", &commands, |_| true);
    pair.same("3", &commands, |_| true);
}

#[test]
fn the_facts_of_sort_are_redis_s() {
    same_facts("sort sort_ro");
    let Some(pair) = Pair::start() else {
        return;
    };
    let lines = [
        "SORT a",
        "SORT a BY store GET store LIMIT store b STORE c",
        "SORT_RO a STORE b",
        "SORT a STORE b store c",
    ];
    let commands = lines.map(|line| words(&format!("COMMAND GETKEYS {line}")));
    pair.same("2", &commands, |_| true);
}
