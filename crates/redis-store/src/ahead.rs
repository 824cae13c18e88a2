//! Records that a round of commands read ahead, many at once.
//!
//! A look-up in memory waits for a few cache misses in a row. Those of many keys are waited for together: the engine takes
//! a step for each key in turn. So the records that a round will ask for are read at its beginning, and given to whoever
//! asks first. As a rule they are asked for in their order.

use std::cell::{Cell, OnceCell, RefCell};

use drumlin::{ErrorKind, PinnedSlice, Result};

use crate::keys::{is_record_key, put_record_key};

/// The answer for a key: its value, or that there is none; an error only to say that its record is not in memory.
type Answer = Result<Option<PinnedSlice>>;

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
    answers: RefCell<Vec<Option<Answer>>>,
    /// The key that is probably asked for next.
    next: Cell<usize>,
    /// A hash table of the places of keys, each plus one, with linear probing; its length is a power of two. Made for the
    /// first who does not ask in the order of the keys.
    places: OnceCell<Vec<u32>>,
}

impl Ahead {
    /// The answers for the keys that were wanted. One that is another error than that the record is not in memory is left
    /// to whoever asks.
    pub(crate) fn new(wanted: Wanted, answers: Vec<Answer>) -> Self {
        let lasts = |answer: &Answer| match answer {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::Incomplete,
        };
        let answers = answers.into_iter().map(|answer| Some(answer).filter(lasts));
        Self {
            wanted,
            answers: RefCell::new(answers.collect()),
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
        self.answers.borrow_mut().get_mut(at)?.take()
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
    use drumlin::Error;

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
            taken.map(|answer| answer.unwrap().map(|value| value[0]))
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

    /// Goal: that a record is not in memory is not found out twice; every other error is the asker's to meet. Method: an
    /// answer of each kind.
    #[test]
    fn that_a_record_is_not_in_memory_is_an_answer() {
        let mut wanted = Wanted::default();
        [b"a", b"b"]
            .iter()
            .for_each(|name| wanted.push(0, 7, *name));
        let errors = [ErrorKind::Incomplete, ErrorKind::Corruption];
        let answers = errors.map(|kind| Err(Error::new(kind, "as it was")));
        let ahead = Ahead::new(wanted, answers.into_iter().collect());
        let take = |name: &[u8]| ahead.take(&record_key(0, 7, name));
        let kind = take(b"a").map(|answer| answer.unwrap_err().kind());
        assert_eq!(kind, Some(ErrorKind::Incomplete));
        assert!(take(b"b").is_none());
    }
}
