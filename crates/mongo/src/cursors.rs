//! Cursors that are open between two commands: their place, and no moment of the data.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use drumlin_base::sync::Mutex;
use drumlin_doc::{Code, Document, Filter, Projection, Refusal};
use drumlin_doc_store::{Name, Outcome, Walk};

use crate::sorting::Sorted;
use crate::wire::limits::{CURSOR_IDLE_SECONDS, CURSORS_MAX};

/// Where the documents of a cursor come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// They are all there.
    Ready(VecDeque<Vec<u8>>),
    Results(Box<Results>),
    Walk(Box<Walking>),
}

/// What a query or a pipeline has found, of one moment.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) documents: Sorted,
    pub(crate) skip: u64,
    /// Which elements of arrays a projection is about.
    pub(crate) filter: Filter,
    pub(crate) projection: Option<Projection>,
    /// A document that the last batch had no room for.
    pub(crate) pending: Option<Vec<u8>>,
}

impl Results {
    /// All of `documents`.
    pub(crate) fn all(documents: Sorted) -> Self {
        Self {
            documents,
            skip: 0,
            filter: Filter::And(Vec::new()),
            projection: None,
            pending: None,
        }
    }

    /// The next document.
    ///
    /// # Errors
    /// Of the files of a sort, and of the projection.
    pub(crate) fn next(&mut self) -> Outcome<Option<Vec<u8>>> {
        if let Some(document) = self.pending.take() {
            return Ok(Some(document));
        }
        while self.skip > 0 {
            self.skip -= 1;
            if self.documents.next()?.is_none() {
                self.skip = 0;
            }
        }
        let document = self.documents.next()?;
        Ok(match (&self.projection, document) {
            (Some(projection), Some(document)) => {
                Some(projection.apply(Document(&document), Some(&self.filter))?)
            }
            (_, document) => document,
        })
    }
}

/// What a cursor does that stays open at the end of a capped collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// It says that there is nothing now.
    Plain,
    /// It waits for a while.
    Await,
}

/// A walk that goes on.
#[derive(Debug)]
pub(crate) struct Walking {
    pub(crate) walk: Walk,
    pub(crate) filter: Filter,
    pub(crate) projection: Option<Projection>,
    pub(crate) skip: u64,
    pub(crate) limit: u64,
    /// The collection, which may be dropped and made anew under its name.
    pub(crate) uuid: [u8; 16],
    /// A document that the last batch had no room for.
    pub(crate) pending: Option<Vec<u8>>,
    pub(crate) is_over: bool,
    pub(crate) tail: Option<Tail>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Cursor {
    pub(crate) name: Name,
    pub(crate) source: Source,
    /// The session that it was opened in.
    pub(crate) session: Option<Vec<u8>>,
    /// The connection that waits for more of it, and until when.
    pub(crate) awaited: Option<(u64, Duration)>,
}

impl Cursor {
    /// The walk of one that stays open at the end.
    pub(crate) fn tail(&self) -> Option<(Tail, &Walking)> {
        match &self.source {
            Source::Walk(walking) => Some((walking.tail?, walking)),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Table {
    next: i64,
    open: HashMap<i64, (Duration, Cursor)>,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Cursors(Mutex<Table>);

impl Cursors {
    /// Ids begin at random, so that those of an earlier run are not mistaken for new ones.
    pub(crate) fn new(seed: i64) -> Self {
        Self(Mutex::new(Table {
            next: (seed & (i64::MAX >> 8)).max(1),
            open: HashMap::new(),
        }))
    }

    /// Keeps a cursor under a new id. Those that were idle for too long go.
    ///
    /// # Errors
    /// `BadValue` when there are too many.
    pub(crate) fn open(&self, cursor: Cursor, now: Duration) -> Result<i64, Refusal> {
        let mut table = self.0.lock();
        let oldest = now.saturating_sub(Duration::from_secs(CURSOR_IDLE_SECONDS));
        if now > Duration::from_secs(CURSOR_IDLE_SECONDS) {
            table.open.retain(|_, (used, _)| *used >= oldest);
        }
        if table.open.len() >= CURSORS_MAX {
            return Err(Refusal::bad_value(format!(
                "{CURSORS_MAX} cursors are open"
            )));
        }
        let id = table.next;
        table.next += 1;
        table.open.insert(id, (now, cursor));
        Ok(id)
    }

    /// Takes a cursor out, to be put back if it is not at its end.
    ///
    /// # Errors
    /// `CursorNotFound`, also for one that another connection is using; `Unauthorized` for one of another collection; `Location50736`
    /// to `Location50738` for one of another session, or of none.
    pub(crate) fn take(
        &self,
        id: i64,
        name: &Name,
        session: Option<&[u8]>,
    ) -> Result<Cursor, Refusal> {
        let mut table = self.0.lock();
        let missing = || Refusal::new(Code::CursorNotFound, format!("cursor id {id} not found"));
        let (_, cursor) = table.open.get(&id).ok_or_else(missing)?;
        if cursor.name != *name {
            let text = format!("cursor id {id} is of {} and not of {name}", cursor.name);
            return Err(Refusal::new(Code::Unauthorized, text));
        }
        let wrong = match (cursor.session.as_deref(), session) {
            (None, Some(_)) => Some(Code::CursorOfNoSession),
            (Some(_), None) => Some(Code::CursorOfSession),
            (Some(own), Some(other)) if own != other => Some(Code::CursorOfOtherSession),
            _ => None,
        };
        if let Some(code) = wrong {
            let text = format!("cursor id {id} was not opened in the session of this command");
            return Err(Refusal::new(code, text));
        }
        let found = table.open.remove(&id);
        found.map(|(_, cursor)| cursor).ok_or_else(missing)
    }

    pub(crate) fn put_back(&self, id: i64, cursor: Cursor, now: Duration) {
        self.0.lock().open.insert(id, (now, cursor));
    }

    /// Whether there was such a cursor.
    pub(crate) fn kill(&self, id: i64) -> bool {
        self.0.lock().open.remove(&id).is_some()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().open.len()
    }
}
