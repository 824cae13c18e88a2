//! Entries read from a stream of bytes, one after the other, each with its place.
//!
//! What is no entry is told with the reason, and the reader stands behind it: a caller may go on with the next one. Only a
//! length-prefixed entry that is wrong leaves no place to go on from.

use std::io::{BufRead, Read};

use drumlin_base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

use super::csv::{self, Parsed};
use super::{EntryFormat, json};
use crate::escape::Form;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::load::{Entry, split_line};
use crate::progress::Progress;

/// Bytes that a CSV record may have: a quote that is never closed ends there, not at the end of memory.
const RECORD_BYTES_MAX: usize = 512 << 20;

/// Key and value.
type Pair = (Vec<u8>, Vec<u8>);

/// What [`Entries::next`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// An entry; it is in [`Entries::key`] and [`Entries::value`].
    Entry,
    /// Something that is none, and why.
    Bad(String),
    /// The end of the input.
    End,
}

/// The entries of an input.
pub(crate) struct Entries {
    reader: Box<dyn BufRead>,
    pub(crate) progress: Progress,
    format: EntryFormat,
    form: Form,
    line: Vec<u8>,
    /// The entry that was read last.
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// Where it began: its line, or its number in the binary format, counted from 1.
    pub(crate) number: u64,
    /// Where the next one begins.
    pub(crate) next_number: u64,
    /// How many lines ended in CR LF.
    pub(crate) carriage_returns: u64,
}

impl Entries {
    /// The entries of `input`; `form` is that of the texts in it.
    pub(crate) fn new(input: Input, format: EntryFormat, form: Form) -> Self {
        Self {
            reader: input.reader,
            progress: Progress::new("loading", input.bytes),
            format,
            form,
            line: Vec::new(),
            key: Vec::new(),
            value: Vec::new(),
            number: 0,
            next_number: 1,
            carriage_returns: 0,
        }
    }

    /// The word for a place in this format.
    pub(crate) fn unit(&self) -> &'static str {
        match self.format {
            EntryFormat::Binary => "entry",
            _ => "line",
        }
    }

    /// Whether reading can go on behind what was no entry.
    pub(crate) fn goes_on(&self) -> bool {
        self.format != EntryFormat::Binary
    }

    /// Goes on to the next entry. Empty lines are passed over.
    ///
    /// # Errors
    /// Those of reading the input.
    pub(crate) fn next(&mut self) -> Outcome<Step> {
        if self.format == EntryFormat::Binary {
            return self.next_binary();
        }
        loop {
            self.number = self.next_number;
            self.line.clear();
            if !self.read_line()? {
                return Ok(Step::End);
            }
            if self.format != EntryFormat::Csv {
                self.drop_return();
            }
            if !matches!(self.line.as_slice(), b"" | b"\r") {
                break;
            }
        }
        let read = match self.format {
            EntryFormat::Csv => self.record()?.map(|entry| (self.key, self.value) = entry),
            EntryFormat::Json => {
                json::split_line(&self.line).map(|entry| (self.key, self.value) = entry)
            }
            EntryFormat::Lines => self.take(split_raw),
            EntryFormat::Text | EntryFormat::Binary => {
                let form = self.form;
                self.take(|line| split_line(form, line))
            }
        };
        Ok(match read {
            Ok(()) => Step::Entry,
            Err(what) => Step::Bad(what),
        })
    }

    /// Takes over what `split` makes of `line`, without an allocation for each.
    fn take(&mut self, split: impl Fn(&[u8]) -> Result<Entry<'_>, String>) -> Result<(), String> {
        let (key, value) = split(&self.line)?;
        self.key.clear();
        self.key.extend_from_slice(&key);
        self.value.clear();
        self.value.extend_from_slice(&value);
        Ok(())
    }

    /// Appends the next line to `line`, without its end; false at the end of the input.
    fn read_line(&mut self) -> Outcome<bool> {
        let read = self.reader.read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(false);
        }
        self.next_number += 1;
        self.progress.advance(read as u64);
        self.line.pop_if(|last| *last == b'\n');
        Ok(true)
    }

    /// Takes a CR off the end of `line`, for it belongs to the line's end.
    fn drop_return(&mut self) {
        let returned = self.line.pop_if(|last| *last == b'\r');
        self.carriage_returns += u64::from(returned.is_some());
    }

    /// A CSV record that begins with `line`; a quoted field may go on over more lines.
    fn record(&mut self) -> Outcome<Result<Pair, String>> {
        let quotes = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'"').count();
        let whole = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        let mut parsed = csv::parse(whole);
        let mut open_quotes = quotes(whole);
        while parsed == Ok(Parsed::Unfinished) {
            if self.line.len() > RECORD_BYTES_MAX {
                return Ok(Err("a quote is not closed within 512 MiB".to_owned()));
            }
            // The line's end was data.
            self.line.push(b'\n');
            let before = self.line.len();
            if !self.read_line()? {
                return Ok(Err("a quote is never closed".to_owned()));
            }
            // Only an even number can close it: the record is parsed twice, however many lines it has.
            open_quotes += quotes(self.line.get(before..).unwrap_or_default());
            if open_quotes.is_multiple_of(2) {
                parsed = csv::parse(self.line.strip_suffix(b"\r").unwrap_or(&self.line));
            }
        }
        Ok(match parsed {
            Ok(Parsed::Record(fields)) => {
                self.drop_return();
                self.unescape(csv::key_and_value(fields))
            }
            Ok(Parsed::Unfinished) => Err("a quote is never closed".to_owned()),
            Err(what) => Err(what),
        })
    }

    fn unescape(&self, entry: Result<Pair, String>) -> Result<Pair, String> {
        let (key, value) = entry?;
        if self.form == Form::Plain {
            return Ok((key, value));
        }
        let read = |text: &[u8]| match self.form.read(text) {
            Ok(bytes) => Ok(bytes.into_owned()),
            Err(bad) => Err(format!("byte {} of a field: {}", bad.at + 1, bad.what)),
        };
        Ok((read(&key)?, read(&value)?))
    }

    fn next_binary(&mut self) -> Outcome<Step> {
        self.number = self.next_number;
        let Some(key_bytes) = self.read_length()? else {
            return Ok(Step::End);
        };
        let cut = |what: &str| Step::Bad(format!("the input ends within {what}"));
        let key_bytes = match key_bytes {
            Ok(length) if length <= KEY_BYTES_MAX => length,
            Ok(length) => {
                return Ok(Step::Bad(format!(
                    "a key of {length} bytes; the most is {KEY_BYTES_MAX}"
                )));
            }
            Err(()) => return Ok(cut("a length")),
        };
        if !fill(&mut self.reader, key_bytes, &mut self.key)? {
            return Ok(cut("a key"));
        }
        let value_bytes = match self.read_length()? {
            Some(Ok(length)) if length <= VALUE_BYTES_MAX => length,
            Some(Ok(length)) => {
                return Ok(Step::Bad(format!(
                    "a value of {length} bytes; the most is {VALUE_BYTES_MAX}"
                )));
            }
            Some(Err(())) => return Ok(cut("a length")),
            None => return Ok(cut("an entry: there is a key without a value")),
        };
        if !fill(&mut self.reader, value_bytes, &mut self.value)? {
            return Ok(cut("a value"));
        }
        self.next_number += 1;
        self.progress.advance((8 + key_bytes + value_bytes) as u64);
        Ok(Step::Entry)
    }

    /// A length; `None` at the end of the input, `Err` where that comes within it.
    fn read_length(&mut self) -> Outcome<Option<Result<usize, ()>>> {
        let mut bytes = Vec::with_capacity(4);
        let whole = fill(&mut self.reader, 4, &mut bytes)?;
        Ok(match <[u8; 4]>::try_from(bytes) {
            Ok(bytes) if whole => Some(Ok(u32::from_le_bytes(bytes) as usize)),
            Err(bytes) if bytes.is_empty() => None,
            _ => Some(Err(())),
        })
    }

    /// The failure of what is no entry, at its place.
    pub(crate) fn refuse(&self, what: &str) -> Failure {
        Failure::Usage(format!("{} {}: {what}", self.unit(), self.number))
    }
}

/// Fills `into` with `length` bytes; false where the input ends before. Memory grows with what is there, not with what
/// `length` claims.
fn fill(reader: &mut dyn BufRead, length: usize, into: &mut Vec<u8>) -> Outcome<bool> {
    into.clear();
    reader.take(length as u64).read_to_end(into)?;
    Ok(into.len() == length)
}

/// Key and value of a line of bytes as they are.
fn split_raw(line: &[u8]) -> Result<Entry<'_>, String> {
    let tab = line.iter().position(|byte| *byte == b'\t');
    let Some((key, rest)) = tab.map(|tab| line.split_at(tab)) else {
        return Err("there is no TAB between key and value".to_owned());
    };
    Ok((key.into(), rest.get(1..).unwrap_or_default().into()))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use drumlin_base::rng::Rng;
    use drumlin_testkit::untidy_bytes;

    use super::super::write::EntryWriter;
    use super::*;

    fn read(bytes: &[u8], format: EntryFormat, form: Form) -> (Vec<Pair>, Vec<(u64, String)>) {
        let input = Input {
            reader: Box::new(Cursor::new(bytes.to_vec())),
            bytes: None,
        };
        let mut entries = Entries::new(input, format, form);
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        loop {
            match entries.next().expect("memory can be read") {
                Step::Entry => good.push((entries.key.clone(), entries.value.clone())),
                Step::Bad(what) => bad.push((entries.number, what)),
                Step::End => return (good, bad),
            }
            if !bad.is_empty() && !entries.goes_on() {
                return (good, bad);
            }
        }
    }

    #[test]
    fn every_format_gives_back_the_bytes_it_took() {
        let mut rng = Rng::new(23);
        let formats = [
            (EntryFormat::Text, Form::Plain),
            (EntryFormat::Text, Form::Hex),
            (EntryFormat::Lines, Form::Plain),
            (EntryFormat::Csv, Form::Plain),
            (EntryFormat::Csv, Form::Hex),
            (EntryFormat::Json, Form::Plain),
            (EntryFormat::Json, Form::Hex),
            (EntryFormat::Binary, Form::Plain),
        ];
        for (format, form) in formats {
            let writer = EntryWriter::new(format, form).expect("there is such a format");
            let (mut text, mut taken, mut refused) = (Vec::new(), Vec::new(), 0);
            for _ in 0..600 {
                let (key, value) = (untidy_bytes(&mut rng, 12), untidy_bytes(&mut rng, 24));
                match writer.write(&key, Some(&value), &mut text) {
                    Ok(()) => taken.push((key, value)),
                    Err(_) => refused += 1,
                }
            }
            assert_eq!(refused > 0, format == EntryFormat::Lines, "{format:?}");
            let (good, bad) = read(&text, format, form);
            assert_eq!(bad, [], "{format:?}");
            assert_eq!(good, taken, "{format:?} {form:?}");
        }
    }

    #[test]
    fn what_is_no_entry_is_told_with_its_line_and_the_next_one_follows() {
        let text = b"a,1\r\n\"b\n\n\",2\nc\nd,\"4\"x\ne,5\nf,\"6";
        let (good, bad) = read(text, EntryFormat::Csv, Form::Plain);
        let keys: Vec<_> = good.iter().map(|(key, _)| key.as_slice()).collect();
        assert_eq!(keys, [&b"a"[..], b"b\n\n", b"e"]);
        let lines: Vec<_> = bad.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [5, 6, 8], "{bad:?}");
        assert!(bad[2].1.contains("never closed"), "{bad:?}");
    }

    #[test]
    fn every_cut_of_a_binary_stream_is_seen_and_no_length_is_believed() {
        let writer = EntryWriter::new(EntryFormat::Binary, Form::Plain).expect("it is there");
        let mut bytes = Vec::new();
        for (key, value) in [(&b"key"[..], &b"value"[..]), (b"", b""), (b"k2", b"")] {
            writer.write(key, Some(value), &mut bytes).expect("short");
        }
        let ends = [0, 16, 24, bytes.len()];
        for cut in 0..=bytes.len() {
            let (good, bad) = read(&bytes[..cut], EntryFormat::Binary, Form::Plain);
            let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
            assert_eq!(good.len(), whole, "cut at {cut}");
            assert_eq!(bad.is_empty(), ends.contains(&cut), "cut at {cut}: {bad:?}");
        }
        let claims = [u32::MAX.to_le_bytes(), 5u32.to_le_bytes()].concat();
        let (_, bad) = read(&claims, EntryFormat::Binary, Form::Plain);
        assert!(bad[0].1.contains("the most is"), "{bad:?}");
    }
}
