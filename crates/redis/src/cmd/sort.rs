//! SORT: the elements of a list, a set or a sorted set in another order, or other values in their place.

use std::cmp::Ordering;

use drumlin_redis_store::types::list::{End, List};
use drumlin_redis_store::types::zset::{Select, Selection};
use drumlin_redis_store::types::{hash, set, zset};
use drumlin_redis_store::{Direction, EventClass, Failure, Keyspace, Kind, Outcome};

use crate::call::{Call, SYNTAX};
use crate::catalog::{self, KeyFlags};
use crate::command::{Command, Flags, ONE_KEY};
use crate::double;

pub(crate) const COMMANDS: &[Command] = &[
    Command::new(
        "sort",
        -2,
        Flags::WRITE.and(Flags::DENYOOM).and(Flags::MOVABLE_KEYS),
        ONE_KEY,
        sort,
    ),
    Command::new(
        "sort_ro",
        -2,
        Flags::READONLY.and(Flags::MOVABLE_KEYS),
        ONE_KEY,
        sort_ro,
    ),
];

const NO_NUMBER: Failure =
    Failure::refused("ERR One or more scores can't be converted into double");

/// The way of elements into order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum By<'a> {
    /// By themselves.
    #[default]
    Itself,
    /// By the values that a pattern leads to.
    Pattern(&'a [u8]),
    /// As they are stored.
    Nothing,
}

#[derive(Debug)]
struct Options<'a> {
    descending: bool,
    /// `ALPHA`: as texts, not as numbers.
    as_texts: bool,
    by: By<'a>,
    /// `LIMIT`: how many are passed over, and how many are taken; all if that is negative.
    offset: i64,
    count: i64,
    /// `GET`: patterns.
    gets: Vec<&'a [u8]>,
    store: Option<&'a [u8]>,
}

fn options<'a>(call: &Call<'a, '_>, may_store: bool) -> Outcome<Options<'a>> {
    let mut options = Options {
        descending: false,
        as_texts: false,
        by: By::Itself,
        offset: 0,
        count: -1,
        gets: Vec::new(),
        store: None,
    };
    // A pattern without a star orders nothing, whatever comes behind it.
    let mut orders_nothing = false;
    let mut at = 2;
    while at < call.len() {
        let remaining = call.len() - at - 1;
        at += match () {
            () if call.is(at, "asc") => {
                options.descending = false;
                1
            }
            () if call.is(at, "desc") => {
                options.descending = true;
                1
            }
            () if call.is(at, "alpha") => {
                options.as_texts = true;
                1
            }
            () if call.is(at, "limit") && remaining >= 2 => {
                (options.offset, options.count) = (call.integer(at + 1)?, call.integer(at + 2)?);
                3
            }
            () if call.is(at, "store") && remaining >= 1 && may_store => {
                options.store = Some(call.arg(at + 1));
                2
            }
            () if call.is(at, "by") && remaining >= 1 => {
                options.by = By::Pattern(call.arg(at + 1));
                if call.arg(at + 1).contains(&b'*') {
                    may_look_up(call, "BY", may_store)?;
                }
                orders_nothing |= !call.arg(at + 1).contains(&b'*');
                2
            }
            () if call.is(at, "get") && remaining >= 1 => {
                may_look_up(call, "GET", may_store)?;
                options.gets.push(call.arg(at + 1));
                2
            }
            () => return Err(SYNTAX),
        };
    }
    if orders_nothing {
        options.by = By::Nothing;
    }
    Ok(options)
}

/// Whether an option may name keys by patterns: the user needs the right to read all keys, and a cluster has none of them. On a
/// thread that reads from the disk that was asked before.
///
/// # Errors
/// As Redis words them.
fn may_look_up(call: &Call<'_, '_>, option: &str, may_store: bool) -> Outcome<()> {
    let Some(server) = call.server.as_deref() else {
        return Ok(());
    };
    let denied =
        |reason: &str| Failure::because(format!("ERR {option} option of SORT denied {reason}."));
    if server.is_cluster {
        return Err(denied("in Cluster mode"));
    }
    let name: &[u8] = if may_store { b"sort" } else { b"sort_ro" };
    let (entry, args) = (catalog::find(name), call.args);
    let may = call.session.user.is_none_or(|id| {
        let user = server.users.get(id).zip(entry);
        user.is_some_and(|(user, entry)| user.may_with_all_keys(entry, args, KeyFlags::ACCESS))
    });
    match may {
        true => Ok(()),
        false => Err(denied("due to insufficient ACL permissions")),
    }
}

fn sort(call: &mut Call<'_, '_>) -> Outcome<()> {
    run(call, true)
}

fn sort_ro(call: &mut Call<'_, '_>) -> Outcome<()> {
    run(call, false)
}

fn run(call: &mut Call<'_, '_>, may_store: bool) -> Outcome<()> {
    let mut options = options(call, may_store)?;
    let key = call.arg(1);
    // A set has no order that a list or a script could count on.
    let settles = options.store.is_some() || call.session.is_script();
    let kind = call.keys.lookup(key)?.map(|record| record.kind());
    let elements = match kind {
        None => Vec::new(),
        Some(Kind::Set) if options.by == By::Nothing && settles => {
            (options.by, options.as_texts) = (By::Itself, true);
            ordered(call.keys, key, Kind::Set, &options)?
        }
        Some(kind @ (Kind::List | Kind::Set | Kind::SortedSet)) => {
            ordered(call.keys, key, kind, &options)?
        }
        Some(_) => return Err(Failure::WrongType),
    };
    let values = values(call.keys, &elements, &options.gets)?;
    match options.store {
        Some(to) => {
            let values = values.iter().map(|value| value.as_deref().unwrap_or(&[]));
            store(call.keys, to, values.clone())?;
            tell_stored(call, to, values);
            let len = elements.len() * options.gets.len().max(1);
            call.reply.integer(len as i64);
        }
        None => {
            call.reply.array(values.len());
            for value in values {
                match value {
                    Some(value) => call.reply.bulk(&value),
                    None => call.reply.null(),
                }
            }
        }
    }
    Ok(())
}

/// The elements that are wanted, in their order.
fn ordered(
    keys: &Keyspace<'_>,
    key: &[u8],
    kind: Kind,
    options: &Options<'_>,
) -> Outcome<Vec<Vec<u8>>> {
    let offset = usize::try_from(options.offset).unwrap_or(0);
    let count = usize::try_from(options.count).unwrap_or(usize::MAX);
    if options.by == By::Nothing {
        return as_stored(keys, key, kind, (offset, count), options.descending);
    }
    let elements = as_stored(keys, key, kind, (0, usize::MAX), false)?;
    let sorted = match options.as_texts {
        true => by_text(keys, elements, options)?,
        false => by_number(keys, elements, options)?,
    };
    Ok(sorted.into_iter().skip(offset).take(count).collect())
}

/// Elements in the order in which they are stored, or backwards where they have one.
fn as_stored(
    keys: &Keyspace<'_>,
    key: &[u8],
    kind: Kind,
    (offset, count): (usize, usize),
    backwards: bool,
) -> Outcome<Vec<Vec<u8>>> {
    let mut elements = Vec::new();
    let direction = match backwards {
        true => Direction::Backward,
        false => Direction::Forward,
    };
    if count == 0 {
        return Ok(elements);
    }
    let mut take = |element: &[u8]| {
        elements.push(element.to_vec());
        elements.len() < count
    };
    match kind {
        Kind::List => {
            let Some(list) = List::open(keys, key)? else {
                return Ok(elements);
            };
            let offset = offset as u64;
            let Some(behind) = list.len().checked_sub(offset + 1) else {
                return Ok(elements);
            };
            let first = if backwards { behind } else { offset };
            list.visit(keys, first, direction, take)?;
        }
        Kind::SortedSet => {
            let start = i64::try_from(offset).unwrap_or(i64::MAX);
            let last = start.saturating_add(i64::try_from(count - 1).unwrap_or(i64::MAX));
            let selection = Selection {
                select: Select::Ranks { start, end: last },
                direction,
                page: None,
            };
            for item in zset::range(keys, key, &selection)? {
                take(&item.member);
            }
        }
        _ => {
            let mut passed = 0;
            set::each(keys, key, |member| {
                passed += 1;
                passed <= offset || take(member)
            })?;
        }
    }
    Ok(elements)
}

/// The value that an element is sorted by.
fn weight(keys: &Keyspace<'_>, element: &[u8], by: By<'_>) -> Outcome<Option<Vec<u8>>> {
    match by {
        By::Pattern(pattern) => looked_up(keys, pattern, element),
        By::Itself | By::Nothing => Ok(Some(element.to_vec())),
    }
}

fn by_number(
    keys: &Keyspace<'_>,
    elements: Vec<Vec<u8>>,
    options: &Options<'_>,
) -> Outcome<Vec<Vec<u8>>> {
    let mut weighed = Vec::with_capacity(elements.len());
    for element in elements {
        // What has no value has 0.
        let number = match weight(keys, &element, options.by)? {
            Some(text) => number(&text).ok_or(NO_NUMBER)?,
            None => 0.0,
        };
        weighed.push((number, element));
    }
    weighed.sort_by(|(one, element), (other, second)| {
        let order = one.partial_cmp(other).unwrap_or(Ordering::Equal);
        turned(order.then_with(|| element.cmp(second)), options)
    });
    Ok(weighed.into_iter().map(|(_, element)| element).collect())
}

fn by_text(
    keys: &Keyspace<'_>,
    mut elements: Vec<Vec<u8>>,
    options: &Options<'_>,
) -> Outcome<Vec<Vec<u8>>> {
    let By::Pattern(_) = options.by else {
        elements.sort_by(|one, other| turned(one.cmp(other), options));
        return Ok(elements);
    };
    let mut weighed = Vec::with_capacity(elements.len());
    for element in elements {
        weighed.push((weight(keys, &element, options.by)?, element));
    }
    // Those without a value come first.
    weighed.sort_by(|(one, _), (other, _)| turned(one.cmp(other), options));
    Ok(weighed.into_iter().map(|(_, element)| element).collect())
}

fn turned(order: Ordering, options: &Options<'_>) -> Ordering {
    match options.descending {
        true => order.reverse(),
        false => order,
    }
}

/// A number as `strtod` reads it, with nothing behind it; nothing is 0.
fn number(text: &[u8]) -> Option<f64> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let spaces = text.iter().take_while(|byte| is_space(byte)).count();
    match text.is_empty() {
        true => Some(0.0),
        false => double::parse(text.get(spaces..)?),
    }
}

/// The value that `pattern` leads to: its first star stands for the element, and `->` before a field of a hash. `#` is the
/// element.
fn looked_up(keys: &Keyspace<'_>, pattern: &[u8], element: &[u8]) -> Outcome<Option<Vec<u8>>> {
    if pattern == b"#" {
        return Ok(Some(element.to_vec()));
    }
    let Some(star) = pattern.iter().position(|byte| *byte == b'*') else {
        return Ok(None);
    };
    let (before, after) = pattern.split_at(star);
    let after = after.get(1..).unwrap_or(&[]);
    let arrow = after.windows(2).position(|pair| pair == b"->");
    let split = arrow.and_then(|at| Some((after.get(..at)?, after.get(at + 2..)?)));
    let (after, field) = match split.filter(|(_, field)| !field.is_empty()) {
        Some((after, field)) => (after, Some(field)),
        None => (after, None),
    };
    let key = [before, element, after].concat();
    let Some(record) = keys.lookup(&key)? else {
        return Ok(None);
    };
    match (record.kind(), field) {
        (Kind::String, None) => Ok(Some(record.payload().to_vec())),
        (Kind::Hash, Some(field)) => {
            let value = hash::get(keys, &key, field)?;
            Ok(value.map(|value| value.to_vec()))
        }
        _ => Ok(None),
    }
}

/// What is told of the elements: themselves, or the values that patterns lead to.
fn values(
    keys: &Keyspace<'_>,
    elements: &[Vec<u8>],
    gets: &[&[u8]],
) -> Outcome<Vec<Option<Vec<u8>>>> {
    if gets.is_empty() {
        return Ok(elements.iter().cloned().map(Some).collect());
    }
    let mut values = Vec::with_capacity(elements.len() * gets.len());
    for element in elements {
        for pattern in gets {
            values.push(looked_up(keys, pattern, element)?);
        }
    }
    Ok(values)
}

/// Values of a command for replicas.
const TOLD_MAX: usize = 1_024;

/// Tells replicas what was stored: where weights are equal their order could be another.
fn tell_stored<'v>(call: &mut Call<'_, '_>, to: &[u8], values: impl Iterator<Item = &'v [u8]>) {
    if !call.collects {
        return;
    }
    call.tell_replicas(&[b"DEL", to]);
    let values: Vec<&[u8]> = values.collect();
    for values in values.chunks(TOLD_MAX) {
        let mut command = vec![b"RPUSH".as_slice(), to];
        command.extend(values);
        call.tell_replicas(&command);
    }
}

/// Makes a list of `values` at `to`, whatever it had; where there are none it is deleted.
fn store<'v>(
    keys: &mut Keyspace<'_>,
    to: &[u8],
    values: impl ExactSizeIterator<Item = &'v [u8]>,
) -> Outcome<()> {
    let is_empty = values.len() == 0;
    if let Some(record) = keys.lookup(to)? {
        keys.remove(to, &record);
        if is_empty {
            keys.event(EventClass::Generic, "del", to);
        }
    }
    if is_empty {
        return Ok(());
    }
    let mut list = List::open_or_new(keys, to)?;
    for value in values {
        list.push(keys, End::Right, value)?;
    }
    list.save(keys, to, Some("sortstore"))
}
