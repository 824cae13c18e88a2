//! Many keys at once: one super version, keys in order, source by source, so that neighbouring keys
//! find the level searched, the table open and the block cached by the one before. Values in blob
//! files are read last, in the order they lie in there.

use std::sync::Arc;

use drumlin_base::limits::LEVELS;
use drumlin_base::{PinnedSlice, Result, SeqNo};
use drumlin_table::TableReadOptions;
use drumlin_table::blob::{BlobIndex, get_sorted};

use super::context::ReadContext;
use super::get::{Lookup, SeekKey, ends_at_or_after, no_blob};
use super::sampling;
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
    for key in sampling::sampled_of(keys) {
        // Only its charges are wanted: the answer, or error, comes with the others.
        drop(sampling::get(view, context, key.as_ref(), seqno, options));
    }
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

    let mut answers = Answers::new(keys.len());
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
        answers.finish(rest);
    }
    answers.read_blobs(view, context, options);
    let answers = answers.answers.into_iter();
    answers.map(|answer| answer.unwrap_or(Ok(None))).collect()
}

struct Pending<'a> {
    /// Index in the caller's list.
    place: usize,
    lookup: Lookup<'a>,
}

/// Searches one source for every pending key; those decided or failed leave the list.
fn settle<'a>(
    pending: &mut Vec<Pending<'a>>,
    answers: &mut Answers<'a>,
    mut search: impl FnMut(&mut Lookup<'a>) -> Result<bool>,
) {
    let mut rest = Vec::with_capacity(pending.len());
    for mut item in pending.drain(..) {
        match search(&mut item.lookup) {
            Ok(false) => rest.push(item),
            Ok(true) => answers.finish(item),
            Err(error) => answers.put(item.place, Err(error)),
        }
    }
    *pending = rest;
}

/// What is known, in the caller's order, and what waits for a blob.
struct Answers<'a> {
    answers: Vec<Option<Result<Option<PinnedSlice>>>>,
    blobs: Vec<(BlobIndex, Pending<'a>)>,
}

impl<'a> Answers<'a> {
    fn new(count: usize) -> Self {
        let mut answers = Vec::new();
        answers.resize_with(count, || None);
        Self {
            answers,
            blobs: Vec::new(),
        }
    }

    fn put(&mut self, place: usize, answer: Result<Option<PinnedSlice>>) {
        if let Some(slot) = self.answers.get_mut(place) {
            *slot = Some(answer);
        }
    }

    /// Takes the answer of a search that is over.
    fn finish(&mut self, item: Pending<'a>) {
        match item.lookup.wanted_blob() {
            Some(index) => self.blobs.push((index, item)),
            None => self.put(item.place, item.lookup.finish_with(no_blob())),
        }
    }

    /// Reads what is missing, file by file and by offset.
    fn read_blobs(
        &mut self,
        view: &SuperVersion,
        context: &ReadContext,
        options: &TableReadOptions,
    ) {
        let mut blobs = std::mem::take(&mut self.blobs);
        blobs.sort_by_key(|(index, _)| (index.file, index.offset));
        let mut values = Vec::with_capacity(blobs.len());
        for of_file in blobs.chunk_by(|(a, _), (b, _)| a.file == b.file) {
            let wanted = of_file.iter();
            let wanted: Vec<_> = wanted
                .map(|(index, item)| (item.lookup.user_key(), *index))
                .collect();
            let file = wanted.first().map_or(0, |(_, index)| index.file);
            let read = context
                .blobs
                .with_open(&view.version, file, options, |reader| {
                    get_sorted(reader, &wanted, options.verify_checksums, |value| {
                        values.push(value);
                    });
                    Ok(())
                });
            if let Err(error) = read {
                values.extend(wanted.iter().map(|_| Err(error.duplicate())));
            }
        }
        for ((_, item), value) in blobs.into_iter().zip(values) {
            let answer = item.lookup.finish_with_blob(value, view, options);
            self.put(item.place, answer);
        }
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
