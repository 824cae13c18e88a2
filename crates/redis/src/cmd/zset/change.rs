//! Commands that add and remove members.

use drumlin_redis_store::types::zset::{self, AddOptions, Select};
use drumlin_redis_store::{Failure, Outcome};

use super::args::{members, ranks, reply_count, reply_score, score, scores};
use crate::call::{Call, SYNTAX};

pub(super) fn zadd(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (mut options, mut counts_changes) = (AddOptions::default(), false);
    let mut at = 2;
    while at < call.len() {
        match () {
            () if call.is(at, "nx") => options.only_new = true,
            () if call.is(at, "xx") => options.only_present = true,
            () if call.is(at, "ch") => counts_changes = true,
            () if call.is(at, "incr") => options.increments = true,
            () if call.is(at, "gt") => options.only_greater = true,
            () if call.is(at, "lt") => options.only_less = true,
            () => break,
        }
        at += 1;
    }
    let items = call.len() - at;
    if items == 0 || !items.is_multiple_of(2) {
        return Err(SYNTAX);
    }
    check(options, items / 2)?;
    add(call, at, options, counts_changes)
}

fn check(options: AddOptions, pairs: usize) -> Outcome<()> {
    let AddOptions {
        only_new,
        only_present,
        only_greater,
        only_less,
        increments,
    } = options;
    if only_new && only_present {
        return Err(Failure::refused(
            "ERR XX and NX options at the same time are not compatible",
        ));
    }
    if (only_new && (only_greater || only_less)) || (only_greater && only_less) {
        return Err(Failure::refused(
            "ERR GT, LT, and/or NX options at the same time are not compatible",
        ));
    }
    if increments && pairs > 1 {
        return Err(Failure::refused(
            "ERR INCR option supports a single increment-element pair",
        ));
    }
    Ok(())
}

pub(super) fn zincrby(call: &mut Call<'_, '_>) -> Outcome<()> {
    let options = AddOptions {
        increments: true,
        ..AddOptions::default()
    };
    add(call, 2, options, false)
}

/// The pairs of scores and members from argument `at` on.
fn add(
    call: &mut Call<'_, '_>,
    at: usize,
    options: AddOptions,
    counts_changes: bool,
) -> Outcome<()> {
    let mut items = Vec::with_capacity((call.len() - at) / 2);
    for at in (at..call.len()).step_by(2) {
        items.push((score(call, at)?, call.arg(at + 1)));
    }
    let effects = zset::add(call.keys, call.arg(1), &items, options)?;
    match (options.increments, counts_changes) {
        (true, _) => reply_score(call, effects.score),
        (false, true) => reply_count(call, effects.added + effects.updated),
        (false, false) => reply_count(call, effects.added),
    }
    Ok(())
}

pub(super) fn zrem(call: &mut Call<'_, '_>) -> Outcome<()> {
    let members = call.args.from(2);
    let removed = zset::remove(call.keys, call.arg(1), members.iter())?;
    reply_count(call, removed);
    Ok(())
}

pub(super) fn zremrangebyrank(call: &mut Call<'_, '_>) -> Outcome<()> {
    let select = ranks(call, 2)?;
    remove_range(call, &select)
}

pub(super) fn zremrangebyscore(call: &mut Call<'_, '_>) -> Outcome<()> {
    let select = scores(call.arg(2), call.arg(3))?;
    remove_range(call, &select)
}

pub(super) fn zremrangebylex(call: &mut Call<'_, '_>) -> Outcome<()> {
    let select = members(call.arg(2), call.arg(3))?;
    remove_range(call, &select)
}

fn remove_range(call: &mut Call<'_, '_>, select: &Select<'_>) -> Outcome<()> {
    let removed = zset::remove_range(call.keys, call.arg(1), select)?;
    reply_count(call, removed);
    Ok(())
}
