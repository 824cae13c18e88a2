//! Open blob files, and the limit on how many there are.
//!
//! A fixed number of places in sets of four, found by the file's number: file numbers are given out
//! in turn, so live files spread evenly over the sets. Finding an open file reads one cache line of
//! numbers and one pointer. It takes no lock and writes nothing that readers share but a mark, once. A
//! file that is not open is opened under its set's lock and takes the place of one that was not read
//! since the set was last full. Places are made when the first blob is read.
//!
//! Values themselves are not cached here: see [`BlobCache::read`].
//!
//! Invariant: a file is removed from disk only once no version names it, and every read comes with a
//! version that names its file. So a file that [`BlobCache::evict`] closed is not opened again.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwapOption, Guard};
use drumlin_base::sync::Mutex;
use drumlin_base::{Error, ErrorKind, PinnedSlice, Result};
use drumlin_fs::FileSystem;
use drumlin_table::blob::{BlobIndex, BlobReader};
use drumlin_table::{ReadTier, TableReadOptions};

use crate::caches::table_cache::is_too_many_open;
use crate::files::names;
use crate::version::Version;

/// Places in a set.
const WAYS: usize = 4;
/// Fewest sets, so that reads keep moving.
const SETS_MIN: usize = 4;
/// Of the files a database may keep open, one in so many may be a blob file.
const BLOB_ONE_IN: usize = 4;

/// Finds the open blob file of a reference, opening it if need be. Shared by all threads.
///
/// One handle serves one family; all handles of a database share the places. Cheap to clone by
/// [`BlobCache::for_family`].
pub struct BlobCache {
    shared: Arc<Shared>,
    family_id: u32,
}

struct Shared {
    files: Arc<dyn FileSystem>,
    dir: PathBuf,
    set_count: usize,
    sets: OnceLock<Box<[Set]>>,
}

/// Four places. Places change under the lock only.
#[derive(Default)]
struct Set {
    /// Number of the file in each place; 0 for none. A hint: the reader in the place decides.
    numbers: [AtomicU64; WAYS],
    /// Made when it is first filled: dropping a place asks all threads for their borrows of it, which for
    /// thousands of places that were never used took milliseconds of each closing.
    readers: [OnceLock<ArcSwapOption<BlobReader>>; WAYS],
    /// Whether the place was read since the set was last full.
    used: [AtomicBool; WAYS],
    opener: Mutex<()>,
}

/// An open file, borrowed from its place or owned.
type Found = Guard<Option<Arc<BlobReader>>>;

impl BlobCache {
    /// The number of places for blob files among `open_max` files that may be open.
    pub fn share_of(open_max: usize) -> usize {
        sets_for(open_max) * WAYS
    }

    /// A cache for the blob files in `dir` of a database that may keep `open_max` files open; a
    /// handle for the default family.
    pub fn new(files: Arc<dyn FileSystem>, dir: PathBuf, open_max: usize) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::new(Shared {
                files,
                dir,
                set_count: sets_for(open_max),
                sets: OnceLock::new(),
            }),
            family_id: 0,
        })
    }

    /// The same cache for the files of another family.
    pub fn for_family(&self, family_id: u32) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::clone(&self.shared),
            family_id,
        })
    }

    /// The value of `user_key` that `index` refers to.
    ///
    /// It is read from the file and belongs to the caller; nothing is kept. Blobs stay with the
    /// system's page cache, because the budget does more with blocks: a cached block of 4 KiB serves
    /// a hundred references, as many bytes of a blob less than one value, and both copies would take
    /// memory. A copy of ours would save a read that the page cache serves: 1.4 to 2.8 µs for 10,000
    /// bytes, with 0.7 µs for the checksum (whole gets 2.4 to 3.2 µs; RocksDB's 11 to 16 in the same
    /// minute). A mapping would save the copy, but turns a failing disk into a signal.
    ///
    /// Requires: `version` is the one the reference was found in.
    ///
    /// # Errors
    /// `Incomplete` for reads that may not touch files; `Corruption`, also for a file that is
    /// missing or that `version` does not name; `Io`.
    pub fn read(
        &self,
        version: &Version,
        user_key: &[u8],
        index: &BlobIndex,
        options: &TableReadOptions,
    ) -> Result<PinnedSlice> {
        self.with_open(version, index.file, options, |reader| {
            reader.get(user_key, index, options.verify_checksums)
        })
    }

    /// Runs `read` on the open file `number`.
    ///
    /// # Errors
    /// As [`BlobCache::read`], and the errors of `read`.
    #[inline]
    pub fn with_open<R>(
        &self,
        version: &Version,
        number: u64,
        options: &TableReadOptions,
        read: impl FnOnce(&BlobReader) -> Result<R>,
    ) -> Result<R> {
        if options.tier != ReadTier::Disk {
            return Err(self.not_cached(number));
        }
        if let Some(found) = self.find_open(number)
            && let Some(reader) = found.as_deref()
        {
            return read(reader);
        }
        read(&*self.open(version, number)?)
    }

    /// The open file `number`, for reading many of its values.
    ///
    /// # Errors
    /// As [`BlobCache::read`].
    pub fn find(&self, version: &Version, number: u64) -> Result<Arc<BlobReader>> {
        match self.find_open(number).and_then(|found| found.clone()) {
            Some(reader) => Ok(reader),
            None => self.open(version, number),
        }
    }

    /// Closes file `number`, which is about to be removed, once the last reader releases it.
    pub fn evict(&self, number: u64) {
        let Some(sets) = self.shared.sets.get() else {
            return;
        };
        let Some(set) = set_of(sets, number) else {
            return;
        };
        let _one_at_a_time = set.opener.lock();
        for way in 0..WAYS {
            if set.number(way) == number && !drumlin_base::bug!("evicted-blob-file-stays-open") {
                set.put(way, None);
            }
        }
    }

    /// Files that are open now.
    pub fn open_count(&self) -> usize {
        let sets = self.shared.sets.get();
        let places = sets.into_iter().flatten().flat_map(|set| &set.readers);
        let used = places.filter_map(OnceLock::get);
        used.filter(|place| place.load().is_some()).count()
    }

    #[inline]
    fn find_open(&self, number: u64) -> Option<Found> {
        set_of(self.shared.sets.get()?, number)?.find(number)
    }

    #[cold]
    fn open(&self, version: &Version, number: u64) -> Result<Arc<BlobReader>> {
        let path = names::blob(&self.shared.dir, number);
        let Some(known) = version.blobs().get(&number) else {
            let message = "an entry refers to a blob file that is not part of the database";
            return Err(Error::corruption(message).with_file(&path));
        };
        let sets = self.shared.sets.get_or_init(|| {
            let sets = (0..self.shared.set_count).map(|_| Set::default());
            sets.collect()
        });
        let set = set_of(sets, number).expect("there are at least SETS_MIN sets");
        let guard = set.opener.lock();
        if let Some(reader) = set.find(number).and_then(|found| found.clone()) {
            return Ok(reader);
        }
        let open = || BlobReader::open(&*self.shared.files, &path, number);
        let reader = match open() {
            Err(error) if is_too_many_open(&error) => {
                set.clear();
                open()
            }
            opened => opened,
        };
        let reader = Arc::new(reader.map_err(|error| {
            match error.kind() {
                ErrorKind::NotFound => error
                    .with_kind(ErrorKind::Corruption)
                    .context("a blob file of the MANIFEST is missing"),
                _ => error,
            }
        })?);
        let addition = &known.addition;
        let family = if drumlin_base::bug!("blob-file-of-another-family") {
            self.family_id
        } else {
            reader.header().family_id
        };
        let (count, bytes) = (reader.blob_count(), reader.blob_bytes());
        if (family, count, bytes) != (self.family_id, addition.blob_count, addition.blob_bytes) {
            let message = format!(
                "the blob file has {count} blobs of {bytes} bytes in family {family}, the MANIFEST \
                 says {} of {} in family {}",
                addition.blob_count, addition.blob_bytes, self.family_id
            );
            return Err(Error::corruption(message).with_file(&path));
        }
        let former = set.put(set.victim(), Some(Arc::clone(&reader)));
        drop(guard);
        drop(former); // Closed, perhaps, under no lock.
        Ok(reader)
    }

    #[cold]
    fn not_cached(&self, number: u64) -> Error {
        let path = names::blob(&self.shared.dir, number);
        Error::new(ErrorKind::Incomplete, "values in blob files are not cached").with_file(&path)
    }
}

impl Set {
    #[inline]
    fn number(&self, way: usize) -> u64 {
        // Relaxed: a hint, see the field.
        self.numbers[way].load(Ordering::Relaxed)
    }

    #[inline]
    fn find(&self, number: u64) -> Option<Found> {
        for way in 0..WAYS {
            if self.number(way) != number {
                continue;
            }
            let found = self.readers[way].get()?.load();
            if found
                .as_ref()
                .is_some_and(|reader| reader.number() == number)
            {
                let used = &self.used[way];
                // A store only when it changes something keeps the line shared between readers.
                if !used.load(Ordering::Relaxed) {
                    used.store(true, Ordering::Relaxed);
                }
                return Some(found);
            }
        }
        None
    }

    /// The place to fill next: an empty one, else one that was not read since the set was last full.
    ///
    /// Requires: the lock is held.
    fn victim(&self) -> usize {
        if let Some(empty) = (0..WAYS).find(|&way| self.number(way) == 0) {
            return empty;
        }
        let is_unused = |used: &AtomicBool| !used.load(Ordering::Relaxed);
        if let Some(unused) = self.used.iter().position(is_unused) {
            return unused;
        }
        for used in &self.used {
            used.store(false, Ordering::Relaxed);
        }
        0
    }

    /// Puts `reader` into place `way` and gives the former one.
    ///
    /// Requires: the lock is held.
    fn put(&self, way: usize, reader: Option<Arc<BlobReader>>) -> Option<Arc<BlobReader>> {
        let number = reader.as_ref().map_or(0, |reader| reader.number());
        self.numbers[way].store(number, Ordering::Relaxed);
        self.used[way].store(true, Ordering::Relaxed);
        self.readers[way]
            .get_or_init(ArcSwapOption::empty)
            .swap(reader)
    }

    fn clear(&self) {
        for way in 0..WAYS {
            self.put(way, None);
        }
    }
}

fn sets_for(open_max: usize) -> usize {
    (open_max / BLOB_ONE_IN / WAYS).max(SETS_MIN)
}

#[inline]
fn set_of(sets: &[Set], number: u64) -> Option<&Set> {
    sets.get((number % sets.len().max(1) as u64) as usize)
}

impl fmt::Debug for BlobCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobCache")
            .field("dir", &self.shared.dir)
            .field("family_id", &self.family_id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use drumlin_fs::{
        CreateOptions, Fault, FaultFileSystem, FaultRule, FileKind, OpKind, StrictMemFileSystem,
    };
    use drumlin_table::blob::BlobWriter;
    use drumlin_table::{Codec, Compression};

    use super::*;
    use crate::version::{BlobFile, BlobFileAddition};

    const DIR: &str = "/db";

    struct Fixture {
        files: FaultFileSystem,
        cache: Arc<BlobCache>,
        version: Version,
        indexes: Vec<BlobIndex>,
    }

    /// `count` blob files of one value each, of family 0.
    fn fixture(count: u64, open_max: usize) -> Fixture {
        let files = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
        files.create_dir_all(Path::new(DIR)).unwrap();
        let (mut blobs, mut indexes) = (BTreeMap::new(), Vec::new());
        for number in 1..=count {
            let path = names::blob(Path::new(DIR), number);
            let file = files.create(&path, CreateOptions::new(FileKind::Blob));
            let compression = Compression::new(Codec::None);
            let mut writer = BlobWriter::new(file.unwrap(), number, 0, compression).unwrap();
            indexes.push(writer.add(b"key", &number.to_be_bytes()).unwrap());
            let info = writer.finish().unwrap();
            let addition = BlobFileAddition::from(info);
            let file = BlobFile {
                addition: addition.into(),
                ..BlobFile::default()
            };
            blobs.insert(number, file);
        }
        files.record_history();
        Fixture {
            cache: BlobCache::new(Arc::new(files.clone()), PathBuf::from(DIR), open_max),
            files,
            version: Version::empty().with_blobs(blobs),
            indexes,
        }
    }

    impl Fixture {
        fn read(&self, index: &BlobIndex) -> Result<PinnedSlice> {
            let options = TableReadOptions::default();
            self.cache.read(&self.version, b"key", index, &options)
        }

        /// How often a file was opened.
        fn opened(&self) -> usize {
            let history = self.files.history();
            history.iter().filter(|(op, _)| *op == OpKind::Open).count()
        }
    }

    #[test]
    fn a_file_is_opened_once_and_found_by_everybody() {
        let fixture = fixture(1, 100);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| fixture.read(&fixture.indexes[0]).unwrap());
            }
        });
        assert_eq!((fixture.opened(), fixture.cache.open_count()), (1, 1));
        let other = fixture.cache.for_family(1);
        assert_eq!(other.open_count(), 1, "families share the places");
    }

    #[test]
    fn no_more_files_are_open_than_there_are_places() {
        let fixture = fixture(100, 0);
        let most = BlobCache::share_of(0);
        for round in 0..3 {
            for (number, index) in (1u64..).zip(&fixture.indexes) {
                let value = fixture.read(index).unwrap();
                assert_eq!(value, number.to_be_bytes()[..], "round {round}");
                assert!(fixture.cache.open_count() <= most);
            }
        }
        // Those read last are still there.
        let opened = fixture.opened();
        for index in fixture.indexes.iter().rev().take(SETS_MIN) {
            fixture.read(index).unwrap();
        }
        assert_eq!(fixture.opened(), opened);
    }

    #[test]
    fn an_evicted_file_is_closed_and_the_others_stay() {
        let fixture = fixture(3, 100);
        for index in &fixture.indexes {
            fixture.read(index).unwrap();
        }
        fixture.cache.evict(2);
        fixture.cache.evict(77);
        assert_eq!(fixture.cache.open_count(), 2);
        fixture.read(&fixture.indexes[0]).unwrap();
        assert_eq!(fixture.opened(), 3);
    }

    #[test]
    fn reads_from_the_cache_only_touch_no_file() {
        let fixture = fixture(1, 100);
        let options = TableReadOptions {
            tier: ReadTier::BlockCache,
            ..TableReadOptions::default()
        };
        fixture.read(&fixture.indexes[0]).unwrap();
        let index = &fixture.indexes[0];
        let error = fixture
            .cache
            .read(&fixture.version, b"key", index, &options);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Incomplete);
    }

    #[test]
    fn files_that_are_missing_foreign_or_not_as_the_manifest_says_are_refused() {
        let fixture = fixture(2, 100);
        let index = fixture.indexes[0];
        let unknown = BlobIndex { file: 9, ..index };
        let error = fixture.read(&unknown).unwrap_err();
        assert!(error.is_corruption(), "{error}");
        let of_family_3 = fixture.cache.for_family(3);
        let options = TableReadOptions::default();
        let error = of_family_3.read(&fixture.version, b"key", &index, &options);
        assert!(error.unwrap_err().is_corruption());
        let path = names::blob(Path::new(DIR), 1);
        fixture.files.remove(&path).unwrap();
        let error = fixture.read(&index).unwrap_err();
        assert!(error.is_corruption(), "{error}");
        assert_eq!(error.file(), Some(&*path));
        // A sound file under another's name.
        fixture
            .files
            .rename(&names::blob(Path::new(DIR), 2), &path)
            .unwrap();
        let mut blobs = fixture.version.blobs().clone();
        let first = blobs.get_mut(&1).unwrap();
        let mut addition = BlobFileAddition::clone(&first.addition);
        addition.blob_bytes += 1;
        first.addition = addition.into();
        let version = Version::empty().with_blobs(blobs);
        let error = fixture.cache.read(&version, b"key", &index, &options);
        assert!(error.unwrap_err().is_corruption());
        assert_eq!(fixture.cache.open_count(), 0);
    }

    #[test]
    fn too_many_open_files_close_some_and_a_failed_open_is_tried_again_later() {
        let fixture = fixture(1, 100);
        let rule = FaultRule::once(0, Fault::TooManyFiles).on(OpKind::Open);
        fixture.files.add_rule(rule);
        fixture.read(&fixture.indexes[0]).unwrap();
        fixture.cache.evict(1);
        fixture.files.clear_rules();
        let rule = FaultRule::once(0, Fault::Io).on(OpKind::Open);
        fixture.files.add_rule(rule);
        let error = fixture.read(&fixture.indexes[0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        fixture.read(&fixture.indexes[0]).unwrap();
    }
}
