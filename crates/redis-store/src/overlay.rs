//! The changes of one round of commands that are not written yet.
//!
//! A later command sees them, a failed one takes its own back, and all of them become one batch.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use drumlin::{Result, WriteBatch};

use crate::ahead::Ahead;
use crate::drawn::Drawn;
use crate::events::Event;
use crate::families::{FAMILIES, Families, FamilyName};
use crate::keys::{Place, live_key, place_key};
use crate::live::LiveChange;
use crate::touched::Touched;
use crate::tree::{Nodes, Written};
use crate::value::Value;

/// A value that was put, or `None` where the key was deleted.
pub(crate) type Change = Option<Value>;

/// Something that [`Overlay::undo`] puts back.
enum Undo {
    /// Of a key of so many bytes, the last ones of [`Overlay::undo_keys`].
    Entry(FamilyName, usize, Option<Change>),
    Cleared(u16, bool, Vec<(FamilyName, Vec<u8>, Change)>),
    Databases(Option<Arc<[u16]>>),
}

/// See the module.
#[derive(Default)]
pub struct Overlay {
    tables: [BTreeMap<Vec<u8>, Change>; FAMILIES],
    /// The nodes of trees, which stand in no table. Whoever only reads has nodes kept here, too.
    pub(crate) nodes: RefCell<Nodes>,
    cleared: BTreeSet<u16>,
    lives: Vec<LiveChange>,
    events: Vec<Event>,
    touched: Touched,
    gone: Touched,
    /// How many of `touched` and of `gone` [`Overlay::take_untold`] has given out.
    told: [usize; 2],
    undo: Vec<Undo>,
    undo_keys: Vec<u8>,
    /// The key on disk that was asked for last: a command asks for its own more than once.
    pub(crate) last_key: Cell<Vec<u8>>,
    /// The same of the elements of collections.
    pub(crate) last_element: Cell<Vec<u8>>,
    databases: Option<Arc<[u16]>>,
    /// Records read before the commands that ask for them. Changes go over them.
    pub(crate) ahead: Ahead,
    /// Elements for those commands of the round that take some at random.
    pub(crate) drawn: Drawn,
    /// The watermark of expiry, if the round writes one.
    pub(crate) watermark_ms: Option<u64>,
}

/// Where [`Overlay::undo`] goes back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    undo: usize,
    nodes: usize,
    lives: usize,
    events: usize,
    touched: usize,
    gone: usize,
}

impl fmt::Debug for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Overlay({} changes)", self.changes())
    }
}

impl Overlay {
    /// Without changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.cleared.is_empty()
            && self.databases.is_none()
            && self.watermark_ms.is_none()
            && self.tables.iter().all(BTreeMap::is_empty)
            && !self.nodes.borrow().has_changes()
    }

    /// How many entries are changed.
    pub fn changes(&self) -> usize {
        let entries: usize = self.tables.iter().map(BTreeMap::len).sum();
        entries + self.nodes.borrow().changes()
    }

    /// The present state, for [`Overlay::undo`].
    pub fn mark(&self) -> Mark {
        Mark {
            undo: self.undo.len(),
            nodes: self.nodes.borrow().mark(),
            lives: self.lives.len(),
            events: self.events.len(),
            touched: self.touched.len(),
            gone: self.gone.len(),
        }
    }

    /// Takes back all changes since `mark`.
    pub fn undo(&mut self, mark: Mark) {
        self.nodes.get_mut().undo(mark.nodes);
        // One that was added may be gone again.
        self.drawn = Drawn::default();
        while self.undo.len() > mark.undo {
            match self.undo.pop() {
                Some(Undo::Entry(family, key_bytes, before)) => {
                    let key = self.undo_keys.split_off(self.undo_keys.len() - key_bytes);
                    let table = self.table_mut(family);
                    match before {
                        Some(change) => table.insert(key, change),
                        None => table.remove(&key),
                    };
                }
                Some(Undo::Cleared(db, was_cleared, entries)) => {
                    if !was_cleared {
                        self.cleared.remove(&db);
                    }
                    for (family, key, change) in entries {
                        self.table_mut(family).insert(key, change);
                    }
                }
                Some(Undo::Databases(before)) => self.databases = before,
                None => break,
            }
        }
        self.lives.truncate(mark.lives);
        self.events.truncate(mark.events);
        self.gone.truncate(mark.gone);
        self.forget_touched(mark);
    }

    /// Keeps all changes so far: they cannot be taken back any more, and their events and touched keys are forgotten.
    /// Without it every earlier form of an entry stays until the round ends.
    pub fn keep(&mut self) {
        self.undo.clear();
        self.undo_keys.clear();
        self.nodes.get_mut().keep();
        self.events.clear();
        self.touched.truncate(0);
        self.gone.truncate(0);
        self.told = [0; 2];
    }

    /// How many events there are.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// Forgets the events after the first `kept`: a command that is made of others tells its own.
    pub fn forget_events(&mut self, kept: usize) {
        self.events.truncate(kept);
    }

    /// Forgets the keys that changed since `mark`: nobody is to wake for the change.
    pub fn forget_touched(&mut self, mark: Mark) {
        self.touched.truncate(mark.touched);
        let [touched, gone] = self.told;
        self.told = [touched.min(self.touched.len()), gone.min(self.gone.len())];
    }

    /// The events since `mark`, in order.
    pub fn events_since(&self, mark: Mark) -> &[Event] {
        self.events.get(mark.events..).unwrap_or(&[])
    }

    /// The keys, with their databases, that changed since `mark`. A key may stand there more than once.
    pub fn touched_since(&self, mark: Mark) -> impl Iterator<Item = (u16, &[u8])> {
        self.touched.since(mark.touched)
    }

    /// The keys, with their databases, that were deleted since `mark` because they had expired.
    pub fn gone_since(&self, mark: Mark) -> impl Iterator<Item = (u16, &[u8])> {
        self.gone.since(mark.gone)
    }

    /// The keys that changed, and those that expired, since the last call or since all was kept.
    pub fn take_untold(&mut self) -> [impl Iterator<Item = (u16, &[u8])>; 2] {
        let all = [self.touched.len(), self.gone.len()];
        let [touched, gone] = std::mem::replace(&mut self.told, all);
        [self.touched.since(touched), self.gone.since(gone)]
    }

    /// Whether anything was changed since `mark`.
    pub fn has_changed_since(&self, mark: Mark) -> bool {
        self.undo.len() > mark.undo || self.nodes.borrow().mark() > mark.nodes
    }

    /// Whether `db` was emptied in this round.
    pub(crate) fn is_cleared(&self, db: u16) -> bool {
        self.cleared.contains(&db)
    }

    pub(crate) fn table(&self, family: FamilyName) -> &BTreeMap<Vec<u8>, Change> {
        let [keys, sub, live, ttl, meta] = &self.tables;
        match family {
            FamilyName::Keys => keys,
            FamilyName::Sub => sub,
            FamilyName::Live => live,
            FamilyName::Ttl => ttl,
            FamilyName::Default => meta,
        }
    }

    fn table_mut(&mut self, family: FamilyName) -> &mut BTreeMap<Vec<u8>, Change> {
        let [keys, sub, live, ttl, meta] = &mut self.tables;
        match family {
            FamilyName::Keys => keys,
            FamilyName::Sub => sub,
            FamilyName::Live => live,
            FamilyName::Ttl => ttl,
            FamilyName::Default => meta,
        }
    }

    /// Puts or deletes `key`.
    pub(crate) fn set(&mut self, family: FamilyName, key: Vec<u8>, value: Option<Vec<u8>>) {
        let change = value.map(Value::new);
        self.undo_keys.extend_from_slice(&key);
        let key_bytes = key.len();
        let before = self.table_mut(family).insert(key, change);
        self.undo.push(Undo::Entry(family, key_bytes, before));
    }

    /// Deletes all keys of `db`.
    pub(crate) fn clear_db(&mut self, db: u16) {
        let mut entries = Vec::new();
        for family in [FamilyName::Keys, FamilyName::Live] {
            let of_db = |key: &[u8]| key.starts_with(&db.to_be_bytes());
            let removed = self.table_mut(family).extract_if(.., |key, _| of_db(key));
            entries.extend(removed.map(|(key, change)| (family, key, change)));
        }
        let was_cleared = !self.cleared.insert(db);
        self.undo.push(Undo::Cleared(db, was_cleared, entries));
        self.lives.push(LiveChange::Cleared { db });
    }

    /// The physical number of each database, if the round changed them.
    pub(crate) fn databases(&self) -> Option<&Arc<[u16]>> {
        self.databases.as_ref()
    }

    pub(crate) fn set_databases(&mut self, map: Arc<[u16]>) {
        let before = self.databases.replace(map);
        self.undo.push(Undo::Databases(before));
    }

    pub(crate) fn push_live(&mut self, change: LiveChange) {
        self.lives.push(change);
    }

    pub(crate) fn lives(&self) -> &[LiveChange] {
        &self.lives
    }

    pub(crate) fn push_event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Notes that a key is deleted because it had expired: for who knew that, nothing changes.
    pub(crate) fn push_gone(&mut self, db: u16, key: &[u8]) {
        self.gone.push(db, key);
    }

    /// Adds an event before all since `mark` but the first `at`: it tells of what was before them.
    pub(crate) fn insert_event(&mut self, mark: Mark, at: usize, event: Event) {
        let at = (mark.events + at).min(self.events.len());
        self.events.insert(at, event);
    }

    /// Notes that a key changed.
    pub fn touch(&mut self, db: u16, key: &[u8]) {
        self.touched.push(db, key);
    }

    /// Lets go of the records that were read ahead: no command of the round is left.
    pub fn forget_reads(&mut self) {
        self.ahead.clear();
    }

    /// Has nodes of trees that no round asks for stay until there are more of them than so many bytes.
    pub fn bound_nodes(&mut self, bytes_max: usize) {
        self.nodes.get_mut().bound(bytes_max);
    }

    /// Bytes of the nodes of trees that are in memory.
    pub fn nodes_bytes(&self) -> usize {
        self.nodes.borrow().size()
    }

    /// Ends a round that has nothing to write. Nodes of trees stay for the next.
    pub fn end_unchanged(&mut self) {
        debug_assert!(self.is_empty(), "what is changed is written");
        self.clear();
    }

    /// Appends all changes to `batch`.
    pub(crate) fn write_to(&self, batch: &mut WriteBatch, families: &Families) -> Result<()> {
        for db in &self.cleared {
            let (from, until) = db_range(*db);
            batch.delete_range_cf(families.keys.id(), &from, &until)?;
            let (from, until) = (live_key(*db, 0), live_key(db.saturating_add(1), 0));
            batch.delete_range_cf(families.live.id(), &from, &until)?;
        }
        for name in FamilyName::ALL {
            let family = families.of(name).id();
            for (key, change) in self.table(name) {
                match change {
                    Some(value) => batch.put_cf(family, key, value)?,
                    None => batch.delete_cf(family, key)?,
                }
            }
        }
        let nodes = self.nodes.borrow();
        for name in nodes.changed() {
            let (sub, key) = (families.sub.id(), name.key());
            match nodes.to_write(name) {
                Written::Whole(page) => batch.put_cf(sub, &key, page)?,
                Written::Splice(operand) => batch.merge_cf(sub, &key, operand)?,
                Written::Gone => batch.delete_cf(sub, &key)?,
            }
        }
        Ok(())
    }

    /// Forgets everything but the nodes of trees, as it is written.
    pub(crate) fn clear(&mut self) {
        self.nodes.get_mut().written();
        self.tables.iter_mut().for_each(BTreeMap::clear);
        self.cleared.clear();
        self.lives.clear();
        self.keep();
        self.databases = None;
        self.watermark_ms = None;
        self.ahead.clear();
        self.drawn = Drawn::default();
    }
}

/// The keys of `db` in the `keys` family.
pub(crate) fn db_range(db: u16) -> (Vec<u8>, Vec<u8>) {
    let first = Place { slot: 0, hash: 0 };
    (place_key(db, first), place_key(db.saturating_add(1), first))
}
