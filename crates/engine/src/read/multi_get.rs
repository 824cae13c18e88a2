//! Many keys at once: one super version, keys in order, source by source, so that neighbouring keys
//! find the level searched, the table open and the block cached by the one before.

use std::sync::Arc;

use drumlin_base::limits::LEVELS;
use drumlin_base::{PinnedSlice, Result, SeqNo};
use drumlin_table::TableReadOptions;

use super::context::ReadContext;
use super::get::{Lookup, SeekKey, ends_at_or_after};
use crate::super_version::SuperVersion;
use crate::version::FileMeta;

/// What [`super::get`] answers for each of `keys`, in their order; keys may repeat.
///
/// A key whose table cannot be read fails alone.
pub fn multi_get<K: AsRef<[u8]>>(
    view: &SuperVersion,
    context: &ReadContext,
    keys: &[K],
    seqno: SeqNo,
    options: &TableReadOptions,
) -> Vec<Result<Option<PinnedSlice>>> {
    let mut pending: Vec<Pending<'_>> = keys
        .iter()
        .enumerate()
        .map(|(place, key)| Pending {
            place,
            lookup: Lookup::new(context, key.as_ref(), seqno),
        })
        .collect();
    pending.sort_by(|a, b| {
        context
            .order
            .compare(a.lookup.user_key(), b.lookup.user_key())
    });

    let mut answers: Vec<Option<Result<Option<PinnedSlice>>>> = Vec::new();
    answers.resize_with(keys.len(), || None);
    settle(&mut pending, &mut answers, |lookup| {
        Ok(lookup.search_memtables(view))
    });
    for file in view.version.level(0) {
        settle(&mut pending, &mut answers, |lookup| {
            Ok(file.may_hold(&context.order, lookup.user_key())
                && lookup.search_file(file, options)?)
        });
    }
    for level in 1..LEVELS {
        let files = view.version.level(level);
        if files.is_empty() || pending.is_empty() {
            continue;
        }
        let mut run = RunSearch::new(view, context, level, seqno);
        settle(&mut pending, &mut answers, |lookup| {
            let files = run.files_for(lookup.user_key());
            lookup.search_run(files, options)
        });
    }
    for rest in pending {
        put(&mut answers, rest.place, rest.lookup.finish());
    }
    answers
        .into_iter()
        .map(|answer| answer.unwrap_or(Ok(None)))
        .collect()
}

struct Pending<'a> {
    /// Index in the caller's list.
    place: usize,
    lookup: Lookup<'a>,
}

/// Searches one source for every pending key; those decided or failed leave the list.
fn settle<'a>(
    pending: &mut Vec<Pending<'a>>,
    answers: &mut [Option<Result<Option<PinnedSlice>>>],
    mut search: impl FnMut(&mut Lookup<'a>) -> Result<bool>,
) {
    let mut rest = Vec::with_capacity(pending.len());
    for mut item in pending.drain(..) {
        match search(&mut item.lookup) {
            Ok(false) => rest.push(item),
            Ok(true) => put(answers, item.place, item.lookup.finish()),
            Err(error) => put(answers, item.place, Err(error)),
        }
    }
    *pending = rest;
}

fn put(
    answers: &mut [Option<Result<Option<PinnedSlice>>>],
    place: usize,
    answer: Result<Option<PinnedSlice>>,
) {
    if let Some(slot) = answers.get_mut(place) {
        *slot = Some(answer);
    }
}

/// Finds the table of each of a list of ascending keys in one level, searching only when the key
/// has left the table of the one before.
struct RunSearch<'a> {
    view: &'a SuperVersion,
    context: &'a ReadContext,
    level: usize,
    seqno: SeqNo,
    /// Index of the table found for the key before.
    index: Option<usize>,
}

impl<'a> RunSearch<'a> {
    fn new(view: &'a SuperVersion, context: &'a ReadContext, level: usize, seqno: SeqNo) -> Self {
        Self {
            view,
            context,
            level,
            seqno,
            index: None,
        }
    }

    /// The level's tables from the first that ends at or after `user_key` on.
    fn files_for(&mut self, user_key: &[u8]) -> &'a [Arc<FileMeta>] {
        let files = self.view.version.level(self.level);
        let target = SeekKey::new(user_key, self.seqno);
        let still_there = self
            .index
            .and_then(|index| files.get(index))
            .is_some_and(|file| ends_at_or_after(self.context, file, &target));
        if !still_there {
            let order = &self.context.order;
            let found = self
                .view
                .version
                .find_file(order, self.level, target.bytes());
            self.index = Some(found.unwrap_or(files.len()));
        }
        self.index
            .and_then(|index| files.get(index..))
            .unwrap_or_default()
    }
}
