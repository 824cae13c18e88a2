//! Arguments and replies that several commands of sorted sets have.

use drumlin_redis_store::types::zset::{LexBound, LexRange, ScoreRange, Scored, Select};
use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::{Protocol, integer};

use crate::call::Call;
use crate::double;

const NOT_A_FLOAT: Failure = Failure::refused("ERR value is not a valid float");
const NO_BOUND: Failure = Failure::refused("ERR min or max is not a float");
const NO_LEX_BOUND: Failure = Failure::refused("ERR min or max not valid string range item");

/// Argument `at` as a score.
pub(super) fn score(call: &Call<'_, '_>, at: usize) -> Outcome<f64> {
    double::parse(call.arg(at)).ok_or(NOT_A_FLOAT)
}

/// Arguments `at` and the next as ranks.
pub(super) fn ranks(call: &Call<'_, '_>, at: usize) -> Outcome<Select<'static>> {
    Ok(Select::Ranks {
        start: call.integer(at)?,
        end: call.integer(at + 1)?,
    })
}

/// Two arguments as the ends of a range of scores.
pub(super) fn scores(min: &[u8], max: &[u8]) -> Outcome<Select<'static>> {
    let bound = |text: &[u8]| {
        let (excludes, text) = match text.strip_prefix(b"(") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let bound = double::parse_bound(text).ok_or(NO_BOUND)?;
        Ok::<_, Failure>((bound, excludes))
    };
    let ((min, excludes_min), (max, excludes_max)) = (bound(min)?, bound(max)?);
    Ok(Select::Scores(ScoreRange {
        min,
        max,
        excludes_min,
        excludes_max,
    }))
}

/// Two arguments as the ends of a range of members.
pub(super) fn members<'a>(min: &'a [u8], max: &'a [u8]) -> Outcome<Select<'a>> {
    let bound = |text: &'a [u8]| match text {
        b"-" => Ok(LexBound::First),
        b"+" => Ok(LexBound::Last),
        [b'[', rest @ ..] => Ok(LexBound::Included(rest)),
        [b'(', rest @ ..] => Ok(LexBound::Excluded(rest)),
        _ => Err(NO_LEX_BOUND),
    };
    Ok(Select::Members(LexRange {
        min: bound(min)?,
        max: bound(max)?,
    }))
}

/// Argument `at` as an integer of at least `least`; `error` if it is none.
pub(super) fn at_least(
    call: &Call<'_, '_>,
    at: usize,
    least: i64,
    error: &'static str,
) -> Outcome<i64> {
    let number = integer(call.arg(at)).filter(|number| *number >= least);
    number.ok_or(Failure::refused(error))
}

/// Replies a number of things.
pub(super) fn reply_count(call: &mut Call<'_, '_>, count: u64) {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    call.reply.integer(count);
}

/// Replies a score, or that there is none.
pub(super) fn reply_score(call: &mut Call<'_, '_>, score: Option<f64>) {
    match score {
        Some(score) => call.reply.double(double::print(score).as_bytes()),
        None => call.reply.null(),
    }
}

/// Replies members; with their scores as pairs in RESP3, one after the other in RESP2.
pub(super) fn reply_members(call: &mut Call<'_, '_>, items: &[Scored], with_scores: bool) {
    let nests = with_scores && call.reply.protocol() == Protocol::Resp3;
    let flat = with_scores && !nests;
    call.reply.array(items.len() * if flat { 2 } else { 1 });
    for item in items {
        if nests {
            call.reply.array(2);
        }
        call.reply.bulk(&item.member);
        if with_scores {
            reply_score(call, Some(item.score));
        }
    }
}

/// Replies members and scores one after the other, whatever the protocol, as part of an array.
pub(super) fn reply_flat(call: &mut Call<'_, '_>, items: &[Scored]) {
    for item in items {
        call.reply.bulk(&item.member);
        reply_score(call, Some(item.score));
    }
}
