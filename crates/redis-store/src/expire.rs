//! The worker of expiry.

use std::collections::BTreeSet;

use crate::events::{Event, EventClass};
use crate::failure::Outcome;
use crate::families::FamilyName;
use crate::keys::{split_u48, ttl_key};
use crate::keyspace::Keyspace;
use crate::overlay::Mark;
use crate::record::Record;
use crate::types::field_expiry;
use crate::walk::Direction;

/// Records of so many bytes and more are deleted by the worker, as the engine may keep them in blob files.
const SMALL_BYTES: usize = 1 << 10;
/// Fields of a hash that are deleted at once.
const FIELDS_STEP: usize = 1_000;

/// The work of one step of the worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpireStep {
    /// Keys that expired.
    pub expired: u64,
    /// Whether more is due.
    pub more: bool,
}

impl Keyspace<'_> {
    /// Takes up to `most` due entries of the `ttl` family in the order of their times. A key whose expiry is still the
    /// entry's has expired; a hash whose first field expires then loses its expired fields; other entries are of expiries that were changed since, and only go. Writes the watermark
    /// of expiry too: once that is durable, compactions drop small whole values by themselves. So the step deletes the
    /// others, and all of them where `tells`, with an `expired` event each.
    ///
    /// # Errors
    /// `Cold`; the engine's.
    pub fn expire_due(&mut self, most: usize, tells: bool) -> Outcome<ExpireStep> {
        let mut step = ExpireStep::default();
        let until = ttl_key(self.now_ms(), 0, b"");
        let mut due = Vec::new();
        let mut walk = self.walk(FamilyName::Ttl, (Vec::new(), until), Direction::Forward);
        while let Some((entry, _)) = walk.next()? {
            if due.len() == most {
                step.more = true;
                break;
            }
            due.push(entry.to_vec());
        }
        drop(walk);
        if due.is_empty() {
            return Ok(step);
        }
        let own = self.db();
        let mut left = most;
        for entry in due {
            if left == 0 {
                step.more = true;
                break;
            }
            left -= 1;
            let Some((ms, rest)) = split_u48(&entry) else {
                continue;
            };
            let Some((db, key)) = rest.split_first_chunk::<2>() else {
                continue;
            };
            self.overlay().set(FamilyName::Ttl, entry.clone(), None);
            if let Some(db) = self.logical(u16::from_be_bytes(*db)) {
                self.select(db);
                match self.expire_key(key, ms, tells)? {
                    true => step.expired += 1,
                    false => step.more |= self.expire_fields(key, ms, &mut left)?,
                }
            }
        }
        self.select(own);
        let before = self.now_ms().saturating_sub(1);
        self.overlay().watermark_ms = Some(before);
        Ok(step)
    }

    fn remove_expired(&mut self, key: &[u8], record: &Record) {
        self.remove_unseen(key, record);
        let db = self.db();
        self.overlay().push_gone(db, key);
    }

    /// Deletes keys that a command found expired, where it has not written them itself; the event of each comes before those of
    /// the command, which are those since `mark`. The keys, each once.
    ///
    /// # Errors
    /// `Cold`; the engine's. Nothing is deleted then.
    pub fn expire_found(
        &mut self,
        found: Vec<(u16, Vec<u8>)>,
        mark: Mark,
    ) -> Outcome<BTreeSet<(u16, Vec<u8>)>> {
        let own = self.db();
        let found: BTreeSet<_> = found.into_iter().collect();
        let mut records = Vec::with_capacity(found.len());
        for (db, key) in &found {
            self.select(*db);
            let record = self.lookup_expired_too(&self.stored_key(key));
            let is_due = |it: &Record| {
                it.expire_ms().is_some_and(|ms| self.is_before_worker(ms))
                    || drumlin_base::bug!("redis-found-expired-takes-the-new")
            };
            records.push(record.map(|it| it.filter(is_due)));
        }
        self.select(own);
        let records = records.into_iter().collect::<Outcome<Vec<_>>>()?;
        for (at, ((db, key), record)) in found.iter().zip(records).enumerate() {
            self.select(*db);
            if let Some(record) = record {
                self.remove_expired(key, &record);
            }
            let event = Event {
                class: EventClass::Expired,
                name: "expired",
                db: *db,
                key: key.clone(),
            };
            self.overlay().insert_event(mark, at, event);
        }
        self.select(own);
        Ok(found)
    }

    fn expire_key(&mut self, key: &[u8], ms: u64, tells: bool) -> Outcome<bool> {
        let record = self.lookup_expired_too(&self.stored_key(key))?;
        match record {
            Some(record) if record.expire_ms() == Some(ms) => {
                // The filter is not asked for collections, nor for values in blob files.
                let is_small = record.collection().is_none() && record.len() < SMALL_BYTES;
                if tells || !is_small {
                    self.remove_expired(key, &record);
                    self.event(EventClass::Expired, "expired", key);
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Deletes expired fields of a hash, for each of which it takes one of `left`; whether more are due.
    fn expire_fields(&mut self, key: &[u8], ms: u64, left: &mut usize) -> Outcome<bool> {
        let Some(record) = self.lookup_expired_too(&self.stored_key(key))? else {
            return Ok(false);
        };
        let is_first = record.field_times().is_some_and(|it| it.first_ms == ms);
        // A key that has expired has an entry of its own.
        if !is_first || record.expire_ms().is_some_and(|ms| ms < self.now_ms()) {
            return Ok(false);
        }
        let most = FIELDS_STEP.min(*left + 1);
        let (deleted, more) = field_expiry::delete_expired(self, key, record, most)?;
        *left = left.saturating_sub(deleted);
        if more {
            self.look_at(key, ms);
        }
        Ok(more)
    }
}
