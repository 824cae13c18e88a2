//! A family together with its database: what it is asked, it does.

use std::fmt;
use std::ops::{Bound, Deref, RangeBounds};

use drumlin_base::key::after_prefix;
use drumlin_base::{Error, ErrorKind, KeyOrder, PinnedSlice, Result};

use crate::db::handle::Db;
use crate::db::range::{Bounds, Entry, Range};
use crate::family::column_family::ColumnFamily;
use crate::options::settings::{FamilyOptions, ReadOptions, WriteOptions};
use crate::read::DbIterator;

/// A family that does what it is asked. Cheap to clone; it keeps the database open, and every method may be called from any
/// thread.
///
/// Methods take the defaults of [`ReadOptions`] and [`WriteOptions`]; those of [`Db`] that end in `_cf` take others, and a
/// handle is the [`ColumnFamily`] that they want.
///
/// ```
/// # fn main() -> drumlin::Result<()> {
/// # let dir = std::env::temp_dir().join(format!("drumlin-doc-family-{}", std::process::id()));
/// use drumlin::{Db, FamilyOptions, Options};
///
/// let db = Db::open(&dir, Options::default())?;
/// let users = db.open_family("users", FamilyOptions::default())?;
/// users.put("ann", "1")?;
/// users.put("bob", "2")?;
/// assert_eq!(users.get("ann")?.as_deref(), Some(&b"1"[..]));
///
/// let names = users.range("a".."b").keys().collect::<drumlin::Result<Vec<_>>>()?;
/// assert_eq!(names, [b"ann"]);
/// assert_eq!(users.iter().next_back().transpose()?.map(|it| it.key), Some(b"bob".to_vec()));
/// # drop(users);
/// # db.close()?;
/// # std::fs::remove_dir_all(&dir).expect("it is there");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FamilyHandle {
    db: Db,
    family: ColumnFamily,
}

impl Db {
    /// The family called `name`.
    ///
    /// # Errors
    /// `NotFound`, with the name, where there is none: [`Db::open_family`] makes it.
    pub fn family(&self, name: &str) -> Result<FamilyHandle> {
        let found = self.column_family(name);
        let missing = || Error::new(ErrorKind::NotFound, format!("no column family {name:?}"));
        found.map(|family| self.handle(family)).ok_or_else(missing)
    }

    /// The family called `name`, made with `options` if there is none. One that is there has the options that the database
    /// was opened with ([`Db::open_families`], [`Db::open_all_families_as`]).
    ///
    /// # Errors
    /// As [`Db::create_family`]; `InvalidArgument` where the family is there in another key order than that of `options`.
    pub fn open_family(&self, name: &str, options: FamilyOptions) -> Result<FamilyHandle> {
        let wanted = options.order.name().to_owned();
        let family = match self.column_family(name) {
            Some(family) => family,
            None => match self.create_family(name, options) {
                Ok(family) => family,
                // Another thread made it meanwhile.
                Err(error) => self.column_family(name).ok_or(error)?,
            },
        };
        let present = family.order().name();
        if present != wanted {
            return Err(Error::invalid_argument(format!(
                "column family {name:?} has the key order {present}, not {wanted}"
            )));
        }
        Ok(self.handle(family))
    }

    fn handle(&self, family: ColumnFamily) -> FamilyHandle {
        FamilyHandle {
            db: self.clone(),
            family,
        }
    }
}

impl FamilyHandle {
    /// The database.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// As [`Db::get_cf`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<PinnedSlice>> {
        self.db.get_cf(&self.family, key, &ReadOptions::default())
    }

    /// The values of `keys`, in their order, all as of one moment.
    ///
    /// # Errors
    /// The first of [`Db::multi_get_cf`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<PinnedSlice>>> {
        let found = self
            .db
            .multi_get_cf(&self.family, keys, &ReadOptions::default());
        found.into_iter().collect()
    }

    /// Whether there is a value of `key`. Costs a get.
    ///
    /// # Errors
    /// As [`Db::get_cf`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.db
            .put_cf(&self.family, key, value, &WriteOptions::default())
    }

    /// Removes `key`. Removing an absent key is no error.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.db
            .delete_cf(&self.family, key, &WriteOptions::default())
    }

    /// Removes every key from `begin` up to, not including, `end`.
    ///
    /// # Errors
    /// As [`Db::delete_range_cf`].
    pub fn delete_range(&self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        let options = WriteOptions::default();
        self.db.delete_range_cf(&self.family, begin, end, &options)
    }

    /// Adds `operand` to `key` for the family's merge operator.
    ///
    /// # Errors
    /// As [`Db::merge_cf`].
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.db
            .merge_cf(&self.family, key, operand, &WriteOptions::default())
    }

    /// All entries as of now.
    pub fn iter(&self) -> Range {
        self.walk(Bounds {
            start: Bound::Unbounded,
            end: Bound::Unbounded,
        })
    }

    /// The entries of a range of keys as of now, such as `"a".."b"` or `key..`; all of them are [`FamilyHandle::iter`]'s.
    /// The range means the order of the family's keys.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Range {
        let owned = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
        self.walk(Bounds {
            start: owned(range.start_bound()),
            end: owned(range.end_bound()),
        })
    }

    /// The entries whose keys begin with `prefix`, as of now.
    ///
    /// # Errors
    /// `NotSupported` in a family whose order does not keep them together: any but the bytewise one.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Range> {
        if !matches!(self.family.order(), KeyOrder::Bytewise) {
            return Err(Error::not_supported(format!(
                "prefixes of keys in the order {}",
                self.family.order().name()
            )));
        }
        let prefix = prefix.as_ref();
        Ok(self.walk(Bounds {
            start: Bound::Included(prefix.to_vec()),
            end: after_prefix(prefix).map_or(Bound::Unbounded, Bound::Excluded),
        }))
    }

    /// The first entry.
    ///
    /// # Errors
    /// Of the walk.
    pub fn first(&self) -> Result<Option<Entry>> {
        self.iter().next().transpose()
    }

    /// The last entry.
    ///
    /// # Errors
    /// Of the walk.
    pub fn last(&self) -> Result<Option<Entry>> {
        self.iter().next_back().transpose()
    }

    /// A cursor: what a range stands on, for those who count nanoseconds.
    pub fn cursor(&self, options: ReadOptions) -> DbIterator {
        self.db.iter_cf(&self.family, options)
    }

    pub(super) fn walk(&self, bounds: Bounds) -> Range {
        let options = bounds.read_options();
        let front = self.db.iter_cf(&self.family, options.clone());
        Range::new(self.family.clone(), front, bounds, &options)
    }
}

impl Deref for FamilyHandle {
    type Target = ColumnFamily;

    fn deref(&self) -> &ColumnFamily {
        &self.family
    }
}

impl fmt::Debug for FamilyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.family.fmt(f)
    }
}
