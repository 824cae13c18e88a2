//! One key or many in a family whose tables lie in memory: all tables are asked before anything is
//! waited for.
//!
//! In memory a lookup is the sum of its cache misses, and those that follow from the key alone need not
//! wait for each other. So the table of each sorted run that may hold the key is told first, and asks for
//! the line of its index (and, for a single key, for the record, where the key tells where it must be);
//! the memtables are searched while the lines come; then the indexes answer, and the record follows.
//! A batch takes each of these steps with all its keys before the next.
//!
//! What is written by a step is read by the next one only after those of the other keys, or in the same
//! words: a load that spans several stores still on their way to the cache waits for all instructions
//! before it, and with them for every line that was asked for.
//!
//! Only the usual is done here: values and deletions in memtables and tables without range tombstones,
//! laid out by [`ResidentRuns`]. Anything else is left to the way all families go.

use std::ops::ControlFlow;

use drumlin_base::{PinnedSlice, SeqNo, ValueKind};
use drumlin_table::{KeyHint, Newest, PlainTable, TableReadOptions};

use super::context::ReadContext;
use super::get::{Answer, get_anywhere};
use super::multi_get::ROUND;
use crate::family::super_version::SuperVersion;
use crate::resident_runs::{RUNS_MAX, ResidentRuns};

/// How a search stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is known of the key yet.
    Open,
    /// The answer is what was written.
    Decided,
    /// Not to be had here.
    Unusual,
}

/// Writes the answer that the newest visible version of a key gives; `fill` writes its value.
///
/// Answers are written where the caller gets them, see [`PinnedSlice::copy_small`].
#[inline]
fn decide(answer: &mut Answer, kind: ValueKind, fill: impl FnOnce(&mut PinnedSlice)) -> State {
    match kind {
        ValueKind::Value => {
            *answer = Ok(Some(PinnedSlice::default()));
            if let Ok(Some(slice)) = answer {
                fill(slice);
            }
            State::Decided
        }
        ValueKind::Deletion | ValueKind::SingleDeletion => State::Decided,
        _ => State::Unusual,
    }
}

/// What there is to look into, if the usual is all there is.
fn usual<'a>(view: &'a SuperVersion, context: &ReadContext) -> Option<&'a ResidentRuns> {
    let runs = view.resident_runs(&context.order, &context.tables);
    runs.filter(|_| has_usual_memtables(view))
}

#[inline]
fn has_usual_memtables(view: &SuperVersion) -> bool {
    let mut memtables = view.memtables();
    memtables.all(|memtable| memtable.range_tombstone_count() == 0)
}

/// As [`super::get_to`]. False when it is not to be had here, or to be looked at: which is told by
/// `is_sampled`, a call of [`super::sampling::is_get_sampled`].
///
/// The way to the first lines that are asked for is as short as it can be, and nothing is done before
/// that can be done after: a processor that waits for the record of one get sees some four hundred
/// instructions ahead, and with them the beginning of the next.
#[inline(always)]
pub(super) fn get(
    view: &SuperVersion,
    context: &ReadContext,
    user_key: &[u8],
    seqno: SeqNo,
    is_sampled: impl FnOnce() -> bool,
    answer: &mut Answer,
) -> bool {
    let Some(runs) = view.resident_runs(&context.order, &context.tables) else {
        return false;
    };
    let key = KeyHint::of(user_key);
    let Some(tables) = runs.cell(user_key) else {
        return !is_sampled() && get_beside_bound(view, runs, user_key, seqno, answer);
    };
    for table in tables {
        table.ask(key);
    }
    if is_sampled() || !has_usual_memtables(view) {
        return false;
    }
    // The oldest run has most keys, so it is guessed where the record would be in its table.
    if let Some(table) = tables.last() {
        table.guess(user_key);
    }
    let tables = tables.iter().map(|table| &**table);
    search(view, tables, user_key, key, seqno, answer)
}

/// As [`get`], for keys whose tables are told by whole keys.
#[inline(never)]
fn get_beside_bound(
    view: &SuperVersion,
    runs: &ResidentRuns,
    user_key: &[u8],
    seqno: SeqNo,
    answer: &mut Answer,
) -> bool {
    let key = KeyHint::of(user_key);
    let (mut asked, mut count) = ([None; RUNS_MAX], 0);
    let is_clear = runs.each_table(user_key, |table| {
        table.ask(key);
        if let Some(place) = asked.get_mut(count) {
            *place = Some(table);
        }
        count += 1;
    });
    let tables = asked.into_iter().map_while(|table| table);
    is_clear && has_usual_memtables(view) && search(view, tables, user_key, key, seqno, answer)
}

/// Looks into the memtables and then into `tables`, whose indexes were asked.
#[inline(always)]
fn search<'a>(
    view: &SuperVersion,
    tables: impl Iterator<Item = &'a PlainTable>,
    user_key: &[u8],
    key: KeyHint,
    seqno: SeqNo,
    answer: &mut Answer,
) -> bool {
    let mut state = State::Open;
    for memtable in view.memtables() {
        memtable.get(user_key, seqno, |_, kind, value| {
            state = decide(answer, kind, |slice| *slice = value.pin());
            ControlFlow::Break(())
        });
        if state != State::Open {
            return state == State::Decided;
        }
    }
    for table in tables {
        let state = search_table(table, user_key, key, seqno, answer);
        if state != State::Open {
            return state == State::Decided;
        }
    }
    true
}

#[inline(always)]
fn search_table(
    table: &PlainTable,
    user_key: &[u8],
    key: KeyHint,
    seqno: SeqNo,
    answer: &mut Answer,
) -> State {
    match table.newest(user_key, key, seqno) {
        Newest::Absent => State::Open,
        Newest::Value(value) => {
            *answer = Ok(Some(PinnedSlice::default()));
            if let Ok(Some(slice)) = answer {
                value.pin_to(slice);
            }
            State::Decided
        }
        Newest::Unusual => search_any_table(table, user_key, key, seqno, answer),
    }
}

/// As [`search_table`], whatever the table and the key are like.
#[inline(never)]
fn search_any_table(
    table: &PlainTable,
    user_key: &[u8],
    key: KeyHint,
    seqno: SeqNo,
    answer: &mut Answer,
) -> State {
    let mut state = State::Open;
    let searched = table.get_hinted(user_key, key, seqno, |_, kind, value| {
        state = decide(answer, kind, |slice| value.pin_to(slice));
        ControlFlow::Break(())
    });
    if let Err(error) = searched {
        *answer = Err(error);
        state = State::Decided;
    }
    state
}

/// As [`super::multi_get`]; `None` when it is not to be had here.
pub(super) fn multi_get<K: AsRef<[u8]>>(
    view: &SuperVersion,
    context: &ReadContext,
    keys: &[K],
    seqno: SeqNo,
    options: &TableReadOptions,
) -> Option<Vec<Answer>> {
    let runs = usual(view, context)?;
    let mut answers = Vec::with_capacity(keys.len());
    for keys in keys.chunks(ROUND) {
        let from = answers.len();
        answers.extend(keys.iter().map(|_| Ok(None)));
        let Some(answers) = answers.get_mut(from..) else {
            break; // Never.
        };
        let mut round = Round::new(view, keys, seqno);
        round.search(runs, answers);
        for (at, (answer, key)) in answers.iter_mut().zip(keys).enumerate() {
            if round.unusual & 1 << at != 0 {
                get_anywhere(view, context, key.as_ref(), seqno, options, answer);
            }
        }
    }
    Some(answers)
}

/// At most [`ROUND`] keys on their way together. Sets of keys are words with a bit for each.
struct Round<'a, K> {
    view: &'a SuperVersion,
    keys: &'a [K],
    seqno: SeqNo,
    /// Keys nothing is known of yet.
    open: u32,
    /// Keys that are not to be had here.
    unusual: u32,
}

/// A key and a table that may hold it.
struct Probe<'a> {
    key: usize,
    hash: KeyHint,
    table: &'a PlainTable,
    /// What the next step reads of the table's file.
    at: usize,
}

impl<'a, K: AsRef<[u8]>> Round<'a, K> {
    fn new(view: &'a SuperVersion, keys: &'a [K], seqno: SeqNo) -> Self {
        const { assert!(ROUND as u32 == u32::BITS) };
        debug_assert!(keys.len() <= ROUND);
        Self {
            view,
            keys,
            seqno,
            open: u32::MAX >> (ROUND - keys.len()),
            unusual: 0,
        }
    }

    /// Looks for all keys; `answers` have a place for each.
    fn search(&mut self, runs: &ResidentRuns, answers: &mut [Answer]) {
        // Key by key, and of a key the newest first.
        let mut probes = Vec::with_capacity(2 * self.keys.len());
        for (key, user_key) in self.keys.iter().enumerate() {
            let user_key = user_key.as_ref();
            let hash = KeyHint::of(user_key);
            let is_clear = runs.each_table(user_key, |table| {
                let at = table.index_at(hash);
                probes.push(Probe {
                    key,
                    hash,
                    table,
                    at,
                });
            });
            if !is_clear {
                self.leave(key);
            }
        }
        for probe in &probes {
            probe.table.prefetch_index(probe.at);
        }
        self.search_memtables(answers);
        // Of each key the newest table that has it by the fingerprint, mostly the only one; those older
        // are left in case it has not.
        let (mut likely, mut last) = ([0; ROUND], usize::MAX);
        let mut count = 0;
        for (index, probe) in probes.iter_mut().enumerate() {
            if self.is_open(probe.key)
                && probe.key != last
                && let Some(at) = probe.table.record_at(probe.hash)
                && let Some(likely) = likely.get_mut(count)
            {
                (probe.at, last, *likely) = (at, probe.key, index);
                count += 1;
            }
        }
        let likely = likely.get(..count).unwrap_or_default();
        for probe in likely.iter().filter_map(|index| probes.get(*index)) {
            probe.table.prefetch_record(probe.at);
        }
        for index in likely {
            let rest = probes.get(*index..).unwrap_or_default();
            let key = rest.first().map(|probe| probe.key);
            let of_key = rest.iter().take_while(|it| Some(it.key) == key);
            for probe in of_key {
                if !self.is_open(probe.key) {
                    break;
                }
                self.search_table(probe, answers);
            }
        }
    }

    fn is_open(&self, key: usize) -> bool {
        self.open & 1 << key != 0
    }

    /// Leaves `key` to the way all families go.
    fn leave(&mut self, key: usize) {
        self.open &= !(1 << key);
        self.unusual |= 1 << key;
    }

    /// Takes in how the search for `key` ended.
    #[inline]
    fn note(&mut self, key: usize, state: State) {
        match state {
            State::Open => {}
            State::Decided => self.open &= !(1 << key),
            State::Unusual => self.leave(key),
        }
    }

    fn search_memtables(&mut self, answers: &mut [Answer]) {
        let view = self.view;
        for memtable in view.memtables() {
            let (mut keys, mut places, mut count) = ([&[][..]; ROUND], [0; ROUND], 0);
            for (at, key) in self.keys.iter().enumerate() {
                if self.is_open(at) {
                    (keys[count], places[count]) = (key.as_ref(), at);
                    count += 1;
                }
            }
            memtable.get_many(&keys[..count], self.seqno, |at, _, kind, value| {
                let at = places[at];
                if let Some(answer) = answers.get_mut(at) {
                    self.note(at, decide(answer, kind, |slice| *slice = value.pin()));
                }
                ControlFlow::Break(())
            });
        }
    }

    #[inline]
    fn search_table(&mut self, probe: &Probe<'_>, answers: &mut [Answer]) {
        let (table, key) = (probe.table, probe.key);
        if let (Some(user_key), Some(answer)) = (self.keys.get(key), answers.get_mut(key)) {
            let user_key = user_key.as_ref();
            let state = search_table(table, user_key, probe.hash, self.seqno, answer);
            self.note(key, state);
        }
    }
}
