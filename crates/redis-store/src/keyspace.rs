//! One database as a command sees it.

use std::cell::{Cell, RefCell, RefMut};
use std::fmt;
use std::ops::Bound;

use drumlin::{PinnedSlice, ReadOptions, View};

use crate::ahead::{Ahead, Wanted};
use crate::events::{Event, EventClass};
use crate::failure::{Failure, Outcome};
use crate::families::FamilyName;
use crate::keys::{
    SUB_PREFIX_BYTES, is_element_key, is_record_key, key_hash, live_key, put_element_key,
    put_record_key, slot_of, ttl_key,
};
use crate::live::LiveChange;
use crate::overlay::{Change, Overlay, db_range};
use crate::record::{Collection, FieldTimes, Kind, NewRecord, Record};
use crate::store::{ReadFrom, Store};
use crate::tree::{NodeName, Nodes};
use crate::value::Value;
use crate::walk::{Changes, Direction, Walk};

/// What is known of a key's record before it is overwritten.
#[derive(Clone, Copy, Debug)]
pub enum Old<'a> {
    /// It was read in this command: the record, or none.
    Is(Option<&'a Record>),
    /// Nothing: it was not read.
    Unknown,
}

/// What was found expired, with databases.
#[derive(Debug, Default)]
pub struct Expired {
    /// Keys that were looked up. A key may stand there more than once.
    pub keys: Vec<(u16, Vec<u8>)>,
    /// Those among them that the worker of expiry has not come to, and such keys that a walk went by.
    pub due: Vec<(u16, Vec<u8>)>,
    /// Fields of hashes that the worker of expiry has deleted.
    pub fields: Vec<(u16, Vec<u8>, Vec<Vec<u8>>)>,
}

/// How many keys were looked up and found, and how many were not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookUps {
    /// Those that had a record which has not expired.
    pub found: u64,
    /// The others.
    pub missed: u64,
}

impl std::ops::AddAssign for LookUps {
    fn add_assign(&mut self, other: Self) {
        self.found += other.found;
        self.missed += other.missed;
    }
}

/// See the module. Reads see the view with the overlay's changes over it.
pub struct Keyspace<'a> {
    store: &'a Store,
    view: &'a View,
    overlay: &'a mut Overlay,
    reads: &'a ReadOptions,
    /// As clients number it.
    db: u16,
    /// Its number on disk, once that was asked for.
    physical: Cell<Option<u16>>,
    now_ms: u64,
    /// What was to expire before this time has expired.
    expired_ms: u64,
    /// Keys that come into being are events.
    tells_new: bool,
    /// Events are noted.
    tells_events: bool,
    /// What was found expired, where somebody has to be told.
    expired: Option<RefCell<Expired>>,
    looked_up: Cell<LookUps>,
}

impl fmt::Debug for Keyspace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyspace({} of {:?})", self.db, self.store)
    }
}

impl<'a> Keyspace<'a> {
    /// The database `db`, which is below [`crate::DATABASES`], at the time `now_ms` (see [`Store::now_ms`]).
    pub fn new(
        store: &'a Store,
        view: &'a View,
        overlay: &'a mut Overlay,
        db: u16,
        now_ms: u64,
        from: ReadFrom,
    ) -> Self {
        let reads = store.reads(from);
        assert!(db < crate::DATABASES, "the server checks databases");
        Self {
            store,
            view,
            overlay,
            reads,
            db,
            physical: Cell::new(None),
            now_ms,
            expired_ms: now_ms,
            tells_new: false,
            tells_events: true,
            expired: None,
            looked_up: Cell::default(),
        }
    }

    /// The time of the command, in ms since 1970. It stands still while a command, an EXEC or a script runs.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Has no key expire: of changes that were decided elsewhere, a deletion is one.
    pub fn keep_expired(&mut self) {
        self.expired_ms = 0;
    }

    /// The time up to which a key that is given an expiry has expired already: that of the command, or 0 where no key expires.
    pub fn expired_ms(&self) -> u64 {
        self.expired_ms
    }

    /// The number of the database.
    pub fn db(&self) -> u16 {
        self.db
    }

    /// Goes to another database.
    ///
    /// # Panics
    /// If `db` is not below [`crate::DATABASES`].
    pub fn select(&mut self, db: u16) {
        assert!(db < crate::DATABASES, "the server checks databases");
        if self.db != db {
            self.db = db;
            self.physical.set(None);
        }
    }

    /// The store.
    pub fn store(&self) -> &'a Store {
        self.store
    }

    /// The changes of the round.
    pub fn overlay(&mut self) -> &mut Overlay {
        self.overlay
    }

    /// The database's number on disk.
    pub(crate) fn physical(&self) -> u16 {
        if let Some(number) = self.physical.get() {
            return number;
        }
        let at = usize::from(self.db);
        let number = match self.overlay.databases() {
            Some(map) => map.get(at).copied(),
            None => self.store.databases.read().get(at).copied(),
        };
        let number = number.unwrap_or(self.db);
        self.physical.set(Some(number));
        number
    }

    /// The number that clients have for the database with the number `physical` on disk.
    pub(crate) fn logical(&self, physical: u16) -> Option<u16> {
        let found = |map: &[u16]| map.iter().position(|number| *number == physical);
        let at = match self.overlay.databases() {
            Some(map) => found(map),
            None => found(&self.store.databases.read()),
        };
        at.and_then(|at| u16::try_from(at).ok())
    }

    pub(crate) fn stored_key(&self, key: &[u8]) -> Vec<u8> {
        self.with_stored_key(key, <[u8]>::to_vec)
    }

    /// Lends the key on disk of `key`: the last one is kept, and not made again.
    fn with_stored_key<T>(&self, key: &[u8], take: impl FnOnce(&[u8]) -> T) -> T {
        let db = self.physical();
        let mut stored = self.overlay.last_key.take();
        if !is_record_key(&stored, db, key) {
            stored.clear();
            match self.overlay.ahead.next_key(db, key) {
                Some(next) => stored.extend_from_slice(next),
                None => put_record_key(&mut stored, db, self.store.seed, key),
            }
        }
        let taken = take(&stored);
        self.overlay.last_key.replace(stored);
        taken
    }

    fn hash(&self, key: &[u8]) -> u64 {
        key_hash(self.store.seed, key)
    }

    // Records.

    /// Reads the records of `keys`, with their databases, for the commands that follow in this round: at once they wait for
    /// memory together, or for the disk where this one may read from it.
    pub fn read_ahead(&mut self, keys: &[(u16, &[u8])]) {
        let own = self.db;
        let mut wanted = Wanted::default();
        for (db, key) in keys {
            self.select(*db);
            wanted.push(self.physical(), self.store.seed, key);
        }
        self.select(own);
        let family = self.store.families.of(FamilyName::Keys);
        let answers = self.view.multi_get_cf(family, &wanted.all(), self.reads);
        self.overlay.ahead = Ahead::new(wanted, answers);
    }

    /// The record of `key`, if it has one that has not expired.
    ///
    /// # Errors
    /// `Cold`; the engine's.
    pub fn lookup(&self, key: &[u8]) -> Outcome<Option<Record>> {
        let found = self.lookup_uncounted(key)?;
        let mut looked_up = self.looked_up.get();
        match found {
            Some(_) => looked_up.found += 1,
            None => looked_up.missed += 1,
        }
        self.looked_up.set(looked_up);
        Ok(found)
    }

    /// The keys that were looked up.
    pub fn looked_up(&self) -> LookUps {
        self.looked_up.get()
    }

    fn lookup_uncounted(&self, key: &[u8]) -> Outcome<Option<Record>> {
        let record = self.with_stored_key(key, |stored| self.lookup_expired_too(stored))?;
        let Some(expired) = &self.expired else {
            return Ok(record.filter(|record| !self.is_expired(record)));
        };
        match record {
            Some(record) if self.is_expired(&record) => {
                let found = (self.db, key.to_vec());
                expired.borrow_mut().keys.push(found);
                self.found_expired(key, record.expire_ms());
                Ok(None)
            }
            found => Ok(found),
        }
    }

    /// Notes `key`, which a command came to, if it is due and the worker of expiry has not come to it.
    pub(crate) fn found_expired(&self, key: &[u8], expire_ms: Option<u64>) {
        if let (Some(expired), Some(ms)) = (&self.expired, expire_ms)
            && self.is_before_worker(ms)
        {
            let found = (self.db, key.to_vec());
            expired.borrow_mut().due.push(found);
        }
    }

    /// Whether what expires at `ms` has expired, and the worker of expiry has not come to that time.
    pub(crate) fn is_before_worker(&self, ms: u64) -> bool {
        let of_round = self.overlay.watermark_ms.unwrap_or(0);
        ms < self.expired_ms && ms > self.store.watermark.newest_ms().max(of_round)
    }

    /// Has noted what is found expired.
    pub fn note_expired(&mut self) {
        self.expired = Some(RefCell::default());
    }

    /// The fields of a hash have expired and are deleted.
    pub(crate) fn fields_expired(&mut self, key: &[u8], fields: Vec<Vec<u8>>) {
        let found = (self.db, key.to_vec(), fields);
        if let Some(expired) = &mut self.expired {
            expired.get_mut().fields.push(found);
        }
    }

    /// Whether anything was noted.
    pub fn has_noted_expired(&self) -> bool {
        let noted = self.expired.as_ref().map(RefCell::borrow);
        noted.is_some_and(|it| !(it.keys.is_empty() && it.due.is_empty() && it.fields.is_empty()))
    }

    /// What was noted.
    pub fn take_expired(&mut self) -> Expired {
        let expired = self.expired.as_mut().map(RefCell::get_mut);
        expired.map(std::mem::take).unwrap_or_default()
    }

    /// As [`Keyspace::lookup`], for a command that needs the value to be of `kind`.
    ///
    /// # Errors
    /// `WrongType`; as [`Keyspace::lookup`].
    pub fn lookup_as(&self, key: &[u8], kind: Kind) -> Outcome<Option<Record>> {
        match self.lookup(key)? {
            Some(record) if record.kind() != kind => Err(Failure::WrongType),
            found => Ok(found),
        }
    }

    /// Whether `key` has a record that has expired and is not deleted yet.
    ///
    /// # Errors
    /// As [`Keyspace::lookup`].
    pub fn has_expired(&self, key: &[u8]) -> Outcome<bool> {
        let record = self.with_stored_key(key, |stored| self.lookup_expired_too(stored))?;
        Ok(record.is_some_and(|record| self.is_expired(&record)))
    }

    /// Whether the record is not to be seen any more.
    pub fn is_expired(&self, record: &Record) -> bool {
        record.end_ms().is_some_and(|ms| ms < self.expired_ms)
    }

    pub(crate) fn lookup_expired_too(&self, stored_key: &[u8]) -> Outcome<Option<Record>> {
        let bytes = self.get(FamilyName::Keys, stored_key)?;
        Ok(bytes.map(Record::decode).transpose()?)
    }

    /// Writes the record of `key`. A collection that the old record had, and the new one has not, dies.
    ///
    /// # Errors
    /// `Cold`, where the old record must be looked at; the engine's.
    pub fn put(&mut self, key: &[u8], old: Old<'_>, new: NewRecord) -> Outcome<()> {
        if self.tells_new && !matches!(old, Old::Is(Some(_))) && self.lookup(key)?.is_none() {
            self.event(EventClass::New, "new", key);
        }
        let db = self.physical();
        let read;
        let old = match old {
            Old::Is(Some(record)) => Some(record),
            // It may have expired, and then it is not seen; its collection has to die all the same.
            Old::Is(None) | Old::Unknown => {
                read = self.hidden_record(db, key)?;
                read.as_ref()
            }
        };
        let old_collection = old.and_then(Record::collection);
        if old_collection != new.collection() {
            let hash = self.hash(key);
            if let Some(collection) = old_collection {
                self.kill(db, hash, collection);
            }
            if let Some(collection) = new.collection() {
                let value = [&hash.to_be_bytes()[..], &[new.kind().number()]].concat();
                let live = live_key(db, collection.cid);
                self.overlay.set(FamilyName::Live, live, Some(value));
                let cid = collection.cid;
                self.overlay.push_live(LiveChange::Owned { db, cid, hash });
            }
        }
        self.put_unseen(key, old, new);
        self.overlay.touch(self.db, key);
        Ok(())
    }

    /// Writes a record in the place of `old`, with the same collection, and tells nobody.
    pub(crate) fn put_unseen(&mut self, key: &[u8], old: Option<&Record>, new: NewRecord) {
        let old_expire = old.and_then(Record::expire_ms);
        let old_fields = old.and_then(Record::field_times);
        if let Some(ms) = new.expire_ms().filter(|_| new.expire_ms() != old_expire) {
            self.look_at(key, ms);
        }
        let first_of = |times: FieldTimes| times.first_ms;
        let first = new.field_times().map(first_of);
        if let Some(ms) = first.filter(|_| first != old_fields.map(first_of)) {
            self.look_at(key, ms);
        }
        let (stored_key, bytes) = (self.stored_key(key), Some(new.into_bytes()));
        self.overlay.set(FamilyName::Keys, stored_key, bytes);
    }

    /// Has the worker of expiry look at `key` once `ms` is over.
    pub(crate) fn look_at(&mut self, key: &[u8], ms: u64) {
        let entry = ttl_key(ms, self.physical(), key);
        self.overlay.set(FamilyName::Ttl, entry, Some(Vec::new()));
    }

    /// The record under one that is overwritten unseen, as far as it matters: one in the overlay, or one that may have a
    /// collection.
    fn hidden_record(&self, db: u16, key: &[u8]) -> Outcome<Option<Record>> {
        let changed = self.overlay.table(FamilyName::Keys);
        self.with_stored_key(key, |stored| {
            let looks = changed.contains_key(stored) || self.store.live.may_own(db, self.hash(key));
            match looks && !drumlin_base::bug!("redis-blind-write-over-a-collection") {
                true => self.lookup_expired_too(stored),
                false => Ok(None),
            }
        })
    }

    /// Deletes `key`, whose record was read.
    pub fn remove(&mut self, key: &[u8], record: &Record) {
        self.remove_unseen(key, record);
        self.overlay.touch(self.db, key);
    }

    /// Deletes `key`, whose record was read, and tells nobody.
    pub(crate) fn remove_unseen(&mut self, key: &[u8], record: &Record) {
        if let Some(collection) = record.collection() {
            self.kill(self.physical(), self.hash(key), collection);
        }
        let stored_key = self.stored_key(key);
        self.overlay.set(FamilyName::Keys, stored_key, None);
    }

    fn kill(&mut self, db: u16, hash: u64, Collection { cid, .. }: Collection) {
        let live = live_key(db, cid);
        self.overlay.set(FamilyName::Live, live, None);
        self.overlay.push_live(LiveChange::Died { db, cid, hash });
    }

    /// Moves a record that was read to another key, which has none, in this database or, with `to_db`, in another.
    ///
    /// # Errors
    /// The engine's.
    pub fn move_record(&mut self, key: &[u8], record: &Record, to: (u16, &[u8])) -> Outcome<()> {
        let (from_db, from_hash, from_key) =
            (self.physical(), self.hash(key), self.stored_key(key));
        self.overlay.set(FamilyName::Keys, from_key, None);
        self.overlay.touch(self.db, key);
        let own = self.db;
        self.select(to.0);
        let (db, hash, stored_key) = (self.physical(), self.hash(to.1), self.stored_key(to.1));
        if let Some(Collection { cid, .. }) = record.collection() {
            if db != from_db {
                self.overlay
                    .set(FamilyName::Live, live_key(from_db, cid), None);
            }
            let value = [&hash.to_be_bytes()[..], &[record.kind().number()]].concat();
            self.overlay
                .set(FamilyName::Live, live_key(db, cid), Some(value));
            let (from, to) = ((from_db, from_hash), (db, hash));
            self.overlay.push_live(LiveChange::Moved { cid, from, to });
        }
        let first = record.field_times().map(|times| times.first_ms);
        for ms in record.expire_ms().into_iter().chain(first) {
            self.look_at(to.1, ms);
        }
        let bytes = record.with_expire(record.expire_ms()).into_bytes();
        self.overlay.set(FamilyName::Keys, stored_key, Some(bytes));
        self.overlay.touch(self.db, to.1);
        self.select(own);
        Ok(())
    }

    /// Copies a record that was read to another key, which has none, with all entries of its collection; in this database
    /// or in `to.0`. Costs a walk over the collection, and the memory of the copy until the round is written.
    ///
    /// # Errors
    /// The engine's.
    pub fn copy_record(&mut self, record: &Record, to: (u16, &[u8])) -> Outcome<()> {
        let own = self.db;
        self.select(to.0);
        let mut place = None;
        if let Some(from) = record.collection() {
            let copy = self.new_collection(to.1)?;
            let mut entries = Vec::new();
            let mut walk = self.sub_walk(from, b"", b"", Direction::Forward);
            while let Some((key, value)) = walk.next()? {
                entries.push((sub_rest(key).to_vec(), value.to_vec()));
            }
            drop(walk);
            for (rest, value) in entries {
                self.sub_put(copy, &rest, value);
            }
            place = Some(copy);
        }
        let new = record.with(place, record.expire_ms());
        let put = self.put(to.1, Old::Unknown, new);
        self.select(own);
        put
    }

    /// Deletes every key of the database. Costs the same however many there are.
    pub fn clear(&mut self) {
        let db = self.physical();
        self.overlay.clear_db(db);
    }

    /// Exchanges the keys of two databases. Costs the same however many there are.
    pub fn swap(&mut self, one: u16, other: u16) {
        let map = match self.overlay.databases() {
            Some(map) => std::sync::Arc::clone(map),
            None => std::sync::Arc::clone(&self.store.databases.read()),
        };
        let mut map = map.to_vec();
        map.swap(usize::from(one), usize::from(other));
        self.overlay.set_databases(map.into());
        self.physical.set(None);
    }

    // Collections.

    /// A new collection for `key`. It comes to life with the first record that names it.
    ///
    /// # Errors
    /// The engine's, where the next block of numbers has to be reserved.
    pub fn new_collection(&mut self, key: &[u8]) -> Outcome<Collection> {
        let cid = self.store.new_cid()?;
        self.store.live.born(self.physical(), cid);
        let slot = slot_of(key);
        Ok(Collection { slot, cid })
    }

    /// The entry `rest` of a collection.
    ///
    /// # Errors
    /// `Cold`; the engine's.
    pub fn sub_get(&self, of: Collection, rest: &[u8]) -> Outcome<Option<PinnedSlice>> {
        match NodeName::of_entry(of, rest) {
            Some(name) => self.node_bytes(name),
            None => self.get(FamilyName::Sub, &sub_key(of, rest)),
        }
    }

    // The elements of collections by their names.

    /// The entry of an element.
    pub(crate) fn element(&self, of: Collection, name: &[u8]) -> Outcome<Option<PinnedSlice>> {
        self.with_element_key(of, name, |key| self.get(FamilyName::Sub, key))
    }

    /// Puts the entry of an element, or deletes it.
    pub(crate) fn set_element(&mut self, of: Collection, name: &[u8], value: Option<Vec<u8>>) {
        let key = self.with_element_key(of, name, <[u8]>::to_vec);
        self.overlay.set(FamilyName::Sub, key, value);
    }

    /// Whether this round has deleted an element, and not put it again.
    pub(crate) fn has_deleted(&self, of: Collection, name: &[u8]) -> bool {
        let changed = self.overlay.table(FamilyName::Sub);
        self.with_element_key(of, name, |key| matches!(changed.get(key), Some(None)))
    }

    /// Lends the key of an element: the last one is kept, and not made again.
    fn with_element_key<T>(&self, of: Collection, name: &[u8], take: impl FnOnce(&[u8]) -> T) -> T {
        let mut key = self.overlay.last_element.take();
        if !is_element_key(&key, of.to_bytes(), name) {
            key.clear();
            put_element_key(&mut key, of.to_bytes(), self.store.seed, name);
        }
        let taken = take(&key);
        self.overlay.last_element.replace(key);
        taken
    }

    /// Puts the entry `rest` of a collection.
    pub fn sub_put(&mut self, of: Collection, rest: &[u8], value: Vec<u8>) {
        self.sub_set(of, rest, Some(value));
    }

    /// Deletes the entry `rest` of a collection.
    pub fn sub_delete(&mut self, of: Collection, rest: &[u8]) {
        self.sub_set(of, rest, None);
    }

    fn sub_set(&mut self, of: Collection, rest: &[u8], value: Option<Vec<u8>>) {
        match NodeName::of_entry(of, rest) {
            Some(name) => self.put_node(name, value),
            None => self.overlay.set(FamilyName::Sub, sub_key(of, rest), value),
        }
    }

    // The nodes of trees.

    pub(crate) fn nodes(&self) -> RefMut<'_, Nodes> {
        self.overlay.nodes.borrow_mut()
    }

    /// The page of a node.
    pub(crate) fn node_bytes(&self, name: NodeName) -> Outcome<Option<PinnedSlice>> {
        let held = self.nodes().bytes(name);
        match held {
            Some(found) => Ok(found),
            None => self.get(FamilyName::Sub, &name.key()),
        }
    }

    /// Puts the page of a node, or deletes it.
    pub(crate) fn put_node(&mut self, name: NodeName, page: Option<Vec<u8>>) {
        self.overlay.nodes.get_mut().put(name, page);
    }

    /// The entries of a collection from `from` to before `until` (`rest`s, `until` empty for the end), in either direction.
    /// The keys of the walk are whole: [`sub_rest`] has their `rest`.
    pub fn sub_walk(
        &self,
        of: Collection,
        from: &[u8],
        until: &[u8],
        direction: Direction,
    ) -> Walk<'_> {
        let lower = sub_key(of, from);
        let upper = match until.is_empty() {
            false => sub_key(of, until),
            true => {
                let next = u64::from_be_bytes(of.to_bytes()).saturating_add(1);
                next.to_be_bytes().to_vec()
            }
        };
        self.walk(FamilyName::Sub, (lower, upper), direction)
    }

    // Events.

    /// Has keys that come into being noted as events, which costs a look at each one that is written blindly.
    pub fn tell_new(&mut self, tells: bool) {
        self.tells_new = tells;
    }

    /// Has events noted, or not.
    pub fn tell_events(&mut self, tells: bool) {
        self.tells_events = tells;
    }

    /// Notes an event of `key`.
    pub fn event(&mut self, class: EventClass, name: &'static str, key: &[u8]) {
        if !self.tells_events {
            return;
        }
        let (db, key) = (self.db, key.to_vec());
        self.overlay.push_event(Event {
            class,
            name,
            db,
            key,
        });
    }

    // The families.

    pub(crate) fn get(&self, family: FamilyName, key: &[u8]) -> Outcome<Option<PinnedSlice>> {
        if let Some(change) = self.overlay.table(family).get(key) {
            return Ok(change.as_ref().map(Value::pinned));
        }
        if family == FamilyName::Keys && self.is_cleared() {
            return Ok(None);
        }
        if family == FamilyName::Keys
            && let Some(answer) = self.overlay.ahead.take(key)
        {
            return Ok(answer?);
        }
        let handle = self.store.families.of(family);
        Ok(self.view.get_cf(handle, key, self.reads)?)
    }

    fn is_cleared(&self) -> bool {
        self.overlay.is_cleared(self.physical())
    }

    /// The keys of `family` from the first to before the second.
    pub(crate) fn walk(
        &self,
        family: FamilyName,
        (lower, upper): (Vec<u8>, Vec<u8>),
        direction: Direction,
    ) -> Walk<'_> {
        let bounds = (
            Bound::Included(lower.as_slice()),
            Bound::Excluded(upper.as_slice()),
        );
        let changes = match lower < upper {
            true => self.overlay.table(family).range::<[u8], _>(bounds),
            false => std::collections::btree_map::Range::default(),
        };
        let nodes = match family {
            FamilyName::Sub => self.changed_nodes(&lower, &upper),
            _ => Vec::new(),
        };
        let stored = (family != FamilyName::Keys || !self.is_cleared()).then(|| {
            let reads = ReadOptions {
                lower_bound: Some(lower.clone()),
                upper_bound: Some(upper.clone()),
                ..self.reads.clone()
            };
            let mut iter = self.view.iter_cf(self.store.families.of(family), &reads);
            match direction {
                Direction::Forward => iter.seek_to_first(),
                Direction::Backward => iter.seek_to_last(),
            }
            iter
        });
        let changes = match direction {
            _ if !nodes.is_empty() => Changes::gathered(changes, nodes, direction),
            Direction::Forward => Changes::Forward(changes),
            Direction::Backward => Changes::Backward(changes.rev()),
        };
        Walk::new(stored, changes, direction)
    }

    /// The nodes between two keys that the round has changed, as entries of the `sub` family.
    fn changed_nodes(&self, lower: &[u8], upper: &[u8]) -> Vec<(Vec<u8>, Change)> {
        let nodes = self.nodes();
        let names = nodes.changed_between(lower, upper).into_iter();
        let entry = |name: NodeName| {
            let page = nodes.changed_bytes(name).map(<[u8]>::to_vec);
            (name.key(), page.map(Value::new))
        };
        names.map(entry).collect()
    }

    /// All keys of the database in the `keys` family.
    pub(crate) fn range_of_keys(&self) -> (Vec<u8>, Vec<u8>) {
        db_range(self.physical())
    }
}

fn sub_key(of: Collection, rest: &[u8]) -> Vec<u8> {
    [&of.to_bytes()[..], rest].concat()
}

/// The part of a key of the `sub` family after the collection's prefix.
pub fn sub_rest(key: &[u8]) -> &[u8] {
    key.get(SUB_PREFIX_BYTES..).unwrap_or(&[])
}
