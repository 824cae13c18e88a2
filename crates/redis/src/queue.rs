//! Clients in the order in which they came, each once.

use std::collections::{HashSet, VecDeque};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// May hold ids that were removed since.
    ids: VecDeque<u64>,
    present: HashSet<u64>,
}

impl Queue {
    /// Puts a client at the end, unless it is in it.
    pub(crate) fn insert(&mut self, id: u64) {
        if self.present.insert(id) {
            self.ids.push_back(id);
        }
    }

    /// Takes a client out, wherever it is. Ids are not given out again, so its place may stay.
    pub(crate) fn remove(&mut self, id: u64) {
        self.present.remove(&id);
    }

    /// Takes out the client that came first.
    pub(crate) fn pop_first(&mut self) -> Option<u64> {
        while let Some(id) = self.ids.pop_front() {
            if self.present.remove(&id) {
                return Some(id);
            }
        }
        None
    }

    /// Puts all of `others` at the end, in their order.
    pub(crate) fn append(&mut self, others: Self) {
        for id in others.iter() {
            self.insert(id);
        }
    }

    /// Those in it, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        let ids = self.ids.iter().copied();
        ids.filter(|id| self.present.contains(id))
    }

    /// Whether a client is in it.
    pub(crate) fn contains(&self, id: u64) -> bool {
        self.present.contains(&id)
    }

    /// Whether nobody is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.present.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_come_out_once_and_as_they_came() {
        let mut queue = Queue::default();
        [7, 3, 7, 5, 1].into_iter().for_each(|id| queue.insert(id));
        queue.remove(5);
        let mut more = Queue::default();
        [9, 3, 2].into_iter().for_each(|id| more.insert(id));
        queue.append(more);
        assert_eq!(queue.iter().collect::<Vec<_>>(), [7, 3, 1, 9, 2]);
        let out: Vec<_> = std::iter::from_fn(|| queue.pop_first()).collect();
        assert_eq!(out, [7, 3, 1, 9, 2]);
        assert!(queue.is_empty());
    }
}
