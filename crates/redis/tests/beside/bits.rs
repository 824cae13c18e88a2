//! Goal: bits and fields of strings, and LCS, answer as Redis's do. Method: random commands over few keys, right and wrong
//! arguments mixed; the strings themselves are compared too.

use drumlin_base::rng::Rng;

use crate::pair::{Pair, pick, random_lines, same_facts, words};

const KEYS: &[&str] = &["k1", "k2", "k3", "k1", "k2", "k3", "number", "none", "list"];
const TEXTS: &[&str] = &[
    "''",
    "a",
    "7",
    "ohmytext",
    "mynewtext",
    "abcabcabcabc",
    "some-text-that-is-longer-than-an-embedded-string-may-be",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];
const PLACES: &[&str] = &[
    "0", "1", "7", "8", "-1", "-2", "3", "12", "100", "-100", "64",
];
const ODD_PLACES: &[&str] = &[
    "x",
    "''",
    "1.5",
    "9223372036854775807",
    "-9223372036854775808",
];
const OFFSETS: &[&str] = &["0", "1", "5", "8", "63", "100", "#0", "#1", "#3"];
const ODD_OFFSETS: &[&str] = &[
    "-1",
    "#-1",
    "x",
    "#",
    "4294967296",
    "#9223372036854775807",
    "99999999999999999999",
];
const TYPES: &[&str] = &[
    "u1", "i1", "u8", "i8", "u5", "i13", "u63", "i64", "i63", "u32",
];
const ODD_TYPES: &[&str] = &["u64", "i65", "u0", "x8", "u", "''", "I8", "u+8"];
const NUMBERS: &[&str] = &[
    "0", "1", "-1", "5", "100", "-100", "255", "128", "-129", "70000",
];
const ODD_NUMBERS: &[&str] = &[
    "9223372036854775807",
    "-9223372036854775808",
    "4611686018427387904",
    "-4611686018427387905",
    "x",
    "9223372036854775808",
];

fn of(rng: &mut Rng, usual: &[&str], odd: &[&str]) -> String {
    let choices = if rng.one_in(12) { odd } else { usual };
    pick(rng, choices).to_owned()
}

fn range(rng: &mut Rng) -> String {
    let (start, end) = (of(rng, PLACES, ODD_PLACES), of(rng, PLACES, ODD_PLACES));
    match rng.below(8) {
        0 => String::new(),
        1 => start,
        2 | 3 => format!("{start} {end}"),
        4 => format!("{start} {end} byte"),
        5 | 6 => format!("{start} {end} BIT"),
        _ => format!("{start} {end} {}", pick(rng, &["bits", "bit bit", "''"])),
    }
}

fn steps(rng: &mut Rng) -> String {
    let mut steps = String::new();
    for _ in 0..rng.below(5) {
        let (kind, offset) = (of(rng, TYPES, ODD_TYPES), of(rng, OFFSETS, ODD_OFFSETS));
        let number = match rng.one_in(4) {
            true => pick(rng, ODD_NUMBERS),
            false => pick(rng, NUMBERS),
        };
        steps.push_str(&match rng.below(12) {
            0..3 => format!("GET {kind} {offset} "),
            3..6 => format!("set {kind} {offset} {number} "),
            6..9 => format!("INCRBY {kind} {offset} {number} "),
            9..11 => format!("OVERFLOW {} ", of(rng, &["wrap", "SAT", "fail"], &["off"])),
            _ => of(rng, &[""], &["GET u8 ", "what ", "overflow "]),
        });
    }
    steps
}

pub(crate) fn line(rng: &mut Rng) -> String {
    let (key, other) = (pick(rng, KEYS), pick(rng, KEYS));
    match rng.below(30) {
        0..2 => format!("SET {} {}", pick(rng, &KEYS[..7]), pick(rng, TEXTS)),
        2 => format!("DEL {}", pick(rng, &KEYS[..7])),
        3..6 => format!(
            "BITOP {} {key} {other} {}",
            pick(rng, &["and", "OR", "xor"]),
            pick(rng, KEYS)
        ),
        6 => format!("BITOP NOT {key} {other}"),
        7 => format!("BITOP {} {key} {other}", pick(rng, &["and", "or", "nor"])),
        8 => format!("BITOP NOT {key} {other} {key}"),
        9..13 => format!(
            "BITPOS {key} {} {}",
            of(rng, &["0", "1"], &["2", "x", "-1"]),
            range(rng)
        ),
        13 => format!("BITCOUNT {key} {}", range(rng)),
        14 => format!("SETBIT {key} {} {}", rng.below(900), rng.below(2)),
        15 => format!("SETRANGE {key} {} {}", rng.below(90), pick(rng, TEXTS)),
        16..21 => format!("BITFIELD {key} {}", steps(rng)),
        21 => format!("BITFIELD_RO {key} {}", steps(rng)),
        22 => format!("OBJECT ENCODING {key}"),
        23 => format!("LCS {key} {other}"),
        24 => {
            let options = [
                "LEN",
                "IDX",
                "idx withmatchlen",
                "IDX MINMATCHLEN 4",
                "MINMATCHLEN 2 IDX WITHMATCHLEN",
                "IDX MINMATCHLEN -3",
                "withmatchlen",
                "LEN IDX",
                "MINMATCHLEN",
                "MINMATCHLEN x",
                "what",
            ];
            format!("LCS {key} {other} {}", pick(rng, &options))
        }
        _ => format!("GET {key}"),
    }
}

#[test]
fn bits_fields_and_lcs_answer_as_redis_does() {
    let first = ["DEL list", "RPUSH list a"];
    random_lines(10_000, &first, line, |_, value| Some(value));
}

#[test]
fn the_facts_of_commands_of_bits_are_redis_s() {
    same_facts("bitop bitpos bitfield bitfield_ro bitcount getbit setbit lcs");
}

/// Goal: a write that leaves all bits as they are is no change to those who watch the key, though its form may be another after it.
/// Method: each of them on a short string between WATCH and EXEC, on keys that are there and not.
#[test]
fn bits_that_stay_break_no_watch() {
    const LINES: [&str; 10] = [
        "SETBIT k 7 1",
        "SETBIT k 7 0",
        "SETBIT k 100 0",
        "SETBIT none 5 0",
        "BITFIELD k SET u8 0 97",
        "BITFIELD k SET u8 0 96",
        "BITFIELD k INCRBY u8 0 0",
        "BITFIELD k OVERFLOW FAIL INCRBY u8 0 255",
        "BITFIELD k OVERFLOW FAIL INCRBY i8 80 200",
        "BITFIELD none OVERFLOW FAIL INCRBY u8 0 256",
    ];
    let Some(pair) = Pair::start() else {
        return;
    };
    for line in LINES {
        let lines = [
            "FLUSHALL",
            "SET k a",
            "WATCH k none",
            line,
            "MULTI",
            "PING",
            "EXEC",
            "OBJECT ENCODING k",
            "STRLEN none",
            "EXISTS none",
        ];
        pair.same("2", &lines.map(words), |_| true);
    }
}
