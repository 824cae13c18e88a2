//! Commands of lists.

use drumlin_redis_store::types::list::{End, List};
use drumlin_redis_store::{Direction, EventClass, Failure, Outcome};
use drumlin_resp::integer;

use crate::call::{Call, NOT_AN_INTEGER, SYNTAX};
use crate::command::{Command, Flags, KeyPositions, NO_KEYS, ONE_KEY, TWO_KEYS};
use crate::wait::{TimeoutReply, Wait};

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE;
const GROW: Flags = WRITE.and(Flags::DENYOOM);
const FAST_GROW: Flags = GROW.and(Flags::FAST);
const BLOCK: Flags = WRITE.and(Flags::BLOCKING);
const ALL_BUT_LAST: KeyPositions = KeyPositions {
    first: 1,
    last: -2,
    step: 1,
};

pub(crate) const COMMANDS: &[Command] = &[
    Command::new(
        "blmove",
        6,
        GROW.and(Flags::NOSCRIPT).and(Flags::BLOCKING),
        TWO_KEYS,
        blmove,
    ),
    Command::new(
        "blmpop",
        -5,
        BLOCK.and(Flags::MOVABLE_KEYS),
        NO_KEYS,
        blmpop,
    ),
    Command::new("blpop", -3, BLOCK.and(Flags::NOSCRIPT), ALL_BUT_LAST, blpop),
    Command::new("brpop", -3, BLOCK.and(Flags::NOSCRIPT), ALL_BUT_LAST, brpop),
    Command::new(
        "brpoplpush",
        4,
        GROW.and(Flags::NOSCRIPT).and(Flags::BLOCKING),
        TWO_KEYS,
        brpoplpush,
    ),
    Command::new("lindex", 3, READ, ONE_KEY, lindex),
    Command::new("linsert", 5, GROW, ONE_KEY, linsert),
    Command::new("llen", 2, READ.and(Flags::FAST), ONE_KEY, llen),
    Command::new("lmove", 5, GROW, TWO_KEYS, lmove),
    Command::new("lmpop", -4, WRITE.and(Flags::MOVABLE_KEYS), NO_KEYS, lmpop),
    Command::new("lpop", -2, WRITE.and(Flags::FAST), ONE_KEY, lpop),
    Command::new("lpos", -3, READ, ONE_KEY, lpos),
    Command::new("lpush", -3, FAST_GROW, ONE_KEY, lpush),
    Command::new("lpushx", -3, FAST_GROW, ONE_KEY, lpushx),
    Command::new("lrange", 4, READ, ONE_KEY, lrange),
    Command::new("lrem", 4, WRITE, ONE_KEY, lrem),
    Command::new("lset", 4, GROW, ONE_KEY, lset),
    Command::new("ltrim", 4, WRITE, ONE_KEY, ltrim),
    Command::new("rpop", -2, WRITE.and(Flags::FAST), ONE_KEY, rpop),
    Command::new("rpoplpush", 3, GROW, TWO_KEYS, rpoplpush),
    Command::new("rpush", -3, FAST_GROW, ONE_KEY, rpush),
    Command::new("rpushx", -3, FAST_GROW, ONE_KEY, rpushx),
];

/// The events of an end.
fn pushed(end: End) -> &'static str {
    match end {
        End::Left => "lpush",
        End::Right => "rpush",
    }
}

fn popped(end: End) -> &'static str {
    match end {
        End::Left => "lpop",
        End::Right => "rpop",
    }
}

/// Argument `at` as an end.
fn end(call: &Call<'_, '_>, at: usize) -> Outcome<End> {
    match () {
        () if call.is(at, "left") => Ok(End::Left),
        () if call.is(at, "right") => Ok(End::Right),
        () => Err(SYNTAX),
    }
}

// Pushes.

fn lpush(call: &mut Call<'_, '_>) -> Outcome<()> {
    push(call, End::Left, false)
}

fn rpush(call: &mut Call<'_, '_>) -> Outcome<()> {
    push(call, End::Right, false)
}

fn lpushx(call: &mut Call<'_, '_>) -> Outcome<()> {
    push(call, End::Left, true)
}

fn rpushx(call: &mut Call<'_, '_>) -> Outcome<()> {
    push(call, End::Right, true)
}

fn push(call: &mut Call<'_, '_>, end: End, if_present: bool) -> Outcome<()> {
    let key = call.arg(1);
    let mut list = List::open_or_new(call.keys, key)?;
    if if_present && list.is_empty() {
        call.reply.integer(0);
        return Ok(());
    }
    for element in call.args.from(2).iter() {
        list.push(call.keys, end, element)?;
    }
    call.reply.integer(list.len() as i64);
    list.save(call.keys, key, Some(pushed(end)))
}

// Reads.

fn llen(call: &mut Call<'_, '_>) -> Outcome<()> {
    let list = List::open(call.keys, call.arg(1))?;
    call.reply.integer(list.map_or(0, |list| list.len() as i64));
    Ok(())
}

fn lindex(call: &mut Call<'_, '_>) -> Outcome<()> {
    let list = List::open(call.keys, call.arg(1))?;
    let Some(list) = list else {
        call.reply.null();
        return Ok(());
    };
    let index = call.integer(2)?;
    let element = match list.position(index) {
        Some(at) => list.get(call.keys, at)?,
        None => None,
    };
    match element {
        Some(element) => call.reply.bulk(&element),
        None => call.reply.null(),
    }
    Ok(())
}

fn lrange(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    let Some(list) = List::open(call.keys, call.arg(1))? else {
        call.reply.array(0);
        return Ok(());
    };
    let range = list.positions(start, end);
    let mut left = range.end - range.start;
    call.reply.array(left as usize);
    if left > 0 {
        let reply = &mut *call.reply;
        list.visit(call.keys, range.start, Direction::Forward, |element| {
            reply.bulk(element);
            left -= 1;
            left > 0
        })?;
    }
    Ok(())
}

/// The options of LPOS.
#[derive(Clone, Copy, Debug)]
struct Search {
    rank: i64,
    /// Matches to be told; 0 for all. `None`: one, not in an array.
    count: Option<u64>,
    /// Elements to be compared; 0 for all.
    most: u64,
}

fn search(call: &Call<'_, '_>) -> Outcome<Search> {
    let mut search = Search {
        rank: 1,
        count: None,
        most: 0,
    };
    let mut at = 3;
    while at < call.len() {
        let value = call.args.get(at + 1).ok_or(SYNTAX)?;
        let number = integer(value).ok_or(NOT_AN_INTEGER);
        match () {
            () if call.is(at, "rank") => {
                search.rank = number?;
                // As Redis since 7.2; 7.0 calculates with a number that has no opposite.
                if search.rank == i64::MIN {
                    return Err(Failure::refused(
                        "ERR value is out of range, value must between -9223372036854775807 and \
                         9223372036854775807",
                    ));
                }
                if search.rank == 0 {
                    return Err(Failure::refused(
                        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the \
                         second ... or use negative to start from the end of the list",
                    ));
                }
            }
            () if call.is(at, "count") => {
                let negative = Failure::refused("ERR COUNT can't be negative");
                let number = number.map_err(|_| Failure::refused("ERR COUNT can't be negative"))?;
                search.count = Some(u64::try_from(number).map_err(|_| negative)?);
            }
            () if call.is(at, "maxlen") => {
                let negative = Failure::refused("ERR MAXLEN can't be negative");
                let number =
                    number.map_err(|_| Failure::refused("ERR MAXLEN can't be negative"))?;
                search.most = u64::try_from(number).map_err(|_| negative)?;
            }
            () => return Err(SYNTAX),
        }
        at += 2;
    }
    Ok(search)
}

fn lpos(call: &mut Call<'_, '_>) -> Outcome<()> {
    let search = search(call)?;
    let wanted = call.arg(2);
    let mut found = Vec::new();
    if let Some(list) = List::open(call.keys, call.arg(1))? {
        let backward = search.rank < 0;
        let (direction, first) = match backward {
            true => (Direction::Backward, list.len() - 1),
            false => (Direction::Forward, 0),
        };
        let mut skipped = search.rank.unsigned_abs() - 1;
        let most = search
            .count
            .map_or(1, |count| if count == 0 { u64::MAX } else { count });
        let mut compared = 0;
        list.visit(call.keys, first, direction, |element| {
            if element == wanted {
                match skipped {
                    0 if backward => found.push(first - compared),
                    0 => found.push(compared),
                    _ => skipped -= 1,
                }
            }
            compared += 1;
            compared != search.most && (found.len() as u64) < most
        })?;
    }
    match (search.count, found.first()) {
        (Some(_), _) => {
            call.reply.array(found.len());
            found.iter().for_each(|at| call.reply.integer(*at as i64));
        }
        (None, Some(at)) => call.reply.integer(*at as i64),
        (None, None) => call.reply.null(),
    }
    Ok(())
}

// Changes within.

fn lset(call: &mut Call<'_, '_>) -> Outcome<()> {
    let key = call.arg(1);
    let no_key = Failure::refused("ERR no such key");
    let mut list = List::open(call.keys, key)?.ok_or(no_key)?;
    let index = call.integer(2)?;
    let beyond = Failure::refused("ERR index out of range");
    let at = list.position(index).ok_or(beyond)?;
    list.replace(call.keys, at, call.arg(3))?;
    call.reply.ok();
    list.save(call.keys, key, Some("lset"))
}

fn ltrim(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    let key = call.arg(1);
    call.reply.ok();
    let Some(mut list) = List::open(call.keys, key)? else {
        return Ok(());
    };
    let (kept, len) = (list.positions(start, end), list.len());
    list.remove(call.keys, kept.end..len)?;
    list.remove(call.keys, 0..kept.start)?;
    list.save(call.keys, key, Some("ltrim"))
}

fn lrem(call: &mut Call<'_, '_>) -> Outcome<()> {
    let key = call.arg(1);
    let count = call.integer(2)?;
    let element = call.arg(3);
    let Some(mut list) = List::open(call.keys, key)? else {
        call.reply.integer(0);
        return Ok(());
    };
    let backward = count < 0;
    let most = if count == 0 {
        u64::MAX
    } else {
        count.unsigned_abs()
    };
    let (direction, first) = match backward {
        true => (Direction::Backward, list.len() - 1),
        false => (Direction::Forward, 0),
    };
    let mut found = Vec::new();
    let mut compared = 0;
    list.visit(call.keys, first, direction, |other| {
        if other == element {
            found.push(if backward { first - compared } else { compared });
        }
        compared += 1;
        (found.len() as u64) < most
    })?;
    // From behind, so that no position moves before its turn.
    found.sort_unstable();
    for at in found.iter().rev() {
        list.remove(call.keys, *at..*at + 1)?;
    }
    call.reply.integer(found.len() as i64);
    match found.is_empty() {
        true => Ok(()),
        false => list.save(call.keys, key, Some("lrem")),
    }
}

fn linsert(call: &mut Call<'_, '_>) -> Outcome<()> {
    let key = call.arg(1);
    let behind = match () {
        () if call.is(2, "after") => 1,
        () if call.is(2, "before") => 0,
        () => return Err(SYNTAX),
    };
    let Some(mut list) = List::open(call.keys, key)? else {
        call.reply.integer(0);
        return Ok(());
    };
    let pivot = call.arg(3);
    let (mut at, mut found) = (0, false);
    list.visit(call.keys, 0, Direction::Forward, |element| {
        found = element == pivot;
        at += u64::from(!found);
        !found
    })?;
    if !found {
        call.reply.integer(-1);
        return Ok(());
    }
    list.insert(call.keys, at + behind, call.arg(4))?;
    call.reply.integer(list.len() as i64);
    list.save(call.keys, key, Some("linsert"))
}

// Pops.

fn lpop(call: &mut Call<'_, '_>) -> Outcome<()> {
    pop(call, End::Left)
}

fn rpop(call: &mut Call<'_, '_>) -> Outcome<()> {
    pop(call, End::Right)
}

fn pop(call: &mut Call<'_, '_>, end: End) -> Outcome<()> {
    let key = call.arg(1);
    let count = match call.len() {
        2 => None,
        3 => {
            let refused = Failure::refused("ERR value is out of range, must be positive");
            let number = integer(call.arg(2)).and_then(|number| u64::try_from(number).ok());
            Some(number.ok_or(refused)?)
        }
        _ => return Err(call.wrong_arity(popped(end))),
    };
    let Some(mut list) = List::open(call.keys, key)? else {
        match count {
            Some(_) => call.reply.null_array(),
            None => call.reply.null(),
        }
        return Ok(());
    };
    match count {
        Some(0) => {
            call.reply.array(0);
            return Ok(());
        }
        Some(count) => pop_many(call, &mut list, end, count)?,
        None => {
            let element = list.pop(call.keys, end)?.unwrap_or_default();
            call.reply.bulk(&element);
        }
    }
    list.save(call.keys, key, Some(popped(end)))
}

/// Replies up to `count` elements from an end, the outermost first, and takes them out.
fn pop_many(call: &mut Call<'_, '_>, list: &mut List, end: End, count: u64) -> Outcome<()> {
    let count = count.min(list.len());
    let mut left = count;
    call.reply.array(count as usize);
    let reply = &mut *call.reply;
    let (first, direction, range) = match end {
        End::Left => (0, Direction::Forward, 0..count),
        End::Right => (
            list.len() - 1,
            Direction::Backward,
            list.len() - count..list.len(),
        ),
    };
    list.visit(call.keys, first, direction, |element| {
        reply.bulk(element);
        left -= 1;
        left > 0
    })?;
    list.remove(call.keys, range)
}

fn lmpop(call: &mut Call<'_, '_>) -> Outcome<()> {
    let popping = mpop_arguments(call, 1)?;
    if !mpop(call, &popping)? {
        call.reply.null_array();
    }
    Ok(())
}

/// The arguments of LMPOP from the number of keys on.
struct Popping {
    keys: Vec<Vec<u8>>,
    end: End,
    count: u64,
}

fn mpop_arguments(call: &Call<'_, '_>, at: usize) -> Outcome<Popping> {
    let positive = |at: usize, error: &'static str| {
        let number = integer(call.arg(at)).and_then(|number| usize::try_from(number).ok());
        let in_range = number.filter(|number| (1..=i64::MAX as usize).contains(number));
        in_range.ok_or(Failure::refused(error))
    };
    let count_of_keys = positive(at, "ERR numkeys should be greater than 0")?;
    let where_at = at.saturating_add(count_of_keys).saturating_add(1);
    if where_at >= call.len() {
        return Err(SYNTAX);
    }
    let end = end(call, where_at)?;
    let mut count = None;
    let mut option = where_at + 1;
    while option < call.len() {
        if !call.is(option, "count") || count.is_some() || option + 1 >= call.len() {
            return Err(SYNTAX);
        }
        count = Some(positive(option + 1, "ERR count should be greater than 0")?);
        option += 2;
    }
    let keys = call.args.from(at + 1);
    let keys = keys
        .iter()
        .take(count_of_keys)
        .map(<[u8]>::to_vec)
        .collect();
    let count = count.unwrap_or(1) as u64;
    Ok(Popping { keys, end, count })
}

/// Pops from the first key that has a list; whether there was one.
fn mpop(call: &mut Call<'_, '_>, popping: &Popping) -> Outcome<bool> {
    for key in &popping.keys {
        if !call.is_woken_by(key) {
            continue;
        }
        if let Some(mut list) = List::open(call.keys, key)? {
            call.reply.array(2);
            call.reply.bulk(key);
            let count = popping.count.min(list.len()).to_string();
            let command = pop_name(popping.end);
            call.tell_replicas(&[command, key, count.as_bytes()]);
            pop_many(call, &mut list, popping.end, popping.count)?;
            list.save(call.keys, key, Some(popped(popping.end)))?;
            return Ok(true);
        }
    }
    Ok(false)
}

// Moves.

fn lmove(call: &mut Call<'_, '_>) -> Outcome<()> {
    let ends = (end(call, 3)?, end(call, 4)?);
    if !move_element(call, ends)? {
        call.reply.null();
    }
    Ok(())
}

fn rpoplpush(call: &mut Call<'_, '_>) -> Outcome<()> {
    if !move_element(call, (End::Right, End::Left))? {
        call.reply.null();
    }
    Ok(())
}

/// Moves an element from the list at the first key to that at the second, and replies it; whether there was one.
fn move_element(call: &mut Call<'_, '_>, (from, to): (End, End)) -> Outcome<bool> {
    let (source, target) = (call.arg(1), call.arg(2));
    let Some(mut list) = List::open(call.keys, source)? else {
        return Ok(false);
    };
    if source == target {
        let element = list.pop(call.keys, from)?.unwrap_or_default();
        list.push(call.keys, to, &element)?;
        call.reply.bulk(&element);
        list.save(call.keys, source, Some(pushed(to)))?;
        call.keys.event(EventClass::List, popped(from), source);
        return Ok(true);
    }
    let mut other = List::open_or_new(call.keys, target)?;
    let element = list.pop(call.keys, from)?.unwrap_or_default();
    other.push(call.keys, to, &element)?;
    call.reply.bulk(&element);
    other.save(call.keys, target, Some(pushed(to)))?;
    list.save(call.keys, source, Some(popped(from)))?;
    Ok(true)
}

/// The command that pops from an end.
fn pop_name(end: End) -> &'static [u8] {
    match end {
        End::Left => b"LPOP",
        End::Right => b"RPOP",
    }
}

// Pops that wait.

fn blpop(call: &mut Call<'_, '_>) -> Outcome<()> {
    pop_or_wait(call, End::Left)
}

fn brpop(call: &mut Call<'_, '_>) -> Outcome<()> {
    pop_or_wait(call, End::Right)
}

fn pop_or_wait(call: &mut Call<'_, '_>, end: End) -> Outcome<()> {
    let last = call.len() - 1;
    let timeout = call.timeout(last)?;
    for at in 1..last {
        let key = call.arg(at);
        if !call.is_woken_by(key) {
            continue;
        }
        if let Some(mut list) = List::open(call.keys, key)? {
            let element = list.pop(call.keys, end)?.unwrap_or_default();
            call.reply.array(2);
            call.reply.bulk(key);
            call.reply.bulk(&element);
            call.tell_replicas(&[pop_name(end), key]);
            return list.save(call.keys, key, Some(popped(end)));
        }
    }
    let keys = call.args.from(1);
    let keys = keys.iter().take(last - 1).map(<[u8]>::to_vec).collect();
    let on_timeout = TimeoutReply::NullArray;
    call.wait_for(Wait {
        keys,
        timeout,
        on_timeout,
        args: None,
    });
    Ok(())
}

fn blmpop(call: &mut Call<'_, '_>) -> Outcome<()> {
    let timeout = call.timeout(1)?;
    let popping = mpop_arguments(call, 2)?;
    if !mpop(call, &popping)? {
        call.wait_for(Wait {
            keys: popping.keys,
            timeout,
            on_timeout: TimeoutReply::NullArray,
            args: None,
        });
    }
    Ok(())
}

fn blmove(call: &mut Call<'_, '_>) -> Outcome<()> {
    let ends = (end(call, 3)?, end(call, 4)?);
    let timeout = call.timeout(5)?;
    move_or_wait(call, ends, timeout)
}

fn brpoplpush(call: &mut Call<'_, '_>) -> Outcome<()> {
    let timeout = call.timeout(3)?;
    move_or_wait(call, (End::Right, End::Left), timeout)
}

fn move_or_wait(
    call: &mut Call<'_, '_>,
    ends: (End, End),
    timeout: Option<std::time::Duration>,
) -> Outcome<()> {
    if move_element(call, ends)? {
        let (from, to) = (call.arg(1), call.arg(2));
        match call.is(0, "brpoplpush") {
            true => call.tell_replicas(&[b"RPOPLPUSH", from, to]),
            false => call.tell_replicas(&[b"LMOVE", from, to, call.arg(3), call.arg(4)]),
        }
        return Ok(());
    }
    match call.may_wait {
        // Of those that wait for a list, only these two answer a null where they may not.
        false => call.reply.null(),
        true => call.wait_for(Wait {
            keys: vec![call.arg(1).to_vec()],
            timeout,
            on_timeout: TimeoutReply::NullArray,
            args: None,
        }),
    }
    Ok(())
}
