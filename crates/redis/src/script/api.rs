//! What scripts call: the table `redis`, random numbers, and what the sandbox needs of us.

use drumlin_resp::{OwnedArgs, Protocol};
use mlua::{Function, Lua, LuaString, Result, Table, Value, Variadic};
use sha1::{Digest, Sha1};

use super::flags::ScriptFlags;
use super::limits::{LOG_LINE_BYTES_MAX, LOG_LINES_MAX};
use super::link::{Link, Registered, Request};
use super::lua_error::{
    bad_argument, caught, complain, error_table, handle, kind, raise, raise_table,
};
use crate::double;

/// Longest text that `string.rep` makes; the limit of memory is above it.
const TEXT_BYTES_MAX: usize = 512 << 20;

/// The SHA-1 of `text` in hexadecimal digits: the name of a script.
pub(crate) fn sha1_hex(text: &[u8]) -> String {
    Sha1::digest(text)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// What the sandbox gets besides the libraries.
pub(crate) fn host(lua: &Lua, link: &Link) -> Result<Table> {
    let host = lua.create_table()?;
    let ending = link.ending.clone();
    let catch = move |lua: &Lua, value: Value| caught(lua, value, &ending);
    host.raw_set("caught", lua.create_function(catch)?)?;
    host.raw_set("rep", lua.create_function(repeat)?)?;
    host.raw_set("compile", lua.create_function(compile)?)?;
    let of = link.clone();
    let random = move |lua: &Lua, args: Variadic<Value>| random(lua, &of, &args);
    host.raw_set("random", lua.create_function(random)?)?;
    let of = link.clone();
    let seed = move |lua: &Lua, args: Variadic<Value>| {
        if !of.runs(lua)? {
            let text = "math.randomseed can only be called inside a script invocation";
            return Err(complain(lua, text));
        }
        let seed = integer(lua, &args, 0, "randomseed")?;
        of.shared.lock().random.reseed(seed);
        Ok(())
    };
    host.raw_set("randomseed", lua.create_function(seed)?)?;
    host.raw_set("redis", redis(lua, link)?)?;
    host.raw_set("library", library(lua, link)?)?;
    Ok(host)
}

/// The handler of errors that end a script.
pub(crate) fn handler(lua: &Lua, link: &Link) -> Result<Function> {
    let ending = link.ending.clone();
    lua.create_function(move |lua: &Lua, value: Value| handle(lua, value, &ending))
}

fn redis(lua: &Lua, link: &Link) -> Result<Table> {
    let redis = lua.create_table()?;
    for (name, raises) in [("call", true), ("pcall", false)] {
        let link = link.clone();
        let call = move |lua: &Lua, args: Variadic<Value>| call(lua, &link, &args, raises);
        redis.raw_set(name, lua.create_function(call)?)?;
    }
    redis.raw_set("sha1hex", lua.create_function(sha1hex)?)?;
    let status = |lua: &Lua, args: Variadic<Value>| single_field(lua, &args, "ok");
    redis.raw_set("status_reply", lua.create_function(status)?)?;
    redis.raw_set("error_reply", lua.create_function(error_reply)?)?;
    let of = link.clone();
    let protocol = move |lua: &Lua, args: Variadic<Value>| set_protocol(lua, &of, &args);
    redis.raw_set("setresp", lua.create_function(protocol)?)?;
    let of = link.clone();
    let replicate = move |lua: &Lua, args: Variadic<Value>| set_replication(lua, &of, &args);
    redis.raw_set("set_repl", lua.create_function(replicate)?)?;
    let of = link.clone();
    let may_call = move |lua: &Lua, args: Variadic<Value>| may_call(lua, &of, &args);
    redis.raw_set("acl_check_cmd", lua.create_function(may_call)?)?;
    let yes = |_: &Lua, _: Variadic<Value>| Ok(true);
    redis.raw_set("replicate_commands", lua.create_function(yes)?)?;
    // There is no debugger.
    let no = |_: &Lua, _: Variadic<Value>| Ok(false);
    redis.raw_set("breakpoint", lua.create_function(no)?)?;
    let nothing = |_: &Lua, _: Variadic<Value>| Ok(());
    redis.raw_set("debug", lua.create_function(nothing)?)?;
    let numbers = [
        ("REPL_NONE", 0),
        ("REPL_AOF", 1),
        ("REPL_SLAVE", 2),
        ("REPL_REPLICA", 2),
        ("REPL_ALL", 3),
    ];
    for (name, number) in numbers {
        redis.raw_set(name, number)?;
    }
    add_log_and_version(lua, link, &redis)?;
    Ok(redis)
}

fn add_log_and_version(lua: &Lua, link: &Link, table: &Table) -> Result<()> {
    let of = link.clone();
    let log = move |lua: &Lua, args: Variadic<Value>| log(lua, &of, &args);
    table.raw_set("log", lua.create_function(log)?)?;
    let levels = ["LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"];
    for (level, name) in levels.into_iter().enumerate() {
        table.raw_set(name, level)?;
    }
    table.raw_set("REDIS_VERSION", "7.0.15")?;
    table.raw_set("REDIS_VERSION_NUM", 0x0007_000f)
}

// Commands.

/// Arguments of a command: texts, and numbers as they are printed.
fn words(args: &Variadic<Value>) -> std::result::Result<OwnedArgs, &'static str> {
    if args.is_empty() {
        return Err("Please specify at least one argument for this redis lib call");
    }
    let mut words: Vec<Vec<u8>> = Vec::with_capacity(args.len());
    for arg in args.iter() {
        words.push(match arg {
            Value::String(text) => text.as_bytes().to_vec(),
            Value::Integer(number) => double::print(*number as f64).into_bytes(),
            Value::Number(number) if number.is_nan() => match number.is_sign_negative() {
                true => b"-nan".to_vec(),
                false => b"nan".to_vec(),
            },
            Value::Number(number) => double::print(*number).into_bytes(),
            _ => return Err("Lua redis lib command arguments must be strings or integers"),
        });
    }
    Ok(words.iter().map(Vec::as_slice).collect())
}

fn call(lua: &Lua, link: &Link, args: &Variadic<Value>, raises: bool) -> Result<Value> {
    let fail = |text: &str| match raises {
        true => Err(raise_table(lua, text)),
        false => Ok(Value::Table(error_table(lua, text.as_bytes())?)),
    };
    if !link.runs(lua)? {
        let text = "redis.call/pcall can only be called inside a script invocation";
        return Err(raise_table(lua, text));
    }
    let words = match words(args) {
        Ok(words) => words,
        Err(text) => return fail(text),
    };
    match link.ask(lua, Request::Call(words))? {
        Some((true, error)) if raises => Err(raise(lua, error)),
        Some((_, value)) => Ok(value),
        None => fail("redis.call/pcall can only be called inside a script invocation"),
    }
}

fn may_call(lua: &Lua, link: &Link, args: &Variadic<Value>) -> Result<Value> {
    if !link.runs(lua)? {
        let text = "redis.acl_check_cmd can only be called inside a script invocation";
        return Err(raise_table(lua, text));
    }
    let words = words(args).map_err(|text| raise_table(lua, text))?;
    match link.ask(lua, Request::MayCall(words))? {
        Some((false, value)) => Ok(value),
        _ => {
            let text = "Invalid command passed to redis.acl_check_cmd()";
            Err(raise_table(lua, text))
        }
    }
}

fn set_protocol(lua: &Lua, link: &Link, args: &Variadic<Value>) -> Result<()> {
    if !link.runs(lua)? {
        let text = "redis.setresp can only be called inside a script invocation";
        return Err(raise_table(lua, text));
    }
    let [version] = &args[..] else {
        return Err(raise_table(lua, "redis.setresp() requires one argument."));
    };
    let protocol = match lua.coerce_number(version.clone())?.map(f64::trunc) {
        Some(2.0) => Protocol::Resp2,
        Some(3.0) => Protocol::Resp3,
        _ => return Err(raise_table(lua, "RESP version must be 2 or 3.")),
    };
    link.ask(lua, Request::SetProtocol(protocol))?;
    Ok(())
}

/// Nothing is replicated by commands; what Redis takes is taken.
fn set_replication(lua: &Lua, link: &Link, args: &Variadic<Value>) -> Result<()> {
    if !link.runs(lua)? {
        let text = "redis.set_repl can only be called inside a script invocation";
        return Err(raise_table(lua, text));
    }
    let [flags] = &args[..] else {
        let text = "redis.set_repl() requires two arguments.";
        return Err(raise_table(lua, text));
    };
    let flags = lua.coerce_number(flags.clone())?.unwrap_or(0.0) as i32;
    if flags & !3 != 0 {
        let text = "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
        return Err(raise_table(lua, text));
    }
    Ok(())
}

fn log(lua: &Lua, link: &Link, args: &Variadic<Value>) -> Result<()> {
    let Some((level, texts)) = args.split_first().filter(|(_, texts)| !texts.is_empty()) else {
        let text = "redis.log() requires two arguments or more.";
        return Err(raise_table(lua, text));
    };
    let Some(level) = lua.coerce_number(level.clone())? else {
        let text = "First argument must be a number (log level).";
        return Err(raise_table(lua, text));
    };
    if !(0.0..4.0).contains(&level) {
        return Err(raise_table(lua, "Invalid debug level."));
    }
    let mut words = Vec::new();
    for text in texts {
        // As Redis does it: what is no text is left out.
        if let Some(text) = lua.coerce_string(text.clone())? {
            words.push(String::from_utf8_lossy(&text.as_bytes()).into_owned());
        }
    }
    let line: String = words.join(" ").chars().take(LOG_LINE_BYTES_MAX).collect();
    let mut shared = link.shared.lock();
    match shared.said.len() < LOG_LINES_MAX {
        true => shared.said.push((level as usize, line)),
        false => shared.unsaid += 1,
    }
    Ok(())
}

// Values.

fn sha1hex(lua: &Lua, args: Variadic<Value>) -> Result<String> {
    let [value] = &args[..] else {
        return Err(raise_table(lua, "wrong number of arguments"));
    };
    let text = lua.coerce_string(value.clone())?;
    Ok(sha1_hex(
        &text.map_or_else(Vec::new, |it| it.as_bytes().to_vec()),
    ))
}

fn single_field(lua: &Lua, args: &Variadic<Value>, field: &str) -> Result<Table> {
    match &args[..] {
        [Value::String(text)] => {
            let table = lua.create_table()?;
            table.raw_set(field, text)?;
            Ok(table)
        }
        _ => error_table(lua, b"wrong number or type of arguments"),
    }
}

fn error_reply(lua: &Lua, args: Variadic<Value>) -> Result<Table> {
    match &args[..] {
        [Value::String(text)] => {
            let text = text.as_bytes();
            match text.starts_with(b"-") {
                true => error_table(lua, &text),
                false => error_table(lua, &[b"-", &text[..]].concat()),
            }
        }
        _ => error_table(lua, b"wrong number or type of arguments"),
    }
}

/// Argument `at`, from 0 on, as an integer of 32 bits.
fn integer(lua: &Lua, args: &Variadic<Value>, at: usize, name: &str) -> Result<i32> {
    let got = args.get(at).map_or("no value", kind);
    let wanted = format!("number expected, got {got}");
    let number = lua.coerce_number(args.get(at).cloned().unwrap_or(Value::Nil))?;
    let number = number.ok_or_else(|| bad_argument(lua, at + 1, name, &wanted))?;
    Ok(number as i64 as i32)
}

fn random(lua: &Lua, link: &Link, args: &Variadic<Value>) -> Result<f64> {
    if !link.runs(lua)? {
        let text = "math.random can only be called inside a script invocation";
        return Err(complain(lua, text));
    }
    let fraction = link.shared.lock().random.fraction();
    let (low, high, at) = match args.len() {
        0 => return Ok(fraction),
        1 => (1, integer(lua, args, 0, "random")?, 1),
        2 => {
            let low = integer(lua, args, 0, "random")?;
            (low, integer(lua, args, 1, "random")?, 2)
        }
        _ => return Err(complain(lua, "wrong number of arguments")),
    };
    if low > high {
        return Err(bad_argument(lua, at, "random", "interval is empty"));
    }
    let span = high.wrapping_sub(low).wrapping_add(1);
    Ok((fraction * f64::from(span)).floor() + f64::from(low))
}

fn repeat(lua: &Lua, args: Variadic<Value>) -> Result<LuaString> {
    let got = args.first().map_or("no value", kind);
    let wanted = format!("string expected, got {got}");
    let text = lua.coerce_string(args.first().cloned().unwrap_or(Value::Nil))?;
    let text = text.ok_or_else(|| bad_argument(lua, 1, "rep", &wanted))?;
    let times = usize::try_from(integer(lua, &args, 1, "rep")?).unwrap_or(0);
    let text = text.as_bytes();
    match text.len().checked_mul(times) {
        Some(bytes)
            if bytes <= TEXT_BYTES_MAX
                && bytes + lua.used_memory() <= super::limits::MEMORY_BYTES_MAX =>
        {
            lua.create_string(text.repeat(times))
        }
        _ => Err(complain(lua, "not enough memory")),
    }
}

/// `loadstring`: the function, or nil and an error. Bytecode is refused: nothing checks it.
fn compile(lua: &Lua, (text, name): (LuaString, LuaString)) -> Result<(Value, Value)> {
    let name = String::from_utf8_lossy(&name.as_bytes()).replace('\0', " ");
    let text = text.as_bytes().to_vec();
    let chunk = lua
        .load(text)
        .set_name(name)
        .set_mode(mlua::chunk::ChunkMode::Text);
    match chunk.into_function() {
        Ok(function) => Ok((Value::Function(function), Value::Nil)),
        Err(error) => {
            let text = lua.create_string(message(&error))?;
            Ok((Value::Nil, Value::String(text)))
        }
    }
}

/// The text of an error of the compiler.
pub(crate) fn message(error: &mlua::Error) -> String {
    match error {
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        mlua::Error::MemoryError(_) => "not enough memory".into(),
        other => other.to_string(),
    }
}

// Libraries.

fn library(lua: &Lua, link: &Link) -> Result<Table> {
    let redis = lua.create_table()?;
    let of = link.clone();
    let register = move |lua: &Lua, args: Variadic<Value>| {
        if of.shared.lock().loading.is_none() {
            let text = "redis.register_function can only be called on FUNCTION LOAD command";
            return Err(raise_table(lua, text));
        }
        let registered = registered(lua, &args)?;
        if !super::flags::is_name(&registered.name) {
            return Err(raise_table(lua, super::flags::BAD_NAME));
        }
        let mut shared = of.shared.lock();
        let functions = shared.loading.get_or_insert_default();
        if functions.iter().any(|known| known.name == registered.name) {
            drop(shared);
            let text = "Function already exists in the library";
            return Err(raise_table(lua, text));
        }
        functions.push(registered);
        Ok(())
    };
    redis.raw_set("register_function", lua.create_function(register)?)?;
    add_log_and_version(lua, link, &redis)?;
    Ok(redis)
}

fn registered(lua: &Lua, args: &Variadic<Value>) -> Result<Registered> {
    let fail = |text: &str| Err(raise_table(lua, text));
    match &args[..] {
        [Value::Table(named)] => registered_by_names(lua, named),
        [_] => fail(
            "calling redis.register_function with a single argument is only applicable to Lua table (representing \
             named arguments).",
        ),
        [name, call] => {
            let Some(name) = lua.coerce_string(name.clone())? else {
                return fail("first argument to redis.register_function must be a string");
            };
            let Value::Function(call) = call else {
                return fail("second argument to redis.register_function must be a function");
            };
            Ok(Registered {
                name: name.as_bytes().to_vec(),
                description: None,
                flags: ScriptFlags::default(),
                call: call.clone(),
            })
        }
        _ => fail("wrong number of arguments to redis.register_function"),
    }
}

fn registered_by_names(lua: &Lua, named: &Table) -> Result<Registered> {
    let fail = |text: &str| Err(raise_table(lua, text));
    let (mut name, mut description, mut call) = (None, None, None);
    let mut flags = ScriptFlags::default();
    for pair in named.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let Some(key) = lua.coerce_string(key)? else {
            return fail("named argument key given to redis.register_function is not a string");
        };
        let text = |value: Value| -> Result<Option<Vec<u8>>> {
            let text = lua.coerce_string(value)?;
            Ok(text.map(|text| text.as_bytes().to_vec()))
        };
        match key.as_bytes().to_ascii_lowercase().as_slice() {
            b"function_name" => match text(value)? {
                Some(text) => name = Some(text),
                None => {
                    return fail(
                        "function_name argument given to redis.register_function must be a string",
                    );
                }
            },
            b"description" => match text(value)? {
                Some(text) => description = Some(text),
                None => {
                    return fail(
                        "description argument given to redis.register_function must be a string",
                    );
                }
            },
            b"callback" => match value {
                Value::Function(function) => call = Some(function),
                _ => {
                    return fail(
                        "callback argument given to redis.register_function must be a function",
                    );
                }
            },
            b"flags" => match value {
                Value::Table(list) => flags = listed_flags(lua, &list)?,
                _ => {
                    return fail(
                        "flags argument to redis.register_function must be a table representing function flags",
                    );
                }
            },
            _ => return fail("unknown argument given to redis.register_function"),
        }
    }
    let Some(name) = name else {
        return fail("redis.register_function must get a function name argument");
    };
    let Some(call) = call else {
        return fail("redis.register_function must get a callback argument");
    };
    Ok(Registered {
        name,
        description,
        flags,
        call,
    })
}

fn listed_flags(lua: &Lua, list: &Table) -> Result<ScriptFlags> {
    let mut flags = ScriptFlags::default();
    for at in 1.. {
        let value: Value = list.get(at)?;
        if value.is_nil() {
            break;
        }
        let name = lua.coerce_string(value)?;
        let name = name.map(|name| name.as_bytes().to_ascii_lowercase());
        match name.and_then(|name| ScriptFlags::named(&name)) {
            Some(flag) => flags = flags.and(flag),
            None => return Err(raise_table(lua, "unknown flag given")),
        }
    }
    Ok(flags)
}
