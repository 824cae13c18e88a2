//! The hash index: finds a record by the hash of its user key, or of its prefix.
//!
//! The index is an array of buckets of one cache line each. A key's hash names its home bucket, and 16
//! other bits of the hash are its fingerprint. A bucket has ten places. A key that does not fit goes to
//! the next bucket with room, and the home bucket notes how far its keys went. So a present key costs
//! one line before its record (nine times in ten; else mostly the line beside it too). An absent key
//! costs one line and no record, except one time in 6,500, when a fingerprint happens to match.
//!
//! ```text
//! bucket: fingerprint u16 × 10 · reach u16 · zero u16 · place u32 × 10        (64 bytes)
//! ```
//!
//! Fingerprints are compared all at once.

use std::ops::Range;

use drumlin_base::bytes::equal_lanes;
use drumlin_base::checksum::xxh3_64;

/// On disk: bytes of a bucket.
const BUCKET_BYTES: usize = 64;
/// On disk: places in a bucket.
const PLACES: usize = 10;
/// On disk: the offset of the places, behind the fingerprints and the reach.
const PLACES_AT: usize = 24;
/// On disk: the offset of the reach.
const REACH_AT: usize = 2 * PLACES;
/// Cache lines of an index that are prefetched at once: one key in ten is not in its home bucket, and mostly in
/// the next.
pub(super) const INDEX_LINES: usize = 2;
/// A key is in its home bucket or in one of the next 64. This bounds the reads of a lookup in a table of any
/// writer. With random hashes, seven to a bucket, the longest way in the largest table is about half of it.
const REACH_MAX: u16 = 64;
/// Keys for each bucket on average: more takes less memory, and more of them go to other buckets.
const KEYS_PER_BUCKET: usize = 7;

/// The hash of a user key or a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyHash(u64);

impl KeyHash {
    #[inline]
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(xxh3_64(bytes))
    }

    /// Never 0, which marks an empty place.
    #[inline]
    fn fingerprint(self) -> u16 {
        (self.0 as u16).max(1)
    }

    #[inline]
    fn home(self, buckets: usize) -> usize {
        (((self.0 >> 32) * buckets as u64) >> 32) as usize
    }
}

/// Gathers hashes and places, and lays the buckets out at the end.
#[derive(Debug, Default)]
pub(super) struct HashIndexBuilder {
    hashes: Vec<u64>,
    places: Vec<u32>,
}

impl HashIndexBuilder {
    pub(super) fn add(&mut self, hash: KeyHash, place: u32) {
        self.hashes.push(hash.0);
        self.places.push(place);
    }

    /// Keys added.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Bytes the index will have.
    pub(super) fn size(&self) -> usize {
        self.len().div_ceil(KEYS_PER_BUCKET) * BUCKET_BYTES
    }

    /// The index's bytes; empty without keys. `None` when some key would be too far from home, as happens
    /// only with many keys of one hash: then the table has no index.
    pub(super) fn finish(self) -> Option<Vec<u8>> {
        let buckets = self.len().div_ceil(KEYS_PER_BUCKET);
        let mut bytes = vec![0; buckets * BUCKET_BYTES];
        for (&hash, &place) in self.hashes.iter().zip(&self.places) {
            put(&mut bytes, buckets, KeyHash(hash), place)?;
        }
        Some(bytes)
    }
}

/// Puts a key into the first bucket with room, from its home on.
fn put(bytes: &mut [u8], buckets: usize, hash: KeyHash, place: u32) -> Option<()> {
    let home = hash.home(buckets);
    for reach in 0..buckets {
        let at = (home + reach) % buckets * BUCKET_BYTES;
        let bucket = bytes.get_mut(at..at + BUCKET_BYTES)?;
        let mut fingerprints = bucket.get(..REACH_AT)?.chunks_exact(2);
        let Some(free) = fingerprints.position(|at| at == [0, 0]) else {
            continue;
        };
        let fingerprint = hash.fingerprint().to_le_bytes();
        bucket
            .get_mut(2 * free..2 * free + 2)?
            .copy_from_slice(&fingerprint);
        let place_at = PLACES_AT + 4 * free;
        bucket
            .get_mut(place_at..place_at + 4)?
            .copy_from_slice(&place.to_le_bytes());
        let home_reach = home * BUCKET_BYTES + REACH_AT;
        let noted = bytes
            .get_mut(home_reach..home_reach + 2)?
            .first_chunk_mut::<2>()?;
        let reach = u16::try_from(reach).ok()?.max(u16::from_le_bytes(*noted));
        if reach > REACH_MAX {
            return None;
        }
        *noted = reach.to_le_bytes();
        return Some(());
    }
    None
}

/// The place of an index in its file.
#[derive(Clone, Debug)]
pub(super) struct HashIndex {
    range: Range<usize>,
    buckets: usize,
}

impl HashIndex {
    /// The index in `range` of `file`. `None` when it is empty, not of whole buckets, or has keys too far from
    /// home; lookups then go another way. Cost: reads each bucket.
    pub(super) fn new(file: &[u8], range: Range<usize>) -> Option<Self> {
        let buckets = range.len() / BUCKET_BYTES;
        let whole = buckets > 0
            && range.len().is_multiple_of(BUCKET_BYTES)
            && u32::try_from(buckets).is_ok();
        let (all, _) = file.get(range.clone())?.as_chunks::<BUCKET_BYTES>();
        let is_near = |bucket: &[u8; BUCKET_BYTES]| reach(bucket) <= REACH_MAX;
        (whole && all.iter().all(is_near)).then_some(Self { range, buckets })
    }

    /// The offset in the file of the home bucket of `hash`, which a lookup reads first.
    #[inline]
    pub(super) fn home_at(&self, hash: KeyHash) -> usize {
        self.range.start + hash.home(self.buckets) * BUCKET_BYTES
    }

    /// The places that keys of this hash may have, those at home first.
    #[inline]
    pub(super) fn places<'a>(&'a self, file: &'a [u8], hash: KeyHash) -> Places<'a> {
        let at = self.home_at(hash);
        let bucket = bucket_at(file, at);
        Places {
            index: self,
            file,
            at,
            left: usize::from(reach(bucket)).min(self.buckets - 1),
            fingerprint: hash.fingerprint(),
            bucket,
            matches: matches(bucket, hash.fingerprint()),
        }
    }
}

/// The distance, in buckets, of the farthest key whose home is `bucket`.
#[inline]
fn reach(bucket: &[u8; BUCKET_BYTES]) -> u16 {
    u16::from_le_bytes([bucket[REACH_AT], bucket[REACH_AT + 1]])
}

/// See [`HashIndex::places`].
#[derive(Debug)]
pub(super) struct Places<'a> {
    index: &'a HashIndex,
    file: &'a [u8],
    /// Where the present bucket begins in the file.
    at: usize,
    /// Buckets to look at after the present one.
    left: usize,
    fingerprint: u16,
    bucket: &'a [u8; BUCKET_BYTES],
    /// A bit for each place not given out yet whose fingerprint matches.
    matches: u32,
}

impl Iterator for Places<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        while self.matches == 0 {
            self.left = self.left.checked_sub(1)?;
            self.at += BUCKET_BYTES;
            if self.at >= self.index.range.end {
                self.at = self.index.range.start;
            }
            self.bucket = bucket_at(self.file, self.at);
            self.matches = matches(self.bucket, self.fingerprint);
        }
        let place = self.matches.trailing_zeros() as usize;
        self.matches &= self.matches - 1;
        let at = PLACES_AT + 4 * place;
        let bytes = self.bucket.get(at..).and_then(|rest| rest.first_chunk());
        let bytes = bytes.expect("a match is one of the bucket's places");
        Some(u32::from_le_bytes(*bytes))
    }
}

/// The bucket that begins at `at`.
#[inline]
fn bucket_at(file: &[u8], at: usize) -> &[u8; BUCKET_BYTES] {
    let bucket = file.get(at..).and_then(|rest| rest.first_chunk());
    bucket.expect("the index is whole buckets inside the file")
}

/// A bit for each place of `bucket` with this fingerprint.
#[inline]
fn matches(bucket: &[u8; BUCKET_BYTES], fingerprint: u16) -> u32 {
    let (words, _) = bucket.as_chunks::<8>();
    let word = |at: usize| {
        let word = words.get(at).expect("a bucket has eight words");
        u64::from_le_bytes(*word)
    };
    equal_lanes([word(0), word(1), word(2)], fingerprint) & ((1 << PLACES) - 1)
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    fn built(hashes: &[u64]) -> Vec<u8> {
        let mut builder = HashIndexBuilder::default();
        for (place, &hash) in hashes.iter().enumerate() {
            builder.add(KeyHash(hash), place as u32);
        }
        let size = builder.size();
        let bytes = builder.finish().unwrap();
        assert_eq!(bytes.len(), size);
        bytes
    }

    #[test]
    fn every_key_is_found_and_few_others() {
        for seed in 0..30 {
            let mut rng = Rng::new(seed);
            // Some seeds crowd half of the buckets.
            let (count, mask) = match seed % 3 {
                0 => (1 + rng.below(400), u64::MAX >> 1),
                _ => (1 + rng.below(3_000), u64::MAX),
            };
            let hashes: Vec<u64> = (0..count).map(|_| rng.next_u64() & mask).collect();
            let bytes = built(&hashes);
            let index = HashIndex::new(&bytes, 0..bytes.len()).unwrap();
            for (place, &hash) in hashes.iter().enumerate() {
                let mut places = index.places(&bytes, KeyHash(hash));
                assert!(places.any(|at| at == place as u32), "seed {seed}");
            }
            let strangers = (0..2_000).filter(|_| {
                let hash = KeyHash(rng.next_u64() & mask);
                index.places(&bytes, hash).next().is_some()
            });
            let crowded = seed % 3 == 0;
            assert!(crowded || strangers.count() < 20, "seed {seed}");
        }
    }

    #[test]
    fn keys_of_one_hash_are_all_given_out() {
        let hashes = [7; 300];
        let bytes = built(&hashes);
        let index = HashIndex::new(&bytes, 0..bytes.len()).unwrap();
        let mut places: Vec<u32> = index.places(&bytes, KeyHash(7)).collect();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..300));
    }

    #[test]
    fn no_lookup_goes_through_many_buckets_whoever_wrote_them() {
        let mut bytes = vec![0xff; 1000 * BUCKET_BYTES];
        assert!(HashIndex::new(&bytes, 0..bytes.len()).is_none());
        let (buckets, _) = bytes.as_chunks_mut::<BUCKET_BYTES>();
        for bucket in buckets {
            bucket[REACH_AT..REACH_AT + 2].copy_from_slice(&REACH_MAX.to_le_bytes());
        }
        let index = HashIndex::new(&bytes, 0..bytes.len()).unwrap();
        let places = index.places(&bytes, KeyHash(u64::MAX));
        assert_eq!(places.count(), (usize::from(REACH_MAX) + 1) * PLACES);
        let mut crowded = HashIndexBuilder::default();
        (0..700).for_each(|place| crowded.add(KeyHash(7), place));
        assert!(crowded.finish().is_none());
        assert!(HashIndex::new(&bytes, 0..63).is_none());
        assert!(HashIndex::new(&bytes, 0..0).is_none());
    }
}
