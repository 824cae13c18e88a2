//! load: entries of a file into a family.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use drumlin::internals::batch::WriteBatch;
use drumlin::{ColumnFamily, Db, ReadOptions, WriteOptions};
use drumlin_fs::Env;
use serde_json::json;

use crate::args::{Load, Place};
use crate::escape::Form;
use crate::failure::{Failure, Outcome};
use crate::formats::EntryFormat;
use crate::formats::read::{Entries, Step};
use crate::formats::write::EntryWriter;
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::{Output, remark};
use crate::units;

/// How many entries that are none are told one by one.
const SKIPS_TOLD: u64 = 10;

/// Writes every entry of the input, in batches.
pub(crate) fn load(place: &Place, load: &Load, out: &mut Output) -> Outcome {
    let env = Env::system();
    let format = load.format;
    EntryWriter::new(format, place.form()).map_err(Failure::Usage)?;
    let mut input = Source {
        entries: Entries::new(input::open(&load.file, &env)?, format, place.form()),
        skips: load.skip_bad.then_some(0),
    };
    // Looked at before anything is opened: a file that is no input leaves no empty database.
    let first = input.next().map_err(|failure| match failure {
        Failure::Usage(what) => Failure::Usage(format!("{what}; nothing was written")),
        other => other,
    })?;
    let (db, family) = place.open_to_load(load.compression)?;
    let began = env.clock.monotonic();
    let interrupt = Interrupt::new()?;
    let mut loader = Loader::new(&db, &family, load);
    let read = match first {
        true => loader.read(&mut input, &interrupt),
        false => Ok(()),
    };
    let settled = loader.settle();
    let (rows, bytes, rest) = (loader.rows, loader.bytes, loader.rest);
    let Source { entries, skips } = input;
    if let Err(failure) = read.and(settled) {
        // The failure reports the rows in the store; closing may well meet the same error once
        // more.
        let _ = place.finish(db);
        return Err(rest.tell(failure, &entries));
    }
    entries.progress.finish();
    let took = env.clock.monotonic() - began;
    let skipped = skips.unwrap_or(0);
    let entries_now = match load.count {
        true => Some(count_entries(&db, &family)?),
        false => None,
    };
    out.fact(
        summary(rows, bytes, took),
        json!({
            "rows": rows, "bytes": bytes, "skipped": skipped, "seconds": took.as_secs_f64(),
            "family": family.name(), "entries_in_family": entries_now,
        }),
    )?;
    if skipped > 0 {
        let (count, unit) = (units::count(skipped), entries.unit());
        remark(format!("skipped, as they are no entries: {count} {unit}s"));
    }
    if entries.carriage_returns > 0 && format == EntryFormat::Text {
        let count = units::count(entries.carriage_returns);
        remark(format!(
            "{count} lines ended in CR LF; the CR was taken for a part of the end (in a value it is written \\r)"
        ));
    }
    if let (Some(entries), false) = (entries_now, out.is_json()) {
        let text = units::count(entries);
        out.text(format!(
            "{text} entries are in family '{}' now",
            family.name()
        ))?;
    }
    place.finish(db)
}

/// The input, with what is no entry left out if that is asked for.
struct Source {
    entries: Entries,
    /// How many were left out; `None`: none may be.
    skips: Option<u64>,
}

impl Source {
    /// Goes on to the next entry; false at the end.
    fn next(&mut self) -> Outcome<bool> {
        loop {
            let what = match self.entries.next()? {
                Step::Entry => return Ok(true),
                Step::End => return Ok(false),
                Step::Bad(what) => what,
            };
            match &mut self.skips {
                Some(skips) if self.entries.goes_on() => {
                    *skips += 1;
                    if *skips <= SKIPS_TOLD {
                        let (unit, number) = (self.entries.unit(), self.entries.number);
                        remark(format!("{unit} {number} is skipped: {what}"));
                    }
                }
                _ => return Err(self.entries.refuse(&what)),
            }
        }
    }
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

/// How far the input is in the store.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    /// Lines that are in.
    written: u64,
    /// The first line that is not in.
    next: u64,
}

impl Rest {
    /// `failure`, met at the place of `entries`, with the part of the input that is in the store.
    fn tell(&self, failure: Failure, entries: &Entries) -> Failure {
        let Self { written, next } = self;
        let (unit, number) = (entries.unit(), entries.number);
        let far = match written {
            0 => "nothing was written".to_owned(),
            _ => format!(
                "{} in the store: {written}; load what is left from {unit} {next} on",
                if unit == "line" { "lines" } else { "entries" }
            ),
        };
        match failure {
            Failure::Engine(error) => {
                Failure::Engine(error.context(format_args!("{unit} {number} ({far})")))
            }
            Failure::Io(error) => Failure::Io(io::Error::new(
                error.kind(),
                format!("{unit} {number}: {error}; {far}"),
            )),
            // It names its place.
            Failure::Usage(what) => Failure::Usage(format!("{what}; {far}")),
            Failure::Interrupted(_) => Failure::Interrupted(far),
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
    /// The line behind the entry that was added last.
    next: u64,
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
            next: 0,
            accepted: Rest::default(),
            rest: Rest::default(),
        }
    }

    /// Adds the entry that `input` is at, and all after it.
    fn read(&mut self, input: &mut Source, interrupt: &Interrupt) -> Outcome {
        loop {
            let entries = &input.entries;
            self.add(&entries.key, &entries.value)?;
            self.next = entries.next_number;
            if self.batch.len() >= self.batch_bytes {
                self.write()?;
                interrupt.check("")?;
            }
            if !input.next()? {
                return Ok(());
            }
        }
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
            next: self.next,
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
