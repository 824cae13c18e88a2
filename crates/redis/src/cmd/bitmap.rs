//! Commands of bitmaps.

use drumlin_redis_store::types::{bitmap, string};
use drumlin_redis_store::{Failure, Outcome, Record};
use drumlin_resp::integer;

use crate::call::{Call, SYNTAX};
use crate::command::{Command, Flags, ONE_KEY};

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("bitcount", -2, Flags::READONLY, ONE_KEY, bitcount),
    Command::new(
        "getbit",
        3,
        Flags::READONLY.and(Flags::FAST),
        ONE_KEY,
        getbit,
    ),
    Command::new(
        "setbit",
        4,
        Flags::WRITE.and(Flags::DENYOOM),
        ONE_KEY,
        setbit,
    ),
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
