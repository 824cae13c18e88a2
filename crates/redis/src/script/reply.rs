//! Replies of commands as values of Lua, and values of Lua as replies.

use drumlin_resp::{Protocol, ReplyWriter, integer};
use mlua::{Lua, Result, Table, Value};

use super::limits::REPLY_DEPTH_MAX;
use super::lua_error::error_table;
use crate::double;

/// The value of a reply that a command wrote, and whether it is an error.
///
/// # Errors
/// When memory is out.
pub(crate) fn to_lua(lua: &Lua, reply: &[u8]) -> Result<(bool, Value)> {
    let mut reader = Reader { reply, at: 0 };
    let is_error = reply.first() == Some(&b'-');
    Ok((is_error, reader.value(lua)?))
}

struct Reader<'a> {
    reply: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// The kind and the line behind it.
    fn line(&mut self) -> (u8, &'a [u8]) {
        let rest = self.reply.get(self.at..).unwrap_or_default();
        let end = rest.windows(2).position(|pair| pair == b"\r\n");
        let end = end.unwrap_or(rest.len());
        self.at += end + 2;
        let line = rest.get(..end).unwrap_or_default();
        match line.split_first() {
            Some((kind, text)) => (*kind, text),
            None => (b'_', line),
        }
    }

    fn bytes(&mut self, len: usize) -> &'a [u8] {
        let bytes = self.reply.get(self.at..self.at + len).unwrap_or_default();
        self.at += len + 2;
        bytes
    }

    /// Recurses as deep as our own commands nest their replies.
    fn value(&mut self, lua: &Lua) -> Result<Value> {
        let (kind, line) = self.line();
        let count = integer(line).unwrap_or(-1);
        let len = usize::try_from(count).ok();
        let field = |name: &str, value: Value| -> Result<Value> {
            let table = lua.create_table()?;
            table.raw_set(name, value)?;
            Ok(Value::Table(table))
        };
        Ok(match (kind, len) {
            (b'+', _) => field("ok", Value::String(lua.create_string(line)?))?,
            (b'-', _) => {
                let table = error_table(lua, &[b"-", line].concat())?;
                table.raw_set("ignore_error_stats_update", true)?;
                Value::Table(table)
            }
            (b':', _) => Value::Number(count_or_number(line)),
            (b'$', Some(len)) => Value::String(lua.create_string(self.bytes(len))?),
            (b'*' | b'>', Some(len)) => {
                let table = lua.create_table_with_capacity(len, 0)?;
                for at in 1..=len {
                    table.raw_set(at, self.value(lua)?)?;
                }
                Value::Table(table)
            }
            (b'%', Some(len)) => {
                let table = lua.create_table()?;
                for _ in 0..len {
                    let key = self.value(lua)?;
                    table.raw_set(key, self.value(lua)?)?;
                }
                field("map", Value::Table(table))?
            }
            (b'~', Some(len)) => {
                let table = lua.create_table()?;
                for _ in 0..len {
                    table.raw_set(self.value(lua)?, true)?;
                }
                field("set", Value::Table(table))?
            }
            (b'|', Some(len)) => {
                for _ in 0..2 * len {
                    self.value(lua)?;
                }
                self.value(lua)?
            }
            (b'=', Some(len)) => {
                let text = self.bytes(len);
                let table = lua.create_table()?;
                let format = text.get(..3).unwrap_or_default();
                table.raw_set("format", lua.create_string(format)?)?;
                let text = text.get(4..).unwrap_or_default();
                table.raw_set("string", lua.create_string(text)?)?;
                field("verbatim_string", Value::Table(table))?
            }
            (b',', _) => {
                let text = std::str::from_utf8(line).unwrap_or_default();
                field("double", Value::Number(text.parse().unwrap_or(f64::NAN)))?
            }
            (b'(', _) => field("big_number", Value::String(lua.create_string(line)?))?,
            (b'#', _) => Value::Boolean(line == b"t"),
            (b'_', _) => Value::Nil,
            // No string and no array.
            _ => Value::Boolean(false),
        })
    }
}

fn count_or_number(line: &[u8]) -> f64 {
    integer(line).unwrap_or(0) as f64
}

/// Writes a value as a reply; `protocol` is the script's.
///
/// # Errors
/// When memory is out.
pub(crate) fn write(reply: &mut ReplyWriter, value: &Value, protocol: Protocol) -> Result<()> {
    write_at(reply, value, protocol, 0)
}

fn write_at(
    reply: &mut ReplyWriter,
    value: &Value,
    protocol: Protocol,
    depth: usize,
) -> Result<()> {
    match value {
        Value::String(text) => reply.bulk(&text.as_bytes()),
        Value::Boolean(value) if protocol == Protocol::Resp3 => reply.boolean(*value),
        Value::Boolean(true) => reply.integer(1),
        Value::Integer(number) => reply.integer(*number),
        Value::Number(number) => reply.integer(truncated(*number)),
        Value::Table(_) if depth >= REPLY_DEPTH_MAX => {
            reply.error(b"ERR reached lua stack limit");
        }
        Value::Table(table) => write_table(reply, table, protocol, depth + 1)?,
        _ => reply.null(),
    }
    Ok(())
}

/// As C casts on the machines of today: what does not fit is the least integer.
fn truncated(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match (-LIMIT..LIMIT).contains(&number) {
        true => number as i64,
        false => i64::MIN,
    }
}

fn spaces_for_line_ends(text: &[u8]) -> Vec<u8> {
    let line = |byte: &u8| match byte {
        b'\r' | b'\n' => b' ',
        other => *other,
    };
    text.iter().map(line).collect()
}

fn write_table(
    reply: &mut ReplyWriter,
    table: &Table,
    protocol: Protocol,
    depth: usize,
) -> Result<()> {
    if let Value::String(error) = table.raw_get("err")? {
        reply.error(&error.as_bytes());
        return Ok(());
    }
    if let Value::String(status) = table.raw_get("ok")? {
        let status = status.as_bytes();
        // A status ends at its first zero, as C reads it.
        let end = status.iter().position(|byte| *byte == 0);
        reply.simple(
            status
                .get(..end.unwrap_or(status.len()))
                .unwrap_or_default(),
        );
        return Ok(());
    }
    if let Value::Number(_) | Value::Integer(_) = table.raw_get("double")? {
        let number: f64 = table.raw_get("double")?;
        let text = match number.is_nan() {
            true => "nan".to_owned(),
            false => double::print(number),
        };
        reply.double(text.as_bytes());
        return Ok(());
    }
    if let Value::String(number) = table.raw_get("big_number")? {
        reply.big_number(&spaces_for_line_ends(&number.as_bytes()));
        return Ok(());
    }
    if let Value::Table(verbatim) = table.raw_get("verbatim_string")?
        && let Value::String(format) = verbatim.raw_get("format")?
        && let Value::String(text) = verbatim.raw_get("string")?
    {
        let mut name = [b' '; 3];
        for (to, from) in name.iter_mut().zip(format.as_bytes().iter()) {
            *to = *from;
        }
        reply.verbatim(name, &text.as_bytes());
        return Ok(());
    }
    if let Value::Table(map) = table.raw_get("map")? {
        let (mark, mut count) = (reply.begin_map(), 0);
        map.for_each(|key: Value, value: Value| {
            count += 1;
            write_at(reply, &key, protocol, depth)?;
            write_at(reply, &value, protocol, depth)
        })?;
        reply.finish(mark, count);
        return Ok(());
    }
    if let Value::Table(set) = table.raw_get("set")? {
        let (mark, mut count) = (reply.begin_set(), 0);
        set.for_each(|key: Value, _: Value| {
            count += 1;
            write_at(reply, &key, protocol, depth)
        })?;
        reply.finish(mark, count);
        return Ok(());
    }
    let (mark, mut count) = (reply.begin_array(), 0);
    loop {
        let value: Value = table.raw_get(count + 1)?;
        if value.is_nil() {
            break;
        }
        write_at(reply, &value, protocol, depth)?;
        count += 1;
    }
    reply.finish(mark, count);
    Ok(())
}
