//! get, put, delete.

use drumlin::{ReadOptions, WriteOptions};

use crate::args::Place;
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// Prints the value of `key`.
pub(crate) fn get(place: &Place, key: &str, out: &mut Output) -> Outcome {
    let (db, family) = place.open_to_read()?;
    let value = db.get_in(&family, place.bytes(key)?, &ReadOptions::default())?;
    match value {
        Some(value) => out.value(place.form(), &value),
        None => Err(Failure::NotFound(format!("there is no key '{key}'"))),
    }
}

/// Sets `key` to `value`.
pub(crate) fn put(place: &Place, key: &str, value: &str, sync: bool) -> Outcome {
    let (key, value) = (place.bytes(key)?, place.bytes(value)?);
    let (db, family) = place.open_to_write(place.options())?;
    db.put_in(&family, key, value, &write_options(sync))?;
    Ok(db.close()?)
}

/// Removes `key`; that it was not there is no failure.
pub(crate) fn delete(place: &Place, key: &str, sync: bool) -> Outcome {
    let key = place.bytes(key)?;
    let (db, family) = place.open_existing()?;
    db.delete_in(&family, key, &write_options(sync))?;
    Ok(db.close()?)
}

fn write_options(sync: bool) -> WriteOptions {
    WriteOptions {
        sync: Some(sync),
        ..WriteOptions::default()
    }
}
