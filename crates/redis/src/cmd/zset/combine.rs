//! Commands of unions, intersections and differences.

use drumlin_redis_store::types::zset::{self, Aggregate, Combination, Operand};
use drumlin_redis_store::{Failure, Kind, Outcome};

use super::args::{at_least, reply_count, reply_members};
use crate::call::{Call, SYNTAX};
use crate::double;

/// What becomes of the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Reply,
    /// At the key that is the first argument.
    Store(&'static str),
    Count,
}

struct Request<'a> {
    operands: Vec<Operand<'a>>,
    aggregate: Aggregate,
    with_scores: bool,
    /// `LIMIT`; 0 is none.
    most: u64,
}

/// The arguments from the number of keys on, which is at `at`. Types of values are errors before options are.
fn request<'a>(
    call: &Call<'a, '_>,
    at: usize,
    combination: Combination,
    purpose: Use,
) -> Outcome<Request<'a>> {
    let keys = call.integer(at)?;
    if keys < 1 {
        let name = String::from_utf8_lossy(call.arg(0)).to_ascii_lowercase();
        return Err(Failure::because(format!(
            "ERR at least 1 input key is needed for '{name}' command"
        )));
    }
    let keys = usize::try_from(keys).unwrap_or(usize::MAX);
    if keys > call.len() - (at + 1) {
        return Err(SYNTAX);
    }
    let mut request = Request {
        operands: Vec::with_capacity(keys),
        aggregate: Aggregate::Sum,
        with_scores: false,
        most: 0,
    };
    for at in at + 1..=at + keys {
        let key = call.arg(at);
        let kind = call.keys.lookup(key)?.map(|record| record.kind());
        if kind.is_some_and(|kind| !matches!(kind, Kind::SortedSet | Kind::Set)) {
            return Err(Failure::WrongType);
        }
        request.operands.push(Operand { key, weight: 1.0 });
    }
    let weighs = combination != Combination::Difference && purpose != Use::Count;
    let mut at = at + keys + 1;
    while at < call.len() {
        let remaining = call.len() - at;
        if weighs && remaining > keys && call.is(at, "weights") {
            for (operand, at) in request.operands.iter_mut().zip(at + 1..) {
                let weight = double::parse(call.arg(at));
                operand.weight =
                    weight.ok_or(Failure::refused("ERR weight value is not a float"))?;
            }
            at += keys + 1;
        } else if weighs && remaining >= 2 && call.is(at, "aggregate") {
            request.aggregate = match () {
                () if call.is(at + 1, "sum") => Aggregate::Sum,
                () if call.is(at + 1, "min") => Aggregate::Min,
                () if call.is(at + 1, "max") => Aggregate::Max,
                () => return Err(SYNTAX),
            };
            at += 2;
        } else if purpose == Use::Reply && call.is(at, "withscores") {
            request.with_scores = true;
            at += 1;
        } else if purpose == Use::Count && remaining >= 2 && call.is(at, "limit") {
            let most = at_least(call, at + 1, 0, "ERR LIMIT can't be negative")?;
            request.most = most.unsigned_abs();
            at += 2;
        } else {
            return Err(SYNTAX);
        }
    }
    Ok(request)
}

fn run(call: &mut Call<'_, '_>, combination: Combination, purpose: Use) -> Outcome<()> {
    let numbers_at = match purpose {
        Use::Store(_) => 2,
        Use::Reply | Use::Count => 1,
    };
    let request = request(call, numbers_at, combination, purpose)?;
    if purpose == Use::Count {
        let keys: Vec<_> = request.operands.iter().map(|it| it.key).collect();
        let found = zset::intersection_len(call.keys, &keys, request.most)?;
        reply_count(call, found);
        return Ok(());
    }
    let items = zset::combine(call.keys, combination, &request.operands, request.aggregate)?;
    if let Use::Store(event) = purpose {
        let stored = zset::store(call.keys, call.arg(1), &items, event)?;
        reply_count(call, stored);
    } else {
        reply_members(call, &items, request.with_scores);
    }
    Ok(())
}

pub(super) fn zunion(call: &mut Call<'_, '_>) -> Outcome<()> {
    run(call, Combination::Union, Use::Reply)
}

pub(super) fn zunionstore(call: &mut Call<'_, '_>) -> Outcome<()> {
    run(call, Combination::Union, Use::Store("zunionstore"))
}

pub(super) fn zinter(call: &mut Call<'_, '_>) -> Outcome<()> {
    run(call, Combination::Intersection, Use::Reply)
}

pub(super) fn zinterstore(call: &mut Call<'_, '_>) -> Outcome<()> {
    run(call, Combination::Intersection, Use::Store("zinterstore"))
}

pub(super) fn zintercard(call: &mut Call<'_, '_>) -> Outcome<()> {
    run(call, Combination::Intersection, Use::Count)
}

pub(super) fn zdiff(call: &mut Call<'_, '_>) -> Outcome<()> {
    run(call, Combination::Difference, Use::Reply)
}

pub(super) fn zdiffstore(call: &mut Call<'_, '_>) -> Outcome<()> {
    run(call, Combination::Difference, Use::Store("zdiffstore"))
}
