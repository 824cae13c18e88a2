//! Iterators that are held over other operations.

use drumlin::{ColumnFamily, DbIterator, ReadOptions, Result};

use super::{HeldIterator, World};
use crate::digest;
use crate::expected::bounds;
use crate::generate::ITERATORS;
use crate::op::Op;
use crate::verb::Verb;

impl World<'_> {
    pub(super) fn iter_new(
        &mut self,
        op: &Op,
        family: &ColumnFamily,
        mut options: ReadOptions,
    ) -> String {
        (options.lower_bound, options.upper_bound) = bounds(op);
        let pinned = options.snapshot.is_some();
        let iterator = self.db().iter_cf(family, options);
        self.iterators[op.slot % ITERATORS] = Some(HeldIterator {
            iterator,
            pinned,
            family: family.clone(),
        });
        "ok".to_owned()
    }

    pub(super) fn iterate(&mut self, op: &Op) -> Result<String> {
        let families = self.db().families();
        let place = &mut self.iterators[op.slot % ITERATORS];
        let Some(held) = place else {
            return Ok("none".to_owned());
        };
        let iterator = &mut held.iterator;
        match op.verb {
            Verb::IterFirst => iterator.seek_to_first(),
            Verb::IterLast => iterator.seek_to_last(),
            Verb::IterSeek => iterator.seek(op.key(0)),
            Verb::IterSeekForPrev => iterator.seek_for_prev(op.key(0)),
            Verb::IterNext => (0..op.count).for_each(|_| step(iterator, true)),
            Verb::IterPrev => (0..op.count).for_each(|_| step(iterator, false)),
            Verb::IterTurn => {
                let mut said = Vec::new();
                for turn in 0..1 + op.count % 5 {
                    step(iterator, (turn + op.count / 5).is_multiple_of(2));
                    said.push(row(iterator)?);
                }
                return Ok(said.join("; "));
            }
            Verb::IterPin => {
                iterator.status()?;
                if !iterator.valid() {
                    return Ok(digest::value(None));
                }
                iterator.try_value()?;
                return Ok(digest::value(Some(&iterator.pin_value())));
            }
            Verb::IterRefresh => {
                let alive = families.iter().any(|f| f.id() == held.family.id());
                return match alive || held.pinned {
                    true => Ok(super::refusal(iterator.refresh())),
                    false => Ok("dropped".to_owned()),
                };
            }
            _ => {
                *place = None;
                return Ok("ok".to_owned());
            }
        }
        row(iterator)
    }
}

/// Moves by one, from where a move is allowed.
fn step(iterator: &mut DbIterator, forward: bool) {
    match (iterator.valid(), forward) {
        (true, true) => iterator.next(),
        (true, false) => iterator.prev(),
        (false, _) => {}
    }
}

fn row(iterator: &DbIterator) -> Result<String> {
    iterator.status()?;
    if !iterator.valid() {
        return Ok(digest::row(None));
    }
    Ok(digest::row(Some((iterator.key(), iterator.try_value()?))))
}
