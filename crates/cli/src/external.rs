//! ingest, write-table: tables made outside the database.

use std::path::{Path, PathBuf};

use drumlin::{SstFileWriter, TableWriterOptions};
use drumlin_fs::Env;
use serde_json::json;

use crate::args::Place;
use crate::failure::{Failure, Outcome};
use crate::formats::EntryFormat;
use crate::formats::read::{Entries, Step};
use crate::input;
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
    let text = format!("{count} tables are in family '{}' now", family.name());
    out.fact(
        text,
        json!({"tables": files.len(), "family": family.name()}),
    )?;
    place.finish(db)
}

/// Writes the entries of `from` into the new table `table`. One that fails is removed.
pub(crate) fn write(
    place: &Place,
    table: &Path,
    (from, format): (&Path, EntryFormat),
    out: &mut Output,
) -> Outcome {
    let env = Env::system();
    if env.files.exists(table)? {
        let text = format!("{} is there already", table.display());
        return Err(Failure::Usage(text));
    }
    let mut entries = Entries::new(input::open(from, &env)?, format, place.form());
    let writer = SstFileWriter::create(&env, table, TableWriterOptions::default())?;
    let written = fill(writer, &mut entries);
    let (rows, bytes) = written.inspect_err(|_| {
        // The failure that matters is the first.
        let _ = env.files.remove(table);
    })?;
    entries.progress.finish();
    let json = json!({"table": table, "rows": rows, "bytes": bytes});
    let (rows, bytes) = (units::count(rows), units::bytes(bytes));
    let text = format!("{rows} rows in {}, {bytes}", table.display());
    out.fact(text, json)
}

/// How many entries were written, and the bytes of the table.
fn fill(mut writer: SstFileWriter, entries: &mut Entries) -> Outcome<(u64, u64)> {
    let mut rows = 0;
    loop {
        match entries.next()? {
            Step::Entry => {}
            Step::Bad(what) => return Err(entries.refuse(&what)),
            Step::End => return Ok((rows, writer.finish()?)),
        }
        let (unit, number) = (entries.unit(), entries.number);
        writer
            .put(&entries.key, &entries.value)
            .map_err(|error| error.context(format_args!("{unit} {number}")))?;
        rows += 1;
    }
}
