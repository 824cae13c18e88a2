//! Reads of a round's database that are compared with its history.

use drumlin::{ColumnFamily, Db, DbIterator, PinnedSlice, ReadOptions, Result, Snapshot, View};
use drumlin_base::rng::Rng;

use super::{Counts, Round};
use crate::history::parse_log;
use crate::model::{LOG, Rows, difference, key};

/// The log as it is read now.
pub(super) fn read_log(db: &Db) -> Result<Vec<usize>> {
    parsed(db.get_cf(db.default_family(), LOG, &ReadOptions::default())?)
}

fn parsed(log: Option<PinnedSlice>) -> Result<Vec<usize>> {
    let log = log.map(|log| log.to_vec()).unwrap_or_default();
    Ok(parse_log(&log).expect("the log holds numbers"))
}

/// All rows of an iterator but the log, forward or backward.
pub(super) fn walk(iter: &mut DbIterator, forward: bool) -> Result<Rows> {
    let mut rows = Rows::new();
    let mut last: Option<Vec<u8>> = None;
    if forward {
        iter.seek_to_first();
    } else {
        iter.seek_to_last();
    }
    while iter.valid() {
        let key = iter.key().to_vec();
        let in_order = match (&last, forward) {
            (None, _) => true,
            (Some(last), true) => *last < key,
            (Some(last), false) => *last > key,
        };
        assert!(in_order, "a walk is out of order at {key:?}");
        let value = iter.try_value()?.to_vec();
        if key != LOG {
            rows.insert(key.clone(), value);
        }
        last = Some(key);
        if forward {
            iter.next();
        } else {
            iter.prev();
        }
    }
    iter.status()?;
    Ok(rows)
}

/// A moment that can be looked at again.
pub(super) struct Moment {
    pin: Pin,
    /// Batches committed by then.
    pub(super) len: usize,
}

/// The two ways to read as of a moment.
enum Pin {
    Snapshot(Db, Snapshot),
    View(View),
}

impl Pin {
    fn get(
        &self,
        family: &ColumnFamily,
        key: &[u8],
        fill_cache: bool,
    ) -> Result<Option<PinnedSlice>> {
        match self {
            Self::Snapshot(db, _) => db.get_cf(family, key, &self.options(fill_cache)),
            Self::View(view) => view.get_cf(family, key, &self.options(fill_cache)),
        }
    }

    fn multi_get(
        &self,
        family: &ColumnFamily,
        keys: &[Vec<u8>],
        fill_cache: bool,
    ) -> Vec<Result<Option<PinnedSlice>>> {
        match self {
            Self::Snapshot(db, _) => db.multi_get_cf(family, keys, &self.options(fill_cache)),
            Self::View(view) => view.multi_get_cf(family, keys, &self.options(fill_cache)),
        }
    }

    fn iter(&self, family: &ColumnFamily, fill_cache: bool) -> DbIterator {
        match self {
            Self::Snapshot(db, _) => db.iter_cf(family, self.options(fill_cache)),
            Self::View(view) => view.iter_cf(family, &self.options(fill_cache)),
        }
    }

    fn options(&self, fill_cache: bool) -> ReadOptions {
        ReadOptions {
            snapshot: match self {
                Self::Snapshot(_, snapshot) => Some(snapshot.clone()),
                Self::View(_) => None,
            },
            fill_cache,
            ..ReadOptions::default()
        }
    }
}

impl Moment {
    /// The log, read at the moment.
    pub(super) fn read_log(&self, db: &Db) -> Result<Vec<usize>> {
        parsed(self.pin.get(db.default_family(), LOG, true)?)
    }

    /// A cursor at the moment.
    pub(super) fn iter(&self, family: &ColumnFamily) -> DbIterator {
        self.pin.iter(family, true)
    }
}

impl Round {
    /// Reads the log now: all that was acknowledged must be in it.
    pub(super) fn look_now(&self, place: &str) {
        let acked = self.history.lock().acked();
        let log = read_log(&self.db);
        let Some(log) = self.allow("get of the log", log) else {
            return;
        };
        self.observe(place, &log, acked);
    }

    fn observe(&self, place: &str, log: &[usize], acked: usize) {
        Counts::add(&self.counts.checks);
        let seen = self.history.lock().observe(log, acked);
        seen.unwrap_or_else(|why| panic!("{place}: {why}"));
    }

    /// A snapshot or a view, its log checked; `None` where it cannot be read.
    pub(super) fn moment(&self) -> Option<Moment> {
        let acked = self.history.lock().acked();
        let pin = match acked % 2 {
            0 => Pin::Snapshot(self.db.clone(), self.db.snapshot()),
            _ => Pin::View(self.db.view()),
        };
        let mut moment = Moment { pin, len: 0 };
        let log = self.allow("get of the log", moment.read_log(&self.db))?;
        self.observe("a moment", &log, acked);
        moment.len = log.len();
        Some(moment)
    }

    /// Compares one family with the model at `moment`.
    pub(super) fn look(&self, moment: &Moment, family: &ColumnFamily, rng: &mut Rng) {
        let want = self.history.lock().rows(moment.len, family.id());
        let (pin, fills) = (&moment.pin, rng.one_in(2));
        Counts::add(&self.counts.checks);
        let place = format!("{} after {} batches", family.name(), moment.len);
        if rng.one_in(2) {
            let mut iter = pin.iter(family, fills);
            let forward = rng.one_in(2);
            let Some(found) = self.allow("walk", walk(&mut iter, forward)) else {
                return;
            };
            if let Some(how) = difference(&found, &want) {
                panic!("{place}, walked (forward: {forward}): {how}");
            }
            return;
        }
        let mut keys: Vec<Vec<u8>> = (0..6).map(|_| key(rng)).collect();
        keys.extend(want.keys().nth(rng.below(80) as usize).cloned());
        let many = pin.multi_get(family, &keys, fills);
        for (key, found) in keys.iter().zip(many) {
            let name = String::from_utf8_lossy(key).into_owned();
            let want = want.get(key).map(Vec::as_slice);
            let got = pin.get(family, key, fills);
            for (how, found) in [("multi_get", found), ("get", got)] {
                if let Some(found) = self.allow(how, found) {
                    let len = found.as_ref().map(|found| found.len());
                    let right = found.as_deref() == want;
                    assert!(
                        right,
                        "{place}, {how} of {name}: {len:?} bytes, not {want:?}"
                    );
                }
            }
        }
    }

    /// With nothing failing any more: everything, both ways.
    pub(super) fn look_at_all(&self) {
        let Some(moment) = self.moment() else {
            panic!("a well disk is not readable");
        };
        for family in self.db.families() {
            let want = self.history.lock().rows(moment.len, family.id());
            for forward in [true, false] {
                let mut iter = moment.iter(&family);
                let found = walk(&mut iter, forward).expect("a well disk");
                if let Some(how) = difference(&found, &want) {
                    panic!("{} at the end: {how}", family.name());
                }
            }
            Counts::add(&self.counts.checks);
        }
        let damaged = self.db.verify().expect("it is open").damaged;
        assert!(damaged.is_empty(), "{damaged:?}");
    }
}
