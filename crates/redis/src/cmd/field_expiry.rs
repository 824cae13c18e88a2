//! Commands of the expiry of fields of hashes, which Redis has from 7.4 on.

use drumlin_redis_store::types::field_expiry::{
    self, Condition, Expired, FIELD_EXPIRE_MS_MAX, Persisted,
};
use drumlin_redis_store::types::hash;
use drumlin_redis_store::{Failure, Kind, Outcome};
use drumlin_resp::{Args, integer};

use crate::call::Call;
use crate::command::{Command, Flags, ONE_KEY};

const READ: Flags = Flags::READONLY.and(Flags::FAST);
const WRITE: Flags = Flags::WRITE.and(Flags::FAST);
const GROW: Flags = WRITE.and(Flags::DENYOOM);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("hexpire", -6, GROW, ONE_KEY, hexpire),
    Command::new("hexpireat", -6, GROW, ONE_KEY, hexpireat),
    Command::new("hexpiretime", -5, READ, ONE_KEY, hexpiretime),
    Command::new("hpersist", -5, WRITE, ONE_KEY, hpersist),
    Command::new("hpexpire", -6, GROW, ONE_KEY, hpexpire),
    Command::new("hpexpireat", -6, GROW, ONE_KEY, hpexpireat),
    Command::new("hpexpiretime", -5, READ, ONE_KEY, hpexpiretime),
    Command::new("hpttl", -5, READ, ONE_KEY, hpttl),
    Command::new("httl", -5, READ, ONE_KEY, httl),
];

const NO_FIELD: i64 = -2;
const NO_EXPIRY: i64 = -1;

/// The fields from `FIELDS` on, which is argument `at`; `error` is that of a wrong number of them.
fn fields<'a>(call: &Call<'a, '_>, at: usize, error: &'static str) -> Outcome<Args<'a>> {
    if !call.is(at, "fields") {
        return Err(Failure::refused(
            "ERR Mandatory argument FIELDS is missing or not at the right position",
        ));
    }
    let count = integer(call.arg(at + 1)).filter(|count| *count > 0);
    let count = count.ok_or(Failure::refused(error))?;
    let fields = call.args.from(at + 2);
    if count.unsigned_abs() != fields.len() as u64 {
        return Err(Failure::refused(
            "ERR The `numfields` parameter must match the number of arguments",
        ));
    }
    Ok(fields)
}

fn reply_each<T>(call: &mut Call<'_, '_>, done: &[T], number: impl Fn(&T) -> i64) {
    call.reply.array(done.len());
    for one in done {
        call.reply.integer(number(one));
    }
}

/// The time in argument 2, in ms since 1970.
fn time(call: &Call<'_, '_>, unit_ms: i64, is_absolute: bool) -> Outcome<u64> {
    let name = String::from_utf8_lossy(call.arg(0)).to_ascii_lowercase();
    let invalid = || Failure::because(format!("ERR invalid expire time in '{name}' command"));
    let number = call.integer(2)?;
    let number = u64::try_from(number)
        .map_err(|_| Failure::refused("ERR invalid expire time, must be >= 0"))?;
    let from = match is_absolute {
        true => 0,
        false => call.keys.now_ms(),
    };
    let ms = number.checked_mul(unit_ms.unsigned_abs());
    let ms = ms.and_then(|ms| ms.checked_add(from));
    ms.filter(|ms| *ms <= FIELD_EXPIRE_MS_MAX)
        .ok_or_else(invalid)
}

fn expire(call: &mut Call<'_, '_>, unit_ms: i64, is_absolute: bool) -> Outcome<()> {
    let key = call.arg(1);
    call.keys.lookup_as(key, Kind::Hash)?;
    let ms = time(call, unit_ms, is_absolute)?;
    let (condition, at) = match () {
        () if call.is(3, "nx") => (Condition::IfNone, 4),
        () if call.is(3, "xx") => (Condition::IfAny, 4),
        () if call.is(3, "gt") => (Condition::IfLater, 4),
        () if call.is(3, "lt") => (Condition::IfEarlier, 4),
        () => (Condition::Always, 3),
    };
    let fields = fields(
        call,
        at,
        "ERR Parameter `numFields` should be greater than 0",
    )?;
    let done = field_expiry::expire(call.keys, key, fields.iter(), ms, condition)?;
    tell_expired(call, key, ms, || fields.iter().zip(&done));
    reply_each(call, &done, |one| match one {
        Expired::NoField => NO_FIELD,
        Expired::Kept => 0,
        Expired::Set => 1,
        Expired::Deleted => 2,
    });
    Ok(())
}

/// Tells replicas what became of fields.
fn tell_expired<'f, I>(call: &mut Call<'_, '_>, key: &[u8], ms: u64, done: impl Fn() -> I)
where
    I: Iterator<Item = (&'f [u8], &'f Expired)>,
{
    if !call.collects {
        return;
    }
    let all = |wanted: Expired| -> Vec<&[u8]> {
        let found = done().filter(|(_, it)| **it == wanted);
        found.map(|(field, _)| field).collect()
    };
    let (set, deleted) = (all(Expired::Set), all(Expired::Deleted));
    if !set.is_empty() {
        let (ms, count) = (ms.to_string(), set.len().to_string());
        let words = [
            b"HPEXPIREAT",
            key,
            ms.as_bytes(),
            b"FIELDS",
            count.as_bytes(),
        ];
        call.tell_replicas(&[&words[..], &set].concat());
    }
    if !deleted.is_empty() {
        let words = [b"HDEL".as_slice(), key];
        call.tell_replicas(&[&words[..], &deleted].concat());
    }
}

fn hexpire(call: &mut Call<'_, '_>) -> Outcome<()> {
    expire(call, 1_000, false)
}

fn hpexpire(call: &mut Call<'_, '_>) -> Outcome<()> {
    expire(call, 1, false)
}

fn hexpireat(call: &mut Call<'_, '_>) -> Outcome<()> {
    expire(call, 1_000, true)
}

fn hpexpireat(call: &mut Call<'_, '_>) -> Outcome<()> {
    expire(call, 1, true)
}

/// Of commands that take fields and nothing else.
fn plain_fields<'a>(call: &Call<'a, '_>) -> Outcome<Args<'a>> {
    call.keys.lookup_as(call.arg(1), Kind::Hash)?;
    fields(call, 2, "ERR Number of fields must be a positive integer")
}

fn hpersist(call: &mut Call<'_, '_>) -> Outcome<()> {
    let fields = plain_fields(call)?;
    let done = field_expiry::persist(call.keys, call.arg(1), fields.iter())?;
    reply_each(call, &done, |one| match one {
        Persisted::NoField => NO_FIELD,
        Persisted::NoExpiry => NO_EXPIRY,
        Persisted::Done => 1,
    });
    Ok(())
}

/// The expiry of each field as `read` makes a number of it, from the time of the command.
fn reply_expiries(call: &mut Call<'_, '_>, read: impl Fn(i64, i64) -> i64) -> Outcome<()> {
    let fields = plain_fields(call)?;
    let values = hash::get_many(call.keys, call.arg(1), fields.iter())?;
    let now = i64::try_from(call.keys.now_ms()).unwrap_or(i64::MAX);
    reply_each(call, &values, |value| match value {
        None => NO_FIELD,
        Some(value) => value.expire_ms().map_or(NO_EXPIRY, |ms| {
            read(i64::try_from(ms).unwrap_or(i64::MAX), now)
        }),
    });
    Ok(())
}

fn httl(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_expiries(call, |at, now| (at - now + 999) / 1_000)
}

fn hpttl(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_expiries(call, |at, now| at - now)
}

fn hexpiretime(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_expiries(call, |at, _| (at + 999) / 1_000)
}

fn hpexpiretime(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_expiries(call, |at, _| at)
}
