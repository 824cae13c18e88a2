//! One key; see [`super`] for the idea.

use std::ops::ControlFlow;

use drumlin_base::{PinnedSlice, SeqNo, ValueKind};
use drumlin_table::{KeyHint, Newest, PlainTable};

use super::layout::{RUNS_MAX, ResidentRuns};
use crate::family::super_version::SuperVersion;
use crate::read::context::{Answer, ReadView, value_in};

/// How a search stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing is known of the key yet.
    Open,
    /// The answer is written.
    Decided,
    /// Not a case for this folder.
    Unusual,
}

/// Writes the answer that the newest visible version of a key gives; `fill` writes its value.
///
/// The value is written where the caller has the answer, see [`value_in`].
#[inline]
pub(super) fn decide(
    answer: &mut Answer,
    kind: ValueKind,
    fill: impl FnOnce(&mut PinnedSlice),
) -> Progress {
    match kind {
        ValueKind::Value => {
            fill(value_in(answer));
            Progress::Decided
        }
        ValueKind::Deletion | ValueKind::SingleDeletion => Progress::Decided,
        _ => Progress::Unusual,
    }
}

#[inline]
pub(super) fn has_usual_memtables(super_version: &SuperVersion) -> bool {
    let mut memtables = super_version.memtables();
    memtables.all(|memtable| memtable.range_tombstone_count() == 0)
}

/// As [`crate::read::get_to`]. False where this get is left to the general path, also when `is_sampled` (a call
/// of [`crate::read::sampling::is_get_sampled`]) is true.
///
/// The way to the first prefetches is as short as it can be, and nothing is done before them that can be done
/// after.
#[inline(always)]
pub(in crate::read) fn get(
    read: ReadView<'_>,
    user_key: &[u8],
    is_sampled: impl FnOnce() -> bool,
    answer: &mut Answer,
) -> bool {
    let context = read.context;
    let Some(runs) = read
        .super_version
        .resident_runs(&context.order, &context.tables)
    else {
        return false;
    };
    let hint = KeyHint::of(user_key);
    let Some(tables) = runs.cell(user_key) else {
        return !is_sampled() && get_beside_bound(read, runs, user_key, answer);
    };
    for table in tables {
        table.prefetch(hint);
    }
    if is_sampled() || !has_usual_memtables(read.super_version) {
        return false;
    }
    // The oldest run has most keys, so the guess is made in its table.
    if let Some(table) = tables.last() {
        table.prefetch_guess(user_key);
    }
    let tables = tables.iter().map(|table| &**table);
    search(read, tables, user_key, hint, answer)
}

/// As [`get`], for keys whose table only a comparison of whole keys finds.
#[inline(never)]
fn get_beside_bound(
    read: ReadView<'_>,
    runs: &ResidentRuns,
    user_key: &[u8],
    answer: &mut Answer,
) -> bool {
    let hint = KeyHint::of(user_key);
    let (mut prefetched, mut count) = ([None; RUNS_MAX], 0);
    let is_clear = runs.each_table(user_key, |table| {
        table.prefetch(hint);
        let place = prefetched.get_mut(count);
        *place.expect("a run has one table for a key, and runs are few") = Some(table);
        count += 1;
    });
    let tables = prefetched.into_iter().map_while(|table| table);
    is_clear
        && has_usual_memtables(read.super_version)
        && search(read, tables, user_key, hint, answer)
}

/// Searches the memtables and then `tables`, whose index lines were prefetched.
#[inline(always)]
fn search<'a>(
    read: ReadView<'_>,
    tables: impl Iterator<Item = &'a PlainTable>,
    user_key: &[u8],
    hint: KeyHint,
    answer: &mut Answer,
) -> bool {
    let mut state = Progress::Open;
    for memtable in read.super_version.memtables() {
        memtable.get(user_key, read.seqno, |_, kind, value| {
            state = decide(answer, kind, |slice| *slice = value.pin());
            ControlFlow::Break(())
        });
        if state != Progress::Open {
            return state == Progress::Decided;
        }
    }
    for table in tables {
        let state = search_table(table, user_key, hint, read.seqno, answer);
        if state != Progress::Open {
            return state == Progress::Decided;
        }
    }
    true
}

#[inline(always)]
pub(super) fn search_table(
    table: &PlainTable,
    user_key: &[u8],
    hint: KeyHint,
    seqno: SeqNo,
    answer: &mut Answer,
) -> Progress {
    match table.newest(user_key, hint, seqno) {
        Newest::Absent => Progress::Open,
        Newest::Value(value) => {
            value.pin_to(value_in(answer));
            Progress::Decided
        }
        Newest::Unusual => search_any_table(table, user_key, hint, seqno, answer),
    }
}

/// As [`search_table`], whatever the table and the key are like.
#[inline(never)]
fn search_any_table(
    table: &PlainTable,
    user_key: &[u8],
    hint: KeyHint,
    seqno: SeqNo,
    answer: &mut Answer,
) -> Progress {
    let mut state = Progress::Open;
    let searched = table.probe(hint).get(user_key, seqno, |_, kind, value| {
        state = decide(answer, kind, |slice| value.pin_to(slice));
        ControlFlow::Break(())
    });
    if let Err(error) = searched {
        *answer = Err(error);
        state = Progress::Decided;
    }
    state
}
