//! A consistent copy of the database in another directory, made of hard links.
//!
//! Tables, models and blob files are immutable, so they are linked; the WAL up to this moment is copied, so that nothing
//! has to be flushed; the MANIFEST is written anew. The target appears under its name only when it
//! is complete and on disk.

use std::path::{Path, PathBuf};

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{CreateOptions, FileKind};

use crate::engine::Engine;
use crate::names;
use crate::version::Version;

/// What a checkpoint consists of, pinned at one moment.
struct Moment {
    versions: Vec<std::sync::Arc<Version>>,
    wals: Vec<(u64, u64)>,
}

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

impl Engine {
    /// Makes `target` a copy of the database as of now.
    ///
    /// # Errors
    /// `InvalidArgument` when `target` exists; `NotSupported` where it is on another file system;
    /// `NoSpace`, `Io`. What was begun is removed again.
    pub(crate) fn checkpoint(&self, target: &Path) -> Result<()> {
        let files = &self.env.files;
        if files.exists(target)? {
            let message = "the target of a checkpoint must not exist";
            return Err(Error::invalid_argument(message).with_file(target));
        }
        let mut name = target.as_os_str().to_owned();
        name.push(".unfinished");
        let unfinished = PathBuf::from(name);
        self.remove_dir_with_files(&unfinished)?;
        files.create_dir_all(&unfinished)?;
        let moment = self.pin_moment(&unfinished);
        let made = moment.and_then(|moment| {
            let filled = self.fill_checkpoint(&moment, &unfinished);
            self.lock_state().wal_pins -= 1;
            filled
        });
        let made = made.and_then(|()| {
            files.rename(&unfinished, target)?;
            target
                .parent()
                .map_or(Ok(()), |parent| files.sync_dir(parent))
        });
        if made.is_err() {
            // The error that matters is the first; what is left over is removed next time.
            let _ = self.remove_dir_with_files(&unfinished);
        }
        made
    }

    /// Pins tables and WAL lengths at a moment between two write groups, and writes the MANIFEST
    /// that tells of it.
    fn pin_moment(&self, dir: &Path) -> Result<Moment> {
        self.lead_alone(|leader| {
            self.check_open()?;
            let mut state = self.lock_state();
            let oldest = state.versions.min_log_number();
            let mut wals = Vec::new();
            for &number in state.wals.range(oldest..) {
                let len = match leader.wal.len_of(number) {
                    Some(len) => len,
                    None => files_len(self, number)?,
                };
                wals.push((number, len));
            }
            let versions = state.families.values().map(|f| f.version.clone()).collect();
            state.versions.write_copy(dir)?;
            state.wal_pins += 1;
            Ok(Moment { versions, wals })
        })
    }

    fn fill_checkpoint(&self, moment: &Moment, dir: &Path) -> Result<()> {
        let files = &self.env.files;
        for version in &moment.versions {
            for (_, file) in version.files() {
                let from = self.table_cache.path(file.number);
                let name = from.file_name().unwrap_or_default();
                files.link(&from, &dir.join(name))?;
            }
            for id in version.files().filter_map(|(_, file)| file.model()) {
                let to = names::model(dir, id);
                if !files.exists(&to)? {
                    files.link(&names::model(&self.dir, id), &to)?;
                }
            }
            for &number in version.blobs().keys() {
                let from = names::blob(&self.dir, number);
                files.link(&from, &names::blob(dir, number))?;
            }
        }
        for &(number, len) in &moment.wals {
            let from = names::wal(&self.wal_dir, number);
            self.copy_file(&from, &names::wal(dir, number), len)?;
        }
        let identity = names::identity(dir);
        let mut file = files.create(&identity, CreateOptions::new(FileKind::Other))?;
        file.append(self.db_id.as_bytes())?;
        file.sync()?;
        file.close()?;
        files.sync_dir(dir)
    }

    /// Copies the first `len` bytes of a file and syncs the copy.
    pub(crate) fn copy_file(&self, from: &Path, to: &Path, len: u64) -> Result<()> {
        let source = self.env.files.open(from)?;
        let mut target = self
            .env
            .files
            .create(to, CreateOptions::new(FileKind::Other))?;
        let mut buffer = vec![0; COPY_BYTES];
        let mut at = 0;
        let len = match drumlin_base::bug!("checkpoint-without-wal") {
            true => len / 2,
            false => len,
        };
        while at < len {
            let wanted = usize::try_from(len - at)
                .unwrap_or(COPY_BYTES)
                .min(COPY_BYTES);
            let (chunk, _) = buffer.split_at_mut(wanted);
            let read = source.read_at(at, chunk)?;
            if read == 0 {
                let message = format!("the file ends at {at}, before {len}");
                return Err(Error::corruption(message).with_file(from));
            }
            target.append(chunk.get(..read).unwrap_or_default())?;
            at += read as u64;
        }
        target.sync()?;
        target.close()
    }

    fn remove_dir_with_files(&self, dir: &Path) -> Result<()> {
        let files = &self.env.files;
        let names = match files.list(dir) {
            Ok(names) => names,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for name in names {
            files.remove(&dir.join(name))?;
        }
        files.remove_dir(dir)
    }
}

fn files_len(engine: &Engine, wal: u64) -> Result<u64> {
    engine
        .env
        .files
        .info(&names::wal(&engine.wal_dir, wal))
        .map(|info| info.size)
}
