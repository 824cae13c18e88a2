//! load: `key TAB value` lines into a family.

use std::borrow::Cow;
use std::io::{self, BufRead};
use std::time::Duration;

use drumlin::internals::batch::WriteBatch;
use drumlin::{ColumnFamily, Db, ReadOptions, WriteOptions};
use drumlin_fs::Env;

use crate::args::{Load, Place};
use crate::escape::Form;
use crate::failure::{Failure, Outcome};
use crate::input::{self, Input};
use crate::output::{Output, remark};
use crate::progress::Progress;
use crate::units;

/// Writes every line of the input, in batches.
pub(crate) fn load(place: &Place, load: &Load, out: &mut Output) -> Outcome {
    let (env, form) = (Env::system(), place.form());
    let mut lines = Lines::new(input::open(&load.file, &env)?);
    // Looked at before anything is opened: a file that is no input leaves no empty database.
    if lines.next()? {
        split_line(form, &lines.line).map_err(|what| {
            let number = lines.number;
            Failure::Usage(format!("line {number}: {what}; nothing was written"))
        })?;
    }
    let (db, family) = place.open_to_load(load.compression)?;
    let began = env.clock.monotonic();
    let mut loader = Loader::new(&db, &family, load);
    let read = loader.read(&mut lines, form);
    let settled = loader.settle();
    let (rows, bytes, rest) = (loader.rows, loader.bytes, loader.rest);
    let number = lines.number;
    if let Err(failure) = read.and(settled) {
        // The failure reports the rows in the store; closing may well meet the same error once
        // more.
        let _ = db.close();
        return Err(rest.tell(failure, number));
    }
    lines.progress.finish();
    let took = env.clock.monotonic() - began;
    out.text(summary(rows, bytes, took))?;
    if lines.carriage_returns > 0 {
        let count = units::count(lines.carriage_returns);
        remark(format!(
            "{count} lines ended in CR LF; the CR was taken for a part of the end (in a value it is written \\r)"
        ));
    }
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

/// The rows and bytes loaded, and the rates.
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
    let mut entries = db.iter_cf(family, options);
    let mut count = 0;
    entries.seek_to_first();
    while entries.valid() {
        count += 1;
        entries.next();
    }
    entries.status()?;
    Ok(count)
}

/// The input, line by line.
pub(crate) struct Lines {
    reader: Box<dyn BufRead>,
    progress: Progress,
    /// The line that was read last, without its end; empty at the end of the input.
    pub(crate) line: Vec<u8>,
    /// Its number, counted from 1.
    pub(crate) number: u64,
    /// How many ended in CR LF.
    carriage_returns: u64,
}

impl Lines {
    pub(crate) fn new(input: Input) -> Self {
        Self {
            reader: input.reader,
            progress: Progress::new("loading", input.bytes),
            line: Vec::new(),
            number: 0,
            carriage_returns: 0,
        }
    }

    /// Goes on to the next line that is not empty; false when there is none.
    pub(crate) fn next(&mut self) -> Outcome<bool> {
        loop {
            self.line.clear();
            self.number += 1;
            let read = self.reader.read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return Ok(false);
            }
            self.progress.advance(read as u64);
            self.line.pop_if(|last| *last == b'\n');
            let returned = self.line.pop_if(|last| *last == b'\r');
            self.carriage_returns += u64::from(returned.is_some());
            if !self.line.is_empty() {
                return Ok(true);
            }
        }
    }
}

/// How far the input is in the store.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    /// Lines that are in.
    written: u64,
    /// The first line that is not in.
    next: u64,
}

impl Rest {
    /// `failure`, met at line `number`, with the part of the input that is in the store.
    fn tell(&self, failure: Failure, number: u64) -> Failure {
        let Self { written, next } = self;
        let far = match written {
            0 => "nothing was written".to_owned(),
            _ => format!("lines in the store: {written}; load what is left from line {next} on"),
        };
        let tell = |what: &dyn std::fmt::Display| format!("line {number}: {what}; {far}");
        match failure {
            Failure::Engine(error) => {
                Failure::Engine(error.context(format_args!("line {number} ({far})")))
            }
            Failure::Io(error) => Failure::Io(io::Error::new(error.kind(), tell(&error))),
            Failure::Usage(what) => Failure::Usage(tell(&what)),
            other => other,
        }
    }
}

/// Gathers rows into batches and writes them.
struct Loader<'d> {
    db: &'d Db,
    family: &'d ColumnFamily,
    options: WriteOptions,
    batch: WriteBatch,
    batch_bytes: usize,
    /// Rows in the batches so far, and the bytes of their keys and values.
    rows: u64,
    bytes: u64,
    /// The line that was added last.
    line: u64,
    /// The rows in the memtable; without a WAL they are not safe yet.
    accepted: Rest,
    /// The rows that are safe.
    rest: Rest,
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
            line: 0,
            accepted: Rest::default(),
            rest: Rest::default(),
        }
    }

    /// Adds the line that `lines` is at, and all after it.
    fn read(&mut self, lines: &mut Lines, form: Form) -> Outcome {
        while !lines.line.is_empty() {
            let (key, value) = split_line(form, &lines.line).map_err(Failure::Usage)?;
            self.add(&key, &value)?;
            self.line = lines.number;
            if self.batch.len() >= self.batch_bytes {
                self.write()?;
            }
            lines.next()?;
        }
        Ok(())
    }

    fn add(&mut self, key: &[u8], value: &[u8]) -> Outcome {
        self.batch.put_cf(self.family.id(), key, value)?;
        self.rows += 1;
        self.bytes += (key.len() + value.len()) as u64;
        Ok(())
    }

    fn write(&mut self) -> Outcome {
        let next = WriteBatch::with_capacity(self.batch_bytes + self.batch_bytes / 8);
        let full = std::mem::replace(&mut self.batch, next);
        self.db.write(full, &self.options)?;
        self.accepted = Rest {
            written: self.rows,
            next: self.line + 1,
        };
        if !self.options.no_wal {
            self.rest = self.accepted;
        }
        Ok(())
    }

    /// Writes the gathered rows, and flushes those without a WAL.
    fn settle(&mut self) -> Outcome {
        if !self.batch.is_empty() {
            self.write()?;
        }
        if self.options.no_wal {
            self.db.flush_cf(self.family)?;
            self.rest = self.accepted;
        }
        Ok(())
    }
}

/// Key and value.
pub(crate) type Entry<'l> = (Cow<'l, [u8]>, Cow<'l, [u8]>);

/// Key and value of a line.
pub(crate) fn split_line(form: Form, line: &[u8]) -> Result<Entry<'_>, String> {
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
