//! A bucket as a file system.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{
    Clock, CreateOptions, FileInfo, FileLock, FileSystem, RandomAccessFile, SystemClock,
    WritableFile,
};
use object_store::path::Path as Location;
use object_store::{ListResult, ObjectMeta, ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;

use crate::bucket::Bucket;
use crate::calls::Calls;
use crate::download::Download;
use crate::lock::{self, Wanted};
use crate::place::{Limits, Place};
use crate::upload::Upload;

/// How often a list is asked for whose answers end too early.
const LISTINGS: u32 = 5;

/// A bucket, below a prefix, as a file system: what `drumlin::Backups` needs of one; see the crate. Cheap to clone.
///
/// Its paths begin with [`Self::root`], and errors name them. What a store of objects cannot do, such as links and appends
/// to a file that is there, is `NotSupported`.
#[derive(Clone, Debug)]
pub struct ObjectFileSystem {
    bucket: Arc<Bucket>,
}

impl ObjectFileSystem {
    /// The place that `url` names, `s3://bucket/prefix`, `gs://..` or `az://..`. Nothing is asked yet.
    ///
    /// `settings` are names and values as the provider's own tools have them in the environment, such as
    /// `AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, `GOOGLE_APPLICATION_CREDENTIALS`, `AZURE_STORAGE_ACCOUNT_NAME`; those of
    /// others are passed over.
    ///
    /// # Errors
    /// `InvalidArgument` of a URL or settings that are not understood; `Io` when there are no threads.
    pub fn connect(
        url: &str,
        settings: impl IntoIterator<Item = (String, String)>,
        limits: &Limits,
    ) -> Result<Self> {
        let place = Place::parse(url)?;
        let calls = Calls::new(|| place.connect(settings, limits))?;
        Ok(Self::new(
            calls,
            place,
            limits,
            Arc::new(SystemClock::new()),
        ))
    }

    /// The same, with the settings that the environment has; those that are no text are passed over.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn from_env(url: &str, limits: &Limits) -> Result<Self> {
        let text = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::connect(url, text, limits)
    }

    /// A store that the program has, under the name `url`; `clock` is what locks are judged by.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn over(
        store: Arc<dyn ObjectStore>,
        url: &str,
        limits: &Limits,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let place = Place::parse(url)?;
        let calls = Calls::new(|| Ok(store))?;
        Ok(Self::new(calls, place, limits, clock))
    }

    fn new(calls: Calls, place: Place, limits: &Limits, clock: Arc<dyn Clock>) -> Self {
        let bucket = Bucket {
            calls: Arc::new(calls),
            root: place.root,
            prefix: place.prefix,
            limits: *limits,
            clock,
            made: Mutex::default(),
            held: Mutex::default(),
        };
        let bucket = Arc::new(bucket);
        Self { bucket }
    }

    /// What all paths begin with: the URL.
    pub fn root(&self) -> &Path {
        &self.bucket.root
    }

    fn head(&self, op: &str, path: &Path) -> Result<ObjectMeta> {
        let (store, location) = (self.bucket.store(), self.bucket.location(path)?);
        let request = async move { store.head(&location).await };
        self.bucket.calls.wait(op, path, request)
    }

    fn list_once(&self, dir: &Path, location: &Location) -> Result<ListResult> {
        let (store, below) = (self.bucket.store(), location.clone());
        let request = async move { store.list_with_delimiter(Some(&below)).await };
        self.bucket.calls.wait("list", dir, request)
    }

    fn listed(&self, dir: &Path) -> Result<Vec<(PathBuf, FileInfo)>> {
        let location = self.bucket.location(dir)?;
        let mut listed = self.list_once(dir, &location);
        for _ in 1..LISTINGS {
            match &listed {
                Err(error) if is_cut_listing(error) => listed = self.list_once(dir, &location),
                _ => break,
            }
        }
        let listed = listed.map_err(|error| match error.is_not_found() {
            // No list of names is missing but that of a bucket that is.
            true => error
                .with_kind(ErrorKind::InvalidArgument)
                .context("there is no such bucket"),
            false => error,
        })?;
        let found = infos_in(&listed, &location);
        if found.is_empty() && !self.bucket.made.lock().contains(dir) {
            let message = "nothing is there";
            return Err(Error::new(ErrorKind::NotFound, message).with_file(dir));
        }
        Ok(found)
    }
}

/// The names below `location`; a marker of a directory, as other tools make them, is none.
fn infos_in(listed: &ListResult, location: &Location) -> Vec<(PathBuf, FileInfo)> {
    let name = |found: &Location| {
        let name = found.prefix_match(location)?.next()?;
        Some(PathBuf::from(name.as_ref()))
    };
    let info = |size, is_dir| FileInfo {
        size,
        is_dir,
        links: 1,
        is_symlink: false,
    };
    let dirs = listed.common_prefixes.iter();
    let dirs = dirs.filter_map(|found| Some((name(found)?, info(0, true))));
    let objects = listed.objects.iter();
    let objects = objects.filter_map(|it| Some((name(&it.location)?, info(it.size, false))));
    dirs.chain(objects).collect()
}

/// Whether the answer ended too early, which the client below tries again of objects, and not of lists.
fn is_cut_listing(error: &Error) -> bool {
    error.to_string().contains("list response body")
}

fn cannot<T>(what: &str, path: &Path) -> Result<T> {
    let message = format!("a store of objects cannot {what}");
    Err(Error::not_supported(message).with_file(path))
}

impl FileSystem for ObjectFileSystem {
    fn create(&self, path: &Path, options: CreateOptions) -> Result<Box<dyn WritableFile>> {
        self.bucket.check_lock()?;
        let location = self.bucket.location(path)?;
        let expected = options.expected_bytes;
        Ok(Box::new(Upload::new(
            &self.bucket,
            path,
            location,
            expected,
        )))
    }

    fn reuse(&self, old: &Path, _: &Path, _: CreateOptions) -> Result<Box<dyn WritableFile>> {
        cannot("write over a part of an object", old)
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        let meta = self.head("open", path)?;
        let location = self.bucket.location(path)?;
        let file = Download::new(&self.bucket, path.to_owned(), location, meta);
        Ok(Arc::new(file))
    }

    fn open_direct(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        self.open(path)
    }

    fn takes_direct(&self, _: &Path) -> Result<bool> {
        Ok(false)
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        let found = self.listed(dir)?;
        Ok(found.into_iter().map(|(name, _)| name).collect())
    }

    fn list_with_infos(&self, dir: &Path) -> Result<Vec<(PathBuf, FileInfo)>> {
        self.listed(dir)
    }

    /// Of an object; a directory is known by listing it.
    fn info(&self, path: &Path) -> Result<FileInfo> {
        let size = self.head("look up", path)?.size;
        Ok(FileInfo {
            size,
            is_dir: false,
            links: 1,
            is_symlink: false,
        })
    }

    /// By a copy that the store makes, of up to 5 GB on S3.
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.bucket.check_lock()?;
        let (old, new) = (self.bucket.location(from)?, self.bucket.location(to)?);
        let store = self.bucket.store();
        let request = async move { store.rename(&old, &new).await };
        self.bucket.calls.wait("rename", from, request)
    }

    fn link(&self, from: &Path, _: &Path) -> Result<()> {
        cannot("give an object a second name", from)
    }

    /// An object that is not there may be removed.
    fn remove(&self, path: &Path) -> Result<()> {
        self.bucket.check_lock()?;
        let (store, location) = (self.bucket.store(), self.bucket.location(path)?);
        let request = async move { store.delete(&location).await };
        self.bucket.calls.wait("remove", path, request)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.create_dir(dir).map(|_| ())
    }

    /// Asks the store nothing: true but for one that was made here.
    fn create_dir(&self, dir: &Path) -> Result<bool> {
        Ok(self.bucket.made.lock().insert(dir.to_owned()))
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.bucket.made.lock().remove(dir);
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn sync_file(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn truncate(&self, path: &Path, _: u64) -> Result<()> {
        cannot("cut an object", path)
    }

    /// See [`Limits::lease`].
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        let wanted = Wanted {
            path: path.to_owned(),
            location: self.bucket.location(path)?,
            lease: self.bucket.limits.lease,
            number: drumlin_fs::Env::system().seed,
        };
        match lock::take(&self.bucket.calls, &self.bucket.clock, wanted)? {
            Some(held) => {
                let mut live = self.bucket.held.lock();
                live.retain(|lease| lease.strong_count() > 0);
                live.push(Arc::downgrade(&held.lease));
                Ok(Box::new(held))
            }
            None => Ok(Box::new(Unlocked)),
        }
    }

    fn free_space(&self, _: &Path) -> Result<u64> {
        Ok(u64::MAX)
    }

    fn names_whole_files(&self) -> bool {
        true
    }

    fn read_file(&self, path: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
        let (store, location) = (self.bucket.store(), self.bucket.location(path)?);
        let request = async move {
            let found = store.get(&location).await?;
            let size = found.meta.size;
            match size > limit_bytes {
                true => Ok(Err(size)),
                false => Ok(Ok(found.bytes().await?)),
            }
        };
        match self.bucket.calls.wait("read", path, request)? {
            Ok(bytes) => Ok(bytes.to_vec()),
            Err(size) => {
                let message = format!("the object has {size} bytes, more than {limit_bytes}");
                Err(Error::new(ErrorKind::TooLarge, message).with_file(path))
            }
        }
    }
}

/// The lock of a store that has none.
#[derive(Debug)]
struct Unlocked;

impl FileLock for Unlocked {}
