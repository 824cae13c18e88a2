//! The moves of a walk: positioning, steps, turning round, staying within a prefix.

use drumlin_base::InternalIterator;
use drumlin_base::key::{SEEK_KIND, tag_seqno};
use drumlin_base::perf::{self, Measure, timed};
use drumlin_table::KeyHint;

use super::parts::{Place, checked_parts, set_key, set_target};
use super::state::Walk;
use crate::read::resident::WithinPrefix;

impl Walk {
    /// Stands on the first key.
    pub fn seek_to_first(&mut self) {
        self.reset();
        self.tell_sources();
        match &self.options.lower_bound {
            Some(lower) => {
                set_target(&mut self.target, lower, self.seqno, SEEK_KIND);
                self.cursor.seek(&self.target);
            }
            None => self.cursor.seek_to_first(),
        }
        self.find_forward(false);
        self.take_prefix_of_current();
        self.count_seek();
    }

    /// Stands on the last key.
    pub fn seek_to_last(&mut self) {
        self.reset();
        self.tell_sources();
        self.cursor_to_last();
        self.find_backward();
        self.take_prefix_of_current();
        self.count_seek();
    }

    /// Stands on the first key at or after `key`.
    pub fn seek(&mut self, key: &[u8]) {
        self.reset();
        self.take_prefix_of(key);
        let order = &self.context.order;
        let from = match &self.options.lower_bound {
            Some(lower) if order.compare(key, lower).is_lt() => lower,
            _ => key,
        };
        set_target(&mut self.target, from, self.seqno, SEEK_KIND);
        if self.is_resident && self.is_within && from.starts_with(&self.prefix) {
            self.seek_within();
        } else {
            timed(Measure::SeekNanos, || self.cursor.seek(&self.target));
        }
        self.find_forward(false);
        self.count_seek();
    }

    /// Positions the cursor at the target in sources in memory. All of them prefetch before any has to wait.
    #[inline]
    fn seek_within(&mut self) {
        let within = WithinPrefix {
            target: &self.target,
            prefix: &self.prefix,
            hint: KeyHint::of(&self.prefix),
        };
        for source in self.cursor.children_mut() {
            source.prefetch_prefix(&within);
        }
        for source in self.cursor.children_mut() {
            source.prefetch_prefix_records(&within);
        }
        self.cursor.seek_each(|source| source.seek_within(&within));
    }

    /// Stands on the last key at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        self.reset();
        self.take_prefix_of(key);
        let order = &self.context.order;
        match &self.options.upper_bound {
            Some(upper) if order.compare(key, upper).is_ge() => self.cursor_to_last(),
            _ => {
                set_target(&mut self.target, key, 0, 0);
                timed(Measure::SeekNanos, || {
                    self.cursor.seek_for_prev(&self.target)
                });
            }
        }
        self.find_backward();
        self.count_seek();
    }

    /// Moves to the next key.
    ///
    /// Requires: `valid()`. A debug build asserts it; a release build does nothing.
    #[inline]
    pub fn next(&mut self) {
        if let Some(bytes) = self.meter.step() {
            self.charge(bytes);
        }
        if self.is_on_blob() && self.leave_blob() {
            return;
        }
        match self.place {
            Place::Direct | Place::DirectBlob => {
                let (user_key, tag) = checked_parts(&self.cursor);
                let has_older = tag_seqno(tag) != 0;
                if has_older {
                    set_key(&mut self.key, user_key);
                }
                self.cursor.next();
                self.find_forward(has_older);
            }
            Place::Saved => self.find_forward(true),
            Place::Behind | Place::BehindBlob => {
                set_target(&mut self.target, &self.key, 0, 0);
                self.cursor.seek(&self.target);
                self.find_forward(true);
            }
            Place::Nowhere => debug_assert!(false, "next needs a valid iterator"),
        }
    }

    /// Moves to the key before.
    ///
    /// Requires: `valid()`. A debug build asserts it; a release build does nothing.
    #[inline]
    pub fn prev(&mut self) {
        if let Some(bytes) = self.meter.step() {
            self.charge(bytes);
        }
        if self.is_on_blob() && self.leave_blob() {
            return;
        }
        match self.place {
            Place::Behind | Place::BehindBlob => {}
            Place::Direct | Place::DirectBlob => {
                let (user_key, _) = checked_parts(&self.cursor);
                set_key(&mut self.key, user_key);
                self.leave_key_backward();
            }
            Place::Saved => self.seek_before_key(),
            Place::Nowhere => {
                debug_assert!(false, "prev needs a valid iterator");
                return;
            }
        }
        self.find_backward();
    }
}

/// Blobs, charges and prefixes.
impl Walk {
    #[inline]
    fn is_on_blob(&self) -> bool {
        matches!(self.place, Place::DirectBlob | Place::BehindBlob)
    }

    /// Drops the blob of the present entry. True when it could not be read, which ends the walk.
    fn leave_blob(&mut self) -> bool {
        let failed = self.blob.forget();
        let ended = failed.is_some();
        if let Some(error) = failed {
            self.fail(error);
        }
        ended
    }

    /// Counts a seek that has just been made.
    fn count_seek(&mut self) {
        if perf::is_on() {
            self.count_sources();
        }
        if let Some(bytes) = self.meter.seek() {
            self.charge(bytes);
        }
    }

    /// Counts the sources that the cursor was positioned in.
    #[cold]
    fn count_sources(&self) {
        let sources = self.cursor.children();
        let memtables = sources.iter().filter(|source| source.is_memtable());
        // One alone is not merged, and is nobody's child.
        let children = Some(sources.len()).filter(|count| *count > 1);
        perf::count(Measure::SourceSeeks, children.unwrap_or(0) as u64);
        perf::count(Measure::MemtableSeeks, memtables.count() as u64);
    }

    /// Charges `bytes` to the table of each run but the oldest: the cost of merging it.
    #[cold]
    fn charge(&self, bytes: u64) {
        let runs = self.cursor.children().iter().filter(|run| run.valid());
        for run in runs.rev().skip(1) {
            run.charge_reads(bytes);
        }
    }

    /// Stays within the prefix of `key` from now on, if asked to and if it has one.
    fn take_prefix_of(&mut self, key: &[u8]) {
        if self.options.prefix_same_as_start {
            let extractor = self.context.prefix.as_deref();
            let prefix = extractor.and_then(|extractor| extractor.prefix(key));
            self.is_within = prefix.is_some();
            set_key(&mut self.prefix, prefix.unwrap_or_default());
        }
        self.tell_sources();
    }

    /// Allows the sources to pass over keys of other prefixes while the walk stays within one, and only
    /// then: otherwise it seeks bounds and ends of tombstones, which may be of any prefix.
    fn tell_sources(&mut self) {
        if self.told_within != self.is_within {
            self.told_within = self.is_within;
            for source in self.cursor.children_mut() {
                source.stay_within_prefix(self.is_within);
            }
        }
    }

    fn take_prefix_of_current(&mut self) {
        if self.options.prefix_same_as_start && self.valid() {
            let key = self.key().to_vec();
            self.take_prefix_of(&key);
        }
    }
}
