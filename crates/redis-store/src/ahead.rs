//! Records that a round of commands read ahead, many at once.
//!
//! A look-up in memory waits for a few cache misses in a row. Those of many keys are waited for together: the engine takes
//! a step for each key in turn. So the records that a round will ask for are read at its beginning, and given to whoever
//! asks first. As a rule they are asked for in their order.

use std::cell::{Cell, OnceCell, RefCell};

use drumlin::{PinnedSlice, Result};

use crate::keys::{is_record_key, put_record_key};

/// The answer for a key: its value, or that there is none.
type Answer = Option<PinnedSlice>;

/// The keys of the `keys` family that records are read for.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// One after the other.
    bytes: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl Wanted {
    /// Adds the key on disk of a user key.
    pub(crate) fn push(&mut self, db: u16, seed: u64, key: &[u8]) {
        put_record_key(&mut self.bytes, db, seed, key);
        self.ends.push(self.bytes.len());
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<&[u8]> {
        let mut from = 0;
        let key = |end: &usize| {
            let key = self.bytes.get(from..*end).unwrap_or(&[]);
            from = *end;
            key
        };
        self.ends.iter().map(key).collect()
    }

    fn get(&self, at: usize) -> Option<&[u8]> {
        let before = at.checked_sub(1).and_then(|at| self.ends.get(at));
        let end = self.ends.get(at)?;
        self.bytes.get(before.copied().unwrap_or(0)..*end)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    wanted: Wanted,
    /// Beside the keys; `None` for one that was taken.
    answers: RefCell<Vec<Option<Result<Answer>>>>,
    /// The key that is probably asked for next.
    next: Cell<usize>,
    /// A hash table of the places of keys, each plus one, with linear probing; its length is a power of two. Made for the
    /// first who does not ask in the order of the keys.
    places: OnceCell<Vec<u32>>,
}

impl Ahead {
    /// The answers for the keys that were wanted. One that is an error is left to whoever asks.
    pub(crate) fn new(wanted: Wanted, answers: Vec<Result<Answer>>) -> Self {
        Self {
            wanted,
            answers: RefCell::new(answers.into_iter().map(Some).collect()),
            ..Self::default()
        }
    }

    /// The key on disk of a user key, if it is the one that is asked for next.
    pub(crate) fn next_key(&self, db: u16, key: &[u8]) -> Option<&[u8]> {
        let next = self.wanted.get(self.next.get())?;
        is_record_key(next, db, key).then_some(next)
    }

    /// The answer for `key`, once.
    pub(crate) fn take(&self, key: &[u8]) -> Option<Answer> {
        let next = self.next.get();
        if self.wanted.get(next) == Some(key) {
            self.next.set(next + 1);
            if let Some(answer) = self.answer(next) {
                return Some(answer);
            }
        }
        self.find(key)
    }

    fn answer(&self, at: usize) -> Option<Answer> {
        let answer = self.answers.borrow_mut().get_mut(at)?.take();
        answer?.ok()
    }

    /// The answer for a key that is not the next one. The one behind it is then.
    fn find(&self, key: &[u8]) -> Option<Answer> {
        if self.wanted.ends.is_empty() {
            return None;
        }
        let places = self.places.get_or_init(|| self.index());
        let mut slot = slot(places, key);
        while let Some(at) = places.get(slot).and_then(|at| at.checked_sub(1)) {
            let at = at as usize;
            if self.wanted.get(at) == Some(key)
                && let Some(answer) = self.answer(at)
            {
                self.next.set(at + 1);
                return Some(answer);
            }
            slot = (slot + 1) % places.len();
        }
        None
    }

    fn index(&self) -> Vec<u32> {
        let mut places = vec![0; (self.wanted.ends.len() * 2).next_power_of_two()];
        for (at, key) in self.wanted.all().into_iter().enumerate() {
            let mut slot = slot(&places, key);
            while places.get(slot).is_some_and(|at| *at != 0) {
                slot = (slot + 1) % places.len();
            }
            if let Some(place) = places.get_mut(slot) {
                *place = at as u32 + 1;
            }
        }
        places
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Where the search for `key` begins: by the hash that stands in the key.
fn slot(places: &[u32], key: &[u8]) -> usize {
    let hash = key.get(4..).and_then(<[u8]>::first_chunk::<4>);
    let hash = hash.map_or(0, |bytes| u32::from_be_bytes(*bytes));
    hash as usize & (places.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::record_key;

    /// Goal: each answer is given once, to whoever asks for its key. Method: keys in order, out of order, twice, and others.
    #[test]
    fn answers_are_given_once_in_any_order() {
        let names = [&b"a"[..], b"b", b"c", b"b", b"d"];
        let mut wanted = Wanted::default();
        names.iter().for_each(|name| wanted.push(0, 7, name));
        let value = |at: usize| Ok(PinnedSlice::small(&[at as u8]));
        let ahead = Ahead::new(wanted, (0..names.len()).map(value).collect());
        let take = |name: &[u8]| {
            let taken = ahead.take(&record_key(0, 7, name));
            taken.map(|answer| answer.map(|value| value[0]))
        };
        assert_eq!(take(b"a"), Some(Some(0)));
        assert_eq!(ahead.next_key(0, b"b"), Some(&record_key(0, 7, b"b")[..]));
        assert_eq!(ahead.next_key(1, b"b"), None);
        assert_eq!(take(b"c"), Some(Some(2)));
        assert_eq!(take(b"x"), None);
        assert_eq!(take(b"b"), Some(Some(3)));
        assert_eq!(take(b"d"), Some(Some(4)));
        assert_eq!(take(b"b"), Some(Some(1)));
        assert_eq!(take(b"b"), None);
        assert_eq!(take(b"a"), None);
    }
}
