//! Many keys at once: one super version, keys in order, source by source, so that neighbouring keys
//! find the table open and the block cached by the one before. Values in blob files are read last, in
//! the order of the files.
//!
//! ```text
//! for each source, newest first
//!     for each round of 32 keys that are still open
//!         each key takes a step, and prefetches the memory of its next one       five times
//!         read the blocks that are not cached, in one call
//!         each key is looked up, in memory by now
//! ```
//!
//! So a round waits for memory as often as one key does, and for the disk once.

use std::sync::Arc;

use drumlin_base::bytes::HazardGuard;
use drumlin_base::key::user_key_prefix;
use drumlin_base::limits::LEVELS;
use drumlin_base::perf;
use drumlin_base::{KeyOrder, SeqNo};
use drumlin_table::blob::{BlobIndex, get_sorted};
use drumlin_table::{Hint, STEPS, TOGETHER_MAX, Table, TableReadOptions, read_together};

use super::context::{Answer, ROUND, ReadView};
use super::get::{Lookup, SeekKey, get_by_sources, get_charged};
use super::{resident, sampling};
use crate::version::FileMeta;

const _: () = assert!(ROUND <= TOGETHER_MAX);

/// The answer of [`super::get_to`] for each of `keys`, in their order; keys may repeat.
///
/// A key whose table cannot be read fails alone.
pub(crate) fn multi_get<K: AsRef<[u8]>>(
    read: ReadView<'_>,
    keys: &[K],
    options: &TableReadOptions,
) -> Vec<Answer> {
    // A get has less to set up than a batch of one.
    if let [key] = keys {
        let mut answer = Ok(None);
        super::get_to(read, key.as_ref(), || *options, &mut answer);
        return vec![answer];
    }
    let answers = if read.context.in_memory && !perf::is_on() {
        resident::multi_get(read, keys, |key, answer| {
            get_by_sources(read, key, options, answer);
        })
    } else {
        None
    };
    let mut answers = answers.unwrap_or_else(|| multi_get_by_sources(read, keys, options));
    if let Some(ttl) = &read.context.ttl {
        let now = ttl.now();
        for (key, answer) in keys.iter().zip(&mut answers) {
            ttl.give(now, key.as_ref(), answer);
        }
    }
    for key in sampling::sampled_of(keys) {
        // For its charges alone. Its blocks are mostly cached by now; those that reads may not cache are
        // read once more.
        get_charged(read, key.as_ref(), options, &mut Ok(None));
    }
    answers
}

/// As [`multi_get`], source by source: the way that serves every kind of table and entry.
fn multi_get_by_sources<K: AsRef<[u8]>>(
    read: ReadView<'_>,
    keys: &[K],
    options: &TableReadOptions,
) -> Vec<Answer> {
    let ReadView {
        super_version,
        context,
        ..
    } = read;
    let mut answers: Vec<Answer> = keys.iter().map(|_| Ok(None)).collect();
    let mut batch = Batch::new(read, keys, &mut answers, options);
    batch.search_memtables();
    for file in super_version.version.level(0) {
        batch.search_tables(|lookup| {
            let user_key = lookup.user_key();
            if file.may_hold(&context.order, user_key) {
                std::slice::from_ref(file)
            } else {
                &[]
            }
        });
    }
    for level in 1..LEVELS {
        let files = super_version.version.level(level);
        if files.is_empty() {
            continue;
        }
        // Keys ascend, so the next is mostly in the table of the one before.
        let mut last: &[Arc<FileMeta>] = &[];
        batch.search_tables(|lookup| {
            let user_key = lookup.user_key();
            let order = &context.order;
            let ends_after =
                |file: &Arc<FileMeta>| order.compare(user_key, file.largest_user_key());
            if last.first().is_some_and(|file| ends_after(file).is_lt()) {
                return last;
            }
            let target = SeekKey::new(user_key, read.seqno);
            let found = super_version
                .version
                .find_file(order, level, target.bytes());
            last = found.map_or(&[], |index| &files[index..]);
            last
        });
    }
    batch.finish();
    answers
}

/// The search for all keys.
struct Batch<'a> {
    read: ReadView<'a>,
    options: &'a TableReadOptions,
    /// In the caller's order.
    lookups: Vec<Lookup<'a>>,
    /// Places of those not decided yet, their keys ascending.
    pending: Vec<usize>,
}

/// A key on its way through one run of tables.
struct Search<'a> {
    place: usize,
    /// From the first that ends at or after the key on.
    ///
    /// Invariant: there is one.
    files: &'a [Arc<FileMeta>],
    /// Of the first of them.
    hint: Hint,
}

impl<'a> Search<'a> {
    /// The table the search begins in.
    #[inline]
    fn first(&self) -> &'a Arc<FileMeta> {
        &self.files[0]
    }
}

impl<'a> Batch<'a> {
    fn new<K: AsRef<[u8]>>(
        read: ReadView<'a>,
        keys: &'a [K],
        answers: &'a mut [Answer],
        options: &'a TableReadOptions,
    ) -> Self {
        let keys = keys.iter().map(AsRef::as_ref).zip(answers);
        let lookups: Vec<_> = keys
            .map(|(key, answer)| Lookup::new(read, key, answer))
            .collect();
        Self {
            pending: in_key_order(&read.context.order, &lookups),
            read,
            options,
            lookups,
        }
    }

    fn search_memtables(&mut self) {
        for (index, memtable) in self.read.super_version.memtables().enumerate() {
            let has_tombstones = memtable.range_tombstone_count() > 0;
            for round in self.pending.chunks(ROUND) {
                let mut keys = [&[][..]; ROUND];
                for (key, &place) in keys.iter_mut().zip(round) {
                    let lookup = &mut self.lookups[place];
                    *key = lookup.user_key();
                    if has_tombstones {
                        lookup.cover(index);
                    }
                }
                let (keys, lookups) = (&keys[..round.len()], &mut self.lookups);
                memtable.get_many(keys, self.read.seqno, |at, seqno, kind, value| {
                    lookups[round[at]].visit_in_memtable(seqno, kind, value)
                });
            }
            self.drop_decided();
        }
    }

    /// Searches a sorted run. `files_for` gives its tables from the first that ends at or after the
    /// lookup's key on, or none.
    fn search_tables(&mut self, mut files_for: impl FnMut(&Lookup<'a>) -> &'a [Arc<FileMeta>]) {
        let mut searches: Vec<Search<'a>> = Vec::with_capacity(ROUND);
        for round in self.pending.chunks(ROUND) {
            let with_files = round.iter().filter_map(|&place| {
                let files = files_for(&self.lookups[place]);
                let hint = Hint::default();
                (!files.is_empty()).then_some(Search { place, files, hint })
            });
            searches.extend(with_files);
            // A single key shares its wait with none.
            if searches.len() > 1 {
                answer_together(&mut searches, &mut self.lookups, self.read.seqno);
            }
            if searches.len() > 1 {
                step_all(&mut searches, &self.lookups, self.read.seqno);
                read_missing(&searches, self.options);
            }
            for search in searches.drain(..) {
                let lookup = &mut self.lookups[search.place];
                let found = lookup.search_run(search.files, Some(&search.hint), self.options);
                if let Err(error) = found {
                    lookup.fail(error);
                }
            }
        }
        self.drop_decided();
    }

    fn drop_decided(&mut self) {
        let lookups = &self.lookups;
        self.pending.retain(|&place| !lookups[place].is_decided());
    }

    /// Completes the answers.
    fn finish(self) {
        let mut blobs = Vec::new();
        for lookup in self.lookups {
            match lookup.wanted_blob() {
                None => lookup.finish(self.options),
                Some(index) => blobs.push((index, lookup)),
            }
        }
        if !blobs.is_empty() {
            read_blobs(self.read, blobs, self.options);
        }
    }
}

/// The places of all lookups, their keys ascending.
fn in_key_order(order: &KeyOrder, lookups: &[Lookup<'_>]) -> Vec<usize> {
    let key_of = |place: usize| lookups[place].user_key();
    let mut places: Vec<(u64, usize)> = match order {
        // The first bytes behind the shared ones mostly decide, without a look at the keys.
        KeyOrder::Bytewise => {
            let shared = shared_bytes(lookups);
            let behind =
                |lookup: &Lookup<'_>| lookup.user_key().get(shared..).map_or(0, user_key_prefix);
            lookups.iter().map(behind).zip(0..).collect()
        }
        _ => (0..lookups.len()).map(|place| (0, place)).collect(),
    };
    places.sort_unstable_by_key(|&(prefix, _)| prefix);
    for ties in places.chunk_by_mut(|(a, _), (b, _)| a == b) {
        if ties.len() > 1 {
            ties.sort_unstable_by(|&(_, a), &(_, b)| order.compare(key_of(a), key_of(b)));
        }
    }
    places.into_iter().map(|(_, place)| place).collect()
}

/// The length of the prefix that all keys share, found eight bytes at a time.
fn shared_bytes(lookups: &[Lookup<'_>]) -> usize {
    let mut shared = 0;
    let word = |lookup: &Lookup<'_>, at: usize| {
        let bytes = lookup.user_key().get(at..)?.first_chunk::<8>()?;
        Some(u64::from_be_bytes(*bytes))
    };
    while let Some(first) = lookups.first().and_then(|lookup| word(lookup, shared)) {
        let differing = lookups
            .iter()
            .map(|lookup| word(lookup, shared).map_or(u64::MAX, |word| word ^ first))
            .fold(0, |all, bits| all | bits);
        shared += differing.leading_zeros() as usize / 8;
        if differing != 0 {
            break;
        }
    }
    shared
}

/// The table used last, under a guard: keys ascend, so the next key is mostly in the same table.
#[derive(Default)]
struct LastTable<'a> {
    file: Option<&'a Arc<FileMeta>>,
    table: Option<HazardGuard<'a, Arc<Table>>>,
}

impl<'a> LastTable<'a> {
    /// The table of `file`, if it is open.
    #[inline]
    fn of(&mut self, file: &'a Arc<FileMeta>) -> Option<&Arc<Table>> {
        if !self.file.is_some_and(|last| Arc::ptr_eq(last, file)) {
            // Drops the guard on the table before.
            self.table = None;
            self.table = file.table.load();
            self.file = Some(file);
        }
        self.table.as_deref()
    }
}

/// Has the tables that can look up their keys together, and removes the searches that are done.
fn answer_together(searches: &mut Vec<Search<'_>>, lookups: &mut [Lookup<'_>], seqno: SeqNo) {
    let mut are_done = true;
    for of_table in searches.chunk_by_mut(|a, b| Arc::ptr_eq(a.first(), b.first())) {
        are_done &= answer_in_table(of_table, lookups, seqno);
    }
    if are_done {
        searches.clear()
    } else {
        searches.retain(|search| !is_done(search, lookups))
    }
}

/// Has the table in which `searches` begin look them all up, if it can. True when all are done.
fn answer_in_table(searches: &mut [Search<'_>], lookups: &mut [Lookup<'_>], seqno: SeqNo) -> bool {
    let Some(table) = searches[0].first().table.load() else {
        return false;
    };
    if !table.range_tombstones().is_empty() {
        return false;
    }
    let count = searches.len();
    let (mut keys, mut hints) = ([&[][..]; ROUND], [Hint::default(); ROUND]);
    for (key, search) in keys.iter_mut().zip(&*searches) {
        *key = lookups[search.place].user_key();
    }
    let (keys, hints) = (&keys[..count], &mut hints[..count]);
    let has_answered = table.get_together(keys, hints, seqno, |at, seqno, kind, value| {
        lookups[searches[at].place].visit_in_table(seqno, kind, value);
    });
    for (search, hint) in searches.iter_mut().zip(hints) {
        search.hint = *hint;
    }
    has_answered && searches.iter().all(|search| is_done(search, lookups))
}

/// Whether the tables of a search need no further lookup.
fn is_done(search: &Search<'_>, lookups: &[Lookup<'_>]) -> bool {
    let lookup = &lookups[search.place];
    // Only where the key is the last of its table may others of the run have versions of it. Equal keys have
    // equal bytes here: tables that look up keys together are in bytewise order.
    let is_last = || search.first().largest_user_key() == lookup.user_key();
    lookup.is_decided() || (search.hint.is_settled() && !is_last())
}

/// Takes all steps of every search, in turns.
fn step_all(searches: &mut [Search<'_>], lookups: &[Lookup<'_>], seqno: SeqNo) {
    for _ in 0..STEPS {
        let mut last = LastTable::default();
        for search in &mut *searches {
            if !search.hint.is_absent()
                && let Some(table) = last.of(search.first())
            {
                let user_key = lookups[search.place].user_key();
                table.step(&mut search.hint, user_key, seqno);
            }
        }
    }
}

/// Reads the blocks that are not in memory, all of them together.
fn read_missing(searches: &[Search<'_>], options: &TableReadOptions) {
    let mut missing: Vec<(Arc<Table>, Hint)> = Vec::new();
    let mut last = LastTable::default();
    for search in searches {
        if let Some(table) = last.of(search.first())
            && table.lacks(&search.hint)
        {
            missing.push((Arc::clone(table), search.hint));
        }
    }
    // A single read has nothing to be combined with.
    if missing.len() > 1 {
        read_together(&missing, options);
    }
}

/// Reads the missing blobs, file by file and by offset.
fn read_blobs(
    read: ReadView<'_>,
    mut blobs: Vec<(BlobIndex, Lookup<'_>)>,
    options: &TableReadOptions,
) {
    blobs.sort_by_key(|(index, _)| (index.file, index.offset));
    let mut values = Vec::with_capacity(blobs.len());
    for of_file in blobs.chunk_by(|(a, _), (b, _)| a.file == b.file) {
        let file = of_file[0].0.file;
        let wanted = of_file.iter();
        let wanted: Vec<_> = wanted
            .map(|(index, lookup)| (lookup.user_key(), *index))
            .collect();
        let (blobs, version) = (&read.context.blobs, &read.super_version.version);
        let found = blobs.with_open(version, file, options, |reader| {
            get_sorted(reader, &wanted, options.verify_checksums, |value| {
                values.push(value);
            });
            Ok(())
        });
        if let Err(error) = found {
            values.extend(wanted.iter().map(|_| Err(error.duplicate())));
        }
    }
    assert_eq!(
        values.len(),
        blobs.len(),
        "each key with a blob gets a value or an error"
    );
    for ((index, lookup), value) in blobs.into_iter().zip(values) {
        lookup.finish_with_blob(&index, value, options);
    }
}
