//! A sorted map of user keys in one of the two built-in orders of a family.
//!
//! Reversed bytes are the same map looked at from its other end. Orders of the user's own are not served: their equal
//! keys may be different bytes.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use drumlin_base::KeyOrder;

/// See the module.
#[derive(Debug)]
pub(crate) struct OrderedMap<V> {
    map: BTreeMap<Vec<u8>, V>,
    order: KeyOrder,
}

/// An entry of the map.
pub(crate) type Entry<'a, V> = (&'a [u8], &'a V);

impl<V> OrderedMap<V> {
    /// An empty map.
    ///
    /// Requires: equality under `order` is that of bytes.
    pub(crate) fn new(order: KeyOrder) -> Self {
        debug_assert!(order.equality_is_bytewise());
        let map = BTreeMap::new();
        Self { map, order }
    }

    /// The order of its keys.
    pub(crate) fn order(&self) -> &KeyOrder {
        &self.order
    }

    fn is_reversed(&self) -> bool {
        matches!(self.order, KeyOrder::ReverseBytewise)
    }

    /// What stands under `key`.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&V> {
        self.map.get(key)
    }

    /// What stands under `key`, which is added where it is missing.
    pub(crate) fn entry(&mut self, key: &[u8], add: impl FnOnce() -> V) -> &mut V {
        self.map.entry(key.to_vec()).or_insert_with(add)
    }

    /// Puts `value` under `key`.
    pub(crate) fn insert(&mut self, key: Vec<u8>, value: V) {
        self.map.insert(key, value);
    }

    /// Takes out what stands under `key`.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<V> {
        self.map.remove(key)
    }

    /// The first entry.
    pub(crate) fn first(&self) -> Option<Entry<'_, V>> {
        as_slices(match self.is_reversed() {
            false => self.map.first_key_value(),
            true => self.map.last_key_value(),
        })
    }

    /// The last entry.
    pub(crate) fn last(&self) -> Option<Entry<'_, V>> {
        as_slices(match self.is_reversed() {
            false => self.map.last_key_value(),
            true => self.map.first_key_value(),
        })
    }

    /// The first entry at or after `key`.
    pub(crate) fn seek(&self, key: &[u8]) -> Option<Entry<'_, V>> {
        as_slices(match self.is_reversed() {
            false => self.map.range::<[u8], _>((Included(key), Unbounded)).next(),
            true => self
                .map
                .range::<[u8], _>((Unbounded, Included(key)))
                .next_back(),
        })
    }

    /// The first entry after `key`.
    pub(crate) fn after(&self, key: &[u8]) -> Option<Entry<'_, V>> {
        as_slices(match self.is_reversed() {
            false => self.map.range::<[u8], _>((Excluded(key), Unbounded)).next(),
            true => self
                .map
                .range::<[u8], _>((Unbounded, Excluded(key)))
                .next_back(),
        })
    }

    /// The last entry at or before `key`.
    pub(crate) fn seek_for_prev(&self, key: &[u8]) -> Option<Entry<'_, V>> {
        as_slices(match self.is_reversed() {
            false => self
                .map
                .range::<[u8], _>((Unbounded, Included(key)))
                .next_back(),
            true => self.map.range::<[u8], _>((Included(key), Unbounded)).next(),
        })
    }

    /// The last entry before `key`.
    pub(crate) fn before(&self, key: &[u8]) -> Option<Entry<'_, V>> {
        as_slices(match self.is_reversed() {
            false => self
                .map
                .range::<[u8], _>((Unbounded, Excluded(key)))
                .next_back(),
            true => self.map.range::<[u8], _>((Excluded(key), Unbounded)).next(),
        })
    }

    /// All entries, first to last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Entry<'_, V>> {
        std::iter::successors(self.first(), |(key, _)| self.after(key))
    }
}

fn as_slices<'a, V>(entry: Option<(&'a Vec<u8>, &'a V)>) -> Option<Entry<'a, V>> {
    entry.map(|(key, value)| (&key[..], value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumlin_base::rng::Rng;

    #[test]
    fn both_orders_find_what_a_sorted_list_finds() {
        let mut rng = Rng::new(3);
        for order in [KeyOrder::Bytewise, KeyOrder::ReverseBytewise] {
            for _ in 0..200 {
                let mut map = OrderedMap::new(order.clone());
                let mut list: Vec<Vec<u8>> = Vec::new();
                for _ in 0..rng.below(8) {
                    let key = vec![rng.below(12) as u8; rng.below(3) as usize];
                    map.insert(key.clone(), ());
                    list.push(key);
                }
                list.sort_by(|a, b| order.compare(a, b));
                list.dedup();
                let key = |entry: Option<Entry<'_, ()>>| entry.map(|(key, ())| key.to_vec());
                let sought = vec![rng.below(12) as u8; rng.below(3) as usize];
                let find = |wanted: &dyn Fn(std::cmp::Ordering) -> bool| {
                    let fits = |key: &&Vec<u8>| wanted(order.compare(key, &sought));
                    list.iter().filter(fits).cloned().collect::<Vec<_>>()
                };
                assert_eq!(key(map.first()), list.first().cloned());
                assert_eq!(key(map.last()), list.last().cloned());
                assert_eq!(
                    key(map.seek(&sought)),
                    find(&|o| o.is_ge()).first().cloned()
                );
                assert_eq!(
                    key(map.after(&sought)),
                    find(&|o| o.is_gt()).first().cloned()
                );
                let before = find(&|o| o.is_le()).last().cloned();
                assert_eq!(key(map.seek_for_prev(&sought)), before);
                assert_eq!(
                    key(map.before(&sought)),
                    find(&|o| o.is_lt()).last().cloned()
                );
                assert!(map.iter().map(|(key, ())| key).eq(list.iter()));
            }
        }
    }
}
