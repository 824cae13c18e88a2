//! A Bloom filter over the keys of a memtable that grows with it.
//!
//! Most gets look for a key that is in a table, and would search every memtable in vain first. The filter
//! answers them from a few words, which do not depend on one another as the steps of a search do, so that the
//! processor goes on to the tables before the words have arrived.
//!
//! ```text
//! add      set four bits of one word, in the newest layer
//! ask      are the four bits set, in the key's word of any layer?
//! grow     newest layer full: start one [`GROWTH`] times as large
//! ```
//!
//! Trick 1: the four bits of a key are in one word, so a layer costs one cache miss.
//!
//! Trick 2: layers instead of a size. The number of keys to come is not known, and a layer that exists never
//! moves, so readers need no lock. At [`KEYS_PER_WORD`] keys to a word the newest layer answers wrongly for
//! about one key in 22 when it is full, for one in 100 when it is half full; the others together for one in
//! 20. A wrong answer costs the search that would have been made without the filter.
//!
//! Invariants:
//! - a layer is zero before it is reachable, and there only if all before it are;
//! - bits are only ever set, and those of a key before its entry can be reached. So a reader that was told of
//!   an entry, or met it in the tree, finds the bits set: relaxed loads see stores that happened before them.
//!
//! Thread safety: any number of threads add and ask at once. Only starting a layer takes a lock.

use std::ptr::null_mut;
use std::sync::{Arc, PoisonError};

use drumlin_base::bytes::prefetch;

use crate::arena::Arena;
use crate::pool::Pool;
use crate::sync::{AtomicPtr, AtomicU64, Mutex, Ordering, step};

/// Words of the first layer: 2 KiB, little enough for a memtable of a few entries.
#[cfg(not(loom))]
const FIRST_WORDS: usize = 256;
/// Keys to a word when a layer is full, and the next one is started.
#[cfg(not(loom))]
const KEYS_PER_WORD: usize = 8;
/// So few that the model reaches the second layer.
#[cfg(loom)]
const FIRST_WORDS: usize = 1;
#[cfg(loom)]
const KEYS_PER_WORD: usize = 4;

/// How many times larger each layer is than the one before.
const GROWTH: usize = 1 << GROWTH_BITS;
const GROWTH_BITS: u32 = 3;
/// Most layers; the last takes any number of keys. Together they hold 600 million.
const LAYERS: usize = 7;

/// The hash of a key or of a prefix, for any filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    /// The hash of `key`.
    #[inline]
    pub(crate) fn of(key: &[u8]) -> Self {
        Self(hash(key))
    }

    /// The bits of the key in its word.
    #[inline]
    fn bits(self) -> u64 {
        let bit = |at: u32| 1u64 << ((self.0 >> at) & 63);
        bit(0) | bit(6) | bit(12) | bit(18)
    }

    /// The key's word in the layer at `index`.
    #[inline]
    fn word(self, index: usize) -> usize {
        (self.0 >> 32) as usize & (words_in(index) - 1)
    }
}

/// The filter. See the module's documentation.
#[repr(align(64))] // the pointers seldom change: off the lines of fields that do
pub(crate) struct Filter {
    /// The first word of each layer, or null.
    layers: [AtomicPtr<AtomicU64>; LAYERS],
    /// Holds the layers.
    memory: Arena,
    starting: Mutex<()>,
}

/// The place of a key's bits.
pub(crate) struct Mark<'a> {
    word: &'a AtomicU64,
    bits: u64,
}

impl Mark<'_> {
    /// Sets them.
    #[inline]
    pub(crate) fn set(self) {
        step();
        // Relaxed, both: see the invariants. Bits that are seen set stay set for every thread that
        // is told of the entry, and an unwritten line spares readers a miss.
        if self.word.load(Ordering::Relaxed) & self.bits != self.bits {
            self.word.fetch_or(self.bits, Ordering::Relaxed);
        }
    }
}

impl Filter {
    /// A filter that holds no key, and no memory. It will have that from `pool`.
    pub(crate) fn new(pool: &Arc<Pool>) -> Self {
        Self {
            layers: std::array::from_fn(|_| AtomicPtr::new(null_mut())),
            memory: Arena::of(pool, 64),
            starting: Mutex::new(()),
        }
    }

    /// Bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// The place of a key's bits, prefetched. About `nth` keys were added before it.
    #[inline]
    pub(crate) fn mark(&self, hash: KeyHash, nth: usize) -> Mark<'_> {
        let index = layer_for(nth);
        let word = match self.word(hash, index) {
            Some(word) => word,
            None => self.start(hash, index),
        };
        prefetch(word, 1);
        Mark {
            word,
            bits: hash.bits(),
        }
    }

    /// False only for keys that no add happened before this call for.
    #[inline]
    pub(crate) fn may_contain(&self, hash: KeyHash) -> bool {
        let bits = hash.bits();
        for index in usize::from(drumlin_base::bug!("filter-first-layer-unasked"))..LAYERS {
            let Some(word) = self.word(hash, index) else {
                return false;
            };
            step();
            // Relaxed: see the invariants.
            if word.load(Ordering::Relaxed) & bits == bits {
                return true;
            }
        }
        false
    }

    /// The key's word in the layer at `index`, if that was started.
    #[inline]
    fn word(&self, hash: KeyHash, index: usize) -> Option<&AtomicU64> {
        // Acquire: pairs with the Release in `start`, so that the layer is seen zeroed.
        let first = self.layers[index].load(Ordering::Acquire);
        // SAFETY: null, or the first of `words_in(index)` words that live as long as `memory`; a
        // key's word is one of them. They are changed through atomics only.
        unsafe { first.wrapping_add(hash.word(index)).as_ref() }.filter(|_| !first.is_null())
    }

    /// Starts the layer at `index`, and those before it, unless another thread did.
    #[cold]
    fn start(&self, hash: KeyHash, index: usize) -> &AtomicU64 {
        // A thread that died while it held the lock left every layer whole or not there at all.
        let guard = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, layer) in self.layers.iter().enumerate().take(index + 1) {
            // Relaxed: written only under the lock, which is held.
            if !layer.load(Ordering::Relaxed).is_null() {
                continue;
            }
            let words = words_in(index);
            let bytes = words * size_of::<AtomicU64>();
            let first = self.memory.allocate(bytes).cast::<AtomicU64>();
            assert!(first.is_aligned(), "the arena aligns to cache lines");
            for at in 0..words {
                // SAFETY: inside the allocation just made, which is this thread's alone.
                let word = unsafe { first.add(at) };
                // SAFETY: as above, and aligned: the arena aligns to cache lines.
                unsafe { word.write(AtomicU64::new(0)) };
            }
            // Release: pairs with the Acquire in `word`.
            layer.store(first.as_ptr(), Ordering::Release);
        }
        let is_started = |layer: &AtomicPtr<AtomicU64>| !layer.load(Ordering::Relaxed).is_null();
        assert!(
            cfg!(loom) || self.layers.iter().take(index + 1).all(is_started),
            "a layer is there only if all before it are"
        );
        drop(guard);
        self.word(hash, index).expect("started just now")
    }
}

/// Words of the layer at `index`: a power of two.
#[inline]
const fn words_in(index: usize) -> usize {
    FIRST_WORDS << (GROWTH_BITS as usize * index)
}

/// The layer of the key that `nth` others were added before: each takes as many as it is large.
#[inline]
fn layer_for(nth: usize) -> usize {
    let firsts = nth / (FIRST_WORDS * KEYS_PER_WORD);
    // The layers before one at `index` hold (GROWTH^index - 1) / (GROWTH - 1) times the first.
    let index = ((GROWTH - 1) * firsts + 1).ilog2() / GROWTH_BITS;
    (index as usize).min(LAYERS - 1)
}

/// Sixteen bytes at a time, folded by a multiplication. Nothing on disk depends on it.
#[inline]
fn hash(key: &[u8]) -> u64 {
    const FRONT: u64 = 0x9e37_79b9_7f4a_7c15;
    const BACK: u64 = 0xd1b5_4a32_d192_ed03;
    let mut state = BACK ^ key.len() as u64;
    let mut rest = key;
    while let Some((sixteen, after)) = rest.split_first_chunk::<16>() {
        let (front, back) = halves(sixteen);
        state = fold(front ^ FRONT, back ^ state);
        rest = after;
    }
    let mut last = [0; 16];
    match key.last_chunk::<16>() {
        _ if rest.is_empty() => return fold(state, FRONT),
        // Some bytes a second time, rather than a copy of unknown length.
        Some(sixteen) => last = *sixteen,
        None => last[..rest.len()].copy_from_slice(rest),
    }
    let (front, back) = halves(&last);
    fold(fold(front ^ FRONT, back ^ state), FRONT)
}

#[inline]
fn halves(bytes: &[u8; 16]) -> (u64, u64) {
    let all = u128::from_le_bytes(*bytes);
    (all as u64, (all >> 64) as u64)
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use drumlin_base::rng::Rng;

    fn add(filter: &Filter, nth: usize, key: &[u8]) {
        filter.mark(KeyHash::of(key), nth).set();
    }

    /// Shares of `absent` keys that are taken for present ones.
    fn wrong(filter: &Filter, absent: impl Iterator<Item = Vec<u8>>) -> f64 {
        let (mut asked, mut wrong) = (0u32, 0u32);
        for key in absent {
            asked += 1;
            wrong += u32::from(filter.may_contain(KeyHash::of(&key)));
        }
        f64::from(wrong) / f64::from(asked)
    }

    fn key_of(number: u64, len: usize) -> Vec<u8> {
        let mut key = vec![b'0'; len.max(8)];
        let at = key.len() - 8;
        key[at..].copy_from_slice(&number.to_be_bytes());
        key
    }

    #[test]
    fn every_key_added_is_found_and_few_others_are() {
        for len in [8, 12, 16, 20, 32, 100] {
            let filter = Filter::new(&Arc::new(Pool::new(None)));
            assert_eq!(wrong(&filter, (0..9).map(|key| key_of(key, len))), 0.0);
            let keys = 40_000;
            for number in 0..keys {
                add(&filter, number as usize, &key_of(2 * number, len));
                if number.is_power_of_two() {
                    let odd = (0..1000).map(|absent| key_of(2 * absent + 1, len));
                    assert!(wrong(&filter, odd) < 0.12, "{number} keys of {len} bytes");
                }
            }
            for number in 0..keys {
                assert!(filter.may_contain(KeyHash::of(&key_of(2 * number, len))));
            }
            let odd = (0..keys).map(|absent| key_of(2 * absent + 1, len));
            assert!(wrong(&filter, odd) < 0.08, "keys of {len} bytes");
        }
    }

    #[test]
    fn layers_follow_one_another_and_hold_what_their_size_says() {
        let first = FIRST_WORDS * KEYS_PER_WORD;
        let mut begin = 0;
        for index in 0..LAYERS - 1 {
            let end = begin + (first << (3 * index));
            assert_eq!((layer_for(begin), layer_for(end - 1)), (index, index));
            begin = end;
        }
        assert_eq!(layer_for(begin), LAYERS - 1);
        assert_eq!(layer_for(usize::MAX / 64), LAYERS - 1);
    }

    #[test]
    fn memory_comes_with_the_keys() {
        let filter = Filter::new(&Arc::new(Pool::new(None)));
        assert_eq!(filter.bytes(), 0);
        add(&filter, 0, b"key");
        assert_eq!(filter.bytes(), FIRST_WORDS * 8);
        // A thread that adds the first key of a later layer starts all before it.
        add(&filter, FIRST_WORDS * KEYS_PER_WORD, b"other");
        assert_eq!(filter.bytes(), FIRST_WORDS * 8 * (1 + GROWTH));
        assert!(filter.may_contain(KeyHash::of(b"key")));
        assert!(filter.may_contain(KeyHash::of(b"other")));
    }

    #[test]
    fn hashes_differ_in_every_byte_and_in_length() {
        let mut rng = Rng::new(7);
        for len in 0..70 {
            let key: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
            let whole = hash(&key);
            let mut longer = key.clone();
            longer.push(0);
            assert_ne!(whole, hash(&longer), "{len} bytes and one more");
            for at in 0..len {
                let mut other = key.clone();
                other[at] ^= 1 << rng.below(8);
                assert_ne!(whole, hash(&other), "byte {at} of {len}");
            }
        }
    }

    #[test]
    fn threads_that_start_layers_together_lose_no_key() {
        let filter = Filter::new(&Arc::new(Pool::new(None)));
        let nth = crate::sync::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let (filter, nth) = (&filter, &nth);
                scope.spawn(move || {
                    for number in 0..6_000 {
                        let at = nth.fetch_add(1, Ordering::Relaxed);
                        let key = key_of(number << 2 | thread, 16);
                        add(filter, at, &key);
                        assert!(filter.may_contain(KeyHash::of(&key)));
                    }
                });
            }
        });
        for number in 0..24_000 {
            assert!(filter.may_contain(KeyHash::of(&key_of(number, 16))));
        }
    }
}
