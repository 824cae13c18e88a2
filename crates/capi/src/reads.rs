//! Reads of single keys and of lists of keys, and `rocksdb_pinnableslice_t`.

use std::ffi::{c_char, c_uchar};

use drumlin::{ColumnFamily, Error, PinnedSlice, ReadOptions, ReadTier, Result};
use drumlin_base::perf::{self, Measure};
use drumlin_ffi::bytes::{array, slice, to_c, to_c_text};
use drumlin_ffi::error::guard_infallible;
use drumlin_ffi::handle::{self, Handle, Tagged};

use crate::database::Database;
use crate::error::{set, text_of};
use crate::family::Family;
use crate::small_options::Reads;
use crate::timestamps;
use crate::transaction::TransactionDatabase;

/// What the handle holds. Readable until it is destroyed, also when the database is closed.
#[derive(Debug)]
pub(crate) struct Pinned(pub(crate) PinnedSlice);

/// The keys of a list and the places for its answers, as C has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyList {
    pub(crate) count: usize,
    pub(crate) keys: *const *const c_char,
    pub(crate) lens: *const usize,
    pub(crate) values: *mut *mut c_char,
    pub(crate) value_lens: *mut usize,
    pub(crate) errs: *mut *mut c_char,
}

impl KeyList {
    /// Asks `read` for all keys, and puts its answers where they belong.
    ///
    /// # Safety
    /// The arrays have `count` entries.
    pub(crate) unsafe fn answer(
        &self,
        function: &str,
        read: impl FnOnce(&[&[u8]]) -> Vec<Result<Option<PinnedSlice>>>,
    ) {
        // SAFETY: the caller's promise.
        let keys = unsafe { array(self.keys, self.lens, self.count, function) };
        let answers = guard_infallible(function, || read(&keys));
        for (at, answer) in answers.iter().enumerate() {
            let (value, error) = match answer {
                Ok(value) => (value.as_deref(), std::ptr::null_mut()),
                Err(error) => (None, to_c_text(&text_of(error))),
            };
            // SAFETY: as above.
            unsafe { set(self.errs, at, error) };
            // SAFETY: as above.
            unsafe { set(self.value_lens, at, value.map_or(0, <[u8]>::len)) };
            let value = value.map_or(std::ptr::null_mut(), to_c);
            // SAFETY: as above.
            unsafe { set(self.values, at, value) };
        }
    }
}

/// The families in an array of handles.
///
/// # Safety
/// `families` has `count` handles.
pub(crate) unsafe fn families<'a>(
    families: *const *const Handle<Family>,
    count: usize,
    function: &str,
) -> Vec<&'a Family> {
    if count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    let families = unsafe { std::slice::from_raw_parts(families, count) };
    let families = families.iter();
    families
        // SAFETY: as above.
        .map(|family| unsafe { handle::get(*family, function) })
        .collect()
}

/// The value of `key`, at the options' timestamp where the family's keys have some.
fn get(
    db: &Database,
    options: &Reads,
    family: &ColumnFamily,
    key: &[u8],
) -> Result<Option<PinnedSlice>> {
    match timestamps::of_read(db, family, options)? {
        None => db.db().get_cf(family, key, &options.to_engine()?),
        Some(at) => {
            let found = timestamps::get(db, family, key, &at, options.to_engine()?)?;
            Ok(found.map(|found| found.value))
        }
    }
}

/// The values of `keys`, each of its family, at one moment; one after another where keys have timestamps.
pub(crate) fn of_families(
    db: &Database,
    asked: &Reads,
    families: &[&ColumnFamily],
    keys: &[&[u8]],
) -> Vec<Result<Option<PinnedSlice>>> {
    let options = match asked.to_engine() {
        Ok(options) => options,
        Err(error) => return keys.iter().map(|_| Err(error.duplicate())).collect(),
    };
    let is_timed = |family: &&&ColumnFamily| family.order().timestamp_bytes() > 0;
    if asked.timestamp.is_some() || families.iter().any(|family| is_timed(&family)) {
        let both = families.iter().zip(keys);
        return both
            .map(|(family, key)| get(db, asked, family, key))
            .collect();
    }
    let is_one = families.windows(2).all(|two| two[0].id() == two[1].id());
    let found = match families.first() {
        Some(family) if is_one => db.db().multi_get_cf(family, keys, &options),
        _ => {
            let view = db.db().view();
            let both = families.iter().zip(keys);
            both.map(|(family, key)| match options.snapshot {
                Some(_) => db.db().get_cf(family, key, &options),
                None => view.get_cf(family, key, &options),
            })
            .collect()
        }
    };
    if perf::is_on() {
        let values = found
            .iter()
            .filter_map(|answer| answer.as_ref().ok()?.as_deref());
        let bytes = values.map(|value| value.len() as u64).sum();
        perf::count(Measure::MultiGetBytes, bytes);
    }
    found
}

/// The functions of lists of keys, for one kind of database.
macro_rules! multi_gets {
    ($database:ty, $one:ident, $several:ident) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $one(
            db: *mut Handle<$database>,
            options: *const Handle<Reads>,
            count: usize,
            keys: *const *const c_char,
            lens: *const usize,
            values: *mut *mut c_char,
            value_lens: *mut usize,
            errs: *mut *mut c_char,
        ) {
            const NAME: &str = stringify!($one);
            // SAFETY: the C program's promise.
            let (db, options) = unsafe { both(db, options, NAME) };
            let list = KeyList {
                count,
                keys,
                lens,
                values,
                value_lens,
                errs,
            };
            let families = vec![db.family(None); count];
            // SAFETY: as above.
            unsafe { list.answer(NAME, |keys| of_families(db, options, &families, keys)) };
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $several(
            db: *mut Handle<$database>,
            options: *const Handle<Reads>,
            handles: *const *const Handle<Family>,
            count: usize,
            keys: *const *const c_char,
            lens: *const usize,
            values: *mut *mut c_char,
            value_lens: *mut usize,
            errs: *mut *mut c_char,
        ) {
            const NAME: &str = stringify!($several);
            // SAFETY: the C program's promise.
            let (db, options) = unsafe { both(db, options, NAME) };
            // SAFETY: as above.
            let families = unsafe { families(handles, count, NAME) };
            let families: Vec<_> = families.iter().map(|family| &family.0).collect();
            let list = KeyList {
                count,
                keys,
                lens,
                values,
                value_lens,
                errs,
            };
            // SAFETY: as above.
            unsafe { list.answer(NAME, |keys| of_families(db, options, &families, keys)) };
        }
    };
}

multi_gets!(Database, rocksdb_multi_get, rocksdb_multi_get_cf);
multi_gets!(
    TransactionDatabase,
    rocksdb_transactiondb_multi_get,
    rocksdb_transactiondb_multi_get_cf
);

/// # Safety
/// Both are handles, or null.
unsafe fn both<'a, D: Tagged, O: Tagged>(
    db: *mut Handle<D>,
    options: *const Handle<O>,
    function: &str,
) -> (&'a D, &'a O) {
    // SAFETY: the caller's promise.
    let db = unsafe { handle::get(db, function) };
    // SAFETY: as above.
    (db, unsafe { handle::get(options, function) })
}

/// Pinned values of keys of one family; null where a key is not there.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_batched_multi_get_cf(
    db: *mut Handle<Database>,
    options: *const Handle<Reads>,
    family: *mut Handle<Family>,
    count: usize,
    keys: *const *const c_char,
    lens: *const usize,
    values: *mut *mut Handle<Pinned>,
    errs: *mut *mut c_char,
    _sorted: bool,
) {
    const NAME: &str = "rocksdb_batched_multi_get_cf";
    // SAFETY: the C program's promise.
    let (db, options) = unsafe { both(db, options, NAME) };
    // SAFETY: as above.
    let family = unsafe { handle::get(family, NAME) };
    // SAFETY: as above.
    let keys = unsafe { array(keys, lens, count, NAME) };
    let families = vec![&family.0; count];
    let answers = guard_infallible(NAME, || of_families(db, options, &families, &keys));
    for (at, answer) in answers.into_iter().enumerate() {
        let (value, error) = match answer {
            Ok(value) => (value, std::ptr::null_mut()),
            Err(error) => (None, to_c_text(&text_of(&error))),
        };
        // SAFETY: as above.
        unsafe { set(errs, at, error) };
        let value = value.map_or(std::ptr::null_mut(), |value| handle::create(Pinned(value)));
        // SAFETY: as above.
        unsafe { set(values, at, value) };
    }
}

/// The arguments of `rocksdb_key_may_exist` after the family.
struct MayExist {
    key: *const c_char,
    key_len: usize,
    value: *mut *mut c_char,
    value_len: *mut usize,
    found: *mut c_uchar,
}

impl MayExist {
    /// Looks as far as memory goes: what would need the disk may be there.
    ///
    /// # Safety
    /// As c.h has it.
    unsafe fn answer(
        &self,
        db: &Database,
        options: &Reads,
        family: &ColumnFamily,
        function: &str,
    ) -> c_uchar {
        // SAFETY: the caller's promise.
        let key = unsafe { slice(self.key, self.key_len, function) };
        let read = || {
            let at = timestamps::of_read(db, family, options)?;
            let options = ReadOptions {
                tier: ReadTier::BlockCache,
                ..options.to_engine()?
            };
            match at {
                None => db.db().get_cf(family, key, &options),
                Some(at) => {
                    let found = timestamps::get(db, family, key, &at, options)?;
                    Ok(found.map(|found| found.value))
                }
            }
        };
        let answer: Result<Option<PinnedSlice>, Error> = guard_infallible(function, read);
        let value = answer.as_ref().ok().and_then(Option::as_deref);
        // SAFETY: as above.
        unsafe { set(self.found, 0, c_uchar::from(value.is_some())) };
        if let Some(value) = value
            && !self.value.is_null()
        {
            // SAFETY: as above.
            unsafe { set(self.value_len, 0, value.len()) };
            // SAFETY: as above.
            unsafe { set(self.value, 0, to_c(value)) };
        }
        c_uchar::from(!matches!(answer, Ok(None)))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_key_may_exist(
    db: *mut Handle<Database>,
    options: *const Handle<Reads>,
    key: *const c_char,
    key_len: usize,
    value: *mut *mut c_char,
    value_len: *mut usize,
    _timestamp: *const c_char,
    _timestamp_len: usize,
    found: *mut c_uchar,
) -> c_uchar {
    const NAME: &str = "rocksdb_key_may_exist";
    // SAFETY: the C program's promise.
    let (db, options) = unsafe { both(db, options, NAME) };
    let asked = MayExist {
        key,
        key_len,
        value,
        value_len,
        found,
    };
    // SAFETY: as above.
    unsafe { asked.answer(db, options, db.family(None), NAME) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_key_may_exist_cf(
    db: *mut Handle<Database>,
    options: *const Handle<Reads>,
    family: *mut Handle<Family>,
    key: *const c_char,
    key_len: usize,
    value: *mut *mut c_char,
    value_len: *mut usize,
    _timestamp: *const c_char,
    _timestamp_len: usize,
    found: *mut c_uchar,
) -> c_uchar {
    const NAME: &str = "rocksdb_key_may_exist_cf";
    // SAFETY: the C program's promise.
    let (db, options) = unsafe { both(db, options, NAME) };
    // SAFETY: as above.
    let family = unsafe { handle::get(family, NAME) };
    let asked = MayExist {
        key,
        key_len,
        value,
        value_len,
        found,
    };
    // SAFETY: as above.
    unsafe { asked.answer(db, options, &family.0, NAME) }
}

pub(crate) mod calls {
    use drumlin::{PinnedSlice, Result};
    use drumlin_base::perf::{Measure, count};

    use super::Pinned;
    use crate::database::Database;
    use crate::family::Family;
    use crate::small_options::Reads;

    pub(crate) fn get_cf(
        db: &Database,
        options: &Reads,
        family: Option<&Family>,
        key: &[u8],
    ) -> Result<Option<PinnedSlice>> {
        let found = super::get(db, options, db.family(family), key)?;
        if let Some(value) = &found {
            count(Measure::GetBytes, value.len() as u64);
        }
        Ok(found)
    }

    pub(crate) fn get_pinned_cf(
        db: &Database,
        options: &Reads,
        family: Option<&Family>,
        key: &[u8],
    ) -> Result<Option<Pinned>> {
        Ok(get_cf(db, options, family, key)?.map(Pinned))
    }

    pub(crate) fn pinnableslice_value(pinned: Option<&Pinned>) -> Option<&[u8]> {
        pinned.map(|pinned| &pinned.0[..])
    }
}
