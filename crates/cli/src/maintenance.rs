//! verify, repair, compact, checkpoint.

use std::path::{Path, PathBuf};

use drumlin::{CancelToken, ColumnFamily, Db, Error, Options, VerifyOptions};
use serde_json::{Value, json};

use crate::args::{Compressing, Place};
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::units;

/// Rebuilds the MANIFEST and prints the files that were saved and lost.
pub(crate) fn repair(place: &Place, out: &mut Output) -> Outcome {
    place.refuse_held("the store has to be closed")?;
    let progress = Progress::waiting("repair");
    let report = Db::repair(place.dir()?, &place.options());
    progress.finish();
    let report = report?;
    for (path, error) in &report.lost {
        out.remark_of_text(format!("moved to lost: {}: {error}", path.display()))?;
    }
    out.fact(
        format!(
            "{} tables, {} entries, families {}",
            units::count(report.tables as u64),
            units::count(report.entries),
            report.families.join(", "),
        ),
        json!({
            "tables": report.tables, "entries": report.entries, "families": report.families,
            "lost": damaged(&report.lost),
        }),
    )?;
    match report.lost.len() {
        0 => {
            out.remark_of_text("all of it is sound; WAL files are replayed when it is opened next")
        }
        lost => {
            out.flush()?;
            Err(Failure::Check(format!("{lost} tables were lost")))
        }
    }
}

/// Reads every table whole, and every value in a blob file.
pub(crate) fn verify(place: &Place, out: &mut Output) -> Outcome {
    let (db, _) = place.open_to_read()?;
    let (progress, interrupt) = (Progress::new("verify", Some(0)), Interrupt::new()?);
    let report = db.verify_with(&VerifyOptions {
        cancel: Some(interrupt.token.clone()),
        progress: Some(progress.listener()),
    });
    progress.finish();
    let report = report?;
    for (path, error) in &report.damaged {
        out.remark_of_text(format!("{}: {error}", path.display()))?;
    }
    out.fact(
        format!(
            "{} tables, {}, {} entries read",
            units::count(report.tables),
            units::bytes(report.bytes),
            units::count(report.entries),
        ),
        json!({
            "tables": report.tables, "bytes": report.bytes, "entries": report.entries,
            "blob_files": report.blob_files, "blobs": report.blobs, "damaged": damaged(&report.damaged),
            "cancelled": report.is_cancelled,
        }),
    )?;
    if report.blob_files > 0 {
        let (files, blobs) = (units::count(report.blob_files), units::count(report.blobs));
        out.remark_of_text(format!("{files} blob files, {blobs} values in them read"))?;
    }
    match report.damaged.len() {
        0 if report.is_cancelled => {
            out.flush()?;
            interrupt.check("what was read is sound, the rest was not read")
        }
        0 => out.remark_of_text("all of it is sound"),
        damaged => {
            out.flush()?;
            Err(Failure::Check(format!("{damaged} files are damaged")))
        }
    }
}

/// Files with what is wrong with them.
pub(crate) fn damaged(files: &[(PathBuf, Error)]) -> Value {
    let one = |(path, error): &(PathBuf, Error)| json!({"file": path, "error": error.to_string()});
    files.iter().map(one).collect()
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
    watched("compact", &db, |token| {
        db.compact_range_until(&family, from.as_deref(), to.as_deref(), token)
    })?;
    show_table_bytes(before, &db, &family, out)?;
    place.finish(db)
}

/// Writes everything anew in the family's format, which `compressing` changes first if it is given.
pub(crate) fn recode(place: &Place, compressing: Option<Compressing>, out: &mut Output) -> Outcome {
    let options = Options {
        create_if_missing: false,
        ..place.options()
    };
    let (db, family) = place.open_as(options, compressing)?;
    let before = table_bytes(&db, &family);
    watched("recode", &db, |token| db.recode_until(&family, token))?;
    show_table_bytes(before, &db, &family, out)?;
    place.finish(db)
}

/// Does `work` with a count of the bytes that compactions read, until CTRL-C cancels it.
fn watched(
    name: &'static str,
    db: &Db,
    work: impl FnOnce(&CancelToken) -> drumlin::Result<()>,
) -> Outcome {
    let interrupt = Interrupt::new()?;
    let progress = Progress::of_compactions(name, db)?;
    let outcome = work(&interrupt.token);
    progress.finish();
    if outcome.is_err() {
        interrupt.check("tables that were compacted stay so; the command goes on from there")?;
    }
    Ok(outcome?)
}

fn table_bytes(db: &Db, family: &ColumnFamily) -> u64 {
    let bytes = db.property(family, "rocksdb.total-sst-files-size");
    bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

fn show_table_bytes(before: u64, db: &Db, family: &ColumnFamily, out: &mut Output) -> Outcome {
    let after = table_bytes(db, family);
    out.fact(
        format!(
            "tables: {} before, {} after",
            units::bytes(before),
            units::bytes(after)
        ),
        json!({"family": family.name(), "bytes_before": before, "bytes_after": after}),
    )
}

/// Makes a copy at `target`.
pub(crate) fn checkpoint(place: &Place, target: &Path, out: &mut Output) -> Outcome {
    let (db, _) = place.open_existing()?;
    let progress = Progress::waiting("checkpoint");
    let made = db.checkpoint(target);
    progress.finish();
    made?;
    let text = format!("the checkpoint is in {}", target.display());
    out.fact(text, json!({"checkpoint": target}))?;
    place.finish(db)
}
