//! Records that a round of commands read ahead, many at once.
//!
//! A look-up in memory waits for a few cache misses in a row. Those of many keys are waited for together: the engine takes
//! a step for each key in turn. So the records that a round will ask for are read at its beginning, and given to whoever
//! asks first.

use std::cell::RefCell;

use drumlin::PinnedSlice;

/// The answer for a key: its value, or that there is none.
type Answer = Option<PinnedSlice>;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    keys: Vec<Vec<u8>>,
    /// Beside `keys`; `None` for one that was taken, or could not be read.
    answers: RefCell<Vec<Option<Answer>>>,
    /// A hash table of places in `keys`, each plus one, with linear probing; its length is a power of two.
    places: Vec<u32>,
}

impl Ahead {
    /// The answers for `keys`, which are those of the `keys` family.
    pub(crate) fn new(keys: Vec<Vec<u8>>, answers: Vec<Option<Answer>>) -> Self {
        let mut ahead = Self {
            places: vec![0; (keys.len() * 2).next_power_of_two()],
            keys,
            answers: RefCell::new(answers),
        };
        for at in 0..ahead.keys.len() {
            let mut slot = ahead.slot(&ahead.keys[at]);
            while ahead.places[slot] != 0 {
                slot = (slot + 1) % ahead.places.len();
            }
            ahead.places[slot] = at as u32 + 1;
        }
        ahead
    }

    /// Where the search for `key` begins: by the hash that stands in the key.
    fn slot(&self, key: &[u8]) -> usize {
        let hash = key.get(4..).and_then(<[u8]>::first_chunk::<4>);
        let hash = hash.map_or(0, |bytes| u32::from_be_bytes(*bytes));
        hash as usize & (self.places.len() - 1)
    }

    /// The answer for `key`, once.
    pub(crate) fn take(&self, key: &[u8]) -> Option<Answer> {
        if self.keys.is_empty() {
            return None;
        }
        let mut slot = self.slot(key);
        while let Some(at) = self.places[slot].checked_sub(1) {
            let at = at as usize;
            if self.keys[at] == key
                && let Some(answer) = self.answers.borrow_mut()[at].take()
            {
                return Some(answer);
            }
            slot = (slot + 1) % self.places.len();
        }
        None
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.answers.get_mut().clear();
    }
}
