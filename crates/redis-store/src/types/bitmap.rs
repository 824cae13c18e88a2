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
    let grows = old
        .as_ref()
        .is_none_or(|old| old.payload().len() < value.len());
    let changes = before != on || grows;
    if !changes
        && old
            .as_ref()
            .is_some_and(|old| string::encoding(old) == "raw")
    {
        return Ok(before);
    }
    let mask = 1 << (7 - offset % 8);
    if let Some(byte) = value.get_mut(at) {
        *byte = if on { *byte | mask } else { *byte & !mask };
    }
    let new = string::changed_in_place(old.as_ref(), &value);
    match changes {
        true => {
            keys.put(key, Old::Is(old.as_ref()), new)?;
            keys.event(EventClass::String, "setbit", key);
        }
        // Only its form is another.
        false => keys.put_unseen(key, old.as_ref(), new),
    }
    Ok(before)
}

/// The offset of the first bit in `range`, which `value` has all of, that is 1 if `on`, else 0.
pub fn find(value: &[u8], on: bool, range: RangeInclusive<u64>) -> Option<u64> {
    let (first, last) = (*range.start(), *range.end());
    // Bits that are looked for are 1 in these.
    let flip = if on { 0 } else { 0xff };
    let in_range = |at: u64, byte: u8| {
        let mut byte = byte ^ flip;
        if at == first / 8 {
            byte &= 0xff >> (first % 8);
        }
        if at == last / 8 {
            byte &= 0xff << (7 - last % 8);
        }
        byte
    };
    let start = usize::try_from(first / 8).ok()?;
    let mut bytes = (first / 8..=last / 8).zip(value.get(start..)?);
    let found = bytes.find(|(at, byte)| in_range(*at, **byte) != 0);
    found.map(|(at, byte)| at * 8 + u64::from(in_range(at, *byte).leading_zeros()))
}

/// How the bits of strings come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// 1 where all have 1.
    And,
    /// 1 where any has 1.
    Or,
    /// 1 where an odd number has 1.
    Xor,
    /// 1 where the first has 0.
    Not,
}

/// Stores what `operation` makes of the strings at `from` at the key `to`, whatever it had; how many bytes that are. Shorter
/// ones count as if zeros followed. Where all are empty, the key is deleted.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn combine<'k>(
    keys: &mut Keyspace<'_>,
    operation: Operation,
    to: &[u8],
    from: impl IntoIterator<Item = &'k [u8]>,
) -> Outcome<u64> {
    let records: Vec<_> = from
        .into_iter()
        .map(|key| string::get(keys, key))
        .collect::<Outcome<_>>()?;
    let mut sources = records
        .iter()
        .map(|record| record.as_ref().map_or(&[][..], Record::payload));
    let mut value = sources.next().unwrap_or_default().to_vec();
    if operation == Operation::Not {
        value.iter_mut().for_each(|byte| *byte = !*byte);
    }
    for source in sources {
        value.resize(value.len().max(source.len()), 0);
        let (shared, rest) = value.split_at_mut(source.len());
        let pairs = shared.iter_mut().zip(source);
        match operation {
            Operation::And => {
                pairs.for_each(|(byte, other)| *byte &= other);
                rest.fill(0);
            }
            Operation::Or => pairs.for_each(|(byte, other)| *byte |= other),
            Operation::Xor => pairs.for_each(|(byte, other)| *byte ^= other),
            Operation::Not => {}
        }
    }
    if !value.is_empty() {
        keys.put(to, Old::Unknown, string::changed_in_place(None, &value))?;
        keys.event(EventClass::String, "set", to);
    } else if let Some(record) = keys.lookup(to)? {
        keys.remove(to, &record);
        keys.event(EventClass::Generic, "del", to);
    }
    Ok(value.len() as u64)
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
    /// Goal: the first bit of a range is found. Method: bit by bit.
    #[test]
    fn bits_are_found_where_single_ones_are() {
        for value in [
            [0b1010_0110, 0xff, 0x00, 0x81],
            [0; 4],
            [0xff; 4],
            [0, 0xff, 0xff, 0],
        ] {
            for first in 0..32 {
                for last in first..32 {
                    for on in [false, true] {
                        let wanted = (first..=last).find(|at| bit(&value, *at) == on);
                        let found = find(&value, on, first..=last);
                        assert_eq!(found, wanted, "{on} in {first}..={last} of {value:?}");
                    }
                }
            }
        }
    }
}
