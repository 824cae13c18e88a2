//! Zipmaps, the small hashes of Redis before 2.6. They are read, as listpacks, and never written.
//!
//! ```text
//! count u8 (254 and more: unknown) · fields · 0xff
//! field: length · name · length · free u8 · value · as many unused bytes as `free` says
//! length: one byte below 254, or 254 and u32 little-endian
//! ```

use drumlin_base::{Error, Result};

use crate::listpack::Writer;

const LONG: u8 = 254;
const END: u8 = 255;

/// The same fields and values as a listpack.
///
/// # Errors
/// Corruption where a length or the count does not fit.
pub fn to_listpack(zipmap: &[u8]) -> Result<Vec<u8>> {
    let damage = || Error::corruption("a zipmap is damaged");
    let (count, mut rest) = zipmap.split_first().ok_or_else(damage)?;
    let mut out = Writer::new();
    while rest.first() != Some(&END) {
        let name;
        (name, rest) = text(rest, false).ok_or_else(damage)?;
        let value;
        (value, rest) = text(rest, true).ok_or_else(damage)?;
        out.push(name);
        out.push(value);
    }
    let fields = out.count() / 2;
    if rest.len() != 1 || (*count < LONG && u64::from(*count) != fields) {
        return Err(damage());
    }
    out.finish()
}

/// The string that `rest` begins with, and the bytes behind it and its unused ones.
fn text(rest: &[u8], has_unused: bool) -> Option<(&[u8], &[u8])> {
    let (first, rest) = rest.split_first()?;
    let (len, rest) = match *first {
        END => return None,
        LONG => {
            let (len, rest) = rest.split_first_chunk()?;
            (u32::from_le_bytes(*len) as usize, rest)
        }
        short => (usize::from(short), rest),
    };
    let (unused, rest) = if has_unused {
        let (unused, rest) = rest.split_first()?;
        (usize::from(*unused), rest)
    } else {
        (0, rest)
    };
    let (text, rest) = rest.split_at_checked(len)?;
    Some((text, rest.get(unused..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listpack;

    #[test]
    fn the_published_example_reads_and_its_cuts_do_not() {
        let example = b"\x02\x03foo\x03\x00bar\x05hello\x05\x02world__\xff";
        let mut found = Vec::new();
        listpack::walk(&to_listpack(example).unwrap(), |_, held| {
            found.push(held.to_bytes());
            Ok(())
        })
        .unwrap();
        assert_eq!(found, [&b"foo"[..], b"bar", b"hello", b"world"]);
        for len in 0..example.len() {
            assert!(to_listpack(&example[..len]).is_err(), "{len}");
        }
        let mut wrong = example.to_vec();
        wrong[0] = 3;
        assert!(to_listpack(&wrong).is_err());
    }
}
