//! The library `struct`: numbers and texts as bytes in a given layout.

use mlua::{Lua, LuaString, Result, Table, Value, Variadic};

use super::lua_error::{bad_argument, complain, kind};

const INTEGER_BYTES_MAX: usize = 32;
/// What `!` aligns to without a number.
const ALIGNMENT: usize = 8;
/// Values that one call of `unpack` gives: as many as a function may return.
const VALUES_MAX: usize = 7_900;

/// The options of a format, one after the other.
struct Format<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
    is_little: bool,
    alignment: usize,
}

/// One option: its letter, the bytes it takes, and the bytes before it that align it.
struct Item {
    letter: u8,
    size: usize,
    padding: usize,
}

impl<'a> Format<'a> {
    fn new(lua: &'a Lua, text: &'a [u8]) -> Self {
        // As in C, a format ends at its first zero.
        let end = text.iter().position(|byte| *byte == 0);
        Self {
            lua,
            rest: text.get(..end.unwrap_or(text.len())).unwrap_or_default(),
            is_little: true,
            alignment: 1,
        }
    }

    fn number(&mut self, default: usize) -> Result<usize> {
        if !self.rest.first().is_some_and(u8::is_ascii_digit) {
            return Ok(default);
        }
        let mut number = 0_i32;
        while let Some((digit, rest)) = self
            .rest
            .split_first()
            .filter(|(it, _)| it.is_ascii_digit())
        {
            let next = number
                .checked_mul(10)
                .and_then(|it| it.checked_add(i32::from(digit - b'0')));
            number = next.ok_or_else(|| complain(self.lua, "integral size overflow"))?;
            self.rest = rest;
        }
        Ok(usize::try_from(number).unwrap_or(0))
    }

    fn size_of(&mut self, letter: u8) -> Result<usize> {
        Ok(match letter {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'f' => 4,
            b'l' | b'L' | b'T' | b'd' => 8,
            b'c' => self.number(1)?,
            b'i' | b'I' => {
                let size = self.number(4)?;
                if size > INTEGER_BYTES_MAX {
                    let text =
                        format!("integral size {size} is larger than limit of {INTEGER_BYTES_MAX}");
                    return Err(complain(self.lua, &text));
                }
                size
            }
            _ => 0,
        })
    }

    fn padding(&self, at: usize, letter: u8, size: usize) -> usize {
        if size == 0 || letter == b'c' {
            return 0;
        }
        let size = size.min(self.alignment);
        size.wrapping_sub(at & (size - 1)) & (size - 1)
    }

    /// The next option that takes or gives a value or bytes; those that steer are obeyed.
    fn next(&mut self, at: usize, call: &str) -> Result<Option<Item>> {
        while let Some((letter, rest)) = self.rest.split_first() {
            self.rest = rest;
            let letter = *letter;
            let size = self.size_of(letter)?;
            match letter {
                b' ' => {}
                b'>' => self.is_little = false,
                b'<' => self.is_little = true,
                b'!' => {
                    let alignment = self.number(ALIGNMENT)?;
                    if !alignment.is_power_of_two() {
                        let text = format!("alignment {alignment} is not a power of 2");
                        return Err(complain(self.lua, &text));
                    }
                    self.alignment = alignment;
                }
                _ if b"bBhHlLTiIxfdcs".contains(&letter) => {
                    let padding = self.padding(at, letter, size);
                    return Ok(Some(Item {
                        letter,
                        size,
                        padding,
                    }));
                }
                _ => {
                    let text = format!("invalid format option '{}'", char::from(letter));
                    return Err(bad_argument(self.lua, 1, call, &text));
                }
            }
        }
        Ok(None)
    }
}

/// The library.
pub(crate) fn library(lua: &Lua) -> Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("pack", lua.create_function(pack)?)?;
    table.raw_set("unpack", lua.create_function(unpack)?)?;
    table.raw_set("size", lua.create_function(size)?)?;
    Ok(table)
}

/// Argument `at`, from 1 on, as a text.
fn text(lua: &Lua, args: &Variadic<Value>, at: usize, call: &str) -> Result<LuaString> {
    let value = args.get(at - 1).cloned().unwrap_or(Value::Nil);
    let got = args.get(at - 1).map_or("no value", kind);
    let wanted = format!("string expected, got {got}");
    let text = lua.coerce_string(value)?;
    text.ok_or_else(|| bad_argument(lua, at, call, &wanted))
}

fn number(lua: &Lua, args: &Variadic<Value>, at: usize, call: &str) -> Result<f64> {
    let value = args.get(at - 1).cloned().unwrap_or(Value::Nil);
    let got = args.get(at - 1).map_or("no value", kind);
    let wanted = format!("number expected, got {got}");
    let number = lua.coerce_number(value)?;
    number.ok_or_else(|| bad_argument(lua, at, call, &wanted))
}

fn pack(lua: &Lua, args: Variadic<Value>) -> Result<LuaString> {
    const CALL: &str = "pack";
    let format = text(lua, &args, 1, CALL)?;
    let format = format.as_bytes();
    let mut format = Format::new(lua, &format);
    let mut out: Vec<u8> = Vec::new();
    let mut at = 2;
    while let Some(item) = format.next(out.len(), CALL)? {
        out.resize(out.len() + item.padding, 0);
        match item.letter {
            b'x' => out.push(0),
            b'f' => {
                let bytes = (number(lua, &args, at, CALL)? as f32).to_le_bytes();
                push_ordered(&mut out, &bytes, format.is_little);
                at += 1;
            }
            b'd' => {
                let bytes = number(lua, &args, at, CALL)?.to_le_bytes();
                push_ordered(&mut out, &bytes, format.is_little);
                at += 1;
            }
            b'c' | b's' => {
                let text = text(lua, &args, at, CALL)?;
                let text = text.as_bytes();
                at += 1;
                let wanted = if item.size == 0 {
                    text.len()
                } else {
                    item.size
                };
                let Some(taken) = text.get(..wanted) else {
                    return Err(bad_argument(lua, at, CALL, "string too short"));
                };
                out.extend_from_slice(taken);
                if item.letter == b's' {
                    out.push(0);
                }
            }
            _ => {
                let number = number(lua, &args, at, CALL)?;
                at += 1;
                let value = match number < 0.0 {
                    true => (number as i64).cast_unsigned(),
                    false => number as u64,
                };
                let mut bytes = [0; INTEGER_BYTES_MAX];
                if let Some(low) = bytes.get_mut(..8) {
                    low.copy_from_slice(&value.to_le_bytes());
                }
                let bytes = bytes.get(..item.size).unwrap_or_default();
                push_ordered(&mut out, bytes, format.is_little);
            }
        }
    }
    lua.create_string(out)
}

fn push_ordered(out: &mut Vec<u8>, little: &[u8], is_little: bool) {
    match is_little {
        true => out.extend_from_slice(little),
        false => out.extend(little.iter().rev()),
    }
}

fn unpack(lua: &Lua, args: Variadic<Value>) -> Result<Variadic<Value>> {
    const CALL: &str = "unpack";
    let format = text(lua, &args, 1, CALL)?;
    let format = format.as_bytes();
    let data = text(lua, &args, 2, CALL)?;
    let data = data.as_bytes();
    let from = match args.get(2) {
        None | Some(Value::Nil) => 1.0,
        Some(_) => number(lua, &args, 3, CALL)?,
    };
    if from < 1.0 {
        return Err(bad_argument(lua, 3, CALL, "offset must be 1 or greater"));
    }
    let mut at = from as usize - 1;
    let mut format = Format::new(lua, &format);
    let mut values: Vec<Value> = Vec::new();
    let short = || bad_argument(lua, 2, CALL, "data string too short");
    while let Some(item) = format.next(at, CALL)? {
        at += item.padding;
        let mut size = item.size;
        if item.letter == b'c' && size == 0 {
            let last = values.pop().map(|value| lua.coerce_number(value));
            let last = last.transpose()?.flatten();
            let last = last.ok_or_else(|| complain(lua, "format 'c0' needs a previous size"))?;
            size = last as usize;
        }
        let end = at.checked_add(size).ok_or_else(short)?;
        let bytes = data.get(at..end).ok_or_else(short)?;
        if values.len() >= VALUES_MAX {
            return Err(complain(lua, "stack overflow (too many results)"));
        }
        match item.letter {
            b'x' => {}
            b's' => {
                let rest = data.get(at..).unwrap_or_default();
                let end = rest.iter().position(|byte| *byte == 0);
                let end = end.ok_or_else(|| complain(lua, "unfinished string in data"))?;
                let text = rest.get(..end).unwrap_or_default();
                values.push(Value::String(lua.create_string(text)?));
                size = end + 1;
            }
            b'c' => values.push(Value::String(lua.create_string(bytes)?)),
            letter => values.push(Value::Number(read_number(bytes, letter, format.is_little))),
        }
        at += size;
    }
    values.push(Value::Number((at + 1) as f64));
    Ok(values.into())
}

fn read_number(bytes: &[u8], letter: u8, is_little: bool) -> f64 {
    let mut low = [0; 8];
    let ordered: Vec<u8> = match is_little {
        true => bytes.to_vec(),
        false => bytes.iter().rev().copied().collect(),
    };
    let kept = ordered.len().min(8);
    if let (Some(to), Some(from)) = (low.get_mut(..kept), ordered.get(..kept)) {
        to.copy_from_slice(from);
    }
    let value = u64::from_le_bytes(low);
    match letter {
        b'f' => f64::from(f32::from_bits(value as u32)),
        b'd' => f64::from_bits(value),
        _ if letter.is_ascii_lowercase() => {
            let unused = 64 - 8 * kept.clamp(1, 8) as u32;
            (value << unused).cast_signed().wrapping_shr(unused) as f64
        }
        _ => value as f64,
    }
}

fn size(lua: &Lua, args: Variadic<Value>) -> Result<f64> {
    const CALL: &str = "size";
    let format = text(lua, &args, 1, CALL)?;
    let format = format.as_bytes();
    let mut format = Format::new(lua, &format);
    let mut at = 0_usize;
    while let Some(item) = format.next(at, CALL)? {
        if item.letter == b's' {
            return Err(bad_argument(lua, 1, CALL, "option 's' has no fixed size"));
        }
        if item.letter == b'c' && item.size == 0 {
            return Err(bad_argument(lua, 1, CALL, "option 'c0' has no fixed size"));
        }
        at = at.saturating_add(item.padding).saturating_add(item.size);
    }
    Ok(at as f64)
}
