//! Walks over the keys of a database.

use crate::failure::Outcome;
use crate::families::FamilyName;
use crate::keys::{Place, SLOTS, place_key, split_record_key};
use crate::keyspace::Keyspace;
use crate::record::{Kind, end_of, expiry_of, times_of};
use crate::walk::{Direction, Walk};

/// Keys of one step of SCAN.
#[derive(Clone, Debug, Default)]
pub struct ScanPage {
    /// Where the next step goes on; 0 at the end.
    pub cursor: u64,
    /// Keys with their types that have not expired.
    pub keys: Vec<(Vec<u8>, Kind)>,
}

impl Keyspace<'_> {
    /// About `count` keys from `cursor` on, which is 0 or that of the page before. A cursor is a place in the order of
    /// slots and hashes, with no state behind it: it is good after a restart, and a key that is there all the time is
    /// given whatever else is written. Keys of one place come together.
    ///
    /// # Errors
    /// `Cold`; the engine's.
    pub fn scan(&self, cursor: u64, count: usize) -> Outcome<ScanPage> {
        let mut page = ScanPage::default();
        let Some(from) = Place::from_number(cursor) else {
            return Ok(page);
        };
        let mut walk = self.keys_from(from);
        let mut seen = 0;
        let mut last = None;
        while let Some((stored, value)) = walk.next()? {
            let Some((_, place, key)) = split_record_key(stored) else {
                continue;
            };
            if seen >= count.max(1) && last != Some(place) {
                page.cursor = place.to_number();
                break;
            }
            seen += 1;
            last = Some(place);
            match visible(value, self.expired_ms()) {
                Some(kind) => page.keys.push((key.to_vec(), kind)),
                None => self.found_expired(key, expiry_of(value).map(|(ms, _)| ms)),
            }
        }
        Ok(page)
    }

    /// Calls `visit` with every key that has not expired; it says whether to go on.
    ///
    /// # Errors
    /// `Cold`; the engine's.
    pub fn for_each_key(&self, mut visit: impl FnMut(&[u8], Kind) -> bool) -> Outcome<()> {
        let mut walk = self.keys_from(Place { slot: 0, hash: 0 });
        while let Some((stored, value)) = walk.next()? {
            if let (Some((_, _, key)), Some(kind)) =
                (split_record_key(stored), visible(value, self.expired_ms()))
                && !visit(key, kind)
            {
                break;
            }
        }
        Ok(())
    }

    /// How many keys there are, and how many of them have an expiry. Those that have expired count until the worker of expiry
    /// comes to them. A walk.
    ///
    /// # Errors
    /// `Cold`; the engine's.
    pub fn count(&self) -> Outcome<(u64, u64)> {
        self.count_up_to(u64::MAX)
    }

    /// As [`Keyspace::count`], and ends at `most` keys.
    ///
    /// # Errors
    /// `Cold`; the engine's.
    pub fn count_up_to(&self, most: u64) -> Outcome<(u64, u64)> {
        let (mut keys, mut expiring) = (0, 0);
        let mut walk = self.keys_from(Place { slot: 0, hash: 0 });
        while let Some((_, value)) = walk.next()? {
            let expiry = expiry_of(value).map(|(ms, _)| ms);
            let is_due = || expiry.is_some_and(|ms| self.is_before_worker(ms));
            if visible(value, self.expired_ms()).is_some() || is_due() {
                keys += 1;
                expiring += u64::from(expiry.is_some());
            }
            if keys == most {
                break;
            }
        }
        Ok((keys, expiring))
    }

    /// Whether any hash has a field with an expiry. A walk.
    ///
    /// # Errors
    /// `Cold`; the engine's.
    pub fn times_fields(&self) -> Outcome<bool> {
        let mut walk = self.keys_from(Place { slot: 0, hash: 0 });
        while let Some((_, value)) = walk.next()? {
            if times_of(value).is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the database has no key, not even one that has expired.
    ///
    /// # Errors
    /// `Cold`; the engine's.
    pub fn is_empty(&self) -> Outcome<bool> {
        let mut walk = self.keys_from(Place { slot: 0, hash: 0 });
        Ok(walk.next()?.is_none())
    }

    /// The first key at or after a place drawn by `random`, or the first of all: any key, with a chance that grows with
    /// the gap before it.
    ///
    /// # Errors
    /// `Cold`; the engine's.
    pub fn random_key(&self, random: u64) -> Outcome<Option<Vec<u8>>> {
        let place = Place {
            slot: ((random >> 32) % u64::from(SLOTS)) as u16,
            hash: random as u32,
        };
        for from in [place, Place { slot: 0, hash: 0 }] {
            let mut walk = self.keys_from(from);
            while let Some((stored, value)) = walk.next()? {
                let Some((_, _, key)) = split_record_key(stored) else {
                    continue;
                };
                if visible(value, self.expired_ms()).is_some() {
                    return Ok(Some(key.to_vec()));
                }
                self.found_expired(key, expiry_of(value).map(|(ms, _)| ms));
            }
        }
        Ok(None)
    }

    fn keys_from(&self, place: Place) -> Walk<'_> {
        let (_, until) = self.range_of_keys();
        let from = place_key(self.physical(), place);
        self.walk(FamilyName::Keys, (from, until), Direction::Forward)
    }
}

/// The type in a stored record that has not expired.
fn visible(stored: &[u8], expired_ms: u64) -> Option<Kind> {
    let number = stored.first()? >> 4;
    let kind = Kind::ALL.into_iter().find(|kind| kind.number() == number)?;
    let expired = end_of(stored).is_some_and(|ms| ms < expired_ms);
    (!expired).then_some(kind)
}
