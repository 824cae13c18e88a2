//! Reads of families whose keys end with timestamps: what a reader at a timestamp sees of the engine's entries.
//!
//! Each version of a key is an entry of the engine's, the newest timestamp first, and deletions are entries, too. A reader at
//! a timestamp sees of each key the first version that is not newer, unless that is a deletion.

use drumlin::{ColumnFamily, DbIterator, Error, KeyOrder, PinnedSlice, ReadOptions, Result};

use crate::database::Database;
use crate::small_options::Reads;

/// Versions that are stepped over one by one before a seek leaves the rest behind.
const STEPS_MAX: usize = 8;

/// Refuses a call without a timestamp for a family whose keys have some.
pub(crate) fn refuse(family: &ColumnFamily) -> Result<()> {
    match family.order().timestamp_bytes() {
        0 => Ok(()),
        _ => Err(Error::invalid_argument(format!(
            "cannot call this method on column family {} that enables timestamp",
            family.name()
        ))),
    }
}

/// Refuses what is not done in databases that have a family with timestamps.
pub(crate) fn refuse_any(families: &[ColumnFamily], what: &str) -> Result<()> {
    match families.iter().find(|it| it.order().timestamp_bytes() > 0) {
        None => Ok(()),
        Some(family) => Err(Error::not_supported(format!(
            "{what} with column family {}, whose keys have timestamps",
            family.name()
        ))),
    }
}

/// Refuses a timestamp that is none of the family's.
pub(crate) fn check(family: &ColumnFamily, timestamp: &[u8]) -> Result<()> {
    let (expected, found) = (family.order().timestamp_bytes(), timestamp.len());
    if expected == 0 {
        let message = format!("column family {} does not enable timestamp", family.name());
        return Err(Error::invalid_argument(message));
    }
    if expected != found {
        let message = format!("timestamp sizes mismatch: expect {expected}, {found} given");
        return Err(Error::invalid_argument(message));
    }
    Ok(())
}

/// The timestamp that `family` is read at; `None` where its keys have none.
pub(crate) fn of_read(
    db: &Database,
    family: &ColumnFamily,
    reads: &Reads,
) -> Result<Option<Vec<u8>>> {
    let Some(at) = &reads.timestamp else {
        return refuse(family).map(|()| None);
    };
    check(family, at)?;
    if let Some(low) = db.db().full_history_ts_low(family)
        && family.order().compare(at, &low).is_gt()
    {
        let message = format!(
            "Read timestamp: {} is smaller than full_history_ts_low: {}",
            at.escape_ascii(),
            low.escape_ascii()
        );
        return Err(Error::invalid_argument(message));
    }
    Ok(Some(at.clone()))
}

/// `key` with `timestamp` behind it.
pub(crate) fn with(key: &[u8], timestamp: &[u8]) -> Vec<u8> {
    [key, timestamp].concat()
}

/// `key` before all its versions in `family`.
pub(crate) fn first(family: &ColumnFamily, key: &[u8]) -> Vec<u8> {
    with(key, &vec![0xFF; family.order().timestamp_bytes()])
}

/// `key` behind all its versions in `family`.
pub(crate) fn last(family: &ColumnFamily, key: &[u8]) -> Vec<u8> {
    with(key, &vec![0; family.order().timestamp_bytes()])
}

/// `options` with their bounds as keys of `family`.
pub(crate) fn bounded(family: &ColumnFamily, mut options: ReadOptions) -> ReadOptions {
    for bound in [&mut options.lower_bound, &mut options.upper_bound] {
        *bound = bound.take().map(|key| first(family, &key));
    }
    options
}

/// A value and the timestamp of its version.
pub(crate) struct Found {
    pub(crate) value: PinnedSlice,
    pub(crate) timestamp: Vec<u8>,
}

/// The version of `key` that a reader at `at` sees.
pub(crate) fn get(
    db: &Database,
    family: &ColumnFamily,
    key: &[u8],
    at: &[u8],
    options: ReadOptions,
) -> Result<Option<Found>> {
    let walk = db.db().iter_cf(family, options);
    let mut walk = TimedWalk::new(walk, family.order(), at);
    walk.walk.seek(&with(key, at));
    let is_seen =
        walk.walk.valid() && walk.is_same(walk.walk.key(), key) && !walk.walk.is_deletion();
    walk.status()?;
    Ok(is_seen.then(|| Found {
        timestamp: walk.split(walk.walk.key()).1.to_vec(),
        value: walk.walk.pin_value(),
    }))
}

/// Where a walk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    /// On the version itself.
    Here,
    /// Before all versions of a key, whose seen one is copied.
    Behind,
}

/// A walk over the keys that a reader at a timestamp sees.
pub(crate) struct TimedWalk {
    walk: DbIterator,
    order: KeyOrder,
    /// The order of keys without timestamps.
    plain: KeyOrder,
    at: Vec<u8>,
    place: Place,
    /// The whole key of `Behind`; while versions are skipped, one of theirs.
    key: Vec<u8>,
    value: Vec<u8>,
    error: Option<Error>,
}

impl TimedWalk {
    /// `walk` as a reader at `at` sees it.
    pub(crate) fn new(walk: DbIterator, order: &KeyOrder, at: &[u8]) -> Self {
        Self {
            walk,
            order: order.clone(),
            plain: order.without_timestamps(),
            at: at.to_vec(),
            place: Place::Nowhere,
            key: Vec::new(),
            value: Vec::new(),
            error: None,
        }
    }

    /// The timestamp that it reads at.
    pub(crate) fn at(&self) -> &[u8] {
        &self.at
    }

    /// The key and the timestamp behind it.
    fn split<'a>(&self, whole: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        whole.split_at(whole.len().saturating_sub(self.at.len()))
    }

    /// Whether the key of `whole` is `key`, which has no timestamp.
    fn is_same(&self, whole: &[u8], key: &[u8]) -> bool {
        let key = with(key, &self.at);
        self.plain.compare(whole, &key).is_eq()
    }

    fn current(&self) -> Option<&[u8]> {
        match self.place {
            Place::Nowhere => None,
            Place::Here => Some(self.walk.key()),
            Place::Behind => Some(&self.key),
        }
    }

    pub(crate) fn valid(&self) -> bool {
        self.place != Place::Nowhere
    }

    /// Requires: `valid()`, as below.
    pub(crate) fn key(&self) -> &[u8] {
        self.current().map_or(&[], |whole| self.split(whole).0)
    }

    pub(crate) fn timestamp(&self) -> &[u8] {
        self.current().map_or(&[], |whole| self.split(whole).1)
    }

    pub(crate) fn value(&self) -> &[u8] {
        match self.place {
            Place::Here => self.walk.value(),
            Place::Behind => &self.value,
            Place::Nowhere => &[],
        }
    }

    pub(crate) fn status(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.duplicate()),
            None => self.walk.status(),
        }
    }

    pub(crate) fn seek_to_first(&mut self) {
        self.walk.seek_to_first();
        self.find_forward(false);
    }

    pub(crate) fn seek_to_last(&mut self) {
        self.walk.seek_to_last();
        self.find_backward();
    }

    pub(crate) fn seek(&mut self, key: &[u8]) {
        self.walk.seek(&with(key, &self.at));
        self.find_forward(false);
    }

    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) {
        self.walk.seek_for_prev(&with(key, &vec![0; self.at.len()]));
        self.find_backward();
    }

    pub(crate) fn next(&mut self) {
        match self.place {
            Place::Nowhere => return,
            Place::Here => self.keep_key(),
            Place::Behind => {
                let whole = with(self.split(&self.key).0, &vec![0; self.at.len()]);
                self.walk.seek(&whole);
            }
        }
        self.find_forward(true);
    }

    pub(crate) fn prev(&mut self) {
        match self.place {
            Place::Nowhere => return,
            Place::Here => {
                self.keep_key();
                self.leave_back();
            }
            Place::Behind => {}
        }
        self.find_backward();
    }

    fn keep_key(&mut self) {
        self.key.clear();
        self.key.extend_from_slice(self.walk.key());
    }

    /// Whether the walk below is on a version of the key in `self.key`.
    fn is_at_key(&self) -> bool {
        self.plain.compare(self.walk.key(), &self.key).is_eq()
    }

    /// Leaves all versions of the key in `self.key` towards smaller keys.
    fn leave_back(&mut self) {
        let whole = with(self.split(&self.key).0, &vec![0xFF; self.at.len()]);
        self.walk.seek_for_prev(&whole);
        if self.walk.valid() && self.is_at_key() {
            self.walk.prev();
        }
    }

    /// A key that is too short for a timestamp is damage.
    fn is_whole(&mut self) -> bool {
        if self.walk.key().len() >= self.at.len() {
            return true;
        }
        let message = "a key is too short to end with a timestamp";
        self.error.get_or_insert(Error::corruption(message));
        false
    }

    /// From where the walk below is, goes on to the first version that is seen. With `skip`, those of `self.key` are passed.
    fn find_forward(&mut self, mut skip: bool) {
        self.place = Place::Nowhere;
        let mut steps = 0;
        while self.walk.valid() && self.is_whole() {
            steps += 1;
            if skip && self.is_at_key() {
                if steps > STEPS_MAX {
                    steps = 0;
                    let whole = with(self.split(&self.key).0, &vec![0; self.at.len()]);
                    self.walk.seek(&whole);
                    if !(self.walk.valid() && self.is_at_key()) {
                        continue;
                    }
                }
                self.walk.next();
                continue;
            }
            let timestamp = self.split(self.walk.key()).1;
            if self.order.compare(timestamp, &self.at).is_lt() {
                // Newer than what is read.
                if steps > STEPS_MAX {
                    steps = 0;
                    let whole = with(self.split(self.walk.key()).0, &self.at);
                    self.walk.seek(&whole);
                } else {
                    self.walk.next();
                }
                skip = false;
                continue;
            }
            if !self.walk.is_deletion() {
                self.place = Place::Here;
                return;
            }
            self.keep_key();
            self.walk.next();
            (skip, steps) = (true, 0);
        }
    }

    /// From where the walk below is, goes back to the first key that is seen.
    fn find_backward(&mut self) {
        self.place = Place::Nowhere;
        while self.walk.valid() && self.is_whole() {
            self.keep_key();
            let mut is_seen = false;
            let mut steps = 0;
            while self.walk.valid() && self.is_at_key() {
                let timestamp = self.split(self.walk.key()).1;
                if self.order.compare(timestamp, &self.at).is_lt() {
                    self.leave_back();
                    break;
                }
                is_seen = !self.walk.is_deletion();
                self.keep_key();
                self.value.clear();
                self.value.extend_from_slice(self.walk.value());
                steps += 1;
                if steps == STEPS_MAX {
                    self.take_newest(&mut is_seen);
                    break;
                }
                self.walk.prev();
            }
            if self.walk.status().is_err() {
                return;
            }
            if is_seen {
                self.place = Place::Behind;
                return;
            }
        }
    }

    /// Takes the version of the key in `self.key` that is seen, which has many, and leaves all of them.
    fn take_newest(&mut self, is_seen: &mut bool) {
        let whole = with(self.split(&self.key).0, &self.at);
        self.walk.seek(&whole);
        if self.walk.valid() && self.is_at_key() {
            *is_seen = !self.walk.is_deletion();
            self.keep_key();
            self.value.clear();
            self.value.extend_from_slice(self.walk.value());
        }
        self.leave_back();
    }
}

pub(crate) mod calls {
    use drumlin::{Result, WriteBatch};

    use super::{check, with};
    use crate::batch::Batch;
    use crate::database::Database;
    use crate::family::Family;
    use crate::fields::Writeoptions;

    fn write(
        db: &Database,
        options: &Writeoptions,
        family: Option<&Family>,
        timestamp: &[u8],
        fill: impl FnOnce(&mut WriteBatch, u32) -> Result<()>,
    ) -> Result<()> {
        let family = db.family(family);
        check(family, timestamp)?;
        let mut batch = WriteBatch::new();
        fill(&mut batch, family.id())?;
        let written = db.db().write(batch, &options.to_engine()?);
        written.map_err(crate::batch::as_of_a_write)
    }

    pub(crate) fn put_cf_with_ts(
        db: &Database,
        options: &Writeoptions,
        family: Option<&Family>,
        key: &[u8],
        timestamp: &[u8],
        value: &[u8],
    ) -> Result<()> {
        write(db, options, family, timestamp, |batch, id| {
            batch.put_cf(id, &with(key, timestamp), value)
        })
    }

    pub(crate) fn delete_cf_with_ts(
        db: &Database,
        options: &Writeoptions,
        family: Option<&Family>,
        key: &[u8],
        timestamp: &[u8],
    ) -> Result<()> {
        write(db, options, family, timestamp, |batch, id| {
            batch.delete_cf(id, &with(key, timestamp))
        })
    }

    pub(crate) fn singledelete_cf_with_ts(
        db: &Database,
        options: &Writeoptions,
        family: Option<&Family>,
        key: &[u8],
        timestamp: &[u8],
    ) -> Result<()> {
        write(db, options, family, timestamp, |batch, id| {
            batch.single_delete_cf(id, &with(key, timestamp))
        })
    }

    pub(crate) fn writebatch_put_cf_with_ts(
        batch: &mut Batch,
        family: Option<&Family>,
        key: &[u8],
        timestamp: &[u8],
        value: &[u8],
    ) {
        batch.change_stamped(family, timestamp, |batch, id| {
            batch.put_cf(id, &with(key, timestamp), value)
        });
    }

    pub(crate) fn writebatch_delete_cf_with_ts(
        batch: &mut Batch,
        family: Option<&Family>,
        key: &[u8],
        timestamp: &[u8],
    ) {
        batch.change_stamped(family, timestamp, |batch, id| {
            batch.delete_cf(id, &with(key, timestamp))
        });
    }

    pub(crate) fn writebatch_singledelete_cf_with_ts(
        batch: &mut Batch,
        family: Option<&Family>,
        key: &[u8],
        timestamp: &[u8],
    ) {
        batch.change_stamped(family, timestamp, |batch, id| {
            batch.single_delete_cf(id, &with(key, timestamp))
        });
    }

    pub(crate) fn increase_full_history_ts_low(
        db: &Database,
        family: Option<&Family>,
        low: &[u8],
    ) -> Result<()> {
        db.db().increase_full_history_ts_low(db.family(family), low)
    }

    /// No bytes where all of the history is there.
    pub(crate) fn get_full_history_ts_low(
        db: &Database,
        family: Option<&Family>,
    ) -> Result<Option<Vec<u8>>> {
        let family = db.family(family);
        if family.order().timestamp_bytes() == 0 {
            let message = "Timestamp is not enabled in this column family";
            return Err(drumlin::Error::invalid_argument(message));
        }
        let low = db.db().full_history_ts_low(family);
        Ok(Some(low.map(|low| low.to_vec()).unwrap_or_default()))
    }
}
