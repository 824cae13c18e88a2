//! A directory of backups: the handle a program holds.

use std::path::{Path, PathBuf};

use drumlin_base::{Error, Result};
use drumlin_fs::{Env, FileLock};

use super::catalog::{Catalog, Entry};
use super::check::{self, BackupCheck, CheckDepth};
use super::create::{self, BackupOptions, CreatedBackup, Target};
use super::layout::Layout;
use super::remove::{self, RemovedBackups};
use super::restore::{self, RestoreOptions, RestoredBackup};
use super::transfer::{Transfer, TransferOptions};
use crate::db::handle::Db;

/// A backup in a list.
#[derive(Debug)]
pub struct BackupInfo {
    /// Its number.
    pub id: u32,
    /// When it was begun, in seconds since 1970; 0 where its meta file cannot be understood, as all below.
    pub unix_seconds: u64,
    /// The last sequence number in it.
    pub seqno: u64,
    /// What its maker wanted to remember.
    pub note: Vec<u8>,
    /// Its files, those that it shares with others included.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that it leaves out, by their paths below the directory of backups.
    pub left_out: Vec<String>,
    /// Why it cannot be restored, as far as names and sizes tell; [`Backups::verify`] looks closer.
    pub damage: Option<Error>,
}

/// A directory of backups of one store, in the layout of RocksDB's backup engine: its programs list, verify and restore
/// what is made here, and the other way about.
///
/// Backups share the files that are the same in them, so one of a store that has not changed copies no table. A process
/// may be killed at any moment of any call: a backup is there whole, or not at all, and those made before are as they
/// were; the next call goes on from what was done.
///
/// Any number of threads and processes may read; who changes the directory holds its `LOCK`, a second one is refused.
/// RocksDB knows nothing of that lock.
///
/// ```
/// # fn main() -> drumlin::Result<()> {
/// # let dir = std::env::temp_dir().join(format!("drumlin-backups-{}", std::process::id()));
/// use drumlin::{BackupOptions, Backups, Db, Env, Options, RestoreOptions};
///
/// let db = Db::open(dir.join("db"), Options::default())?;
/// db.put(b"key", b"value")?;
/// let backups = Backups::new(dir.join("backups"), Env::system());
/// backups.create(&db, &BackupOptions::default())?;
/// db.delete(b"key")?;
/// backups.create(&db, &BackupOptions::default())?;
///
/// backups.restore(Some(1), dir.join("old"), &RestoreOptions::default())?;
/// let old = Db::open(dir.join("old"), Options::default())?;
/// assert_eq!(old.get(b"key")?.as_deref(), Some(&b"value"[..]));
/// backups.purge(1)?;
/// # drop((db, old));
/// # std::fs::remove_dir_all(&dir).expect("it is there");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Backups {
    layout: Layout,
    env: Env,
}

impl Backups {
    /// The backups in `dir`, through the files and clock of `env`. Nothing is looked at yet.
    pub fn new(dir: impl AsRef<Path>, env: Env) -> Self {
        let layout = Layout::new(dir.as_ref());
        Self { layout, env }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        self.layout.dir()
    }

    /// Makes a backup of `db` as of now; the directory is made if it is missing. Writes go on meanwhile; WAL files are
    /// copied first, tables at leisure.
    ///
    /// # Errors
    /// `InvalidArgument` when the directory is a database or has backups of another store; `Locked`; `NoSpace`, `Io`,
    /// `ReadOnly`; `Aborted`; `Shutdown` when the database is closed meanwhile; `NotFound` where a writer beside a
    /// read-only `db` has removed files since that was opened.
    pub fn create(&self, db: &Db, options: &BackupOptions) -> Result<CreatedBackup> {
        let _call = db.engine.store.begin_call()?;
        create::make_dirs(&*self.env.files, &self.layout)?;
        let _lock = self.lock()?;
        let catalog = self.catalog()?;
        let target = Target {
            env: &self.env,
            layout: &self.layout,
            catalog: &catalog,
        };
        let created = create::create(&db.engine, &target, options)?;
        drop(catalog);
        // The backup is there: what is left of others is tried again by the next change.
        if let Err(error) = remove::collect(&*self.env.files, &self.layout, &self.catalog()?) {
            tracing::warn!(%error, "files that belong to no backup stay for now");
        }
        Ok(created)
    }

    /// All backups, the oldest first, damaged ones too.
    ///
    /// # Errors
    /// `NotFound` where there is no directory of backups; `Io`.
    pub fn list(&self) -> Result<Vec<BackupInfo>> {
        let catalog = self.catalog()?;
        let sizes = &catalog.sizes;
        let infos = catalog.backups.iter().map(|(&id, entry)| {
            let meta = entry.meta.clone().unwrap_or_default();
            let bytes = meta.files.iter().filter_map(|file| sizes.get(&file.path));
            BackupInfo {
                id,
                unix_seconds: meta.unix_seconds,
                seqno: meta.seqno,
                bytes: bytes.sum(),
                files: meta.files.len() as u64,
                note: meta.note,
                left_out: meta.excluded,
                damage: entry.damage.as_ref().map(Error::duplicate),
            }
        });
        Ok(infos.collect())
    }

    /// Checks the backup `id`, or all of them.
    ///
    /// # Errors
    /// `NotFound`, `Aborted`, `Io`. Damage is in the report.
    pub fn verify(
        &self,
        id: Option<u32>,
        depth: CheckDepth,
        options: &TransferOptions,
    ) -> Result<BackupCheck> {
        let may_go_on = || Ok(());
        let mut transfer = Transfer::new(options, &self.env, &may_go_on);
        check::check(&self.env, &self.layout, id, depth, &mut transfer)
    }

    /// Restores the backup `id`, or the newest that is whole, as the database `target`. A database that is there is
    /// replaced only if `options` say so.
    ///
    /// # Errors
    /// `NotFound`; `Corruption` of the backup, `InvalidArgument` when a database is in the way, `Locked` when it is
    /// open, all before anything is changed; `NoSpace`, `Io`, `Aborted`, and `Corruption` of a file whose bytes have
    /// changed: `target` is then no database, and the next run goes on.
    pub fn restore(
        &self,
        id: Option<u32>,
        target: impl AsRef<Path>,
        options: &RestoreOptions,
    ) -> Result<RestoredBackup> {
        restore::restore(&self.env, &self.layout, id, target.as_ref(), options)
    }

    /// Removes a backup, whole or damaged.
    ///
    /// # Errors
    /// `NotFound`, `Locked`, `Io`, `ReadOnly`.
    pub fn delete(&self, id: u32) -> Result<RemovedBackups> {
        self.refuse_none()?;
        let _lock = self.lock()?;
        let catalog = self.catalog()?;
        if !catalog.backups.contains_key(&id) {
            return Err(catalog.not_found(&self.layout, Some(id)));
        }
        remove::remove(&*self.env.files, &self.layout, catalog, vec![id])
    }

    /// Removes all backups that are whole, or leave out files, but the newest `keep`, and what runs that were cut short have
    /// left. Damaged ones are not counted and stay.
    ///
    /// # Errors
    /// `NotFound` where there is no directory of backups; `Locked`, `Io`, `ReadOnly`.
    pub fn purge(&self, keep: usize) -> Result<RemovedBackups> {
        self.refuse_none()?;
        let _lock = self.lock()?;
        let catalog = self.catalog()?;
        let is_as_made = |it: &Entry| it.damage.is_none() || it.leaves_out();
        let whole = catalog.backups.iter().filter(|(_, it)| is_as_made(it));
        let mut ids: Vec<u32> = whole.map(|(&id, _)| id).collect();
        ids.truncate(ids.len().saturating_sub(keep));
        remove::remove(&*self.env.files, &self.layout, catalog, ids)
    }

    fn catalog(&self) -> Result<Catalog> {
        Catalog::load(&*self.env.files, &self.layout)
    }

    /// Refuses a directory without backups, in which no lock shall be made.
    fn refuse_none(&self) -> Result<()> {
        self.catalog().map(|_| ())
    }

    fn lock(&self) -> Result<Box<dyn FileLock>> {
        let path: PathBuf = self.layout.lock();
        self.env.files.lock(&path)
    }
}
