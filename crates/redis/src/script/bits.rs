//! The library `bit`: arithmetic on 32 bits.

use mlua::{Lua, Result, Table, Value, Variadic};

use super::lua_error::{bad_argument, kind};

/// The low 32 bits of a number, or of a text that is one.
fn bits(lua: &Lua, args: &Variadic<Value>, at: usize, name: &str) -> Result<u32> {
    // Adding 2^52 + 2^51 leaves the integer, rounded to even, in the low bits of the double.
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    let value = args.get(at).cloned().unwrap_or(Value::Nil);
    let got = match args.get(at) {
        Some(value) => kind(value),
        None => "no value",
    };
    match lua.coerce_number(value)? {
        Some(number) => Ok((number + SHIFT).to_bits() as u32),
        None => {
            let text = format!("number expected, got {got}");
            Err(bad_argument(lua, at + 1, name, &text))
        }
    }
}

/// As Lua has it: signed.
fn signed(bits: u32) -> f64 {
    f64::from(bits.cast_signed())
}

type Fold = fn(u32, u32) -> u32;
type Map = fn(u32) -> u32;

/// The library.
pub(crate) fn library(lua: &Lua) -> Result<Table> {
    let table = lua.create_table()?;
    let folds: [(&str, Fold); 3] = [
        ("band", |one, other| one & other),
        ("bor", |one, other| one | other),
        ("bxor", |one, other| one ^ other),
    ];
    for (name, fold) in folds {
        let call = move |lua: &Lua, args: Variadic<Value>| {
            let mut all = bits(lua, &args, 0, name)?;
            for at in 1..args.len() {
                all = fold(all, bits(lua, &args, at, name)?);
            }
            Ok(signed(all))
        };
        table.raw_set(name, lua.create_function(call)?)?;
    }
    let shifts: [(&str, Fold); 5] = [
        ("lshift", |number, by| number << by),
        ("rshift", |number, by| number >> by),
        ("arshift", |number, by| {
            (number.cast_signed() >> by).cast_unsigned()
        }),
        ("rol", u32::rotate_left),
        ("ror", u32::rotate_right),
    ];
    for (name, shift) in shifts {
        let call = move |lua: &Lua, args: Variadic<Value>| {
            let number = bits(lua, &args, 0, name)?;
            Ok(signed(shift(number, bits(lua, &args, 1, name)? & 31)))
        };
        table.raw_set(name, lua.create_function(call)?)?;
    }
    let maps: [(&str, Map); 3] = [
        ("tobit", |number| number),
        ("bnot", |number| !number),
        ("bswap", u32::swap_bytes),
    ];
    for (name, map) in maps {
        let call =
            move |lua: &Lua, args: Variadic<Value>| Ok(signed(map(bits(lua, &args, 0, name)?)));
        table.raw_set(name, lua.create_function(call)?)?;
    }
    table.raw_set("tohex", lua.create_function(to_hex)?)?;
    Ok(table)
}

fn to_hex(lua: &Lua, args: Variadic<Value>) -> Result<String> {
    let number = bits(lua, &args, 0, "tohex")?;
    let digits = match args.len() {
        0 | 1 => 8,
        _ => bits(lua, &args, 1, "tohex")?.cast_signed(),
    };
    let text = match digits < 0 {
        true => format!("{number:08X}"),
        false => format!("{number:08x}"),
    };
    let left = 8 - digits.unsigned_abs().min(8) as usize;
    Ok(text.get(left..).unwrap_or_default().to_owned())
}
