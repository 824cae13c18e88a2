//! The library `cmsgpack`: MessagePack.

use mlua::{Lua, LuaString, Result, Table, Value, Variadic};

use super::lua_error::{bad_argument, complain, kind};

/// Tables within tables that are packed; deeper ones are nil.
const DEPTH_MAX: usize = 16;
/// Open arrays and maps while bytes are unpacked: each is held by a slot of a bounded stack.
const OPEN_MAX: usize = 1_000;
/// Values of one call of `unpack`.
const VALUES_MAX: usize = 7_900;

/// The library.
pub(crate) fn library(lua: &Lua) -> Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("pack", lua.create_function(pack)?)?;
    table.raw_set("unpack", lua.create_function(unpack)?)?;
    table.raw_set("unpack_one", lua.create_function(unpack_one)?)?;
    table.raw_set("unpack_limit", lua.create_function(unpack_limit)?)?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    Ok(table)
}

// Packing.

fn pack(lua: &Lua, args: Variadic<Value>) -> Result<LuaString> {
    if args.is_empty() {
        let text = "MessagePack pack needs input.";
        return Err(bad_argument(lua, 0, "pack", text));
    }
    let mut out = Vec::new();
    for value in args.iter() {
        push(&mut out, value, 0)?;
    }
    lua.create_string(out)
}

fn push(out: &mut Vec<u8>, value: &Value, depth: usize) -> Result<()> {
    match value {
        Value::Boolean(value) => out.push(if *value { 0xc3 } else { 0xc2 }),
        Value::Integer(number) => push_number(out, *number as f64),
        Value::Number(number) => push_number(out, *number),
        Value::String(text) => push_text(out, &text.as_bytes()),
        Value::Table(table) if depth < DEPTH_MAX => push_table(out, table, depth)?,
        _ => out.push(0xc0),
    }
    Ok(())
}

fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    let len = text.len();
    match len {
        0..32 => out.push(0xa0 | len as u8),
        32..=0xff => out.extend([0xd9, len as u8]),
        0x100..=0xffff => push_head(out, 0xda, &(len as u16).to_be_bytes()),
        _ => push_head(out, 0xdb, &(len as u32).to_be_bytes()),
    }
    out.extend_from_slice(text);
}

fn push_head(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    out.push(kind);
    out.extend_from_slice(bytes);
}

fn push_number(out: &mut Vec<u8>, number: f64) {
    // 2^63 does not fit, and the cast would make it fit.
    let is_integer = number == (number as i64) as f64 && number < 9_223_372_036_854_775_808.0;
    if is_integer {
        return push_integer(out, number as i64);
    }
    let short = number as f32;
    match f64::from(short) == number {
        true => push_head(out, 0xca, &short.to_be_bytes()),
        false => push_head(out, 0xcb, &number.to_be_bytes()),
    }
}

fn push_integer(out: &mut Vec<u8>, number: i64) {
    match number {
        -32..=127 => out.push(number as u8),
        128..=0xff => out.extend([0xcc, number as u8]),
        0x100..=0xffff => push_head(out, 0xcd, &(number as u16).to_be_bytes()),
        0x1_0000..=0xffff_ffff => push_head(out, 0xce, &(number as u32).to_be_bytes()),
        0x1_0000_0000.. => push_head(out, 0xcf, &number.to_be_bytes()),
        -128..=-33 => out.extend([0xd0, number as u8]),
        -32_768..=-129 => push_head(out, 0xd1, &(number as i16).to_be_bytes()),
        -2_147_483_648..=-32_769 => push_head(out, 0xd2, &(number as i32).to_be_bytes()),
        ..=-2_147_483_649 => push_head(out, 0xd3, &number.to_be_bytes()),
    }
}

fn push_count(out: &mut Vec<u8>, count: usize, kinds: [u8; 3]) {
    let [fixed, short, long] = kinds;
    match count {
        0..=15 => out.push(fixed | count as u8),
        16..=65_535 => push_head(out, short, &(count as u16).to_be_bytes()),
        _ => push_head(out, long, &(count as u32).to_be_bytes()),
    }
}

/// As an array if the keys are 1 to their number, else as a map.
fn push_table(out: &mut Vec<u8>, table: &Table, depth: usize) -> Result<()> {
    let (mut count, mut most, mut is_array) = (0_usize, 0.0_f64, true);
    table.for_each(|key: Value, _: Value| {
        let number = match key {
            Value::Integer(number) => number as f64,
            Value::Number(number) => number,
            _ => -1.0,
        };
        is_array &= number > 0.0 && number <= f64::from(i32::MAX) && number.fract() == 0.0;
        most = most.max(number);
        count += 1;
        Ok(())
    })?;
    if is_array && most == count as f64 {
        push_count(out, count, [0x90, 0xdc, 0xdd]);
        for at in 1..=count {
            push(out, &table.raw_get(at)?, depth + 1)?;
        }
        return Ok(());
    }
    push_count(out, count, [0x80, 0xde, 0xdf]);
    table.for_each(|key: Value, value: Value| {
        push(out, &key, depth + 1)?;
        push(out, &value, depth + 1)
    })
}

// Unpacking.

fn unpack(lua: &Lua, args: Variadic<Value>) -> Result<Variadic<Value>> {
    let bytes = bytes_of(lua, &args, "unpack")?;
    let bytes = bytes.as_bytes();
    let mut at = 0;
    Ok(read_all(lua, &bytes, &mut at, usize::MAX)?.into())
}

fn unpack_one(lua: &Lua, args: Variadic<Value>) -> Result<Variadic<Value>> {
    let offset = integer(lua, &args, 2, Some(0), "unpack_one")?;
    unpack_some(lua, &args, 1, offset, "unpack_one")
}

fn unpack_limit(lua: &Lua, args: Variadic<Value>) -> Result<Variadic<Value>> {
    let limit = integer(lua, &args, 2, None, "unpack_limit")?;
    let offset = integer(lua, &args, 3, Some(0), "unpack_limit")?;
    unpack_some(lua, &args, limit, offset, "unpack_limit")
}

fn unpack_some(
    lua: &Lua,
    args: &Variadic<Value>,
    limit: i64,
    offset: i64,
    call: &str,
) -> Result<Variadic<Value>> {
    let bytes = bytes_of(lua, args, call)?;
    let bytes = bytes.as_bytes();
    let len = bytes.len();
    let (Ok(limit), Ok(from)) = (usize::try_from(limit), usize::try_from(offset)) else {
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {len}.");
        return Err(complain(lua, &text));
    };
    if from > len {
        let text = format!("Start offset {from} greater than input length {len}.");
        return Err(complain(lua, &text));
    }
    if limit == 0 && from == 0 {
        let mut at = 0;
        return Ok(read_all(lua, &bytes, &mut at, usize::MAX)?.into());
    }
    let mut at = from;
    let mut values = read_all(lua, &bytes, &mut at, limit)?;
    let next = if at == len { -1.0 } else { at as f64 };
    values.insert(0, Value::Number(next));
    Ok(values.into())
}

fn bytes_of(lua: &Lua, args: &Variadic<Value>, call: &str) -> Result<LuaString> {
    let got = args.first().map_or("no value", kind);
    let wanted = format!("string expected, got {got}");
    let text = lua.coerce_string(args.first().cloned().unwrap_or(Value::Nil))?;
    text.ok_or_else(|| bad_argument(lua, 1, call, &wanted))
}

fn integer(
    lua: &Lua,
    args: &Variadic<Value>,
    at: usize,
    default: Option<i64>,
    call: &str,
) -> Result<i64> {
    let value = args.get(at - 1).cloned().unwrap_or(Value::Nil);
    if let (Value::Nil, Some(default)) = (&value, default) {
        return Ok(default);
    }
    let got = args.get(at - 1).map_or("no value", kind);
    let wanted = format!("number expected, got {got}");
    match lua.coerce_number(value)? {
        Some(number) => Ok(number as i64),
        None => Err(bad_argument(lua, at, call, &wanted)),
    }
}

fn read_all(lua: &Lua, bytes: &[u8], at: &mut usize, limit: usize) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    while *at < bytes.len() && values.len() < limit {
        if values.len() >= VALUES_MAX {
            let text = "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)";
            return Err(complain(lua, text));
        }
        values.push(read(lua, bytes, at)?);
    }
    Ok(values)
}

/// An array or a map that lacks some of its items.
struct Open {
    table: Table,
    left: usize,
    /// The next index; 0 in a map.
    index: usize,
    key: Option<Value>,
}

enum Item {
    Value(Value),
    Array(usize),
    Map(usize),
}

/// One value. Open tables stand on a stack: nothing recurses by what the bytes say.
fn read(lua: &Lua, bytes: &[u8], at: &mut usize) -> Result<Value> {
    let mut open: Vec<Open> = Vec::new();
    loop {
        let (left, index) = match next_item(lua, bytes, at)? {
            Item::Value(value) => match close(&mut open, value)? {
                Some(whole) => return Ok(whole),
                None => continue,
            },
            Item::Array(count) => (count, 1),
            Item::Map(count) => (count, 0),
        };
        let table = lua.create_table()?;
        if left > 0 {
            if open.len() >= OPEN_MAX {
                return Err(complain(lua, "too many nested values"));
            }
            open.push(Open {
                table,
                left,
                index,
                key: None,
            });
        } else if let Some(whole) = close(&mut open, Value::Table(table))? {
            return Ok(whole);
        }
    }
}

/// Puts a value into the table that is open, and that one, when it is complete, into the next; or it is the whole.
fn close(open: &mut Vec<Open>, value: Value) -> Result<Option<Value>> {
    let mut value = value;
    while let Some(top) = open.last_mut() {
        if top.index > 0 {
            top.table.raw_set(top.index, &value)?;
            top.index += 1;
            top.left -= 1;
        } else {
            match top.key.take() {
                None => top.key = Some(value),
                Some(key) => {
                    top.table.raw_set(key, value)?;
                    top.left -= 1;
                }
            }
        }
        if top.left > 0 {
            return Ok(None);
        }
        value = Value::Table(top.table.clone());
        open.pop();
    }
    Ok(Some(value))
}

fn next_item(lua: &Lua, bytes: &[u8], at: &mut usize) -> Result<Item> {
    let missing = || complain(lua, "Missing bytes in input.");
    let kind = *bytes.get(*at).ok_or_else(missing)?;
    *at += 1;
    let mut take = |count: usize| {
        let end = at.checked_add(count);
        let taken = end.and_then(|end| bytes.get(*at..end));
        *at = end.unwrap_or(*at);
        taken.ok_or_else(missing)
    };
    let mut unsigned = |count: usize| {
        take(count).map(|bytes| {
            bytes
                .iter()
                .fold(0_u64, |all, byte| all << 8 | u64::from(*byte))
        })
    };
    let number = |number: f64| Ok(Item::Value(Value::Number(number)));
    match kind {
        0..0x80 => number(f64::from(kind)),
        0xe0.. => number(f64::from(kind.cast_signed())),
        0xcc => number(unsigned(1)? as f64),
        0xcd => number(unsigned(2)? as f64),
        0xce => number(unsigned(4)? as f64),
        0xcf => number(unsigned(8)? as f64),
        0xd0 => number(f64::from((unsigned(1)? as u8).cast_signed())),
        0xd1 => number(f64::from((unsigned(2)? as u16).cast_signed())),
        0xd2 => number(f64::from((unsigned(4)? as u32).cast_signed())),
        0xd3 => number(unsigned(8)?.cast_signed() as f64),
        0xca => number(f64::from(f32::from_bits(unsigned(4)? as u32))),
        0xcb => number(f64::from_bits(unsigned(8)?)),
        0xc0 => Ok(Item::Value(Value::Nil)),
        0xc2 | 0xc3 => Ok(Item::Value(Value::Boolean(kind == 0xc3))),
        0xa0..0xc0 | 0xd9..=0xdb => {
            let len = match kind {
                0xd9 => unsigned(1)?,
                0xda => unsigned(2)?,
                0xdb => unsigned(4)?,
                short => u64::from(short & 0x1f),
            };
            let text = take(usize::try_from(len).unwrap_or(usize::MAX))?;
            Ok(Item::Value(Value::String(lua.create_string(text)?)))
        }
        0x90..0xa0 => Ok(Item::Array(usize::from(kind & 0xf))),
        0x80..0x90 => Ok(Item::Map(usize::from(kind & 0xf))),
        0xdc => Ok(Item::Array(unsigned(2)? as usize)),
        0xdd => Ok(Item::Array(unsigned(4)? as usize)),
        0xde => Ok(Item::Map(unsigned(2)? as usize)),
        0xdf => Ok(Item::Map(unsigned(4)? as usize)),
        _ => Err(complain(lua, "Bad data format in input.")),
    }
}
