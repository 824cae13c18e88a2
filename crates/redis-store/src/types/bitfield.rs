//! Integers of 1 to 64 bits within strings, the highest bit first.

use crate::events::EventClass;
use crate::failure::Outcome;
use crate::keyspace::{Keyspace, Old};
use crate::record::Record;
use crate::types::string;

/// The type of an integer and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Whether its highest bit is its sign.
    pub is_signed: bool,
    /// 1 to 64, or to 63 without a sign.
    pub bits: u32,
    /// The first bit.
    pub offset: u64,
}

/// How numbers that a field cannot hold are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// Their lowest bits are kept.
    #[default]
    Wrap,
    /// The nearest that it can hold is taken.
    Saturate,
    /// They are not written.
    Fail,
}

/// A step of BITFIELD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Tells the number.
    Get(Field),
    /// Writes a number, and tells the one before.
    Set(Field, i64, Overflow),
    /// Adds to the number, and tells the sum.
    Add(Field, i64, Overflow),
}

impl Step {
    /// The field that is written, if one is.
    pub fn written(&self) -> Option<Field> {
        match self {
            Self::Get(_) => None,
            Self::Set(field, ..) | Self::Add(field, ..) => Some(*field),
        }
    }
}

impl Field {
    /// The last bit.
    pub fn last_bit(&self) -> u64 {
        self.offset + u64::from(self.bits) - 1
    }

    fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// The number in `value`; bits behind its end are 0.
    pub fn read(&self, value: &[u8]) -> i64 {
        let start = self.offset / 8;
        let mut window = 0u128;
        for at in start..start + 9 {
            let byte = usize::try_from(at).ok().and_then(|at| value.get(at));
            window = window << 8 | u128::from(byte.copied().unwrap_or(0));
        }
        let behind = 72 - self.offset % 8 - u64::from(self.bits);
        self.number_of((window >> behind) as u64)
    }

    /// Writes the lowest bits of `number`, of which `value` has the place.
    fn write(&self, value: &mut [u8], number: i64) {
        let start = self.offset / 8;
        let behind = 72 - self.offset % 8 - u64::from(self.bits);
        let mask = u128::from(self.mask()) << behind;
        let bits = (u128::from(number as u64) << behind) & mask;
        for (shift, at) in (0..9u32).rev().zip(start..) {
            let place = usize::try_from(at).ok().and_then(|at| value.get_mut(at));
            if let Some(byte) = place {
                let (mask, bits) = ((mask >> (shift * 8)) as u8, (bits >> (shift * 8)) as u8);
                *byte = *byte & !mask | bits;
            }
        }
    }

    /// The number that the lowest bits are.
    fn number_of(&self, bits: u64) -> i64 {
        let bits = bits & self.mask();
        let is_negative = self.is_signed && bits >> (self.bits - 1) & 1 == 1;
        match is_negative {
            true => (bits | !self.mask()) as i64,
            false => bits as i64,
        }
    }

    fn bounds(&self) -> (i128, i128) {
        match self.is_signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    /// `number` plus `by` as the field can hold it; `None` where it cannot and must not.
    fn sum(&self, number: i64, by: i64, overflow: Overflow) -> Option<i64> {
        let (min, max) = self.bounds();
        let sum = i128::from(number) + i128::from(by);
        if (min..=max).contains(&sum) {
            return Some(sum as i64);
        }
        match overflow {
            Overflow::Wrap => Some(self.number_of(sum as u64)),
            Overflow::Saturate => Some(if sum < min { min } else { max } as i64),
            Overflow::Fail => None,
        }
    }

    /// A number to be written as the field can hold it. Redis takes the same ways as for sums, and those have two turns of
    /// their own: negative numbers are above an unsigned field, and so are those so far below a signed one of less than 64
    /// bits that their distance from the highest overflows.
    fn fitted(&self, number: i64, overflow: Overflow) -> Option<i64> {
        let (_, max) = self.bounds();
        let is_far = i64::try_from(max)
            .ok()
            .is_some_and(|max| max.checked_sub(number).is_none());
        let is_above = number < 0 && (!self.is_signed || (is_far && self.bits < 64));
        match is_above && overflow == Overflow::Saturate {
            true => Some(max as i64),
            false => self.sum(number, 0, overflow),
        }
    }

    fn put(&self, value: &mut [u8], step: &Step) -> Told {
        let before = self.read(value);
        let (new, tells_new) = match *step {
            Step::Get(_) => return (Some(before), false),
            Step::Set(_, number, overflow) => (self.fitted(number, overflow), false),
            Step::Add(_, by, overflow) => (self.sum(before, by, overflow), true),
        };
        let Some(new) = new else {
            return (None, false);
        };
        self.write(value, new);
        (Some(if tells_new { new } else { before }), new != before)
    }
}

/// The number that a step tells, and whether it changed another.
type Told = (Option<i64>, bool);

/// The numbers that steps which only read tell.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn read(keys: &Keyspace<'_>, key: &[u8], fields: &[Field]) -> Outcome<Vec<i64>> {
    let record = string::get(keys, key)?;
    let value = record.as_ref().map_or(&[][..], Record::payload);
    Ok(fields.iter().map(|field| field.read(value)).collect())
}

/// Runs steps one after the other; the number of each, `None` of one that failed. The string at `key` grows with zeros up to
/// the last bit that any of them may write, even if none does. Tells `setbit` of a change.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn run(keys: &mut Keyspace<'_>, key: &[u8], steps: &[Step]) -> Outcome<Vec<Option<i64>>> {
    let old = string::get(keys, key)?;
    let mut value = old.as_ref().map_or(&[][..], Record::payload).to_vec();
    let written = steps.iter().filter_map(Step::written);
    let bytes = written.map(|field| field.last_bit() / 8 + 1).max();
    let bytes = usize::try_from(bytes.unwrap_or(0)).unwrap_or(usize::MAX);
    let grows = value.len() < bytes;
    if grows {
        value.resize(bytes, 0);
    }
    let (mut told, mut changed) = (Vec::with_capacity(steps.len()), false);
    for step in steps {
        let (Step::Get(field) | Step::Set(field, ..) | Step::Add(field, ..)) = step;
        let (number, changes) = field.put(&mut value, step);
        let writes = step.written().is_some() && number.is_some();
        changed |= changes || (grows && writes);
        told.push(number);
    }
    // Redis keeps no string in a short form that it looked at to write.
    let is_raw = old
        .as_ref()
        .is_some_and(|old| string::encoding(old) == "raw");
    if grows || changed || !is_raw {
        let new = string::changed_in_place(old.as_ref(), &value);
        let mark = keys.overlay().mark();
        keys.put(key, Old::Is(old.as_ref()), new)?;
        if !changed {
            // Zeros that no step wrote, or another form: no change that anybody is told of.
            keys.overlay().forget_touched(mark);
        }
    }
    if changed {
        keys.event(EventClass::String, "setbit", key);
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(is_signed: bool, bits: u32, offset: u64) -> Field {
        Field {
            is_signed,
            bits,
            offset,
        }
    }

    /// Goal: each field reads what was written to it and leaves the bits around it. Method: every width at every offset of a
    /// byte, over all zeros and all ones.
    #[test]
    fn fields_hold_what_is_written_and_touch_nothing_else() {
        for (bits, offset) in (1..=64).flat_map(|bits| (0..16).map(move |offset| (bits, offset))) {
            for ground in [0u8, 0xff] {
                let field = field(true, bits, offset);
                for number in [0, -1, 1, 0x5555_5555_5555_5555, i64::MIN] {
                    let mut value = [ground; 10];
                    field.write(&mut value, number);
                    let wanted = field.number_of(number as u64);
                    assert_eq!(field.read(&value), wanted, "{field:?} of {number}");
                    for at in 0..80 {
                        let inside = (offset..=field.last_bit()).contains(&at);
                        let on = value[(at / 8) as usize] >> (7 - at % 8) & 1 == 1;
                        assert!(inside || on == (ground != 0), "{field:?} wrote bit {at}");
                    }
                }
            }
        }
        assert_eq!(field(false, 63, 3).read(&[0xff]), 0x1f << 58);
    }

    #[test]
    fn sums_wrap_saturate_or_fail() {
        let (small, byte, whole) = (field(true, 8, 0), field(false, 8, 0), field(true, 64, 0));
        for (of, number, by, wraps, saturates) in [
            (small, 127, 1, -128, 127),
            (small, -128, -1, 127, -128),
            (small, 0, 300, 44, 127),
            (byte, 255, 1, 0, 255),
            (byte, 0, -1, 255, 0),
            (whole, i64::MAX, 1, i64::MIN, i64::MAX),
            (whole, i64::MIN, -1, i64::MAX, i64::MIN),
        ] {
            assert_eq!(of.sum(number, by, Overflow::Wrap), Some(wraps));
            assert_eq!(of.sum(number, by, Overflow::Saturate), Some(saturates));
            assert_eq!(of.sum(number, by, Overflow::Fail), None);
        }
        assert_eq!(byte.fitted(-1, Overflow::Saturate), Some(255));
        assert_eq!(small.fitted(-1, Overflow::Fail), Some(-1));
    }
}
