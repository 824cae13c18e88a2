//! Making a backup of an open store.
//!
//! Order of what reaches the disk: shared files, each under its name only when it is whole; the backup's own files; the
//! names of all of them; last, the meta file, whose name makes the backup exist. What a run that was cut short has left
//! is used by the next one, and otherwise removed by it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{CreateOptions, Env, FileKind, FileSystem};

use super::catalog::{Catalog, names_in};
use super::layout::{Layout, PRIVATE};
use super::meta::{Meta, MetaFile};
use super::plan::{self, Action, Planned};
use super::transfer::{Source, Transfer, TransferOptions};
use crate::db::engine::Engine;
use crate::files::names;
use crate::maintenance::moment::{Moment, UnderWay, check_wal_is_there};

/// The longest note, as in RocksDB.
const NOTE_BYTES_MAX: usize = 1 << 20;
/// Bytes of the file with a store's id that are looked at.
const IDENTITY_BYTES_MAX: u64 = 4096;

/// Says of a shared file, by its path below the directory of backups, whether it is left out.
pub type LeavesOut = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// How a backup is made.
#[derive(Clone, Default)]
pub struct BackupOptions {
    /// Anything worth remembering, for whoever lists the backups; RocksDB's "app metadata".
    pub note: Vec<u8>,
    /// How it is copied.
    pub transfer: TransferOptions,
    /// Is asked of each file that would be copied for other backups, too, before any is. A backup that leaves files out, which lie
    /// elsewhere, is listed and not restored here; RocksDB restores it with the directories where they are. `None` leaves out nothing.
    pub leaves_out: Option<LeavesOut>,
}

impl fmt::Debug for BackupOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackupOptions")
            .field("note", &self.note)
            .field("transfer", &self.transfer)
            .field("leaves_out", &self.leaves_out.is_some())
            .finish()
    }
}

/// A backup that was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreatedBackup {
    /// Its number; higher than those of all that were there.
    pub id: u32,
    /// Its files, and their bytes.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The files of these that had to be copied.
    pub files_copied: u64,
    /// Their bytes.
    pub bytes_copied: u64,
}

/// Where a backup goes.
pub(super) struct Target<'a> {
    pub(super) env: &'a Env,
    pub(super) layout: &'a Layout,
    pub(super) catalog: &'a Catalog,
}

/// Makes a backup of `engine` as of now.
///
/// # Errors
/// `InvalidArgument` when the directory has backups of another store, or the note is too long; `NoSpace`, `Io`,
/// `Aborted`; `Shutdown` when the store is closed meanwhile. The backup's own files are removed then, and shared ones
/// stay for the next run; backups made before are as they were.
pub(super) fn create(
    engine: &Engine,
    target: &Target<'_>,
    options: &BackupOptions,
) -> Result<CreatedBackup> {
    if options.note.len() > NOTE_BYTES_MAX {
        let message = format!("a note has at most {NOTE_BYTES_MAX} bytes");
        return Err(Error::invalid_argument(message));
    }
    refuse_another_store(engine, target)?;
    let newest = target.catalog.backups.keys().next_back().copied();
    let id = newest.unwrap_or(0).checked_add(1);
    let id = id.ok_or_else(|| Error::invalid_argument("there is no higher number for a backup"))?;
    let files = &*target.env.files;
    let private = target.layout.private(id);
    remove_dir_with_files(files, &private)?;
    files.create_dir(&private)?;
    let may_go_on = || engine.store.check_open();
    let mut new = NewBackup {
        engine,
        target,
        id,
        private: &private,
        transfer: Transfer::new(&options.transfer, target.env, &may_go_on),
        leaves_out: options.leaves_out.as_ref(),
        found: Vec::new(),
        excluded: Vec::new(),
        created: CreatedBackup {
            id,
            ..CreatedBackup::default()
        },
    };
    let made = new.fill(&options.note);
    if made.is_err() {
        // The error that matters is the first.
        let _ = discard(files, target.layout, id);
    }
    made
}

/// Takes back a backup that failed. Its meta file may have its name already, and goes first then: while that is there,
/// its files have to be.
fn discard(files: &dyn FileSystem, layout: &Layout, id: u32) -> Result<()> {
    let meta = layout.meta(id);
    if files.exists(&meta)? && !drumlin_base::bug!("backup-discarded-files-first") {
        files.remove(&meta)?;
        files.sync_dir(&layout.meta_dir())?;
    }
    remove_dir_with_files(files, &layout.private(id))
}

/// Refuses to put a store beside another one: whoever restores the newest would get either.
fn refuse_another_store(engine: &Engine, target: &Target<'_>) -> Result<()> {
    let ids = target.catalog.backups.keys().rev();
    let identities = ids.map(|&id| names::identity(&target.layout.private(id)));
    for identity in identities {
        let found = match target.env.files.read_file(&identity, IDENTITY_BYTES_MAX) {
            // RocksDB's backups have none.
            Err(error) if error.is_not_found() => continue,
            other => other?,
        };
        if found.trim_ascii() != engine.store.id.db_id.as_bytes() {
            let found = String::from_utf8_lossy(&found).into_owned();
            let message = format!(
                "the directory has backups of another store, {}; this one is {}",
                found.trim(),
                engine.store.id.db_id
            );
            return Err(Error::invalid_argument(message).with_file(target.layout.dir()));
        }
        return Ok(());
    }
    Ok(())
}

/// A backup that is being made.
struct NewBackup<'a> {
    engine: &'a Engine,
    target: &'a Target<'a>,
    id: u32,
    private: &'a Path,
    transfer: Transfer<'a>,
    leaves_out: Option<&'a LeavesOut>,
    found: Vec<MetaFile>,
    excluded: Vec<String>,
    created: CreatedBackup,
}

impl NewBackup<'_> {
    fn fill(&mut self, note: &[u8]) -> Result<CreatedBackup> {
        let unix_seconds = self.target.env.clock.unix_seconds();
        let moment = self.take_moment()?;
        moment.write_descriptions(self.engine, &*self.target.env.files, self.private)?;
        self.add_own_files()?;
        self.add_shared_files(&moment)?;
        self.sync_names()?;
        let meta = Meta {
            unix_seconds,
            seqno: moment.seqno(),
            note: note.to_vec(),
            files: std::mem::take(&mut self.found),
            excluded: std::mem::take(&mut self.excluded),
        };
        self.write_meta(&meta)?;
        Ok(self.created)
    }

    /// Pins a moment and copies what a store that goes on would change of it.
    fn take_moment(&mut self) -> Result<Moment> {
        let engine = self.engine;
        let _under_way = UnderWay::begin(engine)?;
        let moment = Moment::pin(engine)?;
        moment.write_manifest(&*self.target.env.files, self.private)?;
        for &(number, len) in moment.wals() {
            self.transfer.expect(len);
            let path = names::wal(&engine.store.id.wal_dir, number);
            let source = Source {
                files: &*engine.store.id.env.files,
                path: &path,
                len,
            };
            let to = names::wal(self.private, number);
            self.transfer
                .copy(source, &*self.target.env.files, &to, None)?;
            check_wal_is_there(engine, number, len)?;
        }
        Ok(moment)
    }

    /// Notes every file of the backup's own directory, as it reads back.
    fn add_own_files(&mut self) -> Result<()> {
        let files = &*self.target.env.files;
        for name in names_in(files, self.private)?.unwrap_or_default() {
            let path = self.private.join(&name);
            let len = files.info(&path)?.size;
            self.transfer.expect(len);
            let path = &*path;
            let crc32c = self.transfer.checksum(Source { files, path, len })?;
            self.created.files_copied += 1;
            self.created.bytes_copied += len;
            self.note_file(format!("{PRIVATE}/{}/{name}", self.id), crc32c, len);
        }
        Ok(())
    }

    fn add_shared_files(&mut self, moment: &Moment) -> Result<()> {
        let mut planned = Vec::new();
        for file in moment.immutable_files(self.engine)? {
            self.engine.store.check_open()?;
            let plan = plan::plan(self.engine, self.target.catalog, &file, &mut self.transfer)?;
            let is_left_out = |leaves_out: &LeavesOut| leaves_out(&plan.relative());
            let is_there = matches!(plan.action, Action::Keep(_));
            if !is_there && self.leaves_out.is_some_and(is_left_out) {
                self.excluded.push(plan.relative());
                continue;
            }
            self.transfer.expect(plan.bytes_to_read());
            planned.push(plan);
        }
        for plan in &planned {
            let crc32c = match plan.action {
                Action::Keep(crc32c) => crc32c,
                Action::Compare => self.compare_or_copy(plan)?,
                Action::Copy(known) => self.copy(plan, known)?,
            };
            self.note_file(plan.relative(), crc32c, plan.size);
        }
        Ok(())
    }

    /// Takes a file that was left if it has the bytes of the store's.
    fn compare_or_copy(&mut self, plan: &Planned) -> Result<u32> {
        let ours = self.transfer.checksum(source_of(self.engine, plan))?;
        let theirs = self.transfer.checksum(Source {
            files: &*self.target.env.files,
            path: &self.target.layout.file(&plan.relative()),
            len: plan.size,
        });
        match theirs {
            Ok(theirs) if theirs == ours => Ok(ours),
            Err(error) if error.kind() == ErrorKind::Aborted => Err(error),
            _ => self.copy(plan, Some(ours)),
        }
    }

    /// Copies a file; it has its name only when it is whole.
    fn copy(&mut self, plan: &Planned, known: Option<u32>) -> Result<u32> {
        let (files, layout) = (&*self.target.env.files, self.target.layout);
        let to = layout.file(&plan.relative());
        let source = source_of(self.engine, plan);
        let crc32c = match files.names_whole_files() {
            true => self.transfer.copy(source, files, &to, known)?,
            false => {
                let temp = layout.shared_temp(&plan.name);
                let crc32c = self.transfer.copy(source, files, &temp, known)?;
                files.rename(&temp, &to)?;
                crc32c
            }
        };
        self.created.files_copied += 1;
        self.created.bytes_copied += plan.size;
        Ok(crc32c)
    }

    fn note_file(&mut self, path: String, crc32c: u32, bytes: u64) {
        self.created.files += 1;
        self.created.bytes += bytes;
        self.found.push(MetaFile {
            path,
            crc32c: Some(crc32c),
            size: None,
        });
    }

    /// Makes the names of all files outlive a power cut.
    fn sync_names(&self) -> Result<()> {
        let (files, layout) = (&*self.target.env.files, self.target.layout);
        if !drumlin_base::bug!("backup-names-unsynced") {
            files.sync_dir(&layout.shared_dir())?;
        }
        files.sync_dir(self.private)?;
        files.sync_dir(&layout.private_dir())
    }

    fn write_meta(&self, meta: &Meta) -> Result<()> {
        let (files, layout) = (&*self.target.env.files, self.target.layout);
        let named_at_once = files.names_whole_files();
        let path = match named_at_once {
            true => layout.meta(self.id),
            false => layout.meta_temp(self.id),
        };
        let mut file = files.create(&path, CreateOptions::new(FileKind::Other))?;
        file.append(meta.encode().as_bytes())?;
        file.sync()?;
        file.close()?;
        if !named_at_once {
            files.rename(&path, &layout.meta(self.id))?;
        }
        files.sync_dir(&layout.meta_dir())
    }
}

fn source_of<'a>(engine: &'a Engine, plan: &'a Planned) -> Source<'a> {
    Source {
        files: &*engine.store.id.env.files,
        path: &plan.source,
        len: plan.size,
    }
}

/// Makes the directories of a backup directory that are missing.
///
/// # Errors
/// `InvalidArgument` when a database is there; `Io`, `NoSpace`, `ReadOnly`.
pub(super) fn make_dirs(files: &dyn FileSystem, layout: &Layout) -> Result<()> {
    if files.exists(&names::current(layout.dir()))? {
        let message = "this is a database, no directory for backups";
        return Err(Error::invalid_argument(message).with_file(layout.dir()));
    }
    files.create_dir_all(layout.dir())?;
    for dir in [layout.meta_dir(), layout.private_dir(), layout.shared_dir()] {
        files.create_dir(&dir)?;
    }
    files.sync_dir(layout.dir())?;
    match layout.dir().parent() {
        Some(parent) if !parent.as_os_str().is_empty() => files.sync_dir(parent),
        _ => Ok(()),
    }
}

/// Removes a directory of files, if it is there.
///
/// # Errors
/// `Io`.
pub(super) fn remove_dir_with_files(files: &dyn FileSystem, dir: &Path) -> Result<()> {
    let Some(names) = names_in(files, dir)? else {
        return Ok(());
    };
    for name in names {
        files.remove(&dir.join(name))?;
    }
    files.remove_dir(dir)
}
