//! Errors between Rust and Lua.
//!
//! A function of ours cannot raise a Lua value itself. It keeps the value, raises a mark, and whatever catches errors in
//! the sandbox takes the value for the mark. An error that ends the script is a mark that nothing takes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mlua::{Error, Lua, Result, Table, Value};

/// Where the value of a raised error is kept.
const RAISED: &str = "drumlin.raised";
/// The name of the sandbox's own code: errors are those of its callers.
pub(crate) const SANDBOX: &str = "=redis";
/// Calls in a row that are the sandbox's own.
const OWN_CALLS_MAX: usize = 4;

/// Whether the script that runs has to end, whatever it catches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending(Arc<AtomicBool>);

impl Ending {
    pub(crate) fn set(&self, ends: bool) {
        self.0.store(ends, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Raised;

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an error of a script")
    }
}

impl std::error::Error for Raised {}

/// The error that raises `value`.
pub(crate) fn raise(lua: &Lua, value: Value) -> Error {
    match lua.set_named_registry_value(RAISED, value) {
        Ok(()) => Error::external(Raised),
        Err(error) => error,
    }
}

/// The error of a function that its caller called wrongly, with the caller's line.
pub(crate) fn complain(lua: &Lua, text: &str) -> Error {
    let place = lua.inspect_stack(1, |debug| {
        let source = debug.source().short_src.map(|name| name.into_owned());
        Some(format!("{}:{}: ", source?, debug.current_line()?))
    });
    let text = format!("{}{text}", place.flatten().unwrap_or_default());
    match lua.create_string(text) {
        Ok(text) => raise(lua, Value::String(text)),
        Err(error) => error,
    }
}

/// The type of a value, as Lua names it.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "number",
        Value::LightUserData(_) => "userdata",
        other => other.type_name(),
    }
}

/// The error of argument `position` of the function `name`.
pub(crate) fn bad_argument(lua: &Lua, position: usize, name: &str, text: &str) -> Error {
    complain(
        lua,
        &format!("bad argument #{position} to '{name}' ({text})"),
    )
}

/// The table that is an error of `redis.pcall`: with a code in front, which is ERR where `text` has none.
pub(crate) fn error_table(lua: &Lua, text: &[u8]) -> Result<Table> {
    let text = match text.strip_prefix(b"-") {
        Some(coded) if coded.contains(&b' ') => coded.to_vec(),
        Some(bare) => [b"ERR ", bare].concat(),
        None => [b"ERR ", text].concat(),
    };
    let end = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
    let table = lua.create_table()?;
    let text = text.get(..end.map_or(0, |at| at + 1)).unwrap_or_default();
    table.raw_set("err", lua.create_string(text)?)?;
    Ok(table)
}

/// Raises [`error_table`].
pub(crate) fn raise_table(lua: &Lua, text: &str) -> Error {
    match error_table(lua, text.as_bytes()) {
        Ok(table) => raise(lua, Value::Table(table)),
        Err(error) => error,
    }
}

/// What was raised, for whoever catches it.
///
/// # Errors
/// Again, while the script has to end.
pub(crate) fn caught(lua: &Lua, value: Value, ending: &Ending) -> Result<Value> {
    if ending.is_set() {
        return Err(Error::external(Raised));
    }
    let Value::Error(error) = value else {
        return Ok(value);
    };
    if error.downcast_ref::<Raised>().is_some() {
        return lua.named_registry_value(RAISED);
    }
    let text = match root(&error) {
        Error::MemoryError(_) => "not enough memory".to_owned(),
        Error::StackError => "stack overflow".to_owned(),
        // Of a function of Lua that one of ours called; a trace of calls follows the first line.
        Error::RuntimeError(text) => text.lines().next().unwrap_or_default().to_owned(),
        other => other.to_string(),
    };
    Ok(Value::String(lua.create_string(text)?))
}

fn root(error: &Error) -> &Error {
    let mut error = error;
    while let Error::CallbackError { cause, .. } | Error::WithContext { cause, .. } = error {
        error = cause;
    }
    error
}

/// The handler of errors that nothing in the script catches: a table that says where.
pub(crate) fn handle(lua: &Lua, value: Value, ending: &Ending) -> Result<Value> {
    let value = caught(lua, value, ending)?;
    let table = match value {
        Value::Table(table) => table,
        other => {
            let text = lua.coerce_string(other.clone())?;
            let text = match &text {
                Some(text) => text.as_bytes().to_vec(),
                None => kind(&other).as_bytes().to_vec(),
            };
            error_table(lua, &text_of_error(&text))?
        }
    };
    if let Some((source, line)) = place(lua) {
        table.raw_set("source", source)?;
        table.raw_set("line", line)?;
    }
    Ok(Value::Table(table))
}

/// A text that begins with `-` would be taken for one with a code of its own.
fn text_of_error(text: &[u8]) -> Vec<u8> {
    match text.first() {
        Some(b'-') => [b"-ERR ", text].concat(),
        _ => text.to_vec(),
    }
}

/// The function that raised, or the one that called it where it is not the script's; and its line.
fn place(lua: &Lua) -> Option<(String, i64)> {
    let look = |level: usize| {
        lua.inspect_stack(level, |debug| {
            let source = debug.source();
            let name = source.source.map(|name| name.into_owned());
            let line = debug.current_line().map_or(-1, |line| line as i64);
            (source.what == "C", name.unwrap_or_default(), line)
        })
    };
    let mut level = 1;
    if look(level)?.0 {
        level += 1;
    }
    for _ in 0..OWN_CALLS_MAX {
        let (_, name, line) = look(level)?;
        if name != SANDBOX {
            return Some((name, line));
        }
        level += 1;
    }
    None
}
