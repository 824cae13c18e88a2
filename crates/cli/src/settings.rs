//! set, delete-files: options by name, and tables taken out of a range.

use serde_json::json;

use crate::args::Place;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::units;

/// Sets options of the family, or of the database.
pub(crate) fn set(
    place: &Place,
    options: &[String],
    of_database: bool,
    out: &mut Output,
) -> Outcome {
    let pairs = options.iter().map(|option| {
        option.split_once('=').ok_or_else(|| {
            Failure::Usage(format!(
                "'{option}' is no NAME=VALUE, such as write_buffer_size=64M"
            ))
        })
    });
    let pairs: Vec<(&str, &str)> = pairs.collect::<Outcome<_>>()?;
    let (db, family) = place.open_existing()?;
    match of_database {
        true => db.set_db_options(&pairs)?,
        false => db.set_options(&family, &pairs)?,
    }
    for (name, value) in pairs {
        out.fact(
            format!("{name}={value}"),
            json!({"option": name, "value": value}),
        )?;
    }
    place.finish(db)
}

/// Takes out the tables within a range.
pub(crate) fn delete_files(
    place: &Place,
    (from, to): (Option<&str>, Option<&str>),
    all: bool,
    out: &mut Output,
) -> Outcome {
    if from.is_none() && to.is_none() && !all {
        let message = "name a range with --from and --to, or everything with --all";
        return Err(Failure::Usage(message.to_owned()));
    }
    let bound = |text: Option<&str>| text.map(|text| place.bytes(text)).transpose();
    let (from, to) = (bound(from)?, bound(to)?);
    let (db, family) = place.open_existing()?;
    let deleted = db.delete_files_in_range(&family, from.as_deref(), to.as_deref())?;
    out.fact(
        format!(
            "{} tables with {} are gone",
            units::count(deleted.tables),
            units::bytes(deleted.bytes)
        ),
        json!({"tables": deleted.tables, "bytes": deleted.bytes}),
    )?;
    place.finish(db)
}
