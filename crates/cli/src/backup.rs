//! backup create, list, verify, purge, delete; restore.

use std::path::Path;

use clap::{Args, Subcommand};
use drumlin::{
    BackupInfo, BackupOptions, Backups, CheckDepth, CreatedBackup, Env, RateLimit, RemovedBackups,
    RestoreOptions, TransferOptions,
};

use serde_json::{Value, json};

use crate::args::Place;
use crate::backup_place::BackupPlace;
use crate::escape::Form;
use crate::failure::{Failure, Outcome};
use crate::formats::json::bytes_object;
use crate::interrupt::Interrupt;
use crate::maintenance::damaged;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{self, parse_bytes};

/// How often a store is opened anew when a writer beside the backup has removed files since.
const TRIES: u32 = 8;

#[derive(Debug, Subcommand)]
pub(crate) enum BackupTask {
    /// Add a backup of --db, as of now. The database may be in use; nothing in it is changed.
    Create {
        #[command(flatten)]
        at: BackupPlace,
        /// Text that is shown with the backup.
        #[arg(long, value_name = "TEXT", default_value = "")]
        note: String,
        #[command(flatten)]
        pace: Pace,
    },
    /// List the backups, the oldest first.
    List {
        #[command(flatten)]
        at: BackupPlace,
    },
    /// Check names and sizes, and the small files of each backup whole.
    Verify {
        #[command(flatten)]
        at: BackupPlace,
        /// The backup; without it, all.
        id: Option<u32>,
        /// Read every byte and compare checksums.
        #[arg(long)]
        checksums: bool,
        #[command(flatten)]
        pace: Pace,
    },
    /// Remove all backups but the newest, and what interrupted runs have left.
    Purge {
        #[command(flatten)]
        at: BackupPlace,
        /// How many are kept; damaged ones stay and are not counted.
        #[arg(long, value_name = "N")]
        keep: usize,
    },
    /// Remove one backup.
    Delete {
        #[command(flatten)]
        at: BackupPlace,
        /// The backup.
        id: u32,
    },
}

/// Brings back a backup.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    #[command(flatten)]
    at: BackupPlace,
    /// The backup; without it, the newest that is whole.
    id: Option<u32>,
    /// Lose the database that is in --db now.
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    pace: Pace,
}

/// How fast.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Pace {
    /// Bytes read a second; without it, as many as the disk gives.
    #[arg(long, value_name = "BYTES", value_parser = parse_rate)]
    rate: Option<u64>,
}

fn parse_rate(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        0 => Err("a rate is at least 1 byte a second".to_owned()),
        rate => Ok(rate),
    }
}

impl Pace {
    fn transfer(self, progress: &Progress, interrupt: &Interrupt) -> TransferOptions {
        TransferOptions {
            rate: self.rate.map_or(RateLimit::Unlimited, RateLimit::Fixed),
            cancel: Some(interrupt.token.clone()),
            progress: Some(progress.listener()),
        }
    }
}

/// Carries out one of the tasks.
pub(crate) fn backup(place: &Place, task: BackupTask, out: &mut Output) -> Outcome {
    match task {
        BackupTask::Create { at, note, pace } => create(place, &at, note, pace, out),
        BackupTask::List { at } => list(&at.open()?, out),
        BackupTask::Verify {
            at,
            id,
            checksums,
            pace,
        } => {
            let depth = match checksums {
                true => CheckDepth::Checksums,
                false => CheckDepth::Sizes,
            };
            verify(&at.open()?, id, depth, pace, out)
        }
        BackupTask::Purge { at, keep } => {
            show_removed(&at.open()?.purge(keep).map_err(Failure::Backup)?, out)
        }
        BackupTask::Delete { at, id } => {
            show_removed(&at.open()?.delete(id).map_err(Failure::Backup)?, out)
        }
    }
}

fn create(place: &Place, at: &BackupPlace, note: String, pace: Pace, out: &mut Output) -> Outcome {
    let backups = at.open()?;
    let progress = Progress::new("backup", Some(0));
    let interrupt = Interrupt::new()?;
    let options = BackupOptions {
        note: note.into_bytes(),
        transfer: pace.transfer(&progress, &interrupt),
        leaves_out: None,
    };
    let mut tries = 0;
    let created = loop {
        // Read-only, so that a server may go on; what it removes meanwhile is in no newer moment.
        let (db, _) = place.open_to_read()?;
        tries += 1;
        match backups.create(&db, &options) {
            Err(error) if error.is_not_found() && tries < TRIES => {}
            made => break made,
        }
    };
    progress.finish();
    if created.is_err() {
        interrupt
            .check("there is no new backup; what was copied whole is not copied again next time")?;
    }
    show_created(&created?, &at.dir, out)
}

fn show_created(created: &CreatedBackup, dir: &Path, out: &mut Output) -> Outcome {
    out.fact(
        format!(
            "backup {} in {}: {} files, {}; copied {} of them, {}",
            created.id,
            dir.display(),
            units::count(created.files),
            units::bytes(created.bytes),
            units::count(created.files_copied),
            units::bytes(created.bytes_copied),
        ),
        json!({
            "id": created.id, "dir": dir, "files": created.files, "bytes": created.bytes,
            "files_copied": created.files_copied, "bytes_copied": created.bytes_copied,
        }),
    )
}

fn list(backups: &Backups, out: &mut Output) -> Outcome {
    let listed = backups.list().map_err(Failure::Backup)?;
    if listed.is_empty() {
        return out.remark_of_text("there is no backup");
    }
    out.remark_of_text("      id  made (UTC)              files       size  note")?;
    for backup in &listed {
        out.fact(line(backup), object(backup))?;
    }
    Ok(())
}

/// A backup as JSON.
fn object(backup: &BackupInfo) -> Value {
    let mut object = bytes_object("note", Form::Plain, &backup.note);
    object.insert("id".to_owned(), backup.id.into());
    object.insert("unix_seconds".to_owned(), backup.unix_seconds.into());
    object.insert("files".to_owned(), backup.files.into());
    object.insert("bytes".to_owned(), backup.bytes.into());
    let damage = backup.damage.as_ref().map(ToString::to_string);
    object.insert("damage".to_owned(), damage.into());
    Value::Object(object)
}

/// A backup on a line.
fn line(backup: &BackupInfo) -> String {
    let mut note = Vec::new();
    Form::new(false).write(&backup.note, &mut note);
    let mut rest = String::from_utf8_lossy(&note).into_owned();
    if let Some(damage) = &backup.damage {
        rest = format!("damaged: {damage}");
    }
    let line = format!(
        "{:>8}  {}  {:>9}  {:>9}  {rest}",
        backup.id,
        units::moment(backup.unix_seconds),
        units::count(backup.files),
        units::bytes(backup.bytes),
    );
    line.trim_end().to_owned()
}

fn verify(
    backups: &Backups,
    id: Option<u32>,
    depth: CheckDepth,
    pace: Pace,
    out: &mut Output,
) -> Outcome {
    let progress = Progress::new("verify", Some(0));
    let interrupt = Interrupt::new()?;
    let checked = backups.verify(id, depth, &pace.transfer(&progress, &interrupt));
    progress.finish();
    if checked.is_err() {
        interrupt.check("nothing was found to be damaged so far, and not all was read")?;
    }
    let checked = checked.map_err(Failure::Backup)?;
    for (path, error) in &checked.damaged {
        out.remark_of_text(format!("{}: {error}", path.display()))?;
    }
    out.fact(
        format!(
            "{} backups, {} files, {} read",
            units::count(checked.backups),
            units::count(checked.files),
            units::bytes(checked.bytes_read),
        ),
        json!({
            "backups": checked.backups, "files": checked.files, "bytes_read": checked.bytes_read,
            "damaged": damaged(&checked.damaged),
        }),
    )?;
    match checked.damaged.len() {
        0 => out.remark_of_text("all of it is sound"),
        damaged => {
            out.flush()?;
            Err(Failure::Check(format!("{damaged} files are damaged")))
        }
    }
}

fn show_removed(removed: &RemovedBackups, out: &mut Output) -> Outcome {
    let ids: Vec<String> = removed.ids.iter().map(u32::to_string).collect();
    let what = match ids.len() {
        0 => "no backup removed".to_owned(),
        _ => format!("removed: {}", ids.join(", ")),
    };
    let (files, bytes) = (units::count(removed.files), units::bytes(removed.bytes));
    out.fact(
        format!("{what}; {files} files gone, {bytes}"),
        json!({
            "removed": removed.ids, "files": removed.files, "bytes": removed.bytes,
            "kept_for_damaged": removed.kept_for_damaged,
        }),
    )?;
    match removed.kept_for_damaged {
        true => out.remark_of_text(
            "files without a backup stay, as the meta file of a damaged backup cannot be understood",
        ),
        false => Ok(()),
    }
}

/// Restores a backup as the database of `--db`.
pub(crate) fn restore(place: &Place, wanted: &Restore, out: &mut Output) -> Outcome {
    place.refuse_held("the store has to be closed")?;
    let target = place.dir()?;
    let (progress, interrupt) = (Progress::new("restore", Some(0)), Interrupt::new()?);
    let backups = wanted.at.open()?;
    let options = RestoreOptions {
        files: Some(Env::system().files),
        wal_dir: place.wal_dir.clone(),
        replace: wanted.replace,
        transfer: wanted.pace.transfer(&progress, &interrupt),
    };
    let restored = backups.restore(wanted.id, target, &options);
    progress.finish();
    if restored.is_err() {
        interrupt.check("the database is not whole; restore goes on with what is there already")?;
    }
    let restored = restored.map_err(Failure::Backup)?;
    out.fact(
        format!(
            "backup {} is in {}: {} files, {}; {} of them were there already",
            restored.id,
            target.display(),
            units::count(restored.files),
            units::bytes(restored.bytes),
            units::count(restored.files_kept),
        ),
        json!({
            "id": restored.id, "dir": target, "files": restored.files, "bytes": restored.bytes,
            "files_kept": restored.files_kept,
        }),
    )
}
