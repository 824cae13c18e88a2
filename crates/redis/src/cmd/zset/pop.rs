//! Commands that take members from an end.

use std::time::Duration;

use drumlin_redis_store::types::zset::{self, Scored};
use drumlin_redis_store::{Direction, Outcome};
use drumlin_resp::Protocol;

use super::args::{at_least, reply_flat, reply_members};
use crate::call::{Call, SYNTAX};
use crate::wait::{TimeoutReply, Wait};

pub(super) fn zpopmin(call: &mut Call<'_, '_>) -> Outcome<()> {
    pop(call, Direction::Forward)
}

pub(super) fn zpopmax(call: &mut Call<'_, '_>) -> Outcome<()> {
    pop(call, Direction::Backward)
}

fn pop(call: &mut Call<'_, '_>, direction: Direction) -> Outcome<()> {
    if call.len() > 3 {
        return Err(SYNTAX);
    }
    let mut count = 1;
    let has_count = call.len() == 3;
    if has_count {
        count = at_least(call, 2, 0, "ERR value is out of range, must be positive")?;
    }
    let taken = zset::pop(call.keys, call.arg(1), count.unsigned_abs(), direction)?;
    let taken = taken.unwrap_or_default();
    if has_count && call.reply.protocol() == Protocol::Resp3 {
        reply_members(call, &taken, true);
    } else {
        call.reply.array(taken.len() * 2);
        reply_flat(call, &taken);
    }
    Ok(())
}

/// Members of the first of `keys` that has any.
fn pop_first<'a>(
    call: &mut Call<'a, '_>,
    keys: &[&'a [u8]],
    count: u64,
    direction: Direction,
) -> Outcome<Option<(&'a [u8], Vec<Scored>)>> {
    for key in keys {
        if !call.is_woken_by(key) {
            continue;
        }
        if let Some(taken) = zset::pop(call.keys, key, count, direction)? {
            return Ok(Some((key, taken)));
        }
    }
    Ok(None)
}

fn wait_for(call: &mut Call<'_, '_>, keys: &[&[u8]], timeout: Option<Duration>) {
    call.wait_for(Wait {
        keys: keys.iter().map(|key| key.to_vec()).collect(),
        timeout,
        on_timeout: TimeoutReply::NullArray,
        args: None,
    });
}

pub(super) fn bzpopmin(call: &mut Call<'_, '_>) -> Outcome<()> {
    pop_or_wait(call, Direction::Forward)
}

pub(super) fn bzpopmax(call: &mut Call<'_, '_>) -> Outcome<()> {
    pop_or_wait(call, Direction::Backward)
}

fn pop_or_wait(call: &mut Call<'_, '_>, direction: Direction) -> Outcome<()> {
    let last = call.len() - 1;
    let timeout = call.timeout(last)?;
    let keys: Vec<_> = (1..last).map(|at| call.arg(at)).collect();
    match pop_first(call, &keys, 1, direction)? {
        Some((key, taken)) => {
            call.tell_replicas(&[pop_name(direction), key]);
            call.reply.array(1 + taken.len() * 2);
            call.reply.bulk(key);
            reply_flat(call, &taken);
        }
        None => wait_for(call, &keys, timeout),
    }
    Ok(())
}

/// The command that pops from an end.
fn pop_name(direction: Direction) -> &'static [u8] {
    match direction {
        Direction::Forward => b"ZPOPMIN",
        Direction::Backward => b"ZPOPMAX",
    }
}

struct Request<'a> {
    keys: Vec<&'a [u8]>,
    count: u64,
    direction: Direction,
}

/// The arguments from the number of keys on, which is at `at`.
fn request<'a>(call: &Call<'a, '_>, at: usize) -> Outcome<Request<'a>> {
    let keys = at_least(call, at, 1, "ERR numkeys should be greater than 0")?;
    let keys = usize::try_from(keys).unwrap_or(usize::MAX);
    let end_at = (at + 1).saturating_add(keys);
    let direction = match () {
        () if call.is(end_at, "min") => Direction::Forward,
        () if call.is(end_at, "max") => Direction::Backward,
        () => return Err(SYNTAX),
    };
    let count = match call.len() - (end_at + 1) {
        0 => 1,
        2 if call.is(end_at + 1, "count") => {
            at_least(call, end_at + 2, 1, "ERR count should be greater than 0")?
        }
        more => {
            // The count is looked at before what follows it.
            if more > 2 && call.is(end_at + 1, "count") {
                at_least(call, end_at + 2, 1, "ERR count should be greater than 0")?;
            }
            return Err(SYNTAX);
        }
    };
    Ok(Request {
        keys: (at + 1..end_at).map(|at| call.arg(at)).collect(),
        count: count.unsigned_abs(),
        direction,
    })
}

/// Replies what was taken, or that there is nothing.
fn pop_many(call: &mut Call<'_, '_>, request: &Request<'_>) -> Outcome<bool> {
    let mut found = None;
    for key in &request.keys {
        if !call.is_woken_by(key) {
            continue;
        }
        if let Some(taken) = zset::pop(call.keys, key, request.count, request.direction)? {
            found = Some((*key, taken));
            break;
        }
    }
    let Some((key, taken)) = found else {
        return Ok(false);
    };
    let count = taken.len().to_string();
    let command = pop_name(request.direction);
    call.tell_replicas(&[command, key, count.as_bytes()]);
    call.reply.array(2);
    call.reply.bulk(key);
    call.reply.array(taken.len());
    for item in &taken {
        call.reply.array(2);
        reply_flat(call, std::slice::from_ref(item));
    }
    Ok(true)
}

pub(super) fn zmpop(call: &mut Call<'_, '_>) -> Outcome<()> {
    let request = request(call, 1)?;
    if !pop_many(call, &request)? {
        call.reply.null_array();
    }
    Ok(())
}

pub(super) fn bzmpop(call: &mut Call<'_, '_>) -> Outcome<()> {
    let request = request(call, 2)?;
    let timeout = call.timeout(1)?;
    if !pop_many(call, &request)? {
        wait_for(call, &request.keys, timeout);
    }
    Ok(())
}
