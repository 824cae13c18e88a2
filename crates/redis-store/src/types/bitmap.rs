//! Bits of strings. Bit 0 is the highest of the first byte.

use std::ops::RangeInclusive;

use crate::events::EventClass;
use crate::failure::Outcome;
use crate::keyspace::{Keyspace, Old};
use crate::record::Record;
use crate::types::string;

/// The bit at `offset` of `value`; bits behind the end are 0.
pub fn bit(value: &[u8], offset: u64) -> bool {
    let byte = usize::try_from(offset / 8)
        .ok()
        .and_then(|at| value.get(at));
    byte.is_some_and(|byte| byte >> (7 - offset % 8) & 1 == 1)
}

/// Sets the bit at `offset` of the string at `key`, which grows with zeros if it is too short; the bit that was there.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn set(keys: &mut Keyspace<'_>, key: &[u8], offset: u32, on: bool) -> Outcome<bool> {
    let old = string::get(keys, key)?;
    let mut value = old.as_ref().map_or(&[][..], Record::payload).to_vec();
    let at = (offset / 8) as usize;
    if value.len() <= at {
        value.resize(at + 1, 0);
    }
    let before = bit(&value, u64::from(offset));
    let mask = 1 << (7 - offset % 8);
    if let Some(byte) = value.get_mut(at) {
        *byte = if on { *byte | mask } else { *byte & !mask };
    }
    let new = string::changed_in_place(old.as_ref(), &value);
    keys.put(key, Old::Is(old.as_ref()), new)?;
    keys.event(EventClass::String, "setbit", key);
    Ok(before)
}

/// How many of the bits in `range` are 1.
pub fn count(value: &[u8], range: RangeInclusive<u64>) -> u64 {
    let (first, last) = (*range.start(), *range.end());
    let mut count = 0;
    for (at, byte) in (0u64..).zip(value).skip((first / 8) as usize) {
        if at > last / 8 {
            break;
        }
        let mut byte = *byte;
        if at == first / 8 {
            byte &= 0xff >> (first % 8);
        }
        if at == last / 8 {
            byte &= 0xff << (7 - last % 8);
        }
        count += u64::from(byte.count_ones());
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: any range is counted right. Method: bit by bit.
    #[test]
    fn counts_are_those_of_single_bits() {
        let value = [0b1010_0110, 0xff, 0x00, 0x81];
        for first in 0..32 {
            for last in first..32 {
                let wanted = (first..=last).filter(|at| bit(&value, *at)).count();
                assert_eq!(
                    count(&value, first..=last),
                    wanted as u64,
                    "{first}..={last}"
                );
            }
        }
    }
}
