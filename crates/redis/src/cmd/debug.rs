//! Subcommands of DEBUG that Redis's own suite asks for.

use drumlin_rdb::dump;
use drumlin_redis_store::types::string;
use drumlin_redis_store::{Failure, Old, Outcome};

use crate::call::{Call, NOT_AN_INTEGER};
use crate::cmd::generic;
use crate::double;
use crate::persist::values;

/// Keys that one DEBUG POPULATE makes: they are one batch.
const KEYS_MAX: u64 = 10_000_000;

/// DEBUG PROTOCOL: a reply of each type.
pub(super) fn protocol(call: &mut Call<'_, '_>) -> Outcome<()> {
    let name = String::from_utf8_lossy(call.arg(2)).to_ascii_lowercase();
    let reply = &mut *call.reply;
    match name.as_str() {
        "string" => reply.bulk(b"Hello World"),
        "integer" => reply.integer(12_345),
        "double" => reply.double(double::print(3_141.0 / 1_000.0).as_bytes()),
        "bignum" => reply.big_number(b"1234567999999999999999999999999999999"),
        "null" => reply.null(),
        "array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        "set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        "map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        "attrib" => {
            if reply.attribute(1) {
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        "push" => {
            if reply.protocol() == drumlin_resp::Protocol::Resp2 {
                let error = "ERR RESP2 is not supported by this command";
                return Err(Failure::refused(error));
            }
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
            reply.bulk(b"Some real reply following the push reply");
        }
        "true" => reply.boolean(true),
        "false" => reply.boolean(false),
        "verbatim" => reply.verbatim(*b"txt", b"This is a verbatim\nstring"),
        _ => {
            return Err(Failure::refused(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}

/// DEBUG OBJECT: what can be told of a value that is no object in memory. Its address is a number of the key.
pub(super) fn object(call: &mut Call<'_, '_>) -> Outcome<()> {
    let key = call.arg(2);
    // One that has expired is an object until it is deleted.
    call.keys.keep_expired();
    let Some(record) = call.keys.lookup(key)? else {
        return Err(Failure::refused("ERR no such key"));
    };
    let value = values::whole(call.keys, key, record.kind())?;
    let payload = dump::encode_for_most(&value).map_err(Failure::Engine)?;
    // The type before it, the version and the checksum behind it are no part of the value.
    let len = payload.len().saturating_sub(11);
    let place = drumlin_base::checksum::xxh3_64(key) >> 16;
    let encoding = generic::encoding(&record);
    let text = format!(
        "Value at:0x{place:012x} refcount:1 encoding:{encoding} serializedlength:{len} lru:0 lru_seconds_idle:0"
    );
    call.reply.simple(text.as_bytes());
    Ok(())
}

/// DEBUG POPULATE count [prefix] [bytes]: keys that are not there, with values of so many bytes.
pub(super) fn populate(call: &mut Call<'_, '_>) -> Outcome<()> {
    let number = |at: usize| u64::try_from(call.integer(at)?).map_err(|_| NOT_AN_INTEGER);
    let count = number(2)?.min(KEYS_MAX);
    let bytes = if call.len() == 5 { number(4)? } else { 0 };
    let bytes = usize::try_from(bytes).map_err(|_| NOT_AN_INTEGER)?;
    let prefix = if call.len() > 3 { call.arg(3) } else { b"key" };
    for at in 0..count {
        let key = [prefix, format!(":{at}").as_bytes()].concat();
        if call.keys.lookup(&key)?.is_some() {
            continue;
        }
        let mut value = format!("value:{at}").into_bytes();
        if bytes > 0 {
            value.resize(bytes, 0);
        }
        string::set(call.keys, &key, &value, None, Old::Is(None))?;
    }
    Ok(())
}

/// DEBUG RELOAD: all data is on disk, and nothing else would be read. Redis reads the file that it has written over what is there if it is
/// told to, and fails where that is not told to be merged.
pub(super) fn reload(call: &mut Call<'_, '_>) -> Outcome<()> {
    let words = ["merge", "noflush", "nosave"];
    if (2..call.len()).any(|at| !words.iter().any(|word| call.is(at, word))) {
        return Err(Failure::refused(
            "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.",
        ));
    }
    let has = |word: &str| (2..call.len()).any(|at| call.is(at, word));
    let is_over = has("noflush") && !has("merge");
    let functions = call.server()?.scripts.libraries.len();
    if is_over && (functions > 0 || !call.keys.is_empty()?) {
        return Err(Failure::refused(
            "ERR Error trying to load the RDB dump, check server logs.",
        ));
    }
    Ok(())
}
