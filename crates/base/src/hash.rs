//! Stable hashes that are on disk: LevelDB's murmur-like hash.

/// LevelDB's hash of `bytes`. Its filter blocks use seed `0xbc9f1d34`, RocksDB's data-block hash
/// index seed 397 (`GetSliceHash`).
pub fn leveldb_hash(bytes: &[u8], seed: u32) -> u32 {
    const M: u32 = 0xc6a4_a793;
    let mut hash = seed ^ (bytes.len() as u32).wrapping_mul(M);
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        let word = word.try_into().map_or(0, u32::from_le_bytes);
        hash = hash.wrapping_add(word).wrapping_mul(M);
        hash ^= hash >> 16;
    }
    let tail = words.remainder();
    if tail.is_empty() {
        return hash;
    }
    for (index, &byte) in tail.iter().enumerate() {
        // Both engines add the tail bytes as signed chars.
        hash = hash.wrapping_add(((byte as i8) as i32 as u32) << (8 * index));
    }
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_known_answers() {
        // Known answers from LevelDB's util/hash_test.cc, which hash bytes below 0x80 the same way
        // whether chars are signed or not.
        assert_eq!(leveldb_hash(b"", 0xbc9f_1d34), 0xbc9f_1d34);
        let data: [u8; 48] = [
            0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 4, 0, 0, 0,
            0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(leveldb_hash(&data, 0x1234_5678), 0xf333_dabb);
    }
}
