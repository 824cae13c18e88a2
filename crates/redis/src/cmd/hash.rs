//! Commands of hashes.

use drumlin_redis_store::number::LongDouble;
use drumlin_redis_store::types::hash::{self, Pair};
use drumlin_redis_store::{Failure, Kind, Outcome};
use drumlin_resp::Protocol;

use super::elements::{random, random_count, reply_count, reply_page, scan_arguments};
use crate::call::{Call, SYNTAX};
use crate::command::{Command, Flags, ONE_KEY};

const READ: Flags = Flags::READONLY;
const FAST_READ: Flags = READ.and(Flags::FAST);
const FAST_WRITE: Flags = Flags::WRITE.and(Flags::FAST);
const FAST_GROW: Flags = FAST_WRITE.and(Flags::DENYOOM);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("hdel", -3, FAST_WRITE, ONE_KEY, hdel),
    Command::new("hexists", 3, FAST_READ, ONE_KEY, hexists),
    Command::new("hget", 3, FAST_READ, ONE_KEY, hget),
    Command::new("hgetall", 2, READ, ONE_KEY, hgetall),
    Command::new("hincrby", 4, FAST_GROW, ONE_KEY, hincrby),
    Command::new("hincrbyfloat", 4, FAST_GROW, ONE_KEY, hincrbyfloat),
    Command::new("hkeys", 2, READ, ONE_KEY, hkeys),
    Command::new("hlen", 2, FAST_READ, ONE_KEY, hlen),
    Command::new("hmget", -3, FAST_READ, ONE_KEY, hmget),
    Command::new("hmset", -4, FAST_GROW, ONE_KEY, hmset),
    Command::new("hrandfield", -2, READ, ONE_KEY, hrandfield),
    Command::new("hscan", -3, READ, ONE_KEY, hscan),
    Command::new("hset", -4, FAST_GROW, ONE_KEY, hset),
    Command::new("hsetnx", 4, FAST_GROW, ONE_KEY, hsetnx),
    Command::new("hstrlen", 3, FAST_READ, ONE_KEY, hstrlen),
    Command::new("hvals", 2, READ, ONE_KEY, hvals),
];

fn set(call: &mut Call<'_, '_>) -> Outcome<u64> {
    if !call.len().is_multiple_of(2) {
        let name = String::from_utf8_lossy(call.arg(0)).to_ascii_lowercase();
        return Err(call.wrong_arity(&name));
    }
    let args = call.args;
    let at = |at: usize| args.get(at).unwrap_or_default();
    let pairs = (2..args.len()).step_by(2).map(|n| (at(n), at(n + 1)));
    hash::set(call.keys, call.arg(1), pairs)
}

fn hset(call: &mut Call<'_, '_>) -> Outcome<()> {
    let added = set(call)?;
    reply_count(call, added);
    Ok(())
}

fn hmset(call: &mut Call<'_, '_>) -> Outcome<()> {
    set(call)?;
    call.reply.ok();
    Ok(())
}

fn hsetnx(call: &mut Call<'_, '_>) -> Outcome<()> {
    let is_new = hash::set_new(call.keys, call.arg(1), call.arg(2), call.arg(3))?;
    if is_new {
        // A replica may have a field that has expired here.
        call.tell_replicas(&[b"HSET", call.arg(1), call.arg(2), call.arg(3)]);
    }
    reply_count(call, u64::from(is_new));
    Ok(())
}

fn reply_value(call: &mut Call<'_, '_>, value: Option<&[u8]>) {
    match value {
        Some(value) => call.reply.bulk(value),
        None => call.reply.null(),
    }
}

fn hget(call: &mut Call<'_, '_>) -> Outcome<()> {
    let value = hash::get(call.keys, call.arg(1), call.arg(2))?;
    reply_value(call, value.as_deref());
    Ok(())
}

fn hmget(call: &mut Call<'_, '_>) -> Outcome<()> {
    let values = hash::get_many(call.keys, call.arg(1), call.args.from(2).iter())?;
    call.reply.array(values.len());
    for value in values {
        reply_value(call, value.as_deref());
    }
    Ok(())
}

fn hstrlen(call: &mut Call<'_, '_>) -> Outcome<()> {
    let value = hash::get(call.keys, call.arg(1), call.arg(2))?;
    reply_count(call, value.map_or(0, |value| value.len() as u64));
    Ok(())
}

fn hexists(call: &mut Call<'_, '_>) -> Outcome<()> {
    let value = hash::get(call.keys, call.arg(1), call.arg(2))?;
    reply_count(call, u64::from(value.is_some()));
    Ok(())
}

fn hlen(call: &mut Call<'_, '_>) -> Outcome<()> {
    let len = hash::len(call.keys, call.arg(1))?;
    reply_count(call, len);
    Ok(())
}

fn hgetall(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (mark, mut fields) = (call.reply.begin_map(), 0);
    let reply = &mut call.reply;
    let key = call.args.get(1).unwrap_or_default();
    hash::each(call.keys, key, |field, value| {
        reply.bulk(field);
        reply.bulk(value);
        fields += 1;
    })?;
    call.reply.finish(mark, fields);
    Ok(())
}

fn hkeys(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_each(call, |field, _| field)
}

fn hvals(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_each(call, |_, value| value)
}

fn reply_each(
    call: &mut Call<'_, '_>,
    part: for<'p> fn(&'p [u8], &'p [u8]) -> &'p [u8],
) -> Outcome<()> {
    let (mark, mut count) = (call.reply.begin_array(), 0);
    let reply = &mut call.reply;
    let key = call.args.get(1).unwrap_or_default();
    hash::each(call.keys, key, |field, value| {
        reply.bulk(part(field, value));
        count += 1;
    })?;
    call.reply.finish(mark, count);
    Ok(())
}

fn hdel(call: &mut Call<'_, '_>) -> Outcome<()> {
    let removed = hash::remove(call.keys, call.arg(1), call.args.from(2).iter())?;
    reply_count(call, removed);
    Ok(())
}

/// The expiry of the field of argument 2, where replicas are told of it.
fn before(call: &Call<'_, '_>) -> Outcome<Option<u64>> {
    if !call.collects {
        return Ok(None);
    }
    let value = hash::get(call.keys, call.arg(1), call.arg(2))?;
    Ok(value.and_then(|value| value.expire_ms()))
}

/// Tells replicas a sum: they may have a field that has expired here, or round otherwise.
fn tell_sum(call: &mut Call<'_, '_>, before: Option<u64>, sum: &str) {
    let (key, field) = (call.arg(1), call.arg(2));
    call.tell_replicas(&[b"HSET", key, field, sum.as_bytes()]);
    if let Some(ms) = before {
        let ms = ms.to_string();
        let words = [b"HPEXPIREAT", key, ms.as_bytes(), b"FIELDS", b"1", field];
        call.tell_replicas(&words);
    }
}

fn hincrby(call: &mut Call<'_, '_>) -> Outcome<()> {
    let by = call.integer(3)?;
    let before = before(call)?;
    let sum = hash::add(call.keys, call.arg(1), call.arg(2), by)?;
    tell_sum(call, before, &sum.to_string());
    call.reply.integer(sum);
    Ok(())
}

fn hincrbyfloat(call: &mut Call<'_, '_>) -> Outcome<()> {
    let by = LongDouble::parse(call.arg(3));
    let by = by.ok_or(Failure::refused("ERR value is not a valid float"))?;
    if !by.is_finite() {
        return Err(Failure::refused("ERR value is NaN or Infinity"));
    }
    let before = before(call)?;
    let sum = hash::add_float(call.keys, call.arg(1), call.arg(2), by)?;
    tell_sum(call, before, &sum);
    call.reply.bulk(sum.as_bytes());
    Ok(())
}

fn hscan(call: &mut Call<'_, '_>) -> Outcome<()> {
    let scan = scan_arguments(call, |call| {
        Ok(call.keys.lookup_as(call.arg(1), Kind::Hash)?.is_some())
    })?;
    let (next, mut pairs) = hash::scan(call.keys, call.arg(1), scan.cursor, scan.count)?;
    pairs.retain(|(field, _)| scan.wants(field));
    let parts: Vec<_> = pairs
        .iter()
        .flat_map(|(field, value)| [field.as_slice(), value])
        .collect();
    reply_page(call, next, parts.into_iter());
    Ok(())
}

fn hrandfield(call: &mut Call<'_, '_>) -> Outcome<()> {
    let key = call.arg(1);
    let mut rng = random(call);
    if call.len() == 2 {
        let field = match hash::draw(call.keys, key)? {
            Some(mut drawn) => drawn.next(call.keys, &mut rng)?,
            None => None,
        };
        reply_value(call, field.as_ref().map(|(field, _)| field.as_slice()));
        return Ok(());
    }
    let count = random_count(call, 2)?;
    let with_values = call.len() == 4 && call.is(3, "withvalues");
    if call.len() > 3 && !with_values {
        return Err(SYNTAX);
    }
    if with_values && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
        return Err(Failure::refused("ERR value is out of range"));
    }
    let wanted = count.unsigned_abs();
    if count >= 0 {
        let pairs = hash::sample(call.keys, key, wanted, &mut rng)?;
        begin_fields(call, pairs.len(), with_values);
        for pair in &pairs {
            reply_field(call, pair, with_values);
        }
        return Ok(());
    }
    let Some(mut drawn) = hash::draw(call.keys, key)? else {
        call.reply.array(0);
        return Ok(());
    };
    begin_fields(
        call,
        usize::try_from(wanted).unwrap_or(usize::MAX),
        with_values,
    );
    for _ in 0..wanted {
        if let Some(pair) = drawn.next(call.keys, &mut rng)? {
            reply_field(call, &pair, with_values);
        }
    }
    Ok(())
}

/// Begins an array of fields; with values it has pairs in RESP3, and both one after the other in RESP2.
fn begin_fields(call: &mut Call<'_, '_>, count: usize, with_values: bool) {
    let is_flat = with_values && call.reply.protocol() == Protocol::Resp2;
    call.reply.array(count * if is_flat { 2 } else { 1 });
}

fn reply_field(call: &mut Call<'_, '_>, (field, value): &Pair, with_values: bool) {
    if with_values && call.reply.protocol() == Protocol::Resp3 {
        call.reply.array(2);
    }
    call.reply.bulk(field);
    if with_values {
        call.reply.bulk(value);
    }
}
