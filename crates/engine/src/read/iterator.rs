//! The iterator a user holds, and the source and destination of its walk.
//!
//! Making a walk clones a handle to everything it reads (super version, memtables, tables, the engine), and
//! each clone writes to a counter that all threads share; dropping the walk does so again. In memory, where
//! a short walk takes a microsecond, that was half of it. So an iterator that is dropped puts its walk in a
//! pool of the family ([`LocalPool`]), where the next iterator of the same thread finds it and begins anew.
//! With one iterator at a time, a thread counts nothing and allocates nothing.
//!
//! Only walks over tables laid out in memory are kept, and only over the present super version: they hold
//! nothing that the super version does not hold open itself. Installing the next super version empties the pool.
//! Closing the database or dropping the family closes it, for a walk in the pool owns engine and family.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use drumlin_base::bytes::LocalPool;
use drumlin_base::{Error, PinnedSlice, Result, SeqNo};

use super::walk::{FamilyReads, IteratorCounters, IteratorOptions, RefreshSource, Walk};
use crate::family::snapshot::Snapshot;
use crate::family::super_version::SuperVersion;
use crate::family::ttl::{TIME_BYTES, Ttl};
use crate::watch::times::CallTimes;

/// A walk over one family, forwards and backwards, as of one moment.
///
/// Position it first; read and move only while it is valid, and an end is an end only if `status()` is
/// `Ok`. Flushes, compactions, drops and closing do not disturb it. One thread at a time. In a forked child every
/// move ends it.
pub struct DbIterator {
    /// There until this is dropped.
    walk: Option<Box<Walk>>,
    /// Whether its source times its seeks.
    is_timed: bool,
    /// Of a family whose values have a time behind them: passes over those whose time is up, by `now`.
    ttl: Option<Arc<Ttl>>,
    /// When it was last positioned, in seconds since 1970, so that a walk to and fro meets the same keys.
    now: u64,
}

/// Where a move goes on when it comes to a value whose time is up.
#[derive(Clone, Copy)]
enum Way {
    On,
    Back,
}

impl DbIterator {
    /// A walk over `super_version` as a reader at `seqno` sees it.
    pub fn new(
        context: Arc<FamilyReads>,
        super_version: Arc<SuperVersion>,
        seqno: SeqNo,
        options: IteratorOptions,
    ) -> Self {
        let ttl = context.ttl.clone();
        Self {
            walk: Some(Box::new(Walk::new(context, super_version, seqno, options))),
            is_timed: false,
            ttl,
            now: 0,
        }
    }

    /// An iterator that shows nothing, with `error` as its status for good.
    ///
    /// Requires: there is nothing in `super_version`.
    pub fn refused(
        context: &Arc<FamilyReads>,
        super_version: Arc<SuperVersion>,
        options: IteratorOptions,
        error: Error,
    ) -> Self {
        let mut refused = Self::new(Arc::clone(context), super_version, 0, options);
        refused.walk_mut().refuse(error);
        refused
    }

    /// An iterator that is able to [`DbIterator::refresh`] from `source`.
    #[must_use]
    pub fn with_source(mut self, source: Arc<dyn RefreshSource>) -> Self {
        self.walk_mut().source = Some(source);
        self
    }

    /// A walk over `super_version`, which is the present one. Reuses a walk in the pool of `context` if one fits.
    /// `snapshot`, if given, is held to keep `seqno` pinned; the iterator is refreshed from `source`.
    #[inline]
    pub fn over_present(
        context: &Arc<FamilyReads>,
        super_version: &Arc<SuperVersion>,
        seqno: SeqNo,
        snapshot: Option<Snapshot>,
        options: IteratorOptions,
        source: impl FnOnce() -> Arc<dyn RefreshSource>,
    ) -> Self {
        if let Some(mut walk) = context.walks.take()
            && Arc::ptr_eq(&walk.super_version, super_version)
            && walk.follows_super_version()
        {
            walk.reuse(seqno, options, snapshot);
            return Self {
                walk: Some(walk),
                is_timed: false,
                ttl: context.ttl.clone(),
                now: 0,
            };
        }
        let mut made = Self::new(
            Arc::clone(context),
            Arc::clone(super_version),
            seqno,
            options,
        );
        let walk = made.walk_mut();
        (walk.source, walk.snapshot) = (Some(source()), snapshot);
        made
    }

    /// The same, with its seeks timed by its source if `is_timed`.
    #[inline]
    #[must_use]
    pub(crate) fn timed(mut self, is_timed: bool) -> Self {
        self.is_timed = is_timed;
        self
    }

    /// Where its seeks are timed.
    fn times(&self) -> Option<&CallTimes> {
        match self.is_timed {
            true => self.walk().source.as_ref()?.call_times(),
            false => None,
        }
    }

    /// Carries out a seek, and times it where that is asked for.
    #[inline]
    fn carry_out(&mut self, way: Way, seek: impl FnOnce(&mut Walk)) {
        if let Some(ttl) = &self.ttl {
            self.now = ttl.now();
        }
        let begun = self.times().and_then(CallTimes::begin);
        if let Some(walk) = self.moving() {
            seek(walk);
        }
        if let (Some(begun), Some(times)) = (begun, self.times()) {
            times.end(begun, &times.seek);
        }
        if self.ttl.is_some() {
            self.pass_expired(way);
        }
    }

    /// Moves on from values whose time is up.
    fn pass_expired(&mut self, way: Way) {
        let (Some(ttl), Some(walk)) = (&self.ttl, self.walk.as_deref_mut()) else {
            return;
        };
        while walk.valid() && !drumlin_base::bug!("walks-show-what-expired") {
            let value = walk.try_value();
            match value.and_then(|value| ttl.live_part(self.now, walk.key(), value)) {
                Ok(Some(_)) => return,
                Err(error) => return walk.fail(error),
                Ok(None) => match way {
                    Way::On => walk.next(),
                    Way::Back => walk.prev(),
                },
            }
        }
    }

    /// `value`, without the time behind it where there is one.
    #[inline]
    fn without_time<'a>(&self, value: &'a [u8]) -> &'a [u8] {
        match self.ttl {
            None => value,
            Some(_) => value
                .get(..value.len().saturating_sub(TIME_BYTES))
                .unwrap_or(value),
        }
    }

    #[inline]
    fn walk(&self) -> &Walk {
        self.walk
            .as_deref()
            .expect("taken only when this is dropped")
    }

    #[inline]
    fn walk_mut(&mut self) -> &mut Walk {
        self.walk
            .as_deref_mut()
            .expect("taken only when this is dropped")
    }

    /// The walk for a move. `None` in a forked child, where the walk ends.
    #[inline]
    fn moving(&mut self) -> Option<&mut Walk> {
        let walk = self.walk_mut();
        if !walk.is_at_home() {
            walk.refuse_child();
            return None;
        }
        Some(walk)
    }

    /// Whether the walk stands on a key.
    #[inline]
    pub fn valid(&self) -> bool {
        self.walk().valid()
    }

    /// The user key; empty while the walk is not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.walk().key()
    }

    /// Whether the walk stands on a deletion: in a family whose keys end with timestamps
    /// ([`Comparator::timestamp_bytes`](crate::Comparator::timestamp_bytes)), where each is an entry of its own.
    #[inline]
    pub fn is_deletion(&self) -> bool {
        self.walk().is_deletion()
    }

    /// The value; empty while the walk is not valid.
    ///
    /// A value in a blob file is read by the first call. If that fails the value is empty, `status()`
    /// says why, and the next move ends the walk; [`DbIterator::try_value`] reports it at once.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.without_time(self.walk().value())
    }

    /// As [`DbIterator::value`], with the error where a value in a blob file cannot be read.
    ///
    /// # Errors
    /// `Corruption`, `Io`; `Incomplete` when only cached blocks may be read.
    pub fn try_value(&self) -> Result<&[u8]> {
        let value = self.walk().try_value()?;
        Ok(self.without_time(value))
    }

    /// When the value was written, in seconds since 1970, in a family with a time to live ([`crate::FamilyOptions::ttl`]);
    /// of a merged value its newest part. `None` in other families, and while the walk is not valid.
    pub fn written_at(&self) -> Option<u64> {
        let ttl = self.ttl.as_ref()?;
        let written = ttl.split(self.key(), self.walk().value()).ok()?.1;
        Some(u64::from(written))
    }

    /// The value, to be kept past the next move: pinned in its source, or a copy where the walk holds
    /// a copy, a merged value or a blob.
    pub fn pin_value(&self) -> PinnedSlice {
        let mut value = self.walk().pin_value();
        let len = self.without_time(&value).len();
        value.truncate(len);
        value
    }

    /// The error that ended the walk, if one did.
    ///
    /// # Errors
    /// `Corruption` and `Io` from tables, `InvalidArgument` for merge operands without an operator,
    /// `NotSupported` for entries only another engine serves, `Incomplete` when only cached blocks
    /// may be read; `InvalidArgument` in a forked child.
    pub fn status(&self) -> Result<()> {
        self.walk().status()
    }

    /// Entries passed over so far.
    pub fn counters(&self) -> IteratorCounters {
        self.walk().counters()
    }

    /// The sequence number whose state the walk shows.
    pub fn seqno(&self) -> SeqNo {
        self.walk().seqno()
    }

    /// The super version walked over.
    pub fn super_version(&self) -> &Arc<SuperVersion> {
        self.walk().super_version()
    }

    /// Takes up the present state of the database; the walk must be positioned anew.
    ///
    /// As long as no memtable was filled and no table made or removed, this costs next to nothing, and,
    /// but for families in memory, far less than a new iterator.
    ///
    /// # Errors
    /// `NotSupported` at a snapshot, and where there is nothing to refresh it from.
    pub fn refresh(&mut self) -> Result<()> {
        self.walk_mut().refresh()
    }

    /// Stands on the first key.
    pub fn seek_to_first(&mut self) {
        self.carry_out(Way::On, |walk| walk.seek_to_first());
    }

    /// Stands on the last key.
    pub fn seek_to_last(&mut self) {
        self.carry_out(Way::Back, |walk| walk.seek_to_last());
    }

    /// Stands on the first key at or after `key`.
    pub fn seek(&mut self, key: &[u8]) {
        self.carry_out(Way::On, |walk| walk.seek(key));
    }

    /// Stands on the last key at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        self.carry_out(Way::Back, |walk| walk.seek_for_prev(key));
    }

    /// Moves to the next key.
    ///
    /// Requires: `valid()`. A debug build asserts it; a release build does nothing.
    #[inline]
    pub fn next(&mut self) {
        if let Some(walk) = self.moving() {
            walk.next();
        }
        if self.ttl.is_some() {
            self.pass_expired(Way::On);
        }
    }

    /// Moves to the key before.
    ///
    /// Requires: `valid()`. A debug build asserts it; a release build does nothing.
    #[inline]
    pub fn prev(&mut self) {
        if let Some(walk) = self.moving() {
            walk.prev();
        }
        if self.ttl.is_some() {
            self.pass_expired(Way::Back);
        }
    }
}

impl Drop for DbIterator {
    #[inline]
    fn drop(&mut self) {
        let Some(mut walk) = self.walk.take() else {
            return;
        };
        if !walk.is_at_home() {
            // Its handles are the parent's, and dropping them takes locks.
            let _kept = ManuallyDrop::new(walk);
            return;
        }
        if walk.prepare_for_reuse() {
            LocalPool::put(walk, |walk| {
                (&walk.context.walks, walk.super_version.number)
            });
        }
    }
}

impl fmt::Debug for DbIterator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.walk().fmt(f)
    }
}
