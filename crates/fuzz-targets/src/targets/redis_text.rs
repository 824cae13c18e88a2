//! Texts that operators and clients hand to the Redis server: its configuration and its patterns.

use drumlin_redis::internals::{ConfigFile, glob_matches};

use super::expect::or_blamed;
use crate::input::Input;

/// A configuration file: rewritten, it sets what it set, and rewritten again it stays as it is.
pub(crate) fn run_config(data: &[u8]) {
    let Some(config) = or_blamed(ConfigFile::parse(data)) else {
        return;
    };
    let text = config.rewritten(&String::from_utf8_lossy(data));
    let again = ConfigFile::parse(text.as_bytes()).expect("what is written is read");
    for (again, set) in again.values().iter().zip(&config.values()) {
        assert_eq!(again, set, "{text}");
    }
    assert_eq!(again.rewritten(&text), text);
}

/// A pattern, behind its length, and a text.
pub(crate) fn run_glob(data: &[u8]) {
    let mut input = Input::new(data);
    let pattern_len = usize::from(input.byte());
    let rest = input.rest();
    let (pattern, text) = rest.split_at(pattern_len.min(rest.len()));
    // The twin takes a step for each pair of places.
    let text = text.get(..256).unwrap_or(text);
    assert_eq!(glob_matches(pattern, text), naive(pattern, text));
}

/// Which beginnings of the text the pattern matches, one part of the pattern after the other.
fn naive(pattern: &[u8], text: &[u8]) -> bool {
    let mut ends = vec![false; text.len() + 1];
    ends[0] = true;
    let mut rest = pattern;
    while let Some((&first, behind)) = rest.split_first() {
        if first == b'*' {
            let least = ends.iter().position(|end| *end).unwrap_or(ends.len());
            ends[least..].fill(true);
            rest = behind;
            continue;
        }
        let (takes, behind): (Box<dyn Fn(u8) -> bool>, &[u8]) = match (first, behind) {
            (b'?', _) => (Box::new(|_| true), behind),
            (b'\\', &[escaped, ref behind @ ..]) => (Box::new(move |byte| byte == escaped), behind),
            (b'[', _) => class(behind),
            _ => (Box::new(move |byte| byte == first), behind),
        };
        for at in (0..text.len()).rev() {
            ends[at + 1] = ends[at] && takes(text[at]);
        }
        ends[0] = false;
        rest = behind;
    }
    ends[text.len()]
}

/// The bytes that a class takes, and what is behind it.
fn class(inside: &[u8]) -> (Box<dyn Fn(u8) -> bool>, &[u8]) {
    let (is_negated, mut rest) = match inside {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, inside),
    };
    let mut ranges = Vec::new();
    loop {
        let (range, behind) = match rest {
            [] => break,
            [b']', behind @ ..] => {
                rest = behind;
                break;
            }
            [b'\\', escaped, behind @ ..] => (*escaped..=*escaped, behind),
            [low, b'-', high, behind @ ..] => (*low.min(high)..=*low.max(high), behind),
            [byte, behind @ ..] => (*byte..=*byte, behind),
        };
        ranges.push(range);
        rest = behind;
    }
    let takes = move |byte| ranges.iter().any(|range| range.contains(&byte)) != is_negated;
    (Box::new(takes), rest)
}
