//! Goal: HyperLogLogs count as Redis's do, and their bytes are the same. Method: random elements added to few keys, counted and
//! merged, sparse and dense, with the strings compared; damaged ones are read besides. Nothing is added to those: Redis writes
//! behind the end of a run of zeros that is cut, and we refuse it.

use drumlin_base::rng::Rng;

use crate::pair::{pick, random_lines, same_facts};

const KEYS: &[&str] = &["h1", "h2", "h3", "h4", "text", "list", "none"];

fn key(rng: &mut Rng) -> &'static str {
    let most = if rng.one_in(15) { 7 } else { 4 };
    pick(rng, &KEYS[..most])
}

fn elements(rng: &mut Rng) -> String {
    let most = [2, 10, 400][rng.below(3) as usize];
    let range = [20, 500, 1 << 40][rng.below(3) as usize];
    let count = rng.below(most);
    (0..count)
        .map(|_| match rng.one_in(9) {
            true => format!("{} ", "long".repeat(rng.below(9) as usize + 1)),
            false => format!("{} ", rng.below(range)),
        })
        .collect()
}

pub(crate) fn line(rng: &mut Rng) -> String {
    let (one, other) = (key(rng), key(rng));
    match rng.below(24) {
        0..6 => format!("PFADD {one} {}", elements(rng)),
        6..9 => format!("PFCOUNT {one}"),
        9 => format!("PFCOUNT {one} {other} {}", key(rng)),
        10 => format!("PFMERGE {one} {other} {}", key(rng)),
        11 => format!("PFMERGE {one}"),
        12 => {
            let name = pick(rng, &["DECODE", "decode", "GETREG", "TODENSE", "what"]);
            format!("PFDEBUG {name} {one}")
        }
        13 => format!("PFDEBUG ENCODING {one}"),
        14 => format!("DEL {}", pick(rng, &KEYS[..4])),
        15 => format!("OBJECT ENCODING {one}"),
        // Damage.
        16 => format!("COPY {one} damaged REPLACE"),
        17 => {
            let place = [rng.below(40), rng.below(400)][rng.below(2) as usize];
            let bytes = pick(rng, &["0", "AA", "y", "zz0", "\u{80}", "\u{e9}x"]);
            format!("SETRANGE damaged {place} {bytes}")
        }
        18 => pick(
            rng,
            &[
                "APPEND damaged A",
                "PFCOUNT damaged h1",
                "PFMERGE h1 damaged",
            ],
        )
        .to_owned(),
        19 => pick(
            rng,
            &[
                "PFCOUNT damaged",
                "PFDEBUG DECODE damaged",
                "PFDEBUG TODENSE damaged",
            ],
        )
        .to_owned(),
        20 => "GET damaged".to_owned(),
        _ => format!("GET {one}"),
    }
}

#[test]
fn hyperloglogs_are_redis_s_to_the_byte() {
    let first = ["DEL list", "RPUSH list a", "SET text HYLL"];
    random_lines(6_000, &first, line, |_, value| Some(value));
}

#[test]
fn the_facts_of_commands_of_hyperloglogs_are_redis_s() {
    same_facts("pfadd pfcount pfdebug pfmerge pfselftest");
}
