//! `rocksdb_iterator_t`.

use std::ffi::c_char;

use drumlin::{ColumnFamily, Db, DbIterator, Error, ReadOptions, Result, WriteBatch};
use drumlin_ffi::handle::{self, Handle};

use crate::database::Database;
use crate::error::{guard, set};
use crate::family::Family;
use crate::indexed_batch::Overlaid;
use crate::small_options::Reads;
use crate::timestamps::{self, TimedWalk};

/// What the handle holds. It stays readable when the database is closed.
pub(crate) enum Walk {
    /// What is stored.
    Stored(DbIterator, Box<Begun>),
    /// What is stored, as it was at a timestamp.
    Timed(Box<TimedWalk>, Box<Begun>),
    /// What is stored, with writes that are not made yet on top.
    Overlaid(Box<Overlaid>),
    /// It could not be begun.
    Refused(Error),
}

/// What both kinds of walk can do.
macro_rules! on {
    ($walk:expr, $name:ident => $do:expr, $otherwise:expr) => {
        match $walk {
            Walk::Stored($name, _) => $do,
            Walk::Timed($name, _) => $do,
            Walk::Overlaid($name) => $do,
            Walk::Refused(_) => $otherwise,
        }
    };
}

/// How a walk over what is stored was begun.
pub(crate) struct Begun {
    db: Db,
    family: ColumnFamily,
    options: ReadOptions,
    /// Whether it sees what is written while it is there.
    is_tailing: bool,
}

impl Walk {
    pub(crate) fn begin(db: &Database, options: &Reads, family: Option<&Family>) -> Self {
        let is_tailing = options.fields.tailing();
        match timestamps::of_read(db, db.family(family), options) {
            Err(error) => return Self::Refused(error),
            Ok(Some(_)) if is_tailing => {
                let message = "tailing=true of keys with timestamps";
                return Self::Refused(Error::not_supported(message));
            }
            Ok(Some(at)) => return Self::begin_timed(db, options, db.family(family), &at),
            Ok(None) => {}
        }
        match options.to_engine_with_bounds() {
            Err(error) => Self::Refused(error),
            Ok(options) => {
                let family = db.family(family);
                let walk = db.db().iter_cf(family, options.clone());
                let mut walk = Self::of(walk, db.db(), family, options);
                if let Self::Stored(_, begun) = &mut walk {
                    begun.is_tailing = is_tailing;
                }
                walk
            }
        }
    }

    fn begin_timed(db: &Database, options: &Reads, family: &ColumnFamily, at: &[u8]) -> Self {
        match options.to_engine_with_bounds() {
            Err(error) => Self::Refused(error),
            Ok(options) => {
                let options = timestamps::bounded(family, options);
                let walk = db.db().iter_cf(family, options.clone());
                Self::timed(walk, db.db(), family, options, at)
            }
        }
    }

    fn timed(
        walk: DbIterator,
        db: &Db,
        family: &ColumnFamily,
        options: ReadOptions,
        at: &[u8],
    ) -> Self {
        let walk = TimedWalk::new(walk, family.order(), at);
        let begun = Begun {
            db: db.clone(),
            family: family.clone(),
            options,
            is_tailing: false,
        };
        Self::Timed(Box::new(walk), Box::new(begun))
    }

    /// Looks at what is stored now, where it is to be seen.
    fn catch_up(&mut self) {
        if let Self::Stored(walk, begun) = self
            && begun.is_tailing
        {
            *walk = begun.db.iter_cf(&begun.family, begun.options.clone());
        }
    }

    /// Moves on. A tailing one that came to the end looks whether there is more by now.
    fn step(&mut self) {
        let Self::Stored(walk, begun) = self else {
            return on!(self, walk => walk.next(), ());
        };
        let left = begun.is_tailing.then(|| walk.key().to_vec());
        walk.next();
        let Some(left) = left.filter(|_| !walk.valid() && walk.status().is_ok()) else {
            return;
        };
        *walk = begun.db.iter_cf(&begun.family, begun.options.clone());
        walk.seek(&left);
        if walk.valid() && walk.key() == left {
            walk.next();
        }
    }

    fn of(walk: DbIterator, db: &Db, family: &ColumnFamily, options: ReadOptions) -> Self {
        let begun = Begun {
            db: db.clone(),
            family: family.clone(),
            options,
            is_tailing: false,
        };
        Self::Stored(walk, Box::new(begun))
    }

    fn refresh(&mut self) -> Result<()> {
        match self {
            Self::Stored(walk, begun) => {
                begun.options.snapshot = None;
                *walk = begun.db.iter_cf(&begun.family, begun.options.clone());
                Ok(())
            }
            Self::Timed(walk, begun) => {
                begun.options.snapshot = None;
                let anew = begun.db.iter_cf(&begun.family, begun.options.clone());
                **walk = TimedWalk::new(anew, begun.family.order(), walk.at());
                Ok(())
            }
            Self::Overlaid(_) => Err(Error::not_supported("Refresh() is not supported")),
            Self::Refused(error) => Err(error.duplicate()),
        }
    }

    /// A walk as this one was begun, with `writes` on top.
    pub(crate) fn overlaid(self, writes: &WriteBatch, family: Option<&Family>) -> Self {
        let begun = match self {
            Self::Stored(_, begun) => begun,
            Self::Timed(..) => {
                let message = "a batch with an index over keys with timestamps";
                return Self::Refused(Error::not_supported(message));
            }
            other => return other,
        };
        let family = family.map_or(&begun.family, |family| &family.0);
        let made = Overlaid::new(writes, &begun.db, family, begun.options.clone());
        made.map_or_else(Self::Refused, Self::Overlaid)
    }
}

/// The iterator is nowhere afterwards, and sees what is written by now, whatever snapshot its options had.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_iter_refresh(walk: *const Handle<Walk>, errptr: *mut *mut c_char) {
    const NAME: &str = "rocksdb_iter_refresh";
    // SAFETY: the C program's promise; iterators are for one thread at a time, which c.h's `const` does not change.
    let walk = unsafe { handle::get_mut(walk.cast_mut(), NAME) };
    // SAFETY: as above.
    unsafe { guard(NAME, errptr, || walk.refresh()) };
}

/// # Safety
/// The arrays have `count` entries.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_create_iterators(
    db: *mut Handle<Database>,
    options: *mut Handle<Reads>,
    families: *mut *mut Handle<Family>,
    iterators: *mut *mut Handle<Walk>,
    count: usize,
    errptr: *mut *mut c_char,
) {
    const NAME: &str = "rocksdb_create_iterators";
    // SAFETY: the C program's promise.
    let db = unsafe { handle::get(db, NAME) };
    // SAFETY: as above.
    let options = unsafe { handle::get(options, NAME) };
    // SAFETY: as above.
    let families = unsafe { std::slice::from_raw_parts(families, count) };
    let families: Vec<&Family> = families
        .iter()
        // SAFETY: as above.
        .map(|family| unsafe { handle::get(*family, NAME) })
        .collect();
    let begin = || {
        let reads = options.to_engine_with_bounds()?;
        let view = db.db().view();
        let walks = families.iter().map(|family| {
            let at = timestamps::of_read(db, &family.0, options)?;
            let reads = match &at {
                Some(_) => timestamps::bounded(&family.0, reads.clone()),
                None => reads.clone(),
            };
            let walk = match reads.snapshot {
                Some(_) => db.db().iter_cf(&family.0, reads.clone()),
                None => view.iter_cf(&family.0, &reads),
            };
            Ok(match at {
                Some(at) => Walk::timed(walk, db.db(), &family.0, reads, &at),
                None => Walk::of(walk, db.db(), &family.0, reads),
            })
        });
        walks.collect::<Result<Vec<_>>>()
    };
    // SAFETY: as above.
    let walks = unsafe { guard(NAME, errptr, begin) };
    for (at, walk) in walks.into_iter().flatten().enumerate() {
        // SAFETY: as above.
        unsafe { set(iterators, at, handle::create(walk)) };
    }
}

pub(crate) mod calls {
    use drumlin::Result;
    use drumlin_base::perf::{self, Measure};

    use super::Walk;
    use crate::database::Database;
    use crate::family::Family;
    use crate::small_options::Reads;

    pub(crate) fn create_iterator_cf(
        db: &Database,
        options: &Reads,
        family: Option<&Family>,
    ) -> Walk {
        Walk::begin(db, options, family)
    }

    /// Counts the key and the value that a seek led to. Steps are not counted, as in RocksDB without statistics.
    fn count_bytes(walk: &Walk) {
        if perf::is_on() {
            let bytes = [iter_key(walk), iter_value(walk)].into_iter().flatten();
            let bytes = bytes.map(|bytes| bytes.len() as u64).sum();
            perf::count(Measure::WalkBytes, bytes);
        }
    }

    pub(crate) fn iter_valid(walk: &Walk) -> bool {
        on!(walk, walk => walk.valid(), false)
    }

    pub(crate) fn iter_seek_to_first(walk: &mut Walk) {
        walk.catch_up();
        on!(walk, walk => walk.seek_to_first(), ());
        count_bytes(walk);
    }

    pub(crate) fn iter_seek_to_last(walk: &mut Walk) {
        walk.catch_up();
        on!(walk, walk => walk.seek_to_last(), ());
        count_bytes(walk);
    }

    pub(crate) fn iter_seek(walk: &mut Walk, key: &[u8]) {
        walk.catch_up();
        on!(walk, walk => walk.seek(key), ());
        count_bytes(walk);
    }

    pub(crate) fn iter_seek_for_prev(walk: &mut Walk, key: &[u8]) {
        walk.catch_up();
        on!(walk, walk => walk.seek_for_prev(key), ());
        count_bytes(walk);
    }

    /// One that is nowhere stays there.
    pub(crate) fn iter_next(walk: &mut Walk) {
        if iter_valid(walk) {
            walk.step();
        }
    }

    /// As above.
    pub(crate) fn iter_prev(walk: &mut Walk) {
        if iter_valid(walk) {
            on!(walk, walk => walk.prev(), ());
        }
    }

    /// Null, and no bytes, where the iterator is nowhere.
    pub(crate) fn iter_key(walk: &Walk) -> Option<&[u8]> {
        on!(walk, walk => walk.valid().then(|| walk.key()), None)
    }

    /// As above.
    pub(crate) fn iter_value(walk: &Walk) -> Option<&[u8]> {
        on!(walk, walk => walk.valid().then(|| walk.value()), None)
    }

    /// Keys of families without timestamps have none: no bytes, of a key that is there.
    pub(crate) fn iter_timestamp(walk: &Walk) -> Option<&[u8]> {
        match walk {
            Walk::Timed(walk, _) => walk.valid().then(|| walk.timestamp()),
            walk => iter_valid(walk).then_some(&[]),
        }
    }

    pub(crate) fn iter_get_error(walk: &Walk) -> Result<()> {
        match walk {
            Walk::Refused(error) => Err(error.duplicate()),
            walk => on!(walk, walk => walk.status(), Ok(())),
        }
    }
}
