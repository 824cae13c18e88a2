//! Keys whose changes are looked out for, round by round: of their records, of their collections, or of their whole database.
//!
//! Touched keys, as those who WATCH see them, are not enough: consumer groups of streams change without.

use std::collections::{HashMap, HashSet};

use crate::failure::Outcome;
use crate::families::FamilyName;
use crate::keys::SUB_PREFIX_BYTES;
use crate::keyspace::Keyspace;
use crate::overlay::Overlay;

type Prefix = [u8; SUB_PREFIX_BYTES];

/// See the module. Keys have places, from 0 on, in the order in which they were claimed.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// The database's number on disk.
    db: u16,
    /// What each key is stored under; none for one that was not there.
    keys: Vec<Option<Vec<u8>>>,
    stored: HashSet<Vec<u8>>,
    /// The stored keys of the collections.
    collections: HashMap<Prefix, Vec<u8>>,
    expire_ms: HashMap<Vec<u8>, u64>,
    changed: HashSet<Vec<u8>>,
    all_changed: bool,
}

impl Claims {
    /// Claims on `keys`, as they are now.
    ///
    /// # Errors
    /// As [`Keyspace::lookup`].
    pub fn new(keyspace: &Keyspace<'_>, keys: &[Vec<u8>]) -> Outcome<Self> {
        let mut claims = Self {
            db: keyspace.physical(),
            ..Self::default()
        };
        for key in keys {
            let Some(record) = keyspace.lookup(key)? else {
                claims.keys.push(None);
                continue;
            };
            let stored = keyspace.stored_key(key);
            if let Some(collection) = record.collection() {
                let prefix = collection.to_bytes();
                claims.collections.insert(prefix, stored.clone());
            }
            if let Some(ms) = record.expire_ms() {
                claims.expire_ms.insert(stored.clone(), ms);
            }
            claims.stored.insert(stored.clone());
            claims.keys.push(Some(stored));
        }
        Ok(claims)
    }

    /// Whether none of the keys was there.
    pub fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    /// Notes what a round changes. Costs a look at each of its changes.
    pub fn see(&mut self, overlay: &Overlay) {
        self.all_changed |= overlay.databases().is_some() || overlay.is_cleared(self.db);
        for key in overlay.table(FamilyName::Keys).keys() {
            if self.stored.contains(key) {
                self.changed.insert(key.clone());
            }
        }
        let entries = overlay.table(FamilyName::Sub).keys();
        let of_entries = entries.filter_map(|key| key.first_chunk::<SUB_PREFIX_BYTES>().copied());
        let nodes = overlay.nodes.borrow().changed();
        for prefix in of_entries.chain(nodes.iter().map(|name| name.prefix())) {
            if let Some(owner) = self.collections.get(&prefix) {
                self.changed.insert(owner.clone());
            }
        }
    }

    /// Whether the key at `place` was there.
    pub fn has(&self, place: usize) -> bool {
        self.keys.get(place).is_some_and(Option::is_some)
    }

    /// Whether the key at `place` was changed since.
    pub fn is_changed(&self, place: usize) -> bool {
        let stored = self.keys.get(place).and_then(Option::as_ref);
        self.all_changed || stored.is_some_and(|stored| self.changed.contains(stored))
    }

    /// When the key at `place` expires, in ms since 1970.
    pub fn expire_ms(&self, place: usize) -> Option<u64> {
        let stored = self.keys.get(place)?.as_ref()?;
        self.expire_ms.get(stored).copied()
    }
}
