//! Commands that look at members.

use drumlin_base::rng::Rng;
use drumlin_redis_store::types::zset::{self, Select};
use drumlin_redis_store::{Direction, Failure, Kind, Outcome};

use super::args::{members, reply_count, reply_members, reply_score, scores};
use crate::call::{Call, SYNTAX};
use crate::cmd::generic::{scan_cursor, scan_options};
use crate::{double, glob};

pub(super) fn zcard(call: &mut Call<'_, '_>) -> Outcome<()> {
    let len = zset::len(call.keys, call.arg(1))?;
    reply_count(call, len);
    Ok(())
}

pub(super) fn zcount(call: &mut Call<'_, '_>) -> Outcome<()> {
    let select = scores(call.arg(2), call.arg(3))?;
    count(call, &select)
}

pub(super) fn zlexcount(call: &mut Call<'_, '_>) -> Outcome<()> {
    let select = members(call.arg(2), call.arg(3))?;
    count(call, &select)
}

fn count(call: &mut Call<'_, '_>, select: &Select<'_>) -> Outcome<()> {
    let found = zset::count(call.keys, call.arg(1), select)?;
    reply_count(call, found);
    Ok(())
}

pub(super) fn zscore(call: &mut Call<'_, '_>) -> Outcome<()> {
    let score = zset::score(call.keys, call.arg(1), call.arg(2))?;
    reply_score(call, score);
    Ok(())
}

pub(super) fn zmscore(call: &mut Call<'_, '_>) -> Outcome<()> {
    let found = zset::scores(call.keys, call.arg(1), call.args.from(2).iter())?;
    call.reply.array(found.len());
    for score in found {
        reply_score(call, score);
    }
    Ok(())
}

pub(super) fn zrank(call: &mut Call<'_, '_>) -> Outcome<()> {
    rank(call, Direction::Forward)
}

pub(super) fn zrevrank(call: &mut Call<'_, '_>) -> Outcome<()> {
    rank(call, Direction::Backward)
}

fn rank(call: &mut Call<'_, '_>, direction: Direction) -> Outcome<()> {
    match zset::rank(call.keys, call.arg(1), call.arg(2), direction)? {
        Some(rank) => reply_count(call, rank),
        None => call.reply.null(),
    }
    Ok(())
}

pub(super) fn zrandmember(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (mut wanted, mut with_scores) = (1, false);
    if call.len() > 2 {
        wanted = call.integer(2)?;
        if wanted == i64::MIN {
            return Err(Failure::refused(
                "ERR value is out of range, value must between -9223372036854775807 and \
                 9223372036854775807",
            ));
        }
        with_scores = call.len() == 4 && call.is(3, "withscores");
        if call.len() > 4 || (call.len() == 4 && !with_scores) {
            return Err(SYNTAX);
        }
        if with_scores && wanted.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
            return Err(Failure::refused("ERR value is out of range"));
        }
    }
    let key = call.arg(1);
    // On a thread that warms up, any place is as good.
    let mut elsewhere = Rng::new(call.keys.now_ms());
    let random = match &mut call.server {
        Some(server) => &mut server.random,
        None => &mut elsewhere,
    };
    let picked = zset::random(call.keys, key, wanted, random)?;
    match (call.len() > 2, picked.first()) {
        (true, _) => reply_members(call, &picked, with_scores),
        (false, Some(item)) => call.reply.bulk(&item.member),
        (false, None) => call.reply.null(),
    }
    Ok(())
}

pub(super) fn zscan(call: &mut Call<'_, '_>) -> Outcome<()> {
    let cursor = scan_cursor(call.arg(2))?;
    let key = call.arg(1);
    let (mut next, mut items, mut is_listpack) = (0, Vec::new(), false);
    // Options are looked at only where there is a key.
    if let Some(record) = call.keys.lookup_as(key, Kind::SortedSet)? {
        let options = scan_options(call, 3, false)?;
        (next, items) = zset::scan(call.keys, key, cursor, options.count as u64)?;
        if let Some(pattern) = options.pattern {
            items.retain(|item| glob::matches(pattern, &item.member));
        }
        is_listpack = zset::encoding(&record) == "listpack";
    }
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(items.len() * 2);
    for item in items {
        call.reply.bulk(&item.member);
        let text = match integer_in_listpack(item.score).filter(|_| is_listpack) {
            Some(integer) => integer.to_string(),
            None => double::print(item.score),
        };
        call.reply.bulk(text.as_bytes());
    }
    Ok(())
}

/// A score that Redis keeps as an integer, and that ZSCAN prints as such.
fn integer_in_listpack(score: f64) -> Option<i64> {
    const MOST: f64 = (i64::MAX / 2) as f64;
    let fits = (-MOST..=MOST).contains(&score) && score.fract() == 0.0;
    fits.then_some(score as i64)
}
