//! Commands of bitmaps.

use drumlin_redis_store::types::bitmap::{self, Operation};
use drumlin_redis_store::types::string;
use drumlin_redis_store::{Failure, Outcome, Record};
use drumlin_resp::integer;

use crate::call::{Call, SYNTAX};
use crate::command::{Command, Flags, KeyPositions, ONE_KEY};

const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const ALL_BUT_FIRST: KeyPositions = KeyPositions {
    first: 2,
    last: -1,
    step: 1,
};

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("bitcount", -2, Flags::READONLY, ONE_KEY, bitcount),
    Command::new("bitop", -4, WRITE, ALL_BUT_FIRST, bitop),
    Command::new("bitpos", -3, Flags::READONLY, ONE_KEY, bitpos),
    Command::new(
        "getbit",
        3,
        Flags::READONLY.and(Flags::FAST),
        ONE_KEY,
        getbit,
    ),
    Command::new("setbit", 4, WRITE, ONE_KEY, setbit),
];

/// Argument `at` as the offset of a bit in a string that may be.
fn offset(call: &Call<'_, '_>, at: usize) -> Outcome<u32> {
    let number = integer(call.arg(at)).and_then(|number| u32::try_from(number).ok());
    let most = call.limits.string_bytes_max;
    let in_range = number.filter(|number| (number / 8) as usize <= most.saturating_sub(1));
    in_range.ok_or(Failure::refused(
        "ERR bit offset is not an integer or out of range",
    ))
}

fn setbit(call: &mut Call<'_, '_>) -> Outcome<()> {
    let offset = offset(call, 2)?;
    let on = match integer(call.arg(3)) {
        Some(0) => false,
        Some(1) => true,
        _ => {
            return Err(Failure::refused(
                "ERR bit is not an integer or out of range",
            ));
        }
    };
    let before = bitmap::set(call.keys, call.arg(1), offset, on)?;
    call.reply.integer(i64::from(before));
    Ok(())
}

fn getbit(call: &mut Call<'_, '_>) -> Outcome<()> {
    let offset = offset(call, 2)?;
    let found = string::get(call.keys, call.arg(1))?;
    let value = found.as_ref().map_or(&[][..], Record::payload);
    call.reply
        .integer(i64::from(bitmap::bit(value, u64::from(offset))));
    Ok(())
}

fn bitcount(call: &mut Call<'_, '_>) -> Outcome<()> {
    let Some(record) = string::get(call.keys, call.arg(1))? else {
        call.reply.integer(0);
        return Ok(());
    };
    let value = record.payload();
    let bits = value.len() as i64 * 8;
    let (first, last) = match call.len() {
        2 => (0, bits - 1),
        4 | 5 => {
            let (start, end) = (call.integer(2)?, call.integer(3)?);
            if start < 0 && end < 0 && start > end {
                call.reply.integer(0);
                return Ok(());
            }
            let unit = match () {
                () if call.len() == 4 || call.is(4, "byte") => 8,
                () if call.is(4, "bit") => 1,
                () => return Err(SYNTAX),
            };
            let len = bits / unit;
            let from_end = |at: i64| {
                if at < 0 {
                    at.saturating_add(len).max(0)
                } else {
                    at
                }
            };
            let (start, end) = (from_end(start), from_end(end).min(len - 1));
            match start > end {
                true => (1, 0),
                false => (start * unit, end * unit + unit - 1),
            }
        }
        _ => return Err(SYNTAX),
    };
    let count = match first <= last {
        true => bitmap::count(value, first.unsigned_abs()..=last.unsigned_abs()),
        false => 0,
    };
    call.reply.integer(i64::try_from(count).unwrap_or(i64::MAX));
    Ok(())
}

fn bitpos(call: &mut Call<'_, '_>) -> Outcome<()> {
    let on = match call.integer(2)? {
        0 => false,
        1 => true,
        _ => {
            return Err(Failure::refused("ERR The bit argument must be 1 or 0."));
        }
    };
    let Some(record) = string::get(call.keys, call.arg(1))? else {
        call.reply.integer(if on { -1 } else { 0 });
        return Ok(());
    };
    let value = record.payload();
    let (start, end, unit) = bitpos_range(call, value.len() as i64)?;
    if start > end {
        call.reply.integer(-1);
        return Ok(());
    }
    let (first, last) = (start * unit, end * unit + unit - 1);
    let found = bitmap::find(value, on, first.unsigned_abs()..=last.unsigned_abs());
    let found = found.and_then(|at| i64::try_from(at).ok());
    // Without an end, zeros follow the string.
    let behind = match !on && call.len() < 5 {
        true => last + 1,
        false => -1,
    };
    call.reply.integer(found.unwrap_or(behind));
    Ok(())
}

/// The first and the last unit of a range within so many bytes, none if the first is behind the last, and bits of a unit.
fn bitpos_range(call: &Call<'_, '_>, bytes: i64) -> Outcome<(i64, i64, i64)> {
    if call.len() > 6 {
        return Err(SYNTAX);
    }
    if call.len() == 3 {
        return Ok((0, bytes - 1, 8));
    }
    let start = call.integer(3)?;
    let unit = match call.len() {
        6 if call.is(5, "bit") => 1,
        6 if !call.is(5, "byte") => return Err(SYNTAX),
        _ => 8,
    };
    let end = match call.len() {
        4 => -1,
        _ => call.integer(4)?,
    };
    let len = bytes * 8 / unit;
    let from_end = |at: i64| match at < 0 {
        true => at.saturating_add(len).max(0),
        false => at,
    };
    Ok((from_end(start), from_end(end).min(len - 1), unit))
}

fn bitop(call: &mut Call<'_, '_>) -> Outcome<()> {
    let operation = match () {
        () if call.is(1, "and") => Operation::And,
        () if call.is(1, "or") => Operation::Or,
        () if call.is(1, "xor") => Operation::Xor,
        () if call.is(1, "not") => Operation::Not,
        () => return Err(SYNTAX),
    };
    if operation == Operation::Not && call.len() != 4 {
        return Err(Failure::refused(
            "ERR BITOP NOT must be called with a single source key.",
        ));
    }
    let bytes = bitmap::combine(call.keys, operation, call.arg(2), call.args.from(3).iter())?;
    call.reply.integer(i64::try_from(bytes).unwrap_or(i64::MAX));
    Ok(())
}
