//! BITFIELD: integers within strings.

use drumlin_redis_store::types::bitfield::{self, Field, Overflow, Step};
use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::integer;

use crate::call::{Call, SYNTAX};
use crate::command::{Command, Flags, ONE_KEY};

pub(crate) const COMMANDS: &[Command] = &[
    Command::new(
        "bitfield",
        -2,
        Flags::WRITE.and(Flags::DENYOOM),
        ONE_KEY,
        bitfield,
    ),
    Command::new(
        "bitfield_ro",
        -2,
        Flags::READONLY.and(Flags::FAST),
        ONE_KEY,
        bitfield_ro,
    ),
];

const NO_TYPE: Failure = Failure::refused(
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
);
const NO_OFFSET: Failure = Failure::refused("ERR bit offset is not an integer or out of range");
const NO_OVERFLOW: Failure = Failure::refused("ERR Invalid OVERFLOW type specified");
const ONLY_GET: Failure = Failure::refused("ERR BITFIELD_RO only supports the GET subcommand");

/// Arguments `at`, a type such as `u8`, and the next, the offset of a bit or, behind `#`, of a field.
fn field(call: &Call<'_, '_>, at: usize) -> Outcome<Field> {
    let (is_signed, bits_max, bits) = match call.arg(at) {
        [b'i', bits @ ..] => (true, 64, bits),
        [b'u', bits @ ..] => (false, 63, bits),
        _ => return Err(NO_TYPE),
    };
    let bits = integer(bits).and_then(|bits| u32::try_from(bits).ok());
    let bits = bits.filter(|bits| (1..=bits_max).contains(bits));
    let bits = bits.ok_or(NO_TYPE)?;
    let offset = match call.arg(at + 1) {
        // A product that overflows wraps, as Redis's does.
        [b'#', fields @ ..] => integer(fields).map(|fields| fields.wrapping_mul(i64::from(bits))),
        bits => integer(bits),
    };
    let offset = offset.and_then(|offset| u64::try_from(offset).ok());
    let most = call.limits.string_bytes_max as u64;
    let offset = offset.filter(|offset| offset / 8 < most);
    Ok(Field {
        is_signed,
        bits,
        offset: offset.ok_or(NO_OFFSET)?,
    })
}

fn steps(call: &Call<'_, '_>) -> Outcome<Vec<Step>> {
    let mut steps = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut at = 2;
    while at < call.len() {
        let remaining = call.len() - at - 1;
        if call.is(at, "overflow") && remaining >= 1 {
            overflow = match () {
                () if call.is(at + 1, "wrap") => Overflow::Wrap,
                () if call.is(at + 1, "sat") => Overflow::Saturate,
                () if call.is(at + 1, "fail") => Overflow::Fail,
                () => return Err(NO_OVERFLOW),
            };
            at += 2;
        } else if call.is(at, "get") && remaining >= 2 {
            steps.push(Step::Get(field(call, at + 1)?));
            at += 3;
        } else if call.is(at, "set") && remaining >= 3 {
            let field = field(call, at + 1)?;
            steps.push(Step::Set(field, call.integer(at + 3)?, overflow));
            at += 4;
        } else if call.is(at, "incrby") && remaining >= 3 {
            let field = field(call, at + 1)?;
            steps.push(Step::Add(field, call.integer(at + 3)?, overflow));
            at += 4;
        } else {
            return Err(SYNTAX);
        }
    }
    Ok(steps)
}

fn bitfield(call: &mut Call<'_, '_>) -> Outcome<()> {
    let steps = steps(call)?;
    if steps.iter().all(|step| step.written().is_none()) {
        return read(call, &steps);
    }
    let numbers = bitfield::run(call.keys, call.arg(1), &steps)?;
    call.reply.array(numbers.len());
    for number in numbers {
        match number {
            Some(number) => call.reply.integer(number),
            None => call.reply.null(),
        }
    }
    Ok(())
}

fn bitfield_ro(call: &mut Call<'_, '_>) -> Outcome<()> {
    let steps = steps(call)?;
    if steps.iter().any(|step| step.written().is_some()) {
        return Err(ONLY_GET);
    }
    read(call, &steps)
}

/// Replies what steps tell of which none writes.
fn read(call: &mut Call<'_, '_>, steps: &[Step]) -> Outcome<()> {
    let fields = steps.iter().filter_map(|step| match step {
        Step::Get(field) => Some(*field),
        Step::Set(..) | Step::Add(..) => None,
    });
    let fields: Vec<_> = fields.collect();
    let numbers = bitfield::read(call.keys, call.arg(1), &fields)?;
    call.reply.array(numbers.len());
    for number in numbers {
        call.reply.integer(number);
    }
    Ok(())
}
