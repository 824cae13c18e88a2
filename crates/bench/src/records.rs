//! Records from a file, in the place of numbered keys and made-up values.
//!
//! A line is a key, a TAB and a value, as `drumlin gen` and `drumlin scan` print them: `\t`, `\n`, `\r`,
//! `\\` and `\xNN` stand for bytes. All of it is kept in memory, so that a workload waits only for the
//! store. Immutable, shared by threads.

use std::path::Path;

use drumlin_base::bytes::prefetch;
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::Env;

use crate::datasets::DataSet;

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 16 << 30;

/// The records of a file, by number from 0.
#[derive(Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
    /// Where key and value of each end.
    ends: Vec<(u64, u64)>,
}

impl Records {
    /// Reads `path`, at most `count_max` records of it.
    ///
    /// # Errors
    /// `Io`, `NotFound`, `TooLarge`; `InvalidArgument` naming the line that has no TAB or ends in half an
    /// escape, or when there is no record.
    pub fn read(env: &Env, path: &Path, count_max: u64) -> Result<Self> {
        let bytes = env.files.read_file(path, FILE_BYTES_MAX)?;
        Self::parse(bytes, count_max).map_err(|error| error.with_file(path))
    }

    /// Takes `text` apart in place.
    fn parse(mut text: Vec<u8>, count_max: u64) -> Result<Self> {
        let mut ends = Vec::new();
        let (mut from, mut to) = (0, 0);
        while from < text.len() && (ends.len() as u64) < count_max {
            let wrong = || {
                let line = ends.len() + 1;
                let message = format!("line {line} is not a key, a TAB and a value");
                Error::new(ErrorKind::InvalidArgument, message)
            };
            let key_end = copy_until(&mut text, &mut from, &mut to, b'\t').ok_or_else(wrong)?;
            let value_end = copy_until(&mut text, &mut from, &mut to, b'\n').ok_or_else(wrong)?;
            ends.push((key_end as u64, value_end as u64));
        }
        if ends.is_empty() {
            return Err(Error::invalid_argument("a file without records"));
        }
        text.truncate(to);
        Ok(Self { bytes: text, ends })
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Bytes of all keys and values.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Prefetches the position of record `number`.
    #[inline]
    pub fn prefetch_place(&self, number: u64) {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        prefetch(self.ends.as_ptr().wrapping_add(at), 1);
    }

    /// Asks for the first bytes of record `number`.
    #[inline]
    pub fn prefetch_bytes(&self, number: u64) {
        prefetch(self.get(number).0.as_ptr(), 1);
    }

    /// Key and value of record `number`; both empty past the last.
    #[inline]
    pub fn get(&self, number: u64) -> (&[u8], &[u8]) {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let end_of = |at: usize| self.ends.get(at).copied();
        let start = at.checked_sub(1).and_then(end_of).map_or(0, |end| end.1);
        let Some((key_end, value_end)) = end_of(at) else {
            return (&[], &[]);
        };
        let cut = |from: u64, to: u64| self.bytes.get(from as usize..to as usize);
        (
            cut(start, key_end).unwrap_or_default(),
            cut(key_end, value_end).unwrap_or_default(),
        )
    }
}

impl DataSet for Records {
    fn title(&self) -> String {
        "records of a file".to_owned()
    }

    fn len(&self) -> u64 {
        self.count()
    }

    fn write_key(&self, index: u64, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.get(index).0);
    }

    fn write_value(&self, index: u64, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.get(index).1);
    }
}

/// Moves bytes from `from` on to `to` on, their escapes undone, until `end`, which is left out, or for a
/// line's end the end of `text`. Returns the end of the moved bytes; `None` when `end` does not come.
fn copy_until(text: &mut [u8], from: &mut usize, to: &mut usize, end: u8) -> Option<usize> {
    loop {
        let Some(&byte) = text.get(*from) else {
            return (end == b'\n').then_some(*to);
        };
        *from += 1;
        let byte = match byte {
            byte if byte == end => return Some(*to),
            b'\n' => return None,
            // Of a line that ends in CR LF.
            b'\r' if end == b'\n' && matches!(text.get(*from), None | Some(b'\n')) => continue,
            b'\\' => unescape(text, from)?,
            byte => byte,
        };
        *text.get_mut(*to)? = byte;
        *to += 1;
    }
}

/// The byte behind a backslash.
fn unescape(text: &[u8], from: &mut usize) -> Option<u8> {
    let byte = *text.get(*from)?;
    *from += 1;
    Some(match byte {
        b't' => b'\t',
        b'n' => b'\n',
        b'r' => b'\r',
        b'\\' => b'\\',
        b'x' => {
            let digits = text.get(*from..*from + 2)?;
            *from += 2;
            u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_what_the_lines_stand_for() {
        let text = b"a\tone\nb\\t\\\\\ttwo\\n\\x00\n\t\nlast\tno end of line".to_vec();
        let records = Records::parse(text, u64::MAX).expect("sound lines");
        assert_eq!(records.count(), 4);
        assert_eq!(records.get(0), (&b"a"[..], &b"one"[..]));
        assert_eq!(records.get(1), (&b"b\t\\"[..], &b"two\n\0"[..]));
        assert_eq!(records.get(2), (&b""[..], &b""[..]));
        assert_eq!(records.get(3), (&b"last"[..], &b"no end of line"[..]));
        assert_eq!(records.get(4), (&b""[..], &b""[..]));
        assert_eq!(records.bytes(), 4 + 3 + 5 + 4 + 14);
    }

    #[test]
    fn lines_may_end_in_cr_lf() {
        let text = b"a\tone\r\nb\tt\rwo\\r\r\nc\tthree\r".to_vec();
        let records = Records::parse(text, u64::MAX).expect("sound lines");
        assert_eq!(records.get(0), (&b"a"[..], &b"one"[..]));
        assert_eq!(records.get(1), (&b"b"[..], &b"t\rwo\r"[..]));
        assert_eq!(records.get(2), (&b"c"[..], &b"three"[..]));
    }

    #[test]
    fn records_of_a_file_are_a_data_set() {
        let records = Records::parse(b"a\tone\nb\ttwo\n".to_vec(), u64::MAX).expect("sound lines");
        let (mut key, mut value) = (vec![1], vec![2]);
        records.write_key(1, &mut key);
        records.write_value(1, &mut value);
        assert_eq!(
            (DataSet::len(&records), &key[..], &value[..]),
            (2, &b"b"[..], &b"two"[..])
        );
    }

    #[test]
    fn a_line_that_is_no_record_is_named() {
        for text in ["a\tb\nno tab\n", "a\tb\nc\thalf\\", "a\tb\nc\t\\q\n"] {
            let error = Records::parse(text.into(), u64::MAX).expect_err("a mistake");
            assert!(error.to_string().contains("line 2"), "{error}");
        }
        assert!(Records::parse(Vec::new(), u64::MAX).is_err());
        let one = Records::parse(b"a\tb\nno tab".to_vec(), 1);
        assert_eq!(one.expect("the first line is sound").count(), 1);
    }
}
