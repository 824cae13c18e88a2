//! Elements at random.

use std::collections::HashSet;

use drumlin_base::rng::Rng;

use super::value::{Elements, Pair, damaged};
use crate::drawn::Drawn;
use crate::failure::Outcome;
use crate::keyspace::Keyspace;

/// Up to so many elements, each has the same chance.
const EXACT_MAX: u64 = 512;
/// Beyond that, one of so many after a random hash is taken: chances differ by a quarter. Redis takes one of 15 that follow
/// a random bucket.
const WINDOW: u64 = 16;
/// So many are found at once by those who take them out one by one.
const HANDFUL: usize = 64;
/// A sample of different ones ends with an error after so many draws, and so many more for each: the count is wrong then.
const DRAWS_MIN: u64 = 1_024;
const DRAWS_EACH: u64 = 64;

/// Elements drawn one by one, any of them more than once.
#[derive(Debug)]
pub struct Draw {
    of: Elements,
    /// All of them, if they are few.
    pairs: Vec<Pair>,
}

impl Draw {
    pub(in crate::types) fn new(keyspace: &Keyspace<'_>, of: Elements) -> Outcome<Self> {
        let mut pairs = Vec::new();
        if of.live_len(keyspace)? <= EXACT_MAX {
            of.each(keyspace, |name, value| {
                pairs.push((name.to_vec(), value.to_vec()));
                Ok(true)
            })?;
        }
        Ok(Self { of, pairs })
    }

    /// The next one; none where the collection has less than its record says.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn next(&mut self, keyspace: &Keyspace<'_>, rng: &mut Rng) -> Outcome<Option<Pair>> {
        if !self.pairs.is_empty() {
            let at = rng.below(self.pairs.len() as u64);
            return Ok(self.pairs.get(at as usize).cloned());
        }
        self.of.window(keyspace, rng)
    }
}

impl Elements {
    /// One of a collection: of those after a random hash, the first being after the last.
    fn window(&self, keyspace: &Keyspace<'_>, rng: &mut Rng) -> Outcome<Option<Pair>> {
        let mut passed = rng.below(WINDOW.min(self.len().max(1)));
        let mut found = None;
        for from in [rng.next_u64(), 0] {
            let is_at_end = self.each_from(keyspace, from, |_, element| {
                if passed == 0 {
                    found = Some((element.name.to_vec(), element.value.to_vec()));
                    return Ok(false);
                }
                passed -= 1;
                Ok(true)
            })?;
            if !is_at_end {
                break;
            }
        }
        Ok(found)
    }

    /// Takes out an element of a set that is a collection, at random: one that a cursor of this round found beside others
    /// after a random hash. `None` of other forms.
    pub(in crate::types) fn take_one(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        rng: &mut Rng,
    ) -> Outcome<Option<Vec<u8>>> {
        let Some(of) = self.collection() else {
            return Ok(None);
        };
        let mut is_new = false;
        loop {
            let Some(name) = keyspace.overlay().drawn.next(of) else {
                if is_new {
                    return Err(damaged("it has less than its count").into());
                }
                is_new = true;
                let names = self.handful(keyspace, rng)?;
                keyspace.overlay().drawn = Drawn::new(of, names);
                continue;
            };
            if self.is_left(keyspace, &name) {
                self.remove_stored(keyspace, &name, None)?;
                return Ok(Some(name));
            }
        }
    }

    /// Some elements that follow a random hash, the first being after the last, in any order; all where they are few.
    fn handful(&self, keyspace: &Keyspace<'_>, rng: &mut Rng) -> Outcome<Vec<Vec<u8>>> {
        let (from, most) = match self.len() <= EXACT_MAX {
            true => (0, usize::MAX),
            false => (rng.next_u64(), HANDFUL),
        };
        let mut names = Vec::new();
        for from in [from, 0] {
            let is_at_end = self.each_from(keyspace, from, |_, element| {
                names.push(element.name.to_vec());
                Ok(names.len() < most)
            })?;
            if !is_at_end || from == 0 {
                break;
            }
        }
        for at in (1..names.len()).rev() {
            names.swap(at, rng.below(at as u64 + 1) as usize);
        }
        Ok(names)
    }

    /// `count` different elements, or all if there are not more.
    pub(in crate::types) fn sample(
        &self,
        keyspace: &Keyspace<'_>,
        count: u64,
        rng: &mut Rng,
    ) -> Outcome<Vec<Pair>> {
        let mut pairs = Vec::new();
        let len = self.live_len(keyspace)?;
        if len > EXACT_MAX && count < len / 4 {
            // Most draws give a new one.
            let mut taken = HashSet::new();
            let mut draws_left = DRAWS_MIN.saturating_add(count.saturating_mul(DRAWS_EACH));
            while (taken.len() as u64) < count {
                let pair = self.window(keyspace, rng)?.filter(|_| draws_left > 0);
                let pair = pair.ok_or_else(|| damaged("it has less than its count"))?;
                draws_left -= 1;
                if taken.insert(pair.0.clone()) {
                    pairs.push(pair);
                }
            }
            return Ok(pairs);
        }
        let (mut wanted, mut left) = (count, len);
        self.each(keyspace, |name, value| {
            // Of those left, each has the same chance to be one of those wanted.
            if wanted > 0 && rng.below(left.max(1)) < wanted {
                wanted -= 1;
                pairs.push((name.to_vec(), value.to_vec()));
            }
            left = left.saturating_sub(1);
            Ok(wanted > 0)
        })?;
        Ok(pairs)
    }
}
