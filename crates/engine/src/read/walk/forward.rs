//! The walk towards larger keys: the first visible entry of a key decides, the rest is skipped.

use std::sync::atomic::Ordering;

use drumlin_base::key::{SEEK_KIND, split_internal, tag_kind, tag_seqno, user_key_prefix};
use drumlin_base::{Error, InternalIterator, Result, SEQNO_MAX, SeqNo, ValueKind};

use super::parts::{
    Covering, DEAD_STRETCH, Decision, HIDDEN_STEPS_MAX, Place, SavedValue, check_deletion,
    checked_parts, is_same, is_same_by_prefix, misplaced, set_key, set_target, short_key,
};
use super::state::Walk;
use crate::read::entity::default_column;

impl Walk {
    /// From where the cursor stands, goes on to the first entry that shows. With `skip`, entries of
    /// `self.key` are passed over.
    #[inline]
    pub(in crate::read) fn find_forward(&mut self, mut skip: bool) {
        let mut passed = 0;
        let mut skipped_prefix = user_key_prefix(&self.key);
        self.dead_in_a_row = 0;
        while self.cursor.valid() {
            let Some((user_key, tag)) = split_internal(self.cursor.key()) else {
                self.forget_the_dead();
                return self.fail(short_key());
            };
            if !self.within_upper(user_key) {
                if self.is_among_the_dead() {
                    self.settle_dead_at_bound();
                }
                return self.end();
            }
            let seqno = tag_seqno(tag);
            let (order, prefix) = (&self.context.order, self.cursor.key_prefix());
            if skip && is_same_by_prefix(order, (prefix, user_key), (skipped_prefix, &self.key)) {
                passed += 1;
                self.pass_older(&mut passed);
                continue;
            }
            if seqno > self.seqno {
                if self.is_among_the_dead() {
                    self.settle_dead_here();
                }
                self.pass_newer(&mut passed);
                // The cursor has left the key to skip; `self.key` is another now.
                skip = false;
                continue;
            }
            passed = 0;
            if tag_kind(tag) == ValueKind::Value as u8
                && !self.tombstones_seen.load(Ordering::Relaxed)
            {
                if self.is_among_the_dead() {
                    self.settle_dead_here();
                }
                self.place = Place::Direct;
                return;
            }
            match self.decide_forward(seqno, tag_kind(tag)) {
                Decision::Shown(place) => {
                    if self.is_among_the_dead() {
                        self.settle_dead_at_key();
                    }
                    self.place = place;
                    return;
                }
                Decision::Failed(error) => {
                    self.forget_the_dead();
                    return self.fail(error);
                }
                Decision::Hidden => {
                    let is_due =
                        self.is_among_the_dead() && self.dead_in_a_row.is_multiple_of(DEAD_STRETCH);
                    skip = !(is_due && self.leave_dead_span());
                    skipped_prefix = user_key_prefix(&self.key);
                }
            }
        }
        if self.is_among_the_dead() {
            self.settle_dead_at_bound();
        }
        self.end();
    }

    /// Decides on the newest visible entry of a key, under the cursor. A hidden one is left
    /// behind with its key in `self.key`.
    pub(in crate::read) fn decide_forward(&mut self, seqno: SeqNo, kind: u8) -> Decision {
        let (user_key, _) = checked_parts(&self.cursor);
        set_key(&mut self.key, user_key);
        if let Some(covering) = self.covering(seqno) {
            self.counters.range_deleted += 1;
            self.note_dead();
            self.leave_covered_forward(covering);
            return Decision::Hidden;
        }
        self.covered_in_a_row = 0;
        let kind = match ValueKind::from_byte(kind) {
            Ok(kind) => kind,
            Err(error) => return Decision::Failed(error),
        };
        match kind {
            ValueKind::Value => Decision::Shown(Place::Direct),
            ValueKind::DeletionWithTimestamp => match check_deletion(&self.context.order) {
                Ok(()) => Decision::Shown(Place::Direct),
                Err(error) => Decision::Failed(error),
            },
            ValueKind::Deletion | ValueKind::SingleDeletion => {
                self.counters.tombstones += 1;
                self.note_dead();
                self.cursor.next();
                Decision::Hidden
            }
            ValueKind::Merge => self.merge_forward(),
            ValueKind::WideColumnEntity => match default_column(self.cursor.value()) {
                Ok(column) => {
                    self.value.copy_from(column);
                    Decision::Shown(Place::Saved)
                }
                Err(error) => Decision::Failed(error),
            },
            ValueKind::BlobIndex => Decision::Shown(Place::DirectBlob),
            ValueKind::RangeDeletion => Decision::Failed(misplaced(kind)),
        }
    }

    /// Gathers the operands of `self.key` from the cursor on, and makes its value.
    fn merge_forward(&mut self) -> Decision {
        self.operands.clear();
        loop {
            self.operands.push_older(self.cursor.current().pin_value());
            self.cursor.next();
            if !self.cursor.valid() {
                break;
            }
            let Some((user_key, tag)) = split_internal(self.cursor.key()) else {
                return Decision::Failed(short_key());
            };
            if !is_same(&self.context.order, user_key, &self.key)
                || self.covering(tag_seqno(tag)).is_some()
                    && !drumlin_base::bug!("covered-operands-merged")
            {
                break;
            }
            let kind = match ValueKind::from_byte(tag_kind(tag)) {
                Ok(kind) => kind,
                Err(error) => return Decision::Failed(error),
            };
            let blob;
            let existing = match kind {
                ValueKind::Merge => continue,
                ValueKind::Deletion
                | ValueKind::DeletionWithTimestamp
                | ValueKind::SingleDeletion => break,
                ValueKind::Value => Ok(self.cursor.value()),
                ValueKind::WideColumnEntity => default_column(self.cursor.value()),
                ValueKind::BlobIndex => {
                    let (own_key, _) = checked_parts(&self.cursor);
                    blob = self.read_blob(own_key, self.cursor.value());
                    blob.as_deref().map_err(Error::duplicate)
                }
                ValueKind::RangeDeletion => Err(misplaced(kind)),
            };
            let operator = self.context.merge_operator.as_deref();
            let merged =
                existing.and_then(|value| self.operands.apply(operator, &self.key, Some(value)));
            return self.show_merged(merged);
        }
        if let Err(error) = self.cursor.status() {
            return Decision::Failed(error);
        }
        let operator = self.context.merge_operator.as_deref();
        let merged = self.operands.apply(operator, &self.key, None);
        self.show_merged(merged)
    }

    pub(in crate::read) fn show_merged(&mut self, merged: Result<Vec<u8>>) -> Decision {
        match merged {
            Ok(value) => {
                self.value = SavedValue::Copied(value);
                Decision::Shown(Place::Saved)
            }
            Err(error) => Decision::Failed(error),
        }
    }

    /// Leaves an older version of `self.key`; once `passed` is past the limit, all of them.
    fn pass_older(&mut self, passed: &mut u32) {
        self.counters.entries_hidden += 1;
        if *passed <= HIDDEN_STEPS_MAX {
            self.cursor.next();
            return;
        }
        *passed = 0;
        set_target(&mut self.target, &self.key, 0, 0);
        self.counters.seeks += 1;
        self.cursor.seek(&self.target);
        // An entry of kind 0 and sequence number 0 is at the target itself: it is passed over next.
    }

    /// Leaves an entry too new to be seen; when many in a row belong to one key, goes straight to
    /// its newest visible version. Remembers the key of the first in a row in `self.key`.
    fn pass_newer(&mut self, passed: &mut u32) {
        self.counters.entries_hidden += 1;
        let (user_key, _) = checked_parts(&self.cursor);
        *passed += 1;
        if *passed == 1 || !is_same(&self.context.order, user_key, &self.key) {
            set_key(&mut self.key, user_key);
            *passed = 1;
        }
        if *passed <= HIDDEN_STEPS_MAX {
            self.cursor.next();
            return;
        }
        *passed = 0;
        set_target(&mut self.target, &self.key, self.seqno, SEEK_KIND);
        self.counters.seeks += 1;
        self.cursor.seek(&self.target);
    }

    /// Leaves an entry under a range tombstone: to the tombstone's end in all sources older than
    /// its own, else by one step.
    pub(in crate::read) fn leave_covered_forward(&mut self, covering: Covering) {
        if !self.is_jump_due(covering) {
            self.cursor.next();
            return;
        }
        let source = &self.cursor.children()[covering.rank];
        let at = &mut self.tombstone_cursors[covering.rank];
        let covering_key = source.covering(&self.context.order, at, &self.key, self.seqno);
        let covered = covering_key.expect("the source was found to cover the key");
        set_target(&mut self.target, covered.end, SEQNO_MAX, SEEK_KIND);
        self.counters.seeks += 1;
        self.cursor.skip_older_to(covering.rank + 1, &self.target);
    }
}
