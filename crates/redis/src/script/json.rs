//! The library `cjson`: JSON. Texts are written in Lua, with help from here, and read by `json_decode`.

use mlua::{Function, Lua, LuaString, Result, Table, Value, Variadic};

use super::json_decode::decode;
use super::lua_error::{SANDBOX, bad_argument, complain, kind};

const SOURCE: &str = include_str!("json.lua");

/// The library.
pub(crate) fn library(lua: &Lua) -> Result<Table> {
    let host = lua.create_table()?;
    host.raw_set("quote", lua.create_function(quote)?)?;
    host.raw_set("null", Value::NULL)?;
    host.raw_set("encoder", lua.create_function(encoder)?)?;
    host.raw_set("decoder", lua.create_function(decoder)?)?;
    let new: Function = lua.load(SOURCE).set_name(SANDBOX).call(host)?;
    new.call(())
}

/// A text in quotes, with escapes.
fn quote(lua: &Lua, text: LuaString) -> Result<LuaString> {
    let text = text.as_bytes();
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'"');
    for byte in text.iter() {
        match byte {
            b'"' | b'\\' | b'/' => out.extend([b'\\', *byte]),
            b'\x08' => out.extend(b"\\b"),
            b'\t' => out.extend(b"\\t"),
            b'\n' => out.extend(b"\\n"),
            b'\x0c' => out.extend(b"\\f"),
            b'\r' => out.extend(b"\\r"),
            0..0x20 | 0x7f => out.extend(format!("\\u{byte:04x}").bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
    lua.create_string(out)
}

/// `encode` over a function that gives a text, or nil and an error.
fn encoder(lua: &Lua, write: Function) -> Result<Function> {
    lua.create_function(move |lua, args: Variadic<Value>| {
        let [value] = &args[..] else {
            return Err(bad_argument(lua, 1, "encode", "expected 1 argument"));
        };
        let (text, failure): (Value, Option<String>) = write.call(value)?;
        match failure {
            Some(failure) => Err(complain(lua, &failure)),
            None => Ok(text),
        }
    })
}

/// `decode` over a function that gives its settings.
fn decoder(lua: &Lua, settings: Function) -> Result<Function> {
    lua.create_function(move |lua, args: Variadic<Value>| {
        let [value] = &args[..] else {
            return Err(bad_argument(lua, 1, "decode", "expected 1 argument"));
        };
        let got = format!("string expected, got {}", kind(value));
        let Some(text) = lua.coerce_string(value.clone())? else {
            return Err(bad_argument(lua, 1, "decode", &got));
        };
        let (depth_max, takes_all_numbers): (f64, bool) = settings.call(())?;
        decode(lua, &text.as_bytes(), depth_max as usize, takes_all_numbers)
    })
}
