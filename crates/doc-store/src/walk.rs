//! A plan carried out, in pieces: between two of them nothing is held but the place.

use std::collections::HashSet;

use drumlin::{DbIterator, Error};
use drumlin_doc::{Code, Document, Refusal, step};

use crate::catalog::Collection;
use crate::failure::Outcome;
use crate::form;
use crate::nearby::Nearby;
use crate::plan::{Access, Plan};
use crate::reads::{Reads, Visit};

/// The most keys of `_id` that a walk remembers, so that a document with several entries comes once.
pub(crate) const SEEN_MAX: usize = 4 << 20;

/// See the module. A document that moves in an index between two pieces may come twice or not at all, as of a cursor of MongoDB.
#[derive(Clone, Debug)]
pub struct Walk {
    plan: Plan,
    /// Which part of a union.
    part: usize,
    /// The range, or the place in the list of keys.
    range: usize,
    /// The key that was the last one, in the range.
    after: Option<Vec<u8>>,
    seen: HashSet<Vec<u8>>,
    /// Whether it stays at the end, for what comes.
    is_tail: bool,
    /// How far around a point it has come.
    nearby: Option<Box<Nearby>>,
    /// Index entries that were looked at.
    pub keys_examined: u64,
    /// Documents that were looked at.
    pub documents_examined: u64,
}

impl Walk {
    /// The beginning of a plan.
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            part: 0,
            range: 0,
            after: None,
            seen: HashSet::new(),
            is_tail: false,
            nearby: None,
            keys_examined: 0,
            documents_examined: 0,
        }
    }

    /// A walk over a capped collection, oldest first, that stays at the end: each time it goes on it shows what has come since.
    pub fn tail(collection: &Collection) -> Self {
        Self {
            is_tail: true,
            ..Self::new(Plan::tail(collection))
        }
    }

    /// Whether it has not met a document yet.
    pub fn is_at_beginning(&self) -> bool {
        self.after.is_none()
    }

    /// Its plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Shows documents to `visit`, each with the key that it lies under, until it returns false; whether there are no more.
    ///
    /// # Errors
    /// Those of `visit`; of the engine; `CappedPositionLost` of a tail whose last document is gone.
    pub fn go_on(
        &mut self,
        reads: &Reads<'_>,
        collection: &Collection,
        visit: &mut Visit<'_>,
    ) -> Outcome<bool> {
        let access = self.plan.access.clone();
        let parts = access.parts();
        while let Some(part) = parts.get(self.part) {
            let is_last = self.part + 1 == parts.len();
            if !self.go_on_in(reads, collection, (part, is_last), visit)? {
                return Ok(false);
            }
            if is_last {
                break;
            }
            self.part += 1;
            self.range = 0;
            self.after = None;
        }
        Ok(true)
    }

    /// As [`Walk::go_on`], in a part; `is_last` where none follows.
    fn go_on_in(
        &mut self,
        reads: &Reads<'_>,
        collection: &Collection,
        (access, is_last): (&Access, bool),
        visit: &mut Visit<'_>,
    ) -> Outcome<bool> {
        match access {
            Access::Ids(ids) => {
                while let Some(id) = ids.get(self.range) {
                    step()?;
                    self.range += 1;
                    let Some(document) = reads.document(collection, id)? else {
                        continue;
                    };
                    self.documents_examined += 1;
                    if self.is_new(id, false)? && !visit(id, Document(&document))? {
                        return Ok(is_last && self.range == ids.len());
                    }
                }
                Ok(true)
            }
            Access::Near(index, around) => {
                let nearby = self.nearby.get_or_insert_default();
                let is_over = nearby.go_on(reads, collection, (index, around), visit);
                self.keys_examined = nearby.keys_examined;
                self.documents_examined = nearby.documents_examined;
                is_over
            }
            Access::Collection(ranges) | Access::Index(_, ranges) => {
                while let Some(at) = self.place(ranges.len()) {
                    let mut range = ranges.get(at).cloned().unwrap_or_default();
                    let of_index = matches!(access, Access::Index(..));
                    if !of_index && let Some(first) = reads.first_key(collection) {
                        range.0 = range.0.max(first);
                    }
                    let mut cursor = reads.cursor(of_index, range);
                    self.seek(&mut cursor)?;
                    while cursor.valid() {
                        step()?;
                        self.after = Some(cursor.key().to_vec());
                        if !self.show(reads, collection, access, &cursor, visit)? {
                            return Ok(false);
                        }
                        self.step(&mut cursor);
                    }
                    cursor.status()?;
                    if self.is_tail {
                        return Ok(true);
                    }
                    self.range += 1;
                    self.after = None;
                }
                Ok(true)
            }
            Access::Union(_) => Err(Error::corruption("a union within a union").into()),
        }
    }

    /// Whether the document under `id` comes for the first time. `repeats`: whether an index may have it several times.
    fn is_new(&mut self, id: &[u8], repeats: bool) -> Outcome<bool> {
        let is_union = matches!(self.plan.access, Access::Union(_));
        if !repeats && (!is_union || drumlin_base::bug!("mongo-union-shows-twice")) {
            return Ok(true);
        }
        if self.seen.len() >= SEEN_MAX {
            let text = format!(
                "a query met more than {SEEN_MAX} documents that several entries of indexes lead to"
            );
            return Err(Refusal::new(Code::MemoryLimit, text).into());
        }
        Ok(self.seen.insert(id.to_vec()))
    }

    /// The range that is walked now.
    fn place(&self, ranges: usize) -> Option<usize> {
        match self.plan.is_reverse {
            true => ranges.checked_sub(self.range + 1),
            false => (self.range < ranges).then_some(self.range),
        }
    }

    fn step(&self, cursor: &mut DbIterator) {
        match self.plan.is_reverse {
            true => cursor.prev(),
            false => cursor.next(),
        }
    }

    fn seek(&self, cursor: &mut DbIterator) -> Outcome<()> {
        match (&self.after, self.plan.is_reverse) {
            (None, false) => cursor.seek_to_first(),
            (None, true) => cursor.seek_to_last(),
            (Some(after), false) => cursor.seek(after),
            (Some(after), true) => cursor.seek_for_prev(after),
        }
        let is_same = self
            .after
            .as_ref()
            .is_some_and(|after| cursor.valid() && cursor.key() == after);
        if is_same {
            self.step(cursor);
        } else if self.is_tail && self.after.is_some() {
            cursor.status()?;
            let text = "CollectionScan died due to position in capped collection being deleted";
            return Err(Refusal::new(Code::CappedPositionLost, text).into());
        }
        Ok(())
    }

    /// Shows what is at the cursor; whether to go on.
    fn show(
        &mut self,
        reads: &Reads<'_>,
        collection: &Collection,
        access: &Access,
        cursor: &DbIterator,
        visit: &mut Visit<'_>,
    ) -> Outcome<bool> {
        let damaged = || Error::corruption("an index entry is not whole");
        let Access::Index(index, _) = access else {
            let id = cursor.key().get(4..).ok_or_else(damaged)?;
            self.documents_examined += 1;
            if !self.is_new(id, false)? {
                return Ok(true);
            }
            let document = form::decode(id, cursor.try_value()?)?;
            return visit(id, Document(&document));
        };
        self.keys_examined += 1;
        let id = index
            .id_of(cursor.key(), cursor.try_value()?)
            .ok_or_else(damaged)?;
        if !self.is_new(id, index.is_multikey())? {
            return Ok(true);
        }
        let document = reads.document_of(collection, (&index.name, id))?;
        self.documents_examined += 1;
        visit(id, Document(&document))
    }
}
