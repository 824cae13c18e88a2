//! Goal: places answer as Redis's do. Method: random places, near each other and all over the map, searched by circles and boxes
//! of all sizes; right and wrong arguments mixed.

use drumlin_base::rng::Rng;

use crate::pair::{Pair, pick, random_lines, same_facts, words};

const KEYS: &[&str] = &["g1", "g2", "g3", "g1", "g2", "g3", "scores", "list", "none"];
const UNITS: &[&str] = &["m", "km", "FT", "mi", "M", "km"];
const EDGES: &[&str] = &["180", "-180", "0", "179.9999999", "1e1", "-0"];
const LATITUDES: &[&str] = &["85.05112878", "-85.05112878", "0", "-0", "84.9"];

fn degrees(rng: &mut Rng, size: f64) -> String {
    format!("{:.7}", (rng.unit() - 0.5) * 2.0 * size)
}

fn point(rng: &mut Rng) -> String {
    match rng.below(40) {
        0 => pick(
            rng,
            &["x 1", "1 x", "181 1", "1 86", "'' 1", "nan 1", "-180.1 -90"],
        )
        .to_owned(),
        // No two at the same place: Redis leaves open which comes first.
        1 => format!("{} {}", pick(rng, EDGES), degrees(rng, 85.0)),
        2 => format!("{} {}", degrees(rng, 180.0), pick(rng, LATITUDES)),
        3..15 => format!("{} {}", degrees(rng, 180.0), degrees(rng, 85.0)),
        15..25 => format!("{} {}", degrees(rng, 1.0), degrees(rng, 1.0)),
        _ => format!("{} {}", degrees(rng, 0.1), degrees(rng, 0.1)),
    }
}

fn member(rng: &mut Rng) -> String {
    format!("m{}", rng.below(300))
}

/// A place for a member, and the member. Those that are near each other have a longitude of their own, as Redis leaves open
/// which of two at the same place comes first.
fn placed(rng: &mut Rng) -> String {
    if rng.one_in(3) {
        return format!("{} {}", point(rng), member(rng));
    }
    let number = rng.below(300);
    let longitude = number as f64 * 7e-5 + rng.unit() * 2e-5 - 0.01;
    format!("{longitude:.7} {} m{number}", degrees(rng, 0.01))
}

fn size(rng: &mut Rng) -> String {
    let size = 10f64.powf(rng.unit() * 7.0);
    match rng.below(30) {
        0 => pick(rng, &["-1", "x", "''", "0", "inf", "1e300"]).to_owned(),
        _ => format!("{size:.3}"),
    }
}

fn unit(rng: &mut Rng) -> &'static str {
    match rng.one_in(30) {
        true => pick(rng, &["cm", "''", "k"]),
        false => pick(rng, UNITS),
    }
}

fn shape(rng: &mut Rng) -> String {
    match rng.one_in(2) {
        true => format!("BYRADIUS {} {}", size(rng), unit(rng)),
        false => format!("bybox {} {} {}", size(rng), size(rng), unit(rng)),
    }
}

fn options(rng: &mut Rng) -> String {
    let mut options = String::new();
    for _ in 0..rng.below(4) {
        let choices = [
            "WITHDIST",
            "WITHCOORD",
            "withhash",
            "ASC",
            "desc",
            "COUNT 3",
            "COUNT 5 ANY",
            "count 100",
        ];
        options.push_str(pick(rng, &choices));
        options.push(' ');
    }
    if rng.one_in(20) {
        options.push_str(pick(
            rng,
            &[
                "what",
                "COUNT 0",
                "COUNT x",
                "ANY",
                "COUNT",
                "STORE",
                "STOREDIST",
                "BYRADIUS 1 m",
                "FROMMEMBER m1",
            ],
        ));
    }
    options
}

fn search(rng: &mut Rng, key: &str) -> String {
    let center = match rng.below(20) {
        0 => String::new(),
        1 => "FROMLONLAT 1 1 FROMMEMBER m1".to_owned(),
        2..8 => format!("frommember {}", member(rng)),
        _ => format!("FROMLONLAT {}", point(rng)),
    };
    format!("{key} {center} {} {}", shape(rng), options(rng))
}

pub(crate) fn line(rng: &mut Rng) -> String {
    let key = pick(rng, KEYS);
    let (one, other) = (member(rng), member(rng));
    match rng.below(30) {
        0..8 => {
            let option = pick(rng, &["", "", "", "NX", "xx", "CH", "nx ch", "XX NX"]);
            let most = if rng.one_in(10) { 60 } else { 4 };
            let items: String = (0..=rng.below(most)).map(|_| placed(rng) + " ").collect();
            format!("GEOADD {} {option} {items}", pick(rng, &KEYS[..7]))
        }
        8 => format!(
            "GEODIST {key} {one} {other} {}",
            pick(rng, &["", "", "km", "ft", "x", "m m"])
        ),
        9 => format!("GEOHASH {key} {one} {other}"),
        10 => format!("GEOPOS {key} {one} {other}"),
        11..17 => format!("GEOSEARCH {}", search(rng, key)),
        17..19 => {
            let storedist = pick(rng, &["", "STOREDIST"]);
            format!("GEOSEARCHSTORE to {} {storedist}", search(rng, key))
        }
        19..22 => {
            let name = pick(rng, &["GEORADIUS", "georadius_ro"]);
            let (size, unit) = (size(rng), unit(rng));
            format!("{name} {key} {} {size} {unit} {}", point(rng), options(rng))
        }
        22..24 => {
            let name = pick(rng, &["GEORADIUSBYMEMBER", "GEORADIUSBYMEMBER_RO"]);
            let (size, unit) = (size(rng), unit(rng));
            format!("{name} {key} {one} {size} {unit} {}", options(rng))
        }
        24 => {
            let store = pick(rng, &["STORE to", "STOREDIST to", "STORE to STOREDIST to2"]);
            format!("GEORADIUS {key} {} {} m {store}", point(rng), size(rng))
        }
        25 => format!("ZREM {} {one} {other}", pick(rng, &KEYS[..3])),
        // Scores that are no places: one of each kind, as several would be at the same corner of the map.
        26 => match rng.below(9) {
            0 => "ZADD scores -1 m1".to_owned(),
            1 => "ZADD scores 1e17 m2".to_owned(),
            _ => format!("ZADD scores {}.5 {one}", rng.below(1 << 52)),
        },
        27 if rng.one_in(10) => format!("DEL {}", pick(rng, &KEYS[..7])),
        _ => format!("ZRANGE {} 0 -1 WITHSCORES", pick(rng, &["to", "to2", "g1"])),
    }
}

#[test]
fn places_answer_as_redis_does() {
    let first = ["DEL list", "RPUSH list a"];
    random_lines(8_000, &first, line, |_, value| Some(value));
}

#[test]
fn the_facts_of_commands_of_places_are_redis_s() {
    same_facts(
        "geoadd geodist geohash geopos geosearch geosearchstore georadius georadius_ro georadiusbymember \
         georadiusbymember_ro",
    );
    let Some(pair) = Pair::start() else {
        return;
    };
    let lines = [
        "GEORADIUS a 1 1 1 m",
        "GEORADIUS a 1 1 1 m STORE b STOREDIST c",
        "GEORADIUSBYMEMBER a m 1 m asc STORE b",
        "GEORADIUSBYMEMBER_RO a m 1 m asc STORE b",
        "GEOSEARCHSTORE a b FROMMEMBER m BYRADIUS 1 m",
    ];
    let commands = lines.map(|line| words(&format!("COMMAND GETKEYS {line}")));
    pair.same("2", &commands, |_| true);
}
