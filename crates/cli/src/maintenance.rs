//! stats, explain, verify, repair, compact, checkpoint.

use std::path::Path;

use drumlin::{ColumnFamily, Db, Options};

use crate::args::{Compressing, Place};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::units;

/// Prints one property, or everything there is to say.
pub(crate) fn stats(place: &Place, property: Option<&str>, out: &mut Output) -> Outcome {
    let (db, family) = place.open_to_read()?;
    let name = property.unwrap_or("rocksdb.stats");
    match db.property(&family, name) {
        Some(text) => out.text(text.trim_end()),
        None => Err(Failure::NotFound(format!("there is no property '{name}'"))),
    }
}

/// Prints why a write waits and which tables a read searches.
pub(crate) fn explain(place: &Place, key: Option<&str>, out: &mut Output) -> Outcome {
    let key = key.map(|key| place.bytes(key)).transpose()?;
    let (db, family) = place.open_to_read()?;
    out.text(db.explain(&family, key.as_deref()).trim_end())
}

/// Rebuilds the MANIFEST and prints the files that were saved and lost.
pub(crate) fn repair(place: &Place, out: &mut Output) -> Outcome {
    let report = Db::repair(place.dir()?, &place.options())?;
    for (path, error) in &report.lost {
        out.text(format!("moved to lost: {}: {error}", path.display()))?;
    }
    out.text(format!(
        "{} tables, {} entries, families {}",
        units::count(report.tables as u64),
        units::count(report.entries),
        report.families.join(", "),
    ))?;
    match report.lost.len() {
        0 => out.text("all of it is sound; WAL files are replayed when it is opened next"),
        lost => {
            out.flush()?;
            Err(Failure::Check(format!("{lost} tables were lost")))
        }
    }
}

/// Reads every table whole, and every value in a blob file.
pub(crate) fn verify(place: &Place, out: &mut Output) -> Outcome {
    let (db, _) = place.open_to_read()?;
    let report = db.verify()?;
    for (path, error) in &report.damaged {
        out.text(format!("{}: {error}", path.display()))?;
    }
    out.text(format!(
        "{} tables, {}, {} entries read",
        units::count(report.tables),
        units::bytes(report.bytes),
        units::count(report.entries),
    ))?;
    if report.blob_files > 0 {
        let (files, blobs) = (units::count(report.blob_files), units::count(report.blobs));
        out.text(format!("{files} blob files, {blobs} values in them read"))?;
    }
    match report.damaged.len() {
        0 => out.text("all of it is sound"),
        damaged => {
            out.flush()?;
            Err(Failure::Check(format!("{damaged} files are damaged")))
        }
    }
}

/// Compacts a range and prints the size of the tree before and after.
pub(crate) fn compact(
    place: &Place,
    from: Option<&str>,
    to: Option<&str>,
    out: &mut Output,
) -> Outcome {
    let bound = |text: Option<&str>| text.map(|text| place.bytes(text)).transpose();
    let (from, to) = (bound(from)?, bound(to)?);
    let (db, family) = place.open_existing()?;
    let before = table_bytes(&db, &family);
    db.compact_range(&family, from.as_deref(), to.as_deref())?;
    show_table_bytes(before, &db, &family, out)?;
    Ok(db.close()?)
}

/// Writes everything anew in the family's format, which `compressing` changes first if it is given.
pub(crate) fn recode(place: &Place, compressing: Option<Compressing>, out: &mut Output) -> Outcome {
    let options = Options {
        create_if_missing: false,
        ..place.options()
    };
    let (db, family) = place.open_as(options, compressing)?;
    let before = table_bytes(&db, &family);
    db.recode(&family)?;
    show_table_bytes(before, &db, &family, out)?;
    Ok(db.close()?)
}

fn table_bytes(db: &Db, family: &ColumnFamily) -> u64 {
    let bytes = db.property(family, "rocksdb.total-sst-files-size");
    bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

fn show_table_bytes(before: u64, db: &Db, family: &ColumnFamily, out: &mut Output) -> Outcome {
    let (before, after) = (units::bytes(before), units::bytes(table_bytes(db, family)));
    out.text(format!("tables: {before} before, {after} after"))
}

/// Makes a copy at `target`.
pub(crate) fn checkpoint(place: &Place, target: &Path, out: &mut Output) -> Outcome {
    let (db, _) = place.open_existing()?;
    db.checkpoint(target)?;
    out.text(format!("the checkpoint is in {}", target.display()))?;
    Ok(db.close()?)
}
