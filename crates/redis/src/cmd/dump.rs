//! DUMP and RESTORE.

use drumlin_rdb::dump;
use drumlin_redis_store::{EventClass, Failure, Outcome};

use crate::call::{Call, SYNTAX};
use crate::command::{Command, Flags, ONE_KEY};
use crate::persist::values;

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("dump", 2, Flags::READONLY, ONE_KEY, dump_key),
    Command::new(
        "restore",
        -4,
        Flags::WRITE.and(Flags::DENYOOM),
        ONE_KEY,
        restore,
    ),
    Command::new(
        "restore-asking",
        -4,
        Flags::WRITE.and(Flags::DENYOOM).and(Flags::ASKING),
        ONE_KEY,
        restore,
    ),
];

/// Memory that a value may take while it is restored, for each byte of its payload: LZF makes at most so much of it.
const MEMORY_PER_BYTE: usize = 300;

fn dump_key(call: &mut Call<'_, '_>) -> Outcome<()> {
    let key = call.arg(1);
    let Some(record) = call.keys.lookup(key)? else {
        call.reply.null();
        return Ok(());
    };
    let value = values::whole(call.keys, key, record.kind())?;
    let payload = dump::encode_for_most(&value).map_err(Failure::Engine)?;
    call.reply.bulk(&payload);
    Ok(())
}

#[derive(Debug, Default)]
struct Options {
    replaces: bool,
    is_absolute: bool,
    idle: bool,
    frequency: bool,
}

fn options(call: &Call<'_, '_>) -> Outcome<Options> {
    let mut options = Options::default();
    let mut at = 4;
    while at < call.len() {
        let has_value = at + 1 < call.len();
        match () {
            () if call.is(at, "replace") => options.replaces = true,
            () if call.is(at, "absttl") => options.is_absolute = true,
            () if call.is(at, "idletime") && has_value && !options.frequency => {
                if call.integer(at + 1)? < 0 {
                    return Err(Failure::refused("ERR Invalid IDLETIME value, must be >= 0"));
                }
                options.idle = true;
                at += 1;
            }
            () if call.is(at, "freq") && has_value && !options.idle => {
                if !(0..=255).contains(&call.integer(at + 1)?) {
                    return Err(Failure::refused(
                        "ERR Invalid FREQ value, must be >= 0 and <= 255",
                    ));
                }
                options.frequency = true;
                at += 1;
            }
            () => return Err(SYNTAX),
        }
        at += 1;
    }
    Ok(options)
}

fn restore(call: &mut Call<'_, '_>) -> Outcome<()> {
    let options = options(call)?;
    let key = call.arg(1);
    let old = call.keys.lookup(key)?;
    if old.is_some() && !options.replaces {
        return Err(Failure::refused("BUSYKEY Target key name already exists."));
    }
    let ttl = call.integer(2)?;
    let Ok(ttl) = u64::try_from(ttl) else {
        return Err(Failure::refused("ERR Invalid TTL value, must be >= 0"));
    };
    let payload = call.arg(3);
    let value = decode(payload)?;
    if let Some(record) = &old {
        call.keys.remove(key, record);
    }
    let now_ms = call.keys.now_ms();
    let expire_ms = match (ttl, options.is_absolute) {
        (0, _) => None,
        (ttl, true) => Some(ttl),
        (ttl, false) => Some(now_ms.saturating_add(ttl)),
    };
    if expire_ms.is_some_and(|ms| ms <= call.keys.expired_ms()) {
        // It would have expired already. As in Redis a key that was there is deleted, and told of.
        if old.is_some() {
            call.keys.event(EventClass::Generic, "del", key);
            call.tell_replicas(&[b"DEL", key]);
        }
        call.reply.ok();
        return Ok(());
    }
    if let Some(ms) = expire_ms.filter(|_| call.collects && !options.is_absolute) {
        let ms = ms.to_string();
        let mut words: Vec<&[u8]> = vec![b"RESTORE", key, ms.as_bytes()];
        words.extend(call.args.from(3).iter());
        words.push(b"ABSTTL");
        call.tell_replicas(&words);
    }
    values::append(call.keys, key, value)?;
    if let Some(ms) = expire_ms {
        values::set_expiry(call.keys, key, ms)?;
    }
    call.keys.event(EventClass::Generic, "restore", key);
    call.reply.ok();
    Ok(())
}

fn decode(payload: &[u8]) -> Outcome<drumlin_rdb::Value> {
    const WRONG_SUM: Failure = Failure::refused("ERR DUMP payload version or checksum are wrong");
    const WRONG_DATA: Failure = Failure::refused("ERR Bad data format");
    if !dump::is_sealed(payload) {
        return Err(WRONG_SUM);
    }
    let memory = payload
        .len()
        .saturating_mul(MEMORY_PER_BYTE)
        .saturating_add(1 << 20);
    dump::decode(payload, memory).map_err(|_| WRONG_DATA)
}
