//! `$sample`: some documents by chance, each with the same chance.

/// A reservoir: after n documents, each of them is in it with the same chance (Vitter, "Random sampling with a reservoir").
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    size: usize,
    seen: u64,
    state: u64,
    kept: Vec<Vec<u8>>,
}

impl Sample {
    pub(super) fn new(size: u64, seed: u64) -> Self {
        Self {
            size: usize::try_from(size).unwrap_or(usize::MAX),
            seen: 0,
            state: seed,
            kept: Vec::new(),
        }
    }

    /// From 0 on, below `bound`: splitmix64. The bound is small beside 2^64, so that the rest of the division tells nothing.
    fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }

    /// Takes a document; how many more bytes are kept.
    pub(super) fn push(&mut self, document: Vec<u8>) -> usize {
        self.seen += 1;
        if self.kept.len() < self.size {
            let bytes = document.len() + 32;
            self.kept.push(document);
            return bytes;
        }
        let at = usize::try_from(self.below(self.seen)).unwrap_or(usize::MAX);
        match self.kept.get_mut(at) {
            Some(place) => {
                let more = document.len().saturating_sub(place.len());
                *place = document;
                more
            }
            None => 0,
        }
    }

    /// What was kept, in an order by chance.
    pub(super) fn finish(mut self) -> Vec<Vec<u8>> {
        for at in (1..self.kept.len()).rev() {
            let other = usize::try_from(self.below(at as u64 + 1)).unwrap_or(0);
            self.kept.swap(at, other);
        }
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_document_has_the_same_chance() {
        let mut counts = [0u32; 20];
        for seed in 0..4000 {
            let mut sample = Sample::new(5, seed * 7919);
            let added: usize = (0..20u8).map(|n| sample.push(vec![n])).sum();
            assert_eq!(added, 5 * 33);
            let kept = sample.finish();
            assert_eq!(kept.len(), 5);
            kept.iter().for_each(|it| counts[usize::from(it[0])] += 1);
        }
        // 1000 each, with a deviation of 27.
        assert!(
            counts.iter().all(|count| (850..1150).contains(count)),
            "{counts:?}"
        );
    }
}
