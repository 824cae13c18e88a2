//! Commands of keys, whatever they hold.

use drumlin_redis_store::record::EXPIRE_MS_MAX;
use drumlin_redis_store::types::{hash, set, string, zset};
use drumlin_redis_store::{DATABASES, EventClass, Failure, Kind, Old, Outcome, Record};
use drumlin_resp::integer;

use crate::call::{Call, NOT_AN_INTEGER, SYNTAX};
use crate::command::{ALL_KEYS, Command, Flags, KeyPositions, NO_KEYS, ONE_KEY, TWO_KEYS};
use crate::glob;

const READ: Flags = Flags::READONLY.and(Flags::FAST);
const WRITE: Flags = Flags::WRITE.and(Flags::FAST);
const SECOND_KEY: KeyPositions = KeyPositions {
    first: 2,
    last: 2,
    step: 1,
};

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("copy", -3, Flags::WRITE.and(Flags::DENYOOM), TWO_KEYS, copy),
    Command::new("dbsize", 1, READ.and(Flags::WALKS), NO_KEYS, dbsize),
    Command::new("del", -2, Flags::WRITE, ALL_KEYS, del),
    Command::new("exists", -2, READ, ALL_KEYS, exists),
    Command::new("expire", -3, WRITE, ONE_KEY, expire),
    Command::new("expireat", -3, WRITE, ONE_KEY, expireat),
    Command::new("expiretime", 2, READ, ONE_KEY, expiretime),
    Command::new("keys", 2, Flags::READONLY.and(Flags::WALKS), NO_KEYS, keys),
    Command::new("move", 3, WRITE, ONE_KEY, move_key),
    Command::new("object", -2, Flags::READONLY, SECOND_KEY, object),
    Command::new("persist", 2, WRITE, ONE_KEY, persist),
    Command::new("pexpire", -3, WRITE, ONE_KEY, pexpire),
    Command::new("pexpireat", -3, WRITE, ONE_KEY, pexpireat),
    Command::new("pexpiretime", 2, READ, ONE_KEY, pexpiretime),
    Command::new("pttl", 2, READ, ONE_KEY, pttl),
    Command::new("randomkey", 1, Flags::READONLY, NO_KEYS, randomkey),
    Command::new("rename", 3, Flags::WRITE, TWO_KEYS, rename),
    Command::new("renamenx", 3, WRITE, TWO_KEYS, renamenx),
    Command::new("scan", -2, Flags::READONLY, NO_KEYS, scan),
    Command::new("touch", -2, READ, ALL_KEYS, exists),
    Command::new("ttl", 2, READ, ONE_KEY, ttl),
    Command::new("type", 2, READ, ONE_KEY, kind),
    Command::new("unlink", -2, WRITE, ALL_KEYS, del),
];

const NO_SUCH_KEY: Failure = Failure::refused("ERR no such key");

fn del(call: &mut Call<'_, '_>) -> Outcome<()> {
    let mut deleted = 0;
    for key in call.args.from(1).iter() {
        if let Some(record) = call.keys.lookup(key)? {
            call.keys.remove(key, &record);
            call.keys.event(EventClass::Generic, "del", key);
            deleted += 1;
        }
    }
    call.reply.integer(deleted);
    Ok(())
}

fn exists(call: &mut Call<'_, '_>) -> Outcome<()> {
    let mut found = 0;
    for key in call.args.from(1).iter() {
        found += i64::from(call.keys.lookup(key)?.is_some());
    }
    call.reply.integer(found);
    Ok(())
}

fn kind(call: &mut Call<'_, '_>) -> Outcome<()> {
    let found = call.keys.lookup(call.arg(1))?;
    let name = found.map_or("none", |record| record.kind().name());
    call.reply.simple(name.as_bytes());
    Ok(())
}

// Expiry.

/// Gives a record that was read another expiry, or none. A time that is over deletes the key.
pub(super) fn set_expire(
    call: &mut Call<'_, '_>,
    key: &[u8],
    record: &Record,
    expire_ms: Option<u64>,
) -> Outcome<()> {
    if expire_ms.is_some_and(|ms| ms <= call.keys.expired_ms()) {
        call.keys.remove(key, record);
        call.keys.event(EventClass::Generic, "del", key);
        call.tell_replicas(&[b"DEL", key]);
        return Ok(());
    }
    let event = match expire_ms {
        Some(_) => "expire",
        None if record.expire_ms().is_none() => return Ok(()),
        None => "persist",
    };
    call.keys
        .put(key, Old::Is(Some(record)), record.with_expire(expire_ms))?;
    call.keys.event(EventClass::Generic, event, key);
    match expire_ms.filter(|_| call.collects) {
        Some(ms) => call.tell_replicas(&[b"PEXPIREAT", key, ms.to_string().as_bytes()]),
        None => call.tell_replicas(&[b"PERSIST", key]),
    }
    Ok(())
}

fn expire(call: &mut Call<'_, '_>) -> Outcome<()> {
    expire_at(call, 1_000, false)
}

fn pexpire(call: &mut Call<'_, '_>) -> Outcome<()> {
    expire_at(call, 1, false)
}

fn expireat(call: &mut Call<'_, '_>) -> Outcome<()> {
    expire_at(call, 1_000, true)
}

fn pexpireat(call: &mut Call<'_, '_>) -> Outcome<()> {
    expire_at(call, 1, true)
}

/// The conditions of the EXPIRE family.
#[derive(Clone, Copy, Debug, Default)]
struct Conditions {
    if_none: bool,
    if_any: bool,
    if_later: bool,
    if_earlier: bool,
}

fn conditions(call: &Call<'_, '_>) -> Outcome<Conditions> {
    let mut found = Conditions::default();
    for at in 3..call.len() {
        match () {
            () if call.is(at, "nx") => found.if_none = true,
            () if call.is(at, "xx") => found.if_any = true,
            () if call.is(at, "gt") => found.if_later = true,
            () if call.is(at, "lt") => found.if_earlier = true,
            () => {
                let option = String::from_utf8_lossy(call.arg(at)).into_owned();
                return Err(Failure::because(format!("ERR Unsupported option {option}")));
            }
        }
    }
    if found.if_none && (found.if_any || found.if_later || found.if_earlier) {
        return Err(Failure::refused(
            "ERR NX and XX, GT or LT options at the same time are not compatible",
        ));
    }
    if found.if_later && found.if_earlier {
        return Err(Failure::refused(
            "ERR GT and LT options at the same time are not compatible",
        ));
    }
    Ok(found)
}

fn expire_at(call: &mut Call<'_, '_>, unit_ms: i64, is_absolute: bool) -> Outcome<()> {
    let name = String::from_utf8_lossy(call.arg(0)).to_ascii_lowercase();
    let invalid = || Failure::because(format!("ERR invalid expire time in '{name}' command"));
    let conditions = conditions(call)?;
    let number = integer(call.arg(2)).ok_or(NOT_AN_INTEGER)?;
    let mut ms = number.checked_mul(unit_ms).ok_or_else(invalid)?;
    if !is_absolute {
        let now = i64::try_from(call.keys.now_ms()).unwrap_or(i64::MAX);
        ms = ms.checked_add(now).ok_or_else(invalid)?;
    }
    let key = call.arg(1);
    let Some(record) = call.keys.lookup(key)? else {
        call.reply.integer(0);
        return Ok(());
    };
    // No expiry counts as the latest of all.
    let before = record
        .expire_ms()
        .map_or(i64::MAX, |ms| i64::try_from(ms).unwrap_or(i64::MAX));
    let is_kept = (conditions.if_none && record.expire_ms().is_some())
        || (conditions.if_any && record.expire_ms().is_none())
        || (conditions.if_later && (record.expire_ms().is_none() || ms <= before))
        || (conditions.if_earlier && record.expire_ms().is_some() && ms >= before);
    if is_kept {
        call.reply.integer(0);
        return Ok(());
    }
    let ms = u64::try_from(ms).unwrap_or(0).min(EXPIRE_MS_MAX);
    set_expire(call, key, &record, Some(ms))?;
    call.reply.integer(1);
    Ok(())
}

fn persist(call: &mut Call<'_, '_>) -> Outcome<()> {
    let key = call.arg(1);
    let expiring = call
        .keys
        .lookup(key)?
        .filter(|record| record.expire_ms().is_some());
    if let Some(record) = &expiring {
        set_expire(call, key, record, None)?;
    }
    call.reply.integer(i64::from(expiring.is_some()));
    Ok(())
}

/// The expiry of the key as `read` makes a number of it; -1 without one, -2 without a key.
fn reply_expiry(call: &mut Call<'_, '_>, read: impl Fn(i64, i64) -> i64) -> Outcome<()> {
    let number = match call.keys.lookup(call.arg(1))? {
        None => -2,
        Some(record) => record.expire_ms().map_or(-1, |ms| {
            let now = i64::try_from(call.keys.now_ms()).unwrap_or(i64::MAX);
            read(i64::try_from(ms).unwrap_or(i64::MAX), now)
        }),
    };
    call.reply.integer(number);
    Ok(())
}

fn ttl(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_expiry(call, |at, now| ((at - now).max(0) + 500) / 1_000)
}

fn pttl(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_expiry(call, |at, now| (at - now).max(0))
}

fn expiretime(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_expiry(call, |at, _| (at + 500) / 1_000)
}

fn pexpiretime(call: &mut Call<'_, '_>) -> Outcome<()> {
    reply_expiry(call, |at, _| at)
}

// Names.

fn rename(call: &mut Call<'_, '_>) -> Outcome<()> {
    rename_key(call, false)?;
    call.reply.ok();
    Ok(())
}

fn renamenx(call: &mut Call<'_, '_>) -> Outcome<()> {
    let renamed = rename_key(call, true)?;
    call.reply.integer(i64::from(renamed));
    Ok(())
}

fn rename_key(call: &mut Call<'_, '_>, if_absent: bool) -> Outcome<bool> {
    let (from, to) = (call.arg(1), call.arg(2));
    let record = call.keys.lookup(from)?.ok_or(NO_SUCH_KEY)?;
    if from == to {
        return Ok(!if_absent);
    }
    if let Some(target) = call.keys.lookup(to)? {
        if if_absent {
            return Ok(false);
        }
        call.keys.remove(to, &target);
    }
    let db = call.keys.db();
    call.keys.move_record(from, &record, (db, to))?;
    call.keys.event(EventClass::Generic, "rename_from", from);
    call.keys.event(EventClass::Generic, "rename_to", to);
    Ok(true)
}

/// A number of a database that exists.
pub(super) fn database(text: &[u8]) -> Outcome<u16> {
    let number = integer(text).ok_or(NOT_AN_INTEGER)?;
    let number = u16::try_from(number)
        .ok()
        .filter(|number| *number < DATABASES);
    number.ok_or(Failure::refused("ERR DB index is out of range"))
}

fn copy(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (from, to, own) = (call.arg(1), call.arg(2), call.keys.db());
    let (mut db, mut replaces, mut at) = (own, false, 3);
    while at < call.len() {
        if call.is(at, "replace") {
            replaces = true;
            at += 1;
        } else if call.is(at, "db") && at + 1 < call.len() {
            db = database(call.arg(at + 1))?;
            at += 2;
        } else {
            return Err(SYNTAX);
        }
    }
    if from == to && db == own {
        return Err(Failure::refused(
            "ERR source and destination objects are the same",
        ));
    }
    let Some(record) = call.keys.lookup(from)? else {
        call.reply.integer(0);
        return Ok(());
    };
    call.keys.select(db);
    let taken = call.keys.lookup(to)?;
    if let Some(taken) = &taken
        && replaces
    {
        call.keys.remove(to, taken);
    }
    let copies = taken.is_none() || replaces;
    if copies {
        call.keys.copy_record(&record, (db, to))?;
        call.keys.event(EventClass::Generic, "copy_to", to);
    }
    call.keys.select(own);
    call.reply.integer(i64::from(copies));
    Ok(())
}

fn move_key(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (key, own) = (call.arg(1), call.keys.db());
    let to = database(call.arg(2))?;
    if to == own {
        return Err(Failure::refused(
            "ERR source and destination objects are the same",
        ));
    }
    let Some(record) = call.keys.lookup(key)? else {
        call.reply.integer(0);
        return Ok(());
    };
    call.keys.select(to);
    let is_taken = call.keys.lookup(key)?.is_some();
    call.keys.select(own);
    if !is_taken {
        call.keys.move_record(key, &record, (to, key))?;
        call.keys.event(EventClass::Generic, "move_from", key);
        call.keys.select(to);
        call.keys.event(EventClass::Generic, "move_to", key);
        call.keys.select(own);
    }
    call.reply.integer(i64::from(!is_taken));
    Ok(())
}

// Walks.

fn keys(call: &mut Call<'_, '_>) -> Outcome<()> {
    let pattern = call.arg(1);
    let mark = call.reply.begin_array();
    let mut found = 0;
    let (keys, reply) = (&*call.keys, &mut *call.reply);
    keys.for_each_key(|key, _| {
        if glob::matches(pattern, key) {
            reply.bulk(key);
            found += 1;
        }
        true
    })?;
    call.reply.finish(mark, found);
    Ok(())
}

fn dbsize(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (keys, _) = call.keys.count()?;
    call.reply.integer(i64::try_from(keys).unwrap_or(i64::MAX));
    Ok(())
}

fn randomkey(call: &mut Call<'_, '_>) -> Outcome<()> {
    let random = match &mut call.server {
        Some(server) => server.random.next_u64(),
        // The thread that warms up: any place is as good.
        None => call.keys.now_ms().wrapping_mul(0x9e37_79b9_7f4a_7c15),
    };
    match call.keys.random_key(random)? {
        Some(key) => call.reply.bulk(&key),
        None => call.reply.null(),
    }
    Ok(())
}

/// The options of SCAN and its kin.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanOptions<'a> {
    pub(super) count: usize,
    pub(super) pattern: Option<&'a [u8]>,
    pub(super) kind: Option<&'a [u8]>,
}

/// The cursor of SCAN and its kin, as C's `strtoul` reads it: nothing is 0, and a minus counts back from 2^64.
pub(super) fn scan_cursor(text: &[u8]) -> Outcome<u64> {
    if text.is_empty() {
        return Ok(0);
    }
    let (digits, is_negative) = match text.strip_prefix(b"-") {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let number = std::str::from_utf8(digits)
        .ok()
        .filter(|_| !is_negative || !digits.starts_with(b"+"));
    let number = number.and_then(|text| text.parse::<u64>().ok());
    let number = number.ok_or(Failure::refused("ERR invalid cursor"))?;
    Ok(if is_negative {
        number.wrapping_neg()
    } else {
        number
    })
}

/// The options from argument `at` on; `TYPE` only where `takes_type`.
pub(super) fn scan_options<'a>(
    call: &Call<'a, '_>,
    mut at: usize,
    takes_type: bool,
) -> Outcome<ScanOptions<'a>> {
    let mut options = ScanOptions {
        count: 10,
        pattern: None,
        kind: None,
    };
    while at < call.len() {
        let value = call.args.get(at + 1).ok_or(SYNTAX)?;
        if call.is(at, "count") {
            let count = integer(value).ok_or(NOT_AN_INTEGER)?;
            options.count = usize::try_from(count)
                .ok()
                .filter(|it| *it > 0)
                .ok_or(SYNTAX)?;
        } else if call.is(at, "match") {
            options.pattern = Some(value);
        } else if call.is(at, "type") && takes_type {
            options.kind = Some(value);
        } else {
            return Err(SYNTAX);
        }
        at += 2;
    }
    Ok(options)
}

fn scan(call: &mut Call<'_, '_>) -> Outcome<()> {
    let cursor = scan_cursor(call.arg(1))?;
    let options = scan_options(call, 2, true)?;
    let page = call.keys.scan(cursor, options.count)?;
    let wanted = |key: &[u8], kind: Kind| {
        options
            .pattern
            .is_none_or(|pattern| glob::matches(pattern, key))
            && options
                .kind
                .is_none_or(|name| kind.name().as_bytes().eq_ignore_ascii_case(name))
    };
    let found: Vec<_> = page
        .keys
        .iter()
        .filter(|(key, kind)| wanted(key, *kind))
        .collect();
    call.reply.array(2);
    call.reply.bulk(page.cursor.to_string().as_bytes());
    call.reply.array(found.len());
    for (key, _) in found {
        call.reply.bulk(key);
    }
    Ok(())
}

fn object(call: &mut Call<'_, '_>) -> Outcome<()> {
    if call.is(1, "help") && call.len() == 2 {
        return super::reply_help(call, OBJECT_HELP);
    }
    let known = ["encoding", "freq", "idletime", "refcount"];
    if call.len() != 3 || !known.iter().any(|name| call.is(1, name)) {
        return Err(call.unknown_subcommand("OBJECT"));
    }
    let Some(record) = call.keys.lookup(call.arg(2))? else {
        call.reply.null();
        return Ok(());
    };
    match () {
        () if call.is(1, "encoding") => {
            let name = encoding(&record);
            call.reply.bulk(name.as_bytes());
        }
        () if call.is(1, "refcount") => call.reply.integer(references(&record)),
        () if call.is(1, "idletime") => call.reply.integer(0),
        () => {
            return Err(Failure::refused(
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. \
                 Please note that when switching between policies at runtime LRU and LFU data \
                 will take some time to adjust.",
            ));
        }
    }
    Ok(())
}

/// Small numbers are one object for all keys in Redis, with a count of references that stands for "shared".
fn references(record: &Record) -> i64 {
    let shared = 0..10_000;
    let number = || string::integer(record.payload());
    let is_shared = encoding(record) == "int" && number().is_some_and(|it| shared.contains(&it));
    if is_shared { i64::from(i32::MAX) } else { 1 }
}

const OBJECT_HELP: &[&str] = &[
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the access frequency index of the <key>. The returned integer is",
    "    proportional to the logarithm of the recent access frequency of the key.",
    "IDLETIME <key>",
    "    Return the idle time of the <key>, that is the approximated number of",
    "    seconds elapsed since the last access to the key.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
    "HELP",
    "    Prints this help.",
];

/// How `OBJECT ENCODING` calls the encoding that Redis would have for the value.
pub(super) fn encoding(record: &Record) -> &'static str {
    match record.kind() {
        Kind::String => string::encoding(record),
        Kind::SortedSet => zset::encoding(record),
        Kind::Hash => hash::encoding(record),
        Kind::Set => set::encoding(record),
        Kind::List => "quicklist",
        Kind::Stream => "stream",
    }
}
