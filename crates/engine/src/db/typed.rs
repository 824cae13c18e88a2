//! A family whose keys and values have types.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use drumlin_base::{Error, KeyOrder, Result};

use crate::db::codec::{KeyCodec, ValueCodec};
use crate::db::family_handle::FamilyHandle;
use crate::db::range::{Bounds, Entry, Range};

/// A family whose keys and values have types: see [`FamilyHandle::typed`]. Nothing on disk tells the types, so the program
/// has to use the same ones each time; bytes that are no key or value of theirs are `Corruption`.
///
/// ```
/// # fn main() -> drumlin::Result<()> {
/// # let dir = std::env::temp_dir().join(format!("drumlin-doc-typed-{}", std::process::id()));
/// use drumlin::{Db, FamilyOptions, Options, TypedFamily};
///
/// let db = Db::open(&dir, Options::default())?;
/// let visits: TypedFamily<(String, u64), u32> =
///     db.open_family("visits", FamilyOptions::default())?.typed()?;
/// visits.put(&("ann".to_owned(), 3), &20)?;
/// visits.put(&("ann".to_owned(), 12), &30)?;
/// visits.put(&("bob".to_owned(), 1), &40)?;
/// let of_ann = visits.range(("ann".to_owned(), 0)..("ann".to_owned(), u64::MAX));
/// let sum: u32 = of_ann.map(|it| it.map(|(_, count)| count)).sum::<drumlin::Result<u32>>()?;
/// assert_eq!(sum, 50);
/// # drop(visits);
/// # db.close()?;
/// # std::fs::remove_dir_all(&dir).expect("it is there");
/// # Ok(())
/// # }
/// ```
pub struct TypedFamily<K, V> {
    family: FamilyHandle,
    types: PhantomData<fn(K) -> V>,
}

impl<K, V> Clone for TypedFamily<K, V> {
    fn clone(&self) -> Self {
        Self {
            family: self.family.clone(),
            types: PhantomData,
        }
    }
}

impl<K, V> fmt::Debug for TypedFamily<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.family.fmt(f)
    }
}

impl FamilyHandle {
    /// The same family with keys and values of types.
    ///
    /// # Errors
    /// `NotSupported` in a family of another order than the bytewise one, which the codecs keep to.
    pub fn typed<K: KeyCodec, V: ValueCodec>(&self) -> Result<TypedFamily<K, V>> {
        TypedFamily::new(self.clone())
    }
}

fn key_bytes<K: KeyCodec>(key: &K) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode(&mut bytes);
    bytes
}

fn decoded<K: KeyCodec, V: ValueCodec>(entry: &Entry) -> Result<(K, V)> {
    Ok((K::decode(&entry.key)?, V::decode(&entry.value)?))
}

impl<K: KeyCodec, V: ValueCodec> TypedFamily<K, V> {
    pub(super) fn new(family: FamilyHandle) -> Result<Self> {
        if !matches!(family.order(), KeyOrder::Bytewise) {
            return Err(Error::not_supported(format!(
                "typed keys in the order {}",
                family.order().name()
            )));
        }
        Ok(Self {
            family,
            types: PhantomData,
        })
    }

    /// The family in bytes.
    pub fn family(&self) -> &FamilyHandle {
        &self.family
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// As [`crate::Db::get_cf`]; `Corruption` where the bytes are no value of this type.
    pub fn get(&self, key: &K) -> Result<Option<V>> {
        let value = self.family.get(key_bytes(key))?;
        value.map(|bytes| V::decode(&bytes)).transpose()
    }

    /// Whether there is a value of `key`. Costs a get.
    ///
    /// # Errors
    /// As [`crate::Db::get_cf`].
    pub fn contains(&self, key: &K) -> Result<bool> {
        self.family.contains(key_bytes(key))
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// As [`crate::Db::write`].
    pub fn put(&self, key: &K, value: &V) -> Result<()> {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        self.family.put(key_bytes(key), bytes)
    }

    /// Removes `key`. Removing an absent key is no error.
    ///
    /// # Errors
    /// As [`crate::Db::write`].
    pub fn delete(&self, key: &K) -> Result<()> {
        self.family.delete(key_bytes(key))
    }

    /// All entries as of now.
    pub fn iter(&self) -> TypedRange<K, V> {
        TypedRange::new(self.family.iter())
    }

    /// The entries of a range of keys as of now.
    pub fn range(&self, range: impl RangeBounds<K>) -> TypedRange<K, V> {
        let encoded = |bound: Bound<&K>| bound.map(key_bytes);
        TypedRange::new(self.family.walk(Bounds {
            start: encoded(range.start_bound()),
            end: encoded(range.end_bound()),
        }))
    }

    /// The first entry.
    ///
    /// # Errors
    /// Of the walk; `Corruption` where the bytes are none of these types.
    pub fn first(&self) -> Result<Option<(K, V)>> {
        self.iter().next().transpose()
    }

    /// The last entry.
    ///
    /// # Errors
    /// As [`TypedFamily::first`].
    pub fn last(&self) -> Result<Option<(K, V)>> {
        self.iter().next_back().transpose()
    }
}

/// The entries of a range of a [`TypedFamily`], from either end. An error of a walk ends it; one of an entry that is none of
/// these types does not.
pub struct TypedRange<K, V> {
    range: Range,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> TypedRange<K, V> {
    fn new(range: Range) -> Self {
        Self {
            range,
            types: PhantomData,
        }
    }
}

impl<K: KeyCodec, V: ValueCodec> Iterator for TypedRange<K, V> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.range.next()?;
        Some(entry.and_then(|entry| decoded(&entry)))
    }
}

impl<K: KeyCodec, V: ValueCodec> DoubleEndedIterator for TypedRange<K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let entry = self.range.next_back()?;
        Some(entry.and_then(|entry| decoded(&entry)))
    }
}

impl<K: KeyCodec, V: ValueCodec> FusedIterator for TypedRange<K, V> {}

impl<K, V> fmt::Debug for TypedRange<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.range.fmt(f)
    }
}
