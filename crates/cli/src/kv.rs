//! get, put, delete, delete-range.

use std::io::{self, Read};

use drumlin::{ReadOptions, WriteOptions};
use drumlin_base::limits::VALUE_BYTES_MAX;

use crate::args::Place;
use crate::failure::{Failure, Outcome};
use crate::formats::write::EntryWriter;
use crate::history;
use crate::output::Output;

/// Prints the value of a key, or the entries of several; which are missing is remarked, and the failure.
pub(crate) fn get(place: &Place, keys: &[String], time: Option<i64>, out: &mut Output) -> Outcome {
    let bytes = keys.iter().map(|key| place.bytes(key));
    let bytes = bytes.collect::<Outcome<Vec<_>>>()?;
    let (db, family) = place.open_to_read()?;
    let writer = EntryWriter::new(out.format(), place.form()).map_err(Failure::Usage)?;
    let mut missing = Vec::new();
    // Of one moment: nobody writes to a store that was opened for reading.
    let options = ReadOptions {
        snapshot: history::at(&db, time)?,
        ..ReadOptions::default()
    };
    let found = db.multi_get_cf(&family, &bytes, &options);
    for ((key, bytes), value) in keys.iter().zip(&bytes).zip(found) {
        match value? {
            Some(value) if keys.len() == 1 && !out.is_json() => {
                out.value("value", place.form(), &value)?;
            }
            Some(value) => out.entry(writer, bytes, Some(&value))?,
            None => missing.push(format!("'{key}'")),
        }
    }
    match missing.len() {
        0 => Ok(()),
        1 => Err(Failure::NotFound(format!(
            "there is no key {}",
            missing.join("")
        ))),
        _ => Err(Failure::NotFound(format!(
            "there are no keys {}",
            missing.join(", ")
        ))),
    }
}

/// Sets `key` to `value`.
pub(crate) fn put(place: &Place, key: &str, value: &str, sync: bool) -> Outcome {
    write(place, place.bytes(key)?, &place.bytes(value)?, sync)
}

/// Sets `key` to the bytes of standard input.
pub(crate) fn put_input(place: &Place, key: &str, sync: bool) -> Outcome {
    let key = place.bytes(key)?;
    let most = VALUE_BYTES_MAX as u64;
    // With --hex a value is twice as long as its bytes, and has a line's end.
    let most_read = if place.hex { 2 * most + 4 } else { most };
    let mut input = Vec::new();
    io::stdin()
        .lock()
        .take(most_read + 1)
        .read_to_end(&mut input)?;
    if input.len() as u64 > most_read {
        let text = format!("a value has at most {most} bytes; standard input has more");
        return Err(Failure::Usage(text));
    }
    if !place.hex {
        return write(place, key, &input, sync);
    }
    let value = place.form().read(input.trim_ascii()).map_err(|bad| {
        let (at, what) = (bad.at, bad.what);
        Failure::Usage(format!("standard input, at byte {at}: {what}"))
    })?;
    write(place, key, &value, sync)
}

fn write(place: &Place, key: Vec<u8>, value: &[u8], sync: bool) -> Outcome {
    let (db, family) = place.open_to_write(place.options())?;
    db.put_cf(&family, key, value, &write_options(sync))?;
    place.finish(db)
}

/// Removes `key`; that it was not there is no failure.
pub(crate) fn delete(place: &Place, key: &str, sync: bool) -> Outcome {
    let key = place.bytes(key)?;
    let (db, family) = place.open_existing()?;
    db.delete_cf(&family, key, &write_options(sync))?;
    place.finish(db)
}

/// Removes the keys from `from` up to `to`.
pub(crate) fn delete_range(place: &Place, from: &str, to: &str, sync: bool) -> Outcome {
    let (begin, end) = (place.bytes(from)?, place.bytes(to)?);
    let (db, family) = place.open_existing()?;
    db.delete_range_cf(&family, begin, end, &write_options(sync))?;
    place.finish(db)
}

fn write_options(sync: bool) -> WriteOptions {
    WriteOptions {
        sync: Some(sync),
        ..WriteOptions::default()
    }
}
