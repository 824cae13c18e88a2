//! Intsets: the small sets whose members are all integers.
//!
//! `width u32 (2, 4 or 8) · count u32 · integers of that width, ascending`, all little-endian.

use drumlin_base::{Error, Result};

use crate::listpack::Writer;

const HEADER_BYTES: usize = 8;

/// Calls `visit` with each member, in order.
///
/// # Errors
/// Corruption where the width or the count does not fit, and where the members do not ascend.
pub fn walk(intset: &[u8], mut visit: impl FnMut(i64)) -> Result<()> {
    let damage = || Error::corruption("an intset is damaged");
    let (header, body) = intset
        .split_first_chunk::<HEADER_BYTES>()
        .ok_or_else(damage)?;
    let [a, b, c, d, e, f, g, h] = *header;
    let width = u32::from_le_bytes([a, b, c, d]) as usize;
    let count = u32::from_le_bytes([e, f, g, h]) as usize;
    if ![2, 4, 8].contains(&width) || Some(body.len()) != count.checked_mul(width) {
        return Err(damage());
    }
    let mut before = None;
    for member in body.chunks_exact(width) {
        let mut word = [0; 8];
        if let Some(top) = word.get_mut(8 - width..) {
            top.copy_from_slice(member);
        }
        let member = i64::from_le_bytes(word) >> (8 * (8 - width));
        if before.is_some_and(|before| before >= member) {
            return Err(Error::corruption("the members of an intset do not ascend"));
        }
        before = Some(member);
        visit(member);
    }
    Ok(())
}

/// The same members as a listpack.
///
/// # Errors
/// As [`walk`].
pub fn to_listpack(intset: &[u8]) -> Result<Vec<u8>> {
    let mut out = Writer::new();
    walk(intset, |member| out.push_integer(member))?;
    out.finish()
}

/// An intset of `members`, which are sorted on the way. None if one comes twice or they are too many.
pub fn encode(members: &mut [i64]) -> Option<Vec<u8>> {
    members.sort_unstable();
    let ascend = members.is_sorted_by(|one, next| one < next);
    let count = u32::try_from(members.len()).ok().filter(|_| ascend)?;
    let fits = |bits: u32| {
        members
            .iter()
            .all(|member| *member >> bits == *member >> 63)
    };
    let width = if fits(15) {
        2
    } else if fits(31) {
        4
    } else {
        8
    };
    let mut out = Vec::with_capacity(HEADER_BYTES + members.len() * width);
    out.extend_from_slice(&(width as u32).to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    for member in members {
        out.extend(member.to_le_bytes().iter().take(width));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_each_width_read_back() {
        for top in [1, 0x7fff, 0x8000, 0x7fff_ffff, 0x8000_0000, i64::MAX] {
            let mut members = vec![top, -5, 3, -top - 1];
            let bytes = encode(&mut members).unwrap();
            let mut back = Vec::new();
            walk(&bytes, |member| back.push(member)).unwrap();
            assert_eq!(back, members, "{top}");
            for len in 0..bytes.len() {
                assert!(walk(&bytes[..len], |_| {}).is_err());
            }
        }
        assert_eq!(
            encode(&mut [1, 2]).unwrap(),
            [2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 2, 0]
        );
        assert_eq!(encode(&mut [1, 1]), None);
    }

    #[test]
    fn a_member_twice_or_out_of_order_is_refused() {
        for members in [[1, 1], [2, 1]] {
            let bytes = [2, 0, 0, 0, 2, 0, 0, 0, members[0], 0, members[1], 0];
            assert!(walk(&bytes, |_| {}).is_err());
        }
    }
}
