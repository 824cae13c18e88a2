//! How often tokens follow each other.

/// Counts of pairs of symbols in an open hash table.
#[derive(Debug)]
pub(super) struct Pairs {
    /// The pair as two halves, plus one; 0 for an empty slot. Then its count.
    slots: Vec<(u64, u32)>,
    filled: usize,
}

impl Pairs {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![(0, 0); 1 << 16],
            filled: 0,
        }
    }

    /// Counts `first` followed by `second` once.
    #[inline]
    pub(super) fn count(&mut self, first: usize, second: usize) {
        let key = ((first as u64) << 32 | second as u64) + 1;
        let slot = self.slot(key);
        let (found, count) = &mut self.slots[slot];
        *count += 1;
        if *found == 0 {
            *found = key;
            self.filled += 1;
            if self.filled * 2 > self.slots.len() {
                self.grow();
            }
        }
    }

    /// Where `key` is, or would be.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        // Half of the slots are empty, so this ends.
        while self.slots[slot].0 != 0 && self.slots[slot].0 != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        let wider = vec![(0, 0); self.slots.len() * 2];
        let slots = std::mem::replace(&mut self.slots, wider);
        for (key, count) in slots.into_iter().filter(|(key, _)| *key != 0) {
            let slot = self.slot(key);
            self.slots[slot] = (key, count);
        }
    }

    /// The pairs that were seen `least` times or more: first, second, count. In no order.
    pub(super) fn seen(&self, least: u32) -> impl Iterator<Item = (usize, usize, u32)> {
        let kept = self.slots.iter().filter(move |(_, count)| *count >= least);
        kept.filter(|(key, _)| *key != 0).map(|&(key, count)| {
            let pair = key - 1;
            ((pair >> 32) as usize, (pair & 0xFFFF_FFFF) as usize, count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumlin_base::rng::Rng;
    use std::collections::HashMap;

    #[test]
    fn counts_what_a_map_counts() {
        let (mut pairs, mut map) = (Pairs::new(), HashMap::new());
        let mut rng = Rng::new(9);
        for _ in 0..200_000 {
            let pair = (rng.below(70_000) as usize, rng.below(4) as usize);
            pairs.count(pair.0, pair.1);
            *map.entry(pair).or_insert(0) += 1;
        }
        let seen: HashMap<_, _> = pairs.seen(2).map(|(a, b, n)| ((a, b), n)).collect();
        map.retain(|_, count| *count >= 2);
        assert_eq!(seen, map);
    }
}
