//! The keys among the arguments of a call and what is done to each, as Redis 7.0.15 finds them.

use drumlin_resp::{Args, integer};

use super::entry::Entry;
use super::key_spec::{BeginSearch, FindKeys, KeyFlags, KeySpec};

/// A key among the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPlace {
    pub(crate) at: usize,
    pub(crate) flags: KeyFlags,
}

const READS: KeyFlags = KeyFlags::RO.and(KeyFlags::ACCESS);
const OVERWRITES: KeyFlags = KeyFlags::OW.and(KeyFlags::UPDATE);
const CHANGES: KeyFlags = KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE);
const TAKES: KeyFlags = KeyFlags::RW.and(KeyFlags::ACCESS).and(KeyFlags::DELETE);

/// Whether calls of the command may name keys.
pub(crate) fn has_keys(entry: &Entry) -> bool {
    let mut specs = entry.specs.iter();
    specs.any(|spec| !spec.flags.has(KeyFlags::NOT_KEY))
}

/// The keys of a call. None where the arguments make no sense: the command itself tells why.
pub(crate) fn key_places(entry: &Entry, args: Args<'_>) -> Vec<KeyPlace> {
    let varies = |spec: &KeySpec| spec.flags.has(KeyFlags::VARIABLE);
    if !entry.specs.iter().any(varies)
        && let Some(found) = by_specs(entry, args)
    {
        return found;
    }
    match entry.name {
        "set" => set(args),
        "bitfield" => bitfield(args),
        "sort" => sort(args),
        "sort_ro" => vec![KeyPlace {
            at: 1,
            flags: READS,
        }],
        "migrate" => migrate(args),
        // Of the others nothing is found where their specifications find nothing.
        _ => Vec::new(),
    }
}

fn by_specs(entry: &Entry, args: Args<'_>) -> Option<Vec<KeyPlace>> {
    let mut found = Vec::new();
    for spec in &entry.specs {
        if !spec.flags.has(KeyFlags::NOT_KEY) && !one(spec, args, &mut found)? {
            continue;
        }
        if spec.flags.has(KeyFlags::INCOMPLETE) {
            return None;
        }
    }
    Some(found)
}

/// Adds the keys of one specification; whether it applies. `None` if it finds them not.
fn one(spec: &KeySpec, args: Args<'_>, found: &mut Vec<KeyPlace>) -> Option<bool> {
    let len = i64::try_from(args.len()).ok()?;
    let mut first = match spec.begin {
        BeginSearch::Index(at) => at,
        BeginSearch::Keyword(word, from) => match keyword(args, word, from) {
            Some(at) => at + 1,
            None => return Some(false),
        },
        BeginSearch::Unknown => return None,
    };
    let (last, step) = match spec.keys {
        FindKeys::Range { last, step, limit } => match (last, limit) {
            (0.., _) => (first + last, step),
            (_, 0) => (len + last, step),
            _ => (first + (len - first) / limit + last, step),
        },
        FindKeys::Counted {
            count,
            first: behind,
            step,
        } => {
            let at = usize::try_from(first + count).ok()?;
            let count = args.get(at).and_then(integer).filter(|it| *it >= 0)?;
            first += behind;
            (first.checked_add(count)? - 1, step)
        }
        FindKeys::Unknown => return None,
    };
    if last >= len || last < first || first >= len {
        return None;
    }
    let places = (first..=last).step_by(usize::try_from(step).ok()?.max(1));
    for at in places {
        found.push(KeyPlace {
            at: usize::try_from(at).ok()?,
            flags: spec.flags,
        });
    }
    Some(true)
}

/// The place of a word, looked for from `from` on: forwards, or backwards from the end if that is negative.
fn keyword(args: Args<'_>, word: &str, from: i64) -> Option<i64> {
    let len = i64::try_from(args.len()).ok()?;
    let is = |at: &i64| {
        let arg = usize::try_from(*at).ok().and_then(|at| args.get(at));
        arg.is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    };
    // The end is not looked at: nothing would stand behind the word, or the name in front of it.
    match from > 0 {
        true => (from..len - 1).find(is),
        false => (2..=(len + from)).rev().find(is),
    }
}

fn is(args: Args<'_>, at: usize, word: &str) -> bool {
    let arg = args.get(at).unwrap_or_default();
    arg.eq_ignore_ascii_case(word.as_bytes())
}

fn set(args: Args<'_>) -> Vec<KeyPlace> {
    let gets = (3..args.len()).any(|at| is(args, at, "get"));
    let flags = if gets { CHANGES } else { OVERWRITES };
    vec![KeyPlace { at: 1, flags }]
}

fn bitfield(args: Args<'_>) -> Vec<KeyPlace> {
    let (mut at, mut flags) = (2, READS);
    while at < args.len() {
        let left = args.len() - at - 1;
        at += match () {
            () if is(args, at, "get") && left >= 2 => 3,
            () if is(args, at, "overflow") && left >= 1 => 2,
            // A change, or an error, of which the worst is assumed.
            () => {
                flags = CHANGES;
                break;
            }
        };
    }
    vec![KeyPlace { at: 1, flags }]
}

fn sort(args: Args<'_>) -> Vec<KeyPlace> {
    let mut found = vec![KeyPlace {
        at: 1,
        flags: READS,
    }];
    let (mut at, mut stored) = (2, None);
    while at < args.len() {
        at += match () {
            () if is(args, at, "limit") => 3,
            () if is(args, at, "get") || is(args, at, "by") => 2,
            () if is(args, at, "store") && at + 1 < args.len() => {
                stored = Some(at + 1);
                1
            }
            () => 1,
        };
    }
    found.extend(stored.map(|at| KeyPlace {
        at,
        flags: OVERWRITES,
    }));
    found
}

fn migrate(args: Args<'_>) -> Vec<KeyPlace> {
    let (mut places, mut at) = (3..4, 6);
    while at < args.len() {
        at += match () {
            () if is(args, at, "keys") => {
                places = match args.get(3) {
                    Some(b"") => at + 1..args.len(),
                    // An error, of which the command tells.
                    _ => 0..0,
                };
                break;
            }
            () if is(args, at, "auth") => 2,
            () if is(args, at, "auth2") => 3,
            () => 1,
        };
    }
    places.map(|at| KeyPlace { at, flags: TAKES }).collect()
}
