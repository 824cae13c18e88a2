//! Commands of strings.

use drumlin_redis_store::record::EXPIRE_MS_MAX;
use drumlin_redis_store::types::string;
use drumlin_redis_store::{EventClass, Failure, Old, Outcome, Record};
use drumlin_resp::integer;

use crate::call::{Call, NOT_AN_INTEGER, SYNTAX};
use crate::command::{ALL_KEYS, Command, Flags, KeyPositions, ONE_KEY};

const READ: Flags = Flags::READONLY.and(Flags::FAST);
const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const FAST_WRITE: Flags = WRITE.and(Flags::FAST);
const PAIRS: KeyPositions = KeyPositions {
    first: 1,
    last: -1,
    step: 2,
};

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("append", 3, FAST_WRITE, ONE_KEY, append),
    Command::new("decr", 2, FAST_WRITE, ONE_KEY, decr),
    Command::new("decrby", 3, FAST_WRITE, ONE_KEY, decrby),
    Command::new("get", 2, READ, ONE_KEY, get),
    Command::new("getdel", 2, Flags::WRITE.and(Flags::FAST), ONE_KEY, getdel),
    Command::new("getex", -2, Flags::WRITE.and(Flags::FAST), ONE_KEY, getex),
    Command::new("getrange", 4, Flags::READONLY, ONE_KEY, getrange),
    Command::new("getset", 3, FAST_WRITE, ONE_KEY, getset),
    Command::new("incr", 2, FAST_WRITE, ONE_KEY, incr),
    Command::new("incrby", 3, FAST_WRITE, ONE_KEY, incrby),
    Command::new("incrbyfloat", 3, FAST_WRITE, ONE_KEY, incrbyfloat),
    Command::new("mget", -2, READ, ALL_KEYS, mget),
    Command::new("mset", -3, WRITE, PAIRS, mset),
    Command::new("msetnx", -3, WRITE, PAIRS, msetnx),
    Command::new("psetex", 4, WRITE, ONE_KEY, psetex),
    Command::new("set", -3, WRITE, ONE_KEY, set),
    Command::new("setex", 4, WRITE, ONE_KEY, setex),
    Command::new("setnx", 3, FAST_WRITE, ONE_KEY, setnx),
    Command::new("setrange", 4, WRITE, ONE_KEY, setrange),
    Command::new("strlen", 2, READ, ONE_KEY, strlen),
    Command::new("substr", 4, Flags::READONLY, ONE_KEY, getrange),
];

/// How a time is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeUnit {
    /// Milliseconds in one.
    pub(crate) ms: i64,
    /// Since 1970, or from now on.
    pub(crate) is_absolute: bool,
}

/// `EX`, `PX`, `EXAT` or `PXAT`.
fn time_unit(word: &[u8]) -> Option<TimeUnit> {
    let (ms, is_absolute) = match word.to_ascii_lowercase().as_slice() {
        b"ex" => (1_000, false),
        b"px" => (1, false),
        b"exat" => (1_000, true),
        b"pxat" => (1, true),
        _ => return None,
    };
    Some(TimeUnit { ms, is_absolute })
}

/// The moment that `text` names, for a command that sets a value with an expiry: it must be positive.
fn expire_ms(call: &Call<'_, '_>, text: &[u8], unit: TimeUnit) -> Outcome<u64> {
    let name = String::from_utf8_lossy(call.arg(0)).to_ascii_lowercase();
    let invalid = || Failure::because(format!("ERR invalid expire time in '{name}' command"));
    let number = integer(text).ok_or(NOT_AN_INTEGER)?;
    if number <= 0 {
        return Err(invalid());
    }
    let mut ms = number.checked_mul(unit.ms).ok_or_else(invalid)?;
    if !unit.is_absolute {
        let now = i64::try_from(call.keys.now_ms()).unwrap_or(i64::MAX);
        ms = ms.checked_add(now).ok_or_else(invalid)?;
    }
    // The time of a key has 48 bits: later ones, beyond the year 10,000, are as good as that.
    Ok(u64::try_from(ms).unwrap_or(0).min(EXPIRE_MS_MAX))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Condition {
    #[default]
    None,
    IfAbsent,
    IfPresent,
}

/// The options of SET.
#[derive(Clone, Copy, Debug, Default)]
struct SetOptions {
    condition: Condition,
    gets: bool,
    keeps_expire: bool,
    expire_ms: Option<u64>,
}

fn set_options(call: &Call<'_, '_>) -> Outcome<SetOptions> {
    let mut options = SetOptions::default();
    let mut at = 3;
    while at < call.len() {
        let has_time = options.expire_ms.is_some() || options.keeps_expire;
        if call.is(at, "nx") && options.condition != Condition::IfPresent {
            options.condition = Condition::IfAbsent;
        } else if call.is(at, "xx") && options.condition != Condition::IfAbsent {
            options.condition = Condition::IfPresent;
        } else if call.is(at, "get") {
            options.gets = true;
        } else if call.is(at, "keepttl") && options.expire_ms.is_none() {
            options.keeps_expire = true;
        } else if let (Some(unit), Some(text), false) =
            (time_unit(call.arg(at)), call.args.get(at + 1), has_time)
        {
            options.expire_ms = Some(expire_ms(call, text, unit)?);
            at += 1;
        } else {
            return Err(SYNTAX);
        }
        at += 1;
    }
    Ok(options)
}

fn set(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (key, value) = (call.arg(1), call.arg(2));
    if call.len() == 3 {
        store(call, key, value, None, Old::Unknown)?;
        call.reply.ok();
        return Ok(());
    }
    let options = set_options(call)?;
    let reads = options.gets || options.keeps_expire || options.condition != Condition::None;
    if !reads {
        store(call, key, value, options.expire_ms, Old::Unknown)?;
        call.reply.ok();
        return Ok(());
    }
    let old = match options.gets {
        true => string::get(call.keys, key)?,
        false => call.keys.lookup(key)?,
    };
    let sets = match options.condition {
        Condition::None => true,
        Condition::IfAbsent => old.is_none(),
        Condition::IfPresent => old.is_some(),
    };
    if sets {
        let kept = old
            .as_ref()
            .and_then(Record::expire_ms)
            .filter(|_| options.keeps_expire);
        let old = Old::Is(old.as_ref());
        match kept {
            // It has the expiry already, and nobody is told of it.
            Some(_) if options.expire_ms.is_none() => {
                string::set(call.keys, key, value, kept, old)?;
            }
            _ => store(call, key, value, options.expire_ms, old)?,
        }
    }
    match (options.gets, old) {
        (true, Some(record)) => call.reply.bulk(record.payload()),
        (true, None) => call.reply.null(),
        (false, _) if sets => call.reply.ok(),
        (false, _) => call.reply.null(),
    }
    Ok(())
}

fn store(
    call: &mut Call<'_, '_>,
    key: &[u8],
    value: &[u8],
    expire_ms: Option<u64>,
    old: Old<'_>,
) -> Outcome<()> {
    // A time that is over leaves no key.
    if expire_ms.is_some_and(|ms| ms < call.keys.expired_ms()) {
        if let Some(record) = call.keys.lookup(key)? {
            call.keys.remove(key, &record);
            call.tell_replicas(&[b"DEL", key]);
        }
        call.keys.event(EventClass::String, "set", key);
        call.keys.event(EventClass::Generic, "expire", key);
        call.keys.event(EventClass::Expired, "expired", key);
        // Whoever watches the key saw it set, if only for no time.
        let db = call.keys.db();
        call.keys.overlay().touch(db, key);
        return Ok(());
    }
    string::set(call.keys, key, value, expire_ms, old)?;
    if let Some(ms) = expire_ms {
        call.keys.event(EventClass::Generic, "expire", key);
        if call.collects {
            let ms = ms.to_string();
            call.tell_replicas(&[b"SET", key, value, b"PXAT", ms.as_bytes()]);
        }
    }
    Ok(())
}

fn setex(call: &mut Call<'_, '_>) -> Outcome<()> {
    set_with_time(call, 1_000)
}

fn psetex(call: &mut Call<'_, '_>) -> Outcome<()> {
    set_with_time(call, 1)
}

fn set_with_time(call: &mut Call<'_, '_>, ms: i64) -> Outcome<()> {
    let unit = TimeUnit {
        ms,
        is_absolute: false,
    };
    let expire_ms = expire_ms(call, call.arg(2), unit)?;
    let (key, value) = (call.arg(1), call.arg(3));
    store(call, key, value, Some(expire_ms), Old::Unknown)?;
    call.reply.ok();
    Ok(())
}

fn setnx(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (key, value) = (call.arg(1), call.arg(2));
    let is_absent = call.keys.lookup(key)?.is_none();
    if is_absent {
        store(call, key, value, None, Old::Is(None))?;
    }
    call.reply.integer(i64::from(is_absent));
    Ok(())
}

fn reply_string(call: &mut Call<'_, '_>, found: Option<&Record>) {
    match found {
        Some(record) => call.reply.bulk(record.payload()),
        None => call.reply.null(),
    }
}

fn get(call: &mut Call<'_, '_>) -> Outcome<()> {
    let found = string::get(call.keys, call.arg(1))?;
    reply_string(call, found.as_ref());
    Ok(())
}

fn getset(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (key, value) = (call.arg(1), call.arg(2));
    let old = string::get(call.keys, key)?;
    store(call, key, value, None, Old::Is(old.as_ref()))?;
    reply_string(call, old.as_ref());
    Ok(())
}

fn getdel(call: &mut Call<'_, '_>) -> Outcome<()> {
    let key = call.arg(1);
    let old = string::get(call.keys, key)?;
    if let Some(record) = &old {
        call.keys.remove(key, record);
        call.keys.event(EventClass::Generic, "del", key);
        call.tell_replicas(&[b"DEL", key]);
    }
    reply_string(call, old.as_ref());
    Ok(())
}

fn getex(call: &mut Call<'_, '_>) -> Outcome<()> {
    let key = call.arg(1);
    let unit = match call.len() {
        2 => None,
        3 if call.is(2, "persist") => None,
        4 => Some(time_unit(call.arg(2)).ok_or(SYNTAX)?),
        _ => return Err(SYNTAX),
    };
    let old = string::get(call.keys, key)?;
    if let Some(record) = &old
        && call.len() > 2
    {
        let text = call.arg(3);
        let expire_ms = unit.map(|unit| expire_ms(call, text, unit)).transpose()?;
        super::generic::set_expire(call, key, record, expire_ms)?;
    }
    reply_string(call, old.as_ref());
    Ok(())
}

fn mget(call: &mut Call<'_, '_>) -> Outcome<()> {
    call.reply.array(call.len() - 1);
    for key in call.args.from(1).iter() {
        match string::get(call.keys, key) {
            Ok(found) => reply_string(call, found.as_ref()),
            Err(Failure::WrongType) => reply_string(call, None),
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

fn mset(call: &mut Call<'_, '_>) -> Outcome<()> {
    set_many(call)?;
    call.reply.ok();
    Ok(())
}

fn set_many(call: &mut Call<'_, '_>) -> Outcome<()> {
    if call.len().is_multiple_of(2) {
        let name = String::from_utf8_lossy(call.arg(0)).to_ascii_lowercase();
        return Err(call.wrong_arity(&name));
    }
    for at in (1..call.len()).step_by(2) {
        let (key, value) = (call.arg(at), call.arg(at + 1));
        store(call, key, value, None, Old::Unknown)?;
    }
    Ok(())
}

fn msetnx(call: &mut Call<'_, '_>) -> Outcome<()> {
    for at in (1..call.len()).step_by(2) {
        if call.len() % 2 == 1 && call.keys.lookup(call.arg(at))?.is_some() {
            call.reply.integer(0);
            return Ok(());
        }
    }
    set_many(call)?;
    call.reply.integer(1);
    Ok(())
}

fn strlen(call: &mut Call<'_, '_>) -> Outcome<()> {
    let found = string::get(call.keys, call.arg(1))?;
    let len = found.as_ref().map_or(0, |record| record.payload().len());
    call.reply.integer(len as i64);
    Ok(())
}

fn append(call: &mut Call<'_, '_>) -> Outcome<()> {
    let most = call.limits.string_bytes_max;
    let len = string::append(call.keys, call.arg(1), call.arg(2), most)?;
    call.reply.integer(len as i64);
    Ok(())
}

fn getrange(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    let found = string::get(call.keys, call.arg(1))?;
    let value = found.as_ref().map_or(&[][..], Record::payload);
    call.reply.bulk(string::range(value, start, end));
    Ok(())
}

fn setrange(call: &mut Call<'_, '_>) -> Outcome<()> {
    let offset = call.integer(2)?;
    let offset =
        usize::try_from(offset).map_err(|_| Failure::refused("ERR offset is out of range"))?;
    let most = call.limits.string_bytes_max;
    let len = string::set_range(call.keys, call.arg(1), offset, call.arg(3), most)?;
    call.reply.integer(len as i64);
    Ok(())
}

fn incr(call: &mut Call<'_, '_>) -> Outcome<()> {
    add(call, 1)
}

fn decr(call: &mut Call<'_, '_>) -> Outcome<()> {
    add(call, -1)
}

fn incrby(call: &mut Call<'_, '_>) -> Outcome<()> {
    let by = call.integer(2)?;
    add(call, by)
}

fn incrbyfloat(call: &mut Call<'_, '_>) -> Outcome<()> {
    let sum = string::add_float(call.keys, call.arg(1), call.arg(2))?;
    // Others may round otherwise.
    call.tell_replicas(&[b"SET", call.arg(1), sum.as_bytes(), b"KEEPTTL"]);
    call.reply.bulk(sum.as_bytes());
    Ok(())
}

fn decrby(call: &mut Call<'_, '_>) -> Outcome<()> {
    let by = call.integer(2)?.checked_neg();
    let by = by.ok_or(Failure::refused("ERR decrement would overflow"))?;
    add(call, by)
}

fn add(call: &mut Call<'_, '_>, by: i64) -> Outcome<()> {
    let sum = string::add(call.keys, call.arg(1), by)?;
    call.reply.integer(sum);
    Ok(())
}
