//! A walk past spans that earlier walks found dead, and its notes for later ones ([`drumlin_memtable::DeadSpans`]).

use drumlin_base::key::SEEK_KIND;
use drumlin_base::{InternalIterator, SEQNO_MAX};
use drumlin_memtable::{DeadSpans, Sight};

use super::parts::{DEAD_STRETCH, checked_parts, set_target};
use super::state::Walk;

impl Walk {
    fn spans(&self) -> &DeadSpans {
        self.super_version.memtable.dead_spans()
    }

    /// After another stretch of dead keys, the last of which is `self.key`: goes to the end of the span over it, or begins a
    /// note and goes back to where that begins. True when the cursor was moved.
    #[cold]
    pub(in crate::read) fn leave_dead_span(&mut self) -> bool {
        if self.dead.note.is_some() || self.is_within {
            return false;
        }
        let sight = Sight {
            state: self.super_version.number,
            seqno: self.seqno,
        };
        let order = &self.context.order;
        match self.spans().end_over(order, &self.key, sight) {
            Some(Some(end)) => {
                self.seek_user_key(&end);
                self.dead.after = Some(end);
            }
            Some(None) => {
                self.cursor.seek_to_last();
                if self.cursor.valid() {
                    self.cursor.next();
                }
            }
            None if !self.meets_all_writes() => return false,
            None => {
                let after = self.dead.after.as_deref();
                let Some(note) = self.spans().open(order, (&self.key, after), sight) else {
                    return false;
                };
                self.seek_user_key(&note.from);
                self.dead.note = Some(note);
            }
        }
        true
    }

    fn seek_user_key(&mut self, user_key: &[u8]) {
        set_target(&mut self.target, user_key, SEQNO_MAX, SEEK_KIND);
        self.counters.seeks += 1;
        self.cursor.seek(&self.target);
    }

    /// Whether the walk met so many dead keys in a row that it may have a note.
    #[inline]
    pub(in crate::read) fn is_among_the_dead(&self) -> bool {
        self.dead_in_a_row >= DEAD_STRETCH
    }

    /// The dead keys end at the key under the cursor, which is there or may be for later readers.
    #[cold]
    pub(in crate::read) fn settle_dead_here(&mut self) {
        self.dead.after = None;
        if let Some(note) = self.dead.note.take() {
            let (user_key, _) = checked_parts(&self.cursor);
            self.spans()
                .settle(&self.context.order, &note, Some(user_key));
        }
    }

    /// The dead keys end at `self.key`, which is there.
    #[cold]
    pub(in crate::read) fn settle_dead_at_key(&mut self) {
        self.dead.after = None;
        if let Some(note) = self.dead.note.take() {
            self.spans()
                .settle(&self.context.order, &note, Some(&self.key));
        }
    }

    /// The dead keys end where the walk ends: at its bound or behind the last key.
    #[cold]
    pub(in crate::read) fn settle_dead_at_bound(&mut self) {
        self.dead.after = None;
        if let Some(note) = self.dead.note.take() {
            let bound = self.options.upper_bound.as_deref();
            match self.cursor.status() {
                Ok(()) => self.spans().settle(&self.context.order, &note, bound),
                Err(_) => self.spans().give_up(&note),
            }
        }
    }

    /// The walk failed.
    #[cold]
    pub(in crate::read) fn forget_the_dead(&mut self) {
        self.dead.after = None;
        if let Some(note) = self.dead.note.take() {
            self.spans().give_up(&note);
        }
    }
}
