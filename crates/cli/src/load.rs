//! load: `key TAB value` lines into a family.

use std::borrow::Cow;
use std::io::BufRead;
use std::time::Duration;

use drumlin::batch::WriteBatch;
use drumlin::{ColumnFamily, Db, ReadOptions, WriteOptions};
use drumlin_fs::Env;

use crate::args::{Load, Place};
use crate::escape::Form;
use crate::failure::{Failure, Outcome};
use crate::input::{self, Input};
use crate::output::Output;
use crate::progress::Progress;
use crate::units;

/// Writes every line of the input, in batches.
pub(crate) fn load(place: &Place, load: &Load, out: &mut Output) -> Outcome {
    let env = Env::system();
    let input = input::open(&load.file, &env)?;
    let (db, family) = place.open_to_load(load.compression)?;
    let began = env.clock.monotonic();
    let mut loader = Loader::new(&db, &family, load);
    loader.read(input, place.form())?;
    if load.no_wal {
        db.flush_in(&family)?;
    }
    let took = env.clock.monotonic() - began;
    out.text(summary(loader.rows, loader.bytes, took))?;
    if load.count {
        let entries = count_entries(&db, &family)?;
        let text = units::count(entries);
        out.text(format!(
            "{text} entries are in family '{}' now",
            family.name()
        ))?;
    }
    Ok(db.close()?)
}

/// What was loaded, and how fast.
fn summary(rows: u64, bytes: u64, took: Duration) -> String {
    let seconds = took.as_secs_f64();
    format!(
        "{} rows, {}, in {seconds:.1} s: {} rows/s, {}/s",
        units::count(rows),
        units::bytes(bytes),
        units::count(units::rate(rows, seconds)),
        units::bytes(units::rate(bytes, seconds)),
    )
}

/// How many entries the family has, by counting them.
fn count_entries(db: &Db, family: &ColumnFamily) -> Outcome<u64> {
    let options = ReadOptions {
        fill_cache: false,
        ..ReadOptions::default()
    };
    let mut entries = db.iter_in(family, options);
    let mut count = 0;
    entries.seek_to_first();
    while entries.valid() {
        count += 1;
        entries.next();
    }
    entries.status()?;
    Ok(count)
}

/// Gathers rows into batches and writes them.
struct Loader<'d> {
    db: &'d Db,
    family: &'d ColumnFamily,
    options: WriteOptions,
    batch: WriteBatch,
    batch_bytes: usize,
    rows: u64,
    bytes: u64,
}

impl<'d> Loader<'d> {
    fn new(db: &'d Db, family: &'d ColumnFamily, load: &Load) -> Self {
        let batch_bytes = usize::try_from(load.batch_bytes)
            .unwrap_or(usize::MAX)
            .clamp(1, 64 << 20);
        Self {
            db,
            family,
            options: WriteOptions {
                sync: Some(load.sync),
                no_wal: load.no_wal,
                ..WriteOptions::default()
            },
            batch: WriteBatch::with_capacity(batch_bytes + batch_bytes / 8),
            batch_bytes,
            rows: 0,
            bytes: 0,
        }
    }

    fn read(&mut self, mut input: Input, form: Form) -> Outcome {
        let mut progress = Progress::new("loading", input.bytes);
        let (mut line, mut number) = (Vec::new(), 0u64);
        loop {
            line.clear();
            number += 1;
            let read = input.reader.read_until(b'\n', &mut line)?;
            if read == 0 {
                break;
            }
            progress.advance(read as u64);
            line.pop_if(|last| *last == b'\n');
            if line.is_empty() {
                continue;
            }
            let (key, value) = split_line(form, &line)
                .map_err(|what| Failure::Usage(format!("line {number}: {what}")))?;
            self.add(&key, &value)?;
        }
        self.write()?;
        progress.finish();
        Ok(())
    }

    fn add(&mut self, key: &[u8], value: &[u8]) -> Outcome {
        self.batch.put_cf(self.family.id(), key, value)?;
        self.rows += 1;
        self.bytes += (key.len() + value.len()) as u64;
        if self.batch.len() >= self.batch_bytes {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Outcome {
        let next = WriteBatch::with_capacity(self.batch_bytes + self.batch_bytes / 8);
        let full = std::mem::replace(&mut self.batch, next);
        Ok(self.db.write(full, &self.options)?)
    }
}

/// Key and value.
type Entry<'l> = (Cow<'l, [u8]>, Cow<'l, [u8]>);

/// Key and value of a line.
fn split_line(form: Form, line: &[u8]) -> Result<Entry<'_>, String> {
    let tab = line.iter().position(|byte| *byte == b'\t');
    let Some((key, rest)) = tab.map(|tab| line.split_at(tab)) else {
        return Err("there is no TAB between key and value".to_owned());
    };
    let value = rest.get(1..).unwrap_or_default();
    if value.contains(&b'\t') {
        return Err("there is a second TAB; inside a value it is written \\t".to_owned());
    }
    let read = |text| {
        let bytes = form.read(text);
        bytes.map_err(|bad| format!("byte {}: {}", bad.at + 1, bad.what))
    };
    Ok((read(key)?, read(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_key_tab_value() {
        let split = |line: &'static [u8]| {
            let entry = split_line(Form::Plain, line);
            entry.map(|(key, value)| (key.into_owned(), value.into_owned()))
        };
        assert_eq!(split(b"k\tv w"), Ok((b"k".to_vec(), b"v w".to_vec())));
        assert_eq!(split(b"k\t"), Ok((b"k".to_vec(), Vec::new())));
        assert_eq!(split(b"a\\tb\t\\x00"), Ok((b"a\tb".to_vec(), vec![0])));
        assert!(split(b"no tab").is_err_and(|what| what.contains("no TAB")));
        assert!(split(b"a\tb\tc").is_err_and(|what| what.contains("second TAB")));
        assert!(split(b"a\t\\q").is_err_and(|what| what.starts_with("byte 1: a backslash")));
    }
}
