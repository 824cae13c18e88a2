//! The hash index that a data block may have: for a user key, the restart point it is behind.
//!
//! ```text
//! bucket[hash(user key) % m] = number of the restart point before every version of the key
//!                              254: keys behind different ones met here; 255: no key has this hash
//! ```
//!
//! RocksDB's `kDataBlockBinaryAndHash`. It spares a lookup the search among restart points, and a key
//! that is not there often the whole block. Buckets are one byte, so blocks of more than 254 restart
//! points have none, nor those of more than 64 KiB; nor tables under an order in which different
//! bytes are equal, because equal keys would differ in their hash. Readers here that have made a
//! block's key prefixes ([`super::lookup`]) do not need it.
//!
//! The buckets are a claim: what they say is a number below 254, checked against the restart points
//! by who uses it, and a key is compared before it counts as found. That a key is *not* there is
//! believed, as a filter is.

use drumlin_base::hash::leveldb_hash;

/// On disk: the seed of the hash.
const SEED: u32 = 397;
/// On disk: keys behind different restart points fell into this bucket.
const COLLISION: u8 = 254;
/// On disk: no key fell into this bucket.
const EMPTY: u8 = 255;
/// On disk: blocks larger than this have no hash index, for their readers keep offsets in 16 bits.
pub(crate) const HASHED_BLOCK_BYTES_MAX: usize = 1 << 16;
/// Bytes behind the buckets: how many there are.
pub(crate) const COUNT_BYTES: usize = 2;

/// What the hash index of a block knows of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bucket {
    /// The key is not in the block.
    Absent,
    /// All its versions, if there are any, are behind this restart point and before the next.
    Behind(u32),
    /// Nothing.
    Unknown,
}

/// What `buckets` know of `user_key`. Without buckets: nothing.
#[inline]
pub(crate) fn bucket_of(buckets: &[u8], user_key: &[u8]) -> Bucket {
    let Ok(count) = u32::try_from(buckets.len()) else {
        return Bucket::Unknown;
    };
    let Some(at) = leveldb_hash(user_key, SEED).checked_rem(count) else {
        return Bucket::Unknown;
    };
    match buckets.get(at as usize) {
        None | Some(&COLLISION) => Bucket::Unknown,
        Some(&EMPTY) => Bucket::Absent,
        Some(&restart) => Bucket::Behind(u32::from(restart)),
    }
}

/// Gathers the keys of one block and writes its buckets.
#[derive(Debug)]
pub(crate) struct HashIndexBuilder {
    /// Keys a bucket, so that 0.75 leaves a quarter of the buckets empty at best.
    ratio: f64,
    /// Hash of each key, with its restart point.
    keys: Vec<(u32, u8)>,
    /// A restart point that no bucket can name was met.
    too_many: bool,
}

impl HashIndexBuilder {
    /// A builder of hash indexes with `ratio` keys a bucket; 0.75 where that makes no sense.
    pub(crate) fn new(ratio: f64) -> Self {
        const USUAL: f64 = 0.75;
        Self {
            ratio: if ratio > 0.0 && ratio.is_finite() {
                ratio
            } else {
                USUAL
            },
            keys: Vec::new(),
            too_many: false,
        }
    }

    /// Adds an entry's key, behind restart point `restart`.
    #[inline]
    pub(crate) fn add(&mut self, user_key: &[u8], restart: usize) {
        match u8::try_from(restart) {
            Ok(restart) if restart < COLLISION => {
                self.keys.push((leveldb_hash(user_key, SEED), restart));
            }
            _ => self.too_many = true,
        }
    }

    /// Buckets of an index over the keys so far, unless these are too many. Odd: the hash spreads badly
    /// over powers of two.
    fn bucket_count(&self) -> Option<u16> {
        let count = (self.keys.len() as f64 / self.ratio) as usize | 1;
        u16::try_from(count).ok().filter(|_| !self.too_many)
    }

    /// Bytes the index takes; 0 when there will be none.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bucket_count()
            .map_or(0, |count| usize::from(count) + COUNT_BYTES)
    }

    /// Appends the index to a block that has `block_bytes` with it, unless that or its restart points
    /// are too many. Whether it did. Then ready for the next block.
    pub(crate) fn finish(&mut self, block_bytes: usize, out: &mut Vec<u8>) -> bool {
        let fits = block_bytes <= HASHED_BLOCK_BYTES_MAX;
        let count = self.bucket_count().filter(|_| fits);
        if let Some(count) = count {
            self.put_buckets(usize::from(count), out);
            out.extend_from_slice(&count.to_le_bytes());
        }
        self.keys.clear();
        self.too_many = false;
        count.is_some()
    }

    fn put_buckets(&self, count: usize, out: &mut Vec<u8>) {
        let first = out.len();
        out.resize(first + count, EMPTY);
        let buckets = out.get_mut(first..).unwrap_or_default();
        for &(hash, restart) in &self.keys {
            let Some(bucket) = buckets.get_mut(hash as usize % count) else {
                continue;
            };
            match *bucket {
                EMPTY => *bucket = restart,
                there if there != restart => *bucket = COLLISION,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use drumlin_base::rng::Rng;

    use super::*;

    #[test]
    fn every_key_is_behind_its_restart_point_or_not_told() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let mut builder = HashIndexBuilder::new([0.1, 0.5, 0.75, 1.0, 4.0][seed as usize % 5]);
            let mut keys = BTreeMap::new();
            for number in 0..rng.below(200) {
                let restart = number as usize / 4;
                let key = rng.below(400).to_le_bytes();
                builder.add(&key, restart);
                let places: &mut Vec<usize> = keys.entry(key).or_default();
                places.push(restart);
            }
            let mut out = b"before".to_vec();
            assert!(builder.finish(4096, &mut out));
            let count = out.len() - b"before".len() - COUNT_BYTES;
            assert!(out.ends_with(&(count as u16).to_le_bytes()) && count % 2 == 1);
            let buckets = &out[b"before".len()..][..count];
            for number in 0..400u64 {
                let key = number.to_le_bytes();
                let places = keys.get(&key).cloned().unwrap_or_default();
                match bucket_of(buckets, &key) {
                    Bucket::Absent => assert!(places.is_empty(), "seed {seed}"),
                    Bucket::Behind(at) => assert!(places.iter().all(|&p| p == at as usize)),
                    Bucket::Unknown => {}
                }
            }
        }
    }

    #[test]
    fn blocks_that_no_bucket_can_tell_of_get_none() {
        let mut builder = HashIndexBuilder::new(0.75);
        let mut out = Vec::new();
        builder.add(b"key", 254);
        assert_eq!(builder.bytes(), 0);
        assert!(!builder.finish(100, &mut out));
        builder.add(b"key", 253);
        assert!(!builder.finish(HASHED_BLOCK_BYTES_MAX + 1, &mut out));
        assert!(out.is_empty());
        builder.add(b"key", 253);
        assert!(builder.finish(HASHED_BLOCK_BYTES_MAX, &mut out));
        assert_eq!(out, [253, 1, 0]);
        // More buckets than sixteen bits count.
        for ratio in [0.000_01, 1e-300, f64::MIN_POSITIVE] {
            let mut builder = HashIndexBuilder::new(ratio);
            builder.add(b"key", 0);
            assert_eq!(builder.bytes(), 0);
            assert!(!builder.finish(100, &mut Vec::new()));
        }
        assert_eq!(bucket_of(&[], b"key"), Bucket::Unknown);
    }
}
