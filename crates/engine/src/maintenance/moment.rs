//! The files of a store at one moment, held for a copy: a checkpoint or a backup.
//!
//! The moment lies between two write groups. Its versions keep tables and blob files from being removed as long as they
//! are held; WAL files are kept by [`UnderWay`].

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::{Error, ErrorKind, Result, SeqNo};
use drumlin_fs::{CreateOptions, FileKind, FileSystem};

use crate::caches::table_cache::TableCache;
use crate::db::engine::Engine;
use crate::files::names;
use crate::options::file as options_file;
use crate::options::file::OptionsFile;
use crate::options::stored as stored_options;
use crate::version::{FileMeta, ManifestCopy, Version};
use crate::wal::replay as wal_replay;

/// A copy under way: keeps WAL files from being removed, and the directory from being given back, until it is dropped.
pub(crate) struct UnderWay<'a>(&'a Engine);

impl<'a> UnderWay<'a> {
    /// # Errors
    /// `Shutdown`.
    pub(crate) fn begin(engine: &'a Engine) -> Result<Self> {
        let mut state = engine.store.lock_state();
        // Under the lock, as a closing thread looks at the count under it.
        engine.store.check_open()?;
        state.wal_pins += 1;
        Ok(Self(engine))
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.0.store.lock_state();
        state.wal_pins -= 1;
        if !self.0.store.id.read_only {
            // Files that became obsolete meanwhile.
            self.0.store.remove_obsolete(&mut state);
        }
        self.0.store.changed.notify_all();
    }
}

/// A file that is not changed any more.
pub(crate) struct ImmutableFile {
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
    /// The table, whose properties tell the session that wrote it; of no other kind of file.
    pub(crate) table: Option<(Arc<TableCache>, Arc<FileMeta>)>,
}

/// See the module.
pub(crate) struct Moment {
    versions: Vec<(Arc<TableCache>, Arc<Version>)>,
    wals: Vec<(u64, u64)>,
    manifest: ManifestCopy,
    /// The number of the live MANIFEST and its bytes; none where it is not written.
    live_manifest: Option<(u64, u64)>,
    /// With the number of their file; `None` where the directory has no such file.
    options: Option<(u64, OptionsFile)>,
    seqno: SeqNo,
}

impl Moment {
    /// This moment. Requires: an [`UnderWay`] is held as long as WAL files are read.
    ///
    /// # Errors
    /// `Shutdown`, `Io`.
    pub(crate) fn pin(engine: &Engine) -> Result<Self> {
        if engine.store.id.follows {
            let message = "a copy of what a follower has: copy the database itself, or a read-only open of it";
            return Err(Error::not_supported(message).with_file(&engine.store.id.dir));
        }
        let stored = stored_options::read(&engine.store.id.dir, &engine.store.id.options)?;
        engine.writes.run_exclusive(|log| {
            engine.store.check_open()?;
            let state = engine.store.lock_state();
            let oldest = state.versions.min_log_number();
            // Where nothing may be written the WALs that were replayed, up to where they were.
            let mut wals = engine.store.id.recovered().wals.clone();
            for &number in state.wals.range(oldest..) {
                let len = match log.wal.len_of(number) {
                    Some(len) => len,
                    None => wal_len(engine, number)?,
                };
                wals.push((number, len));
            }
            let families = state.families.values();
            let versions =
                families.map(|f| (Arc::clone(&f.family.reads.tables), f.version.clone()));
            let versions = versions.collect();
            // Before the MANIFEST, which records the next number.
            let options = match engine.store.id.leveldb {
                true => None,
                false => Some((
                    engine.store.files.numbers.take(),
                    stored_options::options_of_copy(&engine.store, &state, stored),
                )),
            };
            Ok(Self {
                versions,
                wals,
                manifest: state.versions.copy()?,
                live_manifest: state
                    .versions
                    .manifest_bytes()
                    .map(|bytes| (state.versions.manifest_number(), bytes)),
                options,
                seqno: engine.store.visible_seqno(),
            })
        })
    }

    /// The last sequence number in it.
    pub(crate) fn seqno(&self) -> SeqNo {
        self.seqno
    }

    /// WAL files by number, and how many of their bytes belong to it.
    pub(crate) fn wals(&self) -> &[(u64, u64)] {
        &self.wals
    }

    /// The number of the live MANIFEST, and how many of its bytes belong to it; `None` where it is not written.
    pub(crate) fn live_manifest(&self) -> Option<(u64, u64)> {
        self.live_manifest
    }

    /// The OPTIONS file of a copy, under a number of its own.
    pub(crate) fn options(&self) -> Option<(u64, &OptionsFile)> {
        let (number, options) = self.options.as_ref()?;
        Some((*number, options))
    }

    /// Tables, models and blob files, each once.
    ///
    /// # Errors
    /// `Io` of a file whose size is asked for.
    pub(crate) fn immutable_files(&self, engine: &Engine) -> Result<Vec<ImmutableFile>> {
        let dir = &engine.store.id.dir;
        let (mut found, mut models, mut blobs) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for (tables, version) in &self.versions {
            for (_, file) in version.files() {
                models.extend(file.model());
                found.push(ImmutableFile {
                    path: tables.path(file.number),
                    size: file.size,
                    table: Some((Arc::clone(tables), Arc::clone(file))),
                });
            }
            blobs.extend(version.blobs().keys().copied());
        }
        let models = models.into_iter().map(|id| names::model(dir, id));
        let blobs = blobs.into_iter().map(|number| names::blob(dir, number));
        for path in models.chain(blobs) {
            let size = engine.store.id.env.files.open(&path)?.size();
            let table = None;
            found.push(ImmutableFile { path, size, table });
        }
        Ok(found)
    }

    /// Writes its MANIFEST and CURRENT.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub(crate) fn write_manifest(&self, files: &dyn FileSystem, dir: &Path) -> Result<()> {
        self.manifest.write(files, dir)
    }

    /// Writes OPTIONS and IDENTITY. LevelDB's directories have none, which is how they are recognized.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub(crate) fn write_descriptions(
        &self,
        engine: &Engine,
        files: &dyn FileSystem,
        dir: &Path,
    ) -> Result<()> {
        if let Some((number, options)) = &self.options {
            options_file::write(files, dir, *number, options)?;
        }
        if engine.store.id.leveldb {
            return Ok(());
        }
        let identity = names::identity(dir);
        let mut file = files.create(&identity, CreateOptions::new(FileKind::Other))?;
        file.append(engine.store.id.db_id.as_bytes())?;
        file.sync()?;
        file.close()
    }
}

/// Refuses the copy of a WAL file that a writer beside a read-only store has begun to write another over.
///
/// # Errors
/// `NotFound`; `Io`.
pub(crate) fn check_wal_is_there(engine: &Engine, number: u64, len: u64) -> Result<()> {
    let path = names::wal(&engine.store.id.wal_dir, number);
    let is_gone = || {
        let file = engine.store.id.env.files.open(&path)?;
        Ok(!wal_replay::begins_with_own(file, number)?)
    };
    if engine.store.id.read_only && len > 0 && is_gone()? {
        let message = "a writer has flushed the WAL since this was opened for reading";
        return Err(Error::new(ErrorKind::NotFound, message).with_file(&path));
    }
    Ok(())
}

fn wal_len(engine: &Engine, number: u64) -> Result<u64> {
    let path = names::wal(&engine.store.id.wal_dir, number);
    engine.store.id.env.files.info(&path).map(|info| info.size)
}
