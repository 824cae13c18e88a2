//! The walk towards smaller keys: the versions of a key come oldest first, so all visible ones are
//! gathered before the last of them decides.

use drumlin_base::key::{SEEK_KIND, split_internal, tag_kind, tag_seqno};
use drumlin_base::{InternalIterator, Result, SEQNO_MAX, ValueKind};

use super::parts::{
    Covering, Decision, HIDDEN_STEPS_MAX, Place, SavedValue, check_deletion, checked_parts,
    is_same, misplaced, set_key, set_target, short_key,
};
use super::state::Walk;
use crate::read::entity::default_column;

/// Kind of the oldest visible part of a key's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Value,
    Blob,
}

impl Walk {
    /// From where the cursor stands, goes back to the first key that shows.
    pub(in crate::read) fn find_backward(&mut self) {
        self.dead_in_a_row = 0;
        while self.cursor.valid() {
            let Some((user_key, tag)) = split_internal(self.cursor.key()) else {
                return self.fail(short_key());
            };
            if !self.within_lower(user_key) {
                return self.end();
            }
            set_key(&mut self.key, user_key);
            match self.covering(tag_seqno(tag)) {
                Some(covering) if self.is_jump_due(covering) => {
                    self.counters.range_deleted += 1;
                    self.leave_covered_backward(covering);
                    continue;
                }
                Some(_) => {}
                None => self.covered_in_a_row = 0,
            }
            match self.gather_backward() {
                Decision::Shown(place) => {
                    let is_blob = matches!(place, Place::DirectBlob | Place::BehindBlob);
                    self.place = Place::behind(is_blob);
                    return;
                }
                Decision::Failed(error) => return self.fail(error),
                Decision::Hidden => {}
            }
        }
        self.end();
    }

    /// Looks at all versions of `self.key`, oldest first, and leaves the cursor before them.
    fn gather_backward(&mut self) -> Decision {
        self.operands.clear();
        self.is_behind_deletion = false;
        let mut found = None;
        let mut steps = 0;
        while self.cursor.valid() {
            let Some((user_key, tag)) = split_internal(self.cursor.key()) else {
                return Decision::Failed(short_key());
            };
            if !is_same(&self.context.order, user_key, &self.key) {
                break;
            }
            if tag_seqno(tag) > self.seqno {
                self.leave_key_backward();
                break;
            }
            steps += 1;
            self.counters.entries_hidden += u64::from(steps > 1);
            if steps > HIDDEN_STEPS_MAX {
                return self.gather_by_seek();
            }
            if let Err(error) = self.take_older(tag, &mut found) {
                return Decision::Failed(error);
            }
            self.cursor.prev();
        }
        if let Err(error) = self.cursor.status() {
            return Decision::Failed(error);
        }
        self.decide_backward(found)
    }

    /// Adds the entry under the cursor, which is newer than the entries of its key added before. `found` is
    /// the kind of the value in `self.value`.
    fn take_older(&mut self, tag: u64, found: &mut Option<Base>) -> Result<()> {
        if self.covering(tag_seqno(tag)).is_some() {
            self.counters.range_deleted += 1;
            self.note_dead();
            self.operands.clear();
            *found = None;
            return Ok(());
        }
        let kind = ValueKind::from_byte(tag_kind(tag))?;
        self.is_behind_deletion = kind == ValueKind::DeletionWithTimestamp;
        if self.is_behind_deletion {
            check_deletion(&self.context.order)?;
        }
        match kind {
            ValueKind::Value | ValueKind::DeletionWithTimestamp => {
                self.operands.clear();
                *found = Some(Base::Value);
                self.value.keep(&self.cursor);
            }
            ValueKind::BlobIndex => {
                self.operands.clear();
                *found = Some(Base::Blob);
                // Equal keys may differ in their bytes, and the blob has this one's.
                let (user_key, _) = checked_parts(&self.cursor);
                set_key(&mut self.key, user_key);
                self.value.keep(&self.cursor);
            }
            ValueKind::Merge => {
                self.operands.push_newer(self.cursor.current().pin_value());
            }
            ValueKind::Deletion | ValueKind::SingleDeletion => {
                self.counters.tombstones += 1;
                self.note_dead();
                self.operands.clear();
                *found = None;
            }
            ValueKind::WideColumnEntity => {
                self.operands.clear();
                *found = Some(Base::Value);
                self.value.copy_from(default_column(self.cursor.value())?);
            }
            ValueKind::RangeDeletion => return Err(misplaced(kind)),
        }
        Ok(())
    }

    /// The value of `self.key` from the entries gathered.
    fn decide_backward(&mut self, found: Option<Base>) -> Decision {
        if self.operands.is_empty() {
            return match found {
                Some(base) => Decision::Shown(Place::behind(base == Base::Blob)),
                None => Decision::Hidden,
            };
        }
        if found == Some(Base::Blob) {
            match self.read_blob(&self.key, self.value.bytes()) {
                Ok(value) => self.value = SavedValue::Pinned(value),
                Err(error) => return Decision::Failed(error),
            }
        }
        let existing = found.map(|_| self.value.bytes());
        let operator = self.context.merge_operator.as_deref();
        let merged = self.operands.apply(operator, &self.key, existing);
        self.show_merged(merged)
    }

    /// Finds the value of `self.key`, which has many versions, from its newest visible one; leaves
    /// the cursor before all of them.
    fn gather_by_seek(&mut self) -> Decision {
        set_target(&mut self.target, &self.key, self.seqno, SEEK_KIND);
        self.counters.seeks += 1;
        self.cursor.seek(&self.target);
        let decision = match self
            .cursor
            .valid()
            .then(|| split_internal(self.cursor.key()))
        {
            Some(Some((user_key, tag))) if is_same(&self.context.order, user_key, &self.key) => {
                self.is_behind_deletion = tag_kind(tag) == ValueKind::DeletionWithTimestamp as u8;
                self.decide_forward(tag_seqno(tag), tag_kind(tag))
            }
            _ => match self.cursor.status() {
                Ok(()) => Decision::Hidden,
                Err(error) => Decision::Failed(error),
            },
        };
        if matches!(decision, Decision::Shown(Place::Direct | Place::DirectBlob)) {
            self.value.keep(&self.cursor);
        }
        self.seek_before_key();
        decision
    }

    /// Moves the cursor, which stands on a version of `self.key`, before all versions of it.
    pub(in crate::read) fn leave_key_backward(&mut self) {
        for _ in 0..HIDDEN_STEPS_MAX {
            self.cursor.prev();
            let left = !self.cursor.valid()
                || split_internal(self.cursor.key())
                    .is_none_or(|(user_key, _)| !is_same(&self.context.order, user_key, &self.key));
            if left {
                return;
            }
            self.counters.entries_hidden += 1;
        }
        self.seek_before_key();
    }

    pub(in crate::read) fn seek_before_key(&mut self) {
        set_target(&mut self.target, &self.key, SEQNO_MAX, SEEK_KIND);
        self.counters.seeks += 1;
        self.cursor.seek_for_prev(&self.target);
    }

    /// Leaves an entry under a range tombstone of a newer source: to before the tombstone's begin
    /// in all sources older than its own.
    fn leave_covered_backward(&mut self, covering: Covering) {
        let source = &self.cursor.children()[covering.rank];
        let at = &mut self.tombstone_cursors[covering.rank];
        let covering_key = source.covering(&self.context.order, at, &self.key, self.seqno);
        let covered = covering_key.expect("the source was found to cover the key");
        set_target(&mut self.target, covered.begin, SEQNO_MAX, SEEK_KIND);
        self.counters.seeks += 1;
        self.cursor
            .skip_older_back_to(covering.rank + 1, &self.target);
    }

    /// Moves the cursor to the last entry below the upper bound.
    pub(in crate::read) fn cursor_to_last(&mut self) {
        match &self.options.upper_bound {
            Some(upper) => {
                set_target(&mut self.target, upper, SEQNO_MAX, SEEK_KIND);
                self.cursor.seek_for_prev(&self.target);
            }
            None => self.cursor.seek_to_last(),
        }
    }
}
