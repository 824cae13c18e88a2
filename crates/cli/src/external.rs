//! ingest, write-table: tables made outside the database.

use std::path::{Path, PathBuf};

use drumlin::{SstFileWriter, TableWriterOptions};
use drumlin_fs::Env;

use crate::args::Place;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::load::{Lines, split_line};
use crate::output::Output;
use crate::units;

/// Takes tables into the family of `place`.
pub(crate) fn ingest(
    place: &Place,
    files: &[PathBuf],
    move_files: bool,
    out: &mut Output,
) -> Outcome {
    let (db, family) = place.open_existing()?;
    db.ingest(&family, files, move_files)?;
    let count = units::count(files.len() as u64);
    out.text(format!(
        "{count} tables are in family '{}' now",
        family.name()
    ))?;
    Ok(db.close()?)
}

/// Writes the lines of `from` into the new table `table`. One that fails is removed.
pub(crate) fn write(place: &Place, table: &Path, from: &Path, out: &mut Output) -> Outcome {
    let env = Env::system();
    if env.files.exists(table)? {
        let text = format!("{} is there already", table.display());
        return Err(Failure::Usage(text));
    }
    let mut lines = Lines::new(input::open(from, &env)?);
    let writer = SstFileWriter::create(&env, table, TableWriterOptions::default())?;
    let written = fill(place, writer, &mut lines);
    let (rows, bytes) = written.inspect_err(|_| {
        // The failure that matters is the first.
        let _ = env.files.remove(table);
    })?;
    let (rows, bytes) = (units::count(rows), units::bytes(bytes));
    out.text(format!("{rows} rows in {}, {bytes}", table.display()))
}

/// How many lines were written, and the bytes of the table.
fn fill(place: &Place, mut writer: SstFileWriter, lines: &mut Lines) -> Outcome<(u64, u64)> {
    let mut rows = 0;
    while lines.next()? {
        let number = lines.number;
        let told = |what: String| Failure::Usage(format!("line {number}: {what}"));
        let (key, value) = split_line(place.form(), &lines.line).map_err(told)?;
        writer
            .put(&key, &value)
            .map_err(|error| error.context(format_args!("line {number}")))?;
        rows += 1;
    }
    Ok((rows, writer.finish()?))
}
