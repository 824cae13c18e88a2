//! One key or many in a family whose tables lie in memory: all tables are asked before anything is
//! waited for.
//!
//! In memory a lookup is the sum of its cache misses, and those that follow from the key alone need not
//! wait for each other. So each table that may hold the key is told first, and asks for the line of its
//! index (and for the record, where the key tells where it must be); the memtables are searched while
//! the lines come; then every index answers, and the tables that hold the key's fingerprint, mostly one,
//! ask for the record. What is left is looked up newest first, as everywhere, over memory that has come.
//!
//! Loans of tables are held for the whole lookup: [`TABLES`] of them, a thread's desk has eight places.

use std::ops::ControlFlow;
use std::sync::Arc;

use drumlin_base::bytes::Loan;
use drumlin_base::limits::LEVELS;
use drumlin_base::{PinnedSlice, Result, SeqNo};
use drumlin_table::{Hint, KeyHint, Table, TableReadOptions};

use super::context::ReadContext;
use super::get::{Lookup, SeekKey};
use super::multi_get::ROUND;
use crate::super_version::SuperVersion;
use crate::version::FileMeta;

/// Tables asked ahead; the older ones, if there are more, are looked up one after the other.
const TABLES: usize = 6;

/// As [`super::get`].
pub(super) fn get(
    view: &SuperVersion,
    context: &ReadContext,
    user_key: &[u8],
    seqno: SeqNo,
    options: &TableReadOptions,
) -> Result<Option<PinnedSlice>> {
    let mut asked = [const { None }; TABLES];
    let mut runs = Runs::new(view, context, user_key, seqno);
    let key = KeyHint::of(user_key);
    for (place, files) in asked.iter_mut().zip(&mut runs) {
        *place = Some(Asked::new(files, &key, user_key));
    }
    let mut lookup = Lookup::new(context, user_key, seqno);
    if lookup.search_memtables(view) {
        return lookup.finish(view, options);
    }
    for asked in asked.iter_mut().map_while(Option::as_mut) {
        asked.step(user_key, seqno);
    }
    for asked in asked.iter().map_while(Option::as_ref) {
        if asked.search(&mut lookup, options)? {
            return lookup.finish(view, options);
        }
    }
    for files in runs {
        if lookup.search_run(files, options)? {
            break;
        }
    }
    lookup.finish(view, options)
}

/// A round of a batch of keys: as [`get`], with all keys of `round`, places in `lookups`, taking each
/// step together.
pub(super) fn search_round(
    (view, context): (&SuperVersion, &ReadContext),
    (lookups, round): (&mut [Lookup<'_>], &[usize]),
    seqno: SeqNo,
    options: &TableReadOptions,
) {
    let mut searches = Vec::with_capacity(2 * round.len());
    for &place in round {
        let Some(lookup) = lookups.get(place) else {
            continue;
        };
        let user_key = lookup.user_key();
        let key = KeyHint::of(user_key);
        for files in Runs::new(view, context, user_key, seqno) {
            let mut hint = Hint::default();
            if let Some(table) = files.first().and_then(|file| file.table.load()) {
                table.ask(&mut hint, &key);
            }
            searches.push((place, files, hint));
        }
    }
    search_memtables(view, (lookups, round), seqno);
    for (place, files, hint) in &mut searches {
        if let Some(lookup) = lookups.get(*place)
            && !lookup.is_decided()
            && hint.is_asked()
            && let Some(table) = files.first().and_then(|file| file.table.load())
        {
            table.step(hint, lookup.user_key(), seqno);
        }
    }
    for (place, files, hint) in &searches {
        if let Some(lookup) = lookups.get_mut(*place)
            && !lookup.is_decided()
            && let Err(error) = lookup.search_run_hinted(files, Some(hint), options)
        {
            lookup.fail(error);
        }
    }
}

/// Searches the memtables, newest first, for the keys of `round`.
fn search_memtables(
    view: &SuperVersion,
    (lookups, round): (&mut [Lookup<'_>], &[usize]),
    seqno: SeqNo,
) {
    for (index, memtable) in view.memtables().enumerate() {
        let has_tombstones = memtable.range_tombstone_count() > 0;
        let (mut keys, mut places, mut count) = ([&[][..]; ROUND], [0; ROUND], 0);
        for &place in round {
            if let Some(lookup) = lookups.get_mut(place).filter(|it| !it.is_decided())
                && let (Some(key), Some(at)) = (keys.get_mut(count), places.get_mut(count))
            {
                (*key, *at) = (lookup.user_key(), place);
                count += 1;
                if has_tombstones {
                    lookup.cover(view, index);
                }
            }
        }
        let keys = keys.get(..count).unwrap_or_default();
        memtable.get_many(keys, seqno, |at, seqno, kind, value| {
            match places.get(at).and_then(|&place| lookups.get_mut(place)) {
                Some(lookup) => lookup.visit_in_memtable(seqno, kind, value),
                None => ControlFlow::Break(()),
            }
        });
    }
}

/// The sorted runs that may hold a key, newest first: of each, its tables from the first that does on.
struct Runs<'a> {
    view: &'a SuperVersion,
    context: &'a ReadContext,
    user_key: &'a [u8],
    seqno: SeqNo,
    /// Tables of L0 looked at.
    tables: usize,
    /// Levels looked at, once L0 is done.
    level: usize,
}

impl<'a> Runs<'a> {
    fn new(
        view: &'a SuperVersion,
        context: &'a ReadContext,
        user_key: &'a [u8],
        seqno: SeqNo,
    ) -> Self {
        Self {
            view,
            context,
            user_key,
            seqno,
            tables: 0,
            level: 1,
        }
    }
}

impl<'a> Iterator for Runs<'a> {
    type Item = &'a [Arc<FileMeta>];

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (version, order) = (&self.view.version, &self.context.order);
        while let Some(file) = version.level(0).get(self.tables) {
            self.tables += 1;
            if file.may_hold(order, self.user_key) {
                return Some(std::slice::from_ref(file));
            }
        }
        while self.level < LEVELS {
            let level = self.level;
            self.level += 1;
            let files = version.level(level);
            if files.is_empty() {
                continue;
            }
            let target = SeekKey::new(self.user_key, self.seqno);
            let first = version.find_file(order, level, target.bytes());
            let from = first.and_then(|first| files.get(first..));
            if let Some([first, ..]) = from
                && order
                    .compare(first.smallest_user_key(), self.user_key)
                    .is_le()
            {
                return from;
            }
        }
        None
    }
}

/// A run on its way to the answer.
struct Asked<'a> {
    files: &'a [Arc<FileMeta>],
    /// The first of them, if it is open.
    table: Option<Loan<'a, Arc<Table>>>,
    hint: Hint,
}

impl<'a> Asked<'a> {
    #[inline]
    fn new(files: &'a [Arc<FileMeta>], key: &KeyHint, user_key: &[u8]) -> Self {
        let table = files.first().and_then(|file| file.table.load());
        let mut hint = Hint::default();
        if let Some(table) = &table {
            table.ask(&mut hint, key);
            table.guess(user_key);
        }
        Self { files, table, hint }
    }

    #[inline]
    fn step(&mut self, user_key: &[u8], seqno: SeqNo) {
        if let Some(table) = &self.table
            && self.hint.is_asked()
        {
            table.step(&mut self.hint, user_key, seqno);
        }
    }

    /// Whether the answer is decided.
    #[inline]
    fn search(&self, lookup: &mut Lookup<'_>, options: &TableReadOptions) -> Result<bool> {
        match &self.table {
            Some(table) if self.hint.is_absent() && table.range_tombstones().is_empty() => {
                // The next table of the run begins after the key: the last entry of this one would
                // be the key's else.
                Ok(false)
            }
            _ => lookup.search_run_hinted(self.files, Some(&self.hint), options),
        }
    }
}
