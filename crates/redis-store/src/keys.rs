//! Keys of the families, and Redis Cluster's slots.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Slots of a Redis Cluster.
pub(crate) const SLOTS: u16 = 16_384;

/// Bytes before the user key in the `keys` family.
pub(crate) const KEY_PREFIX_BYTES: usize = 8;

/// Bytes of a collection's prefix in the `sub` family.
pub(crate) const SUB_PREFIX_BYTES: usize = 8;

/// The CRC of 16 bits that Redis Cluster uses (XMODEM: polynomial 0x1021, not reflected, from 0).
fn crc16(bytes: &[u8]) -> u16 {
    const TABLE: [u16; 256] = {
        let mut table = [0u16; 256];
        let mut index = 0;
        while index < 256 {
            let mut crc = (index as u16) << 8;
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 0x8000 != 0 {
                    (crc << 1) ^ 0x1021
                } else {
                    crc << 1
                };
                bit += 1;
            }
            table[index] = crc;
            index += 1;
        }
        table
    };
    bytes.iter().fold(0, |crc, byte| {
        (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)]
    })
}

/// The part of a key that decides its slot: what is between its first `{` and the next `}`, if that is not empty, else
/// the key.
pub fn hash_tag(key: &[u8]) -> &[u8] {
    let tagged = || {
        let open = key.iter().position(|byte| *byte == b'{')? + 1;
        let inside = key.get(open..)?;
        let len = inside.iter().position(|byte| *byte == b'}')?;
        inside.get(..len).filter(|tag| !tag.is_empty())
    };
    tagged().unwrap_or(key)
}

/// The slot of `key` in a Redis Cluster: CRC16 of its hash tag, modulo 16,384.
pub fn slot_of(key: &[u8]) -> u16 {
    crc16(hash_tag(key)) % SLOTS
}

/// The hash of a user key: its low half orders keys within a slot, all of it names owners of collections.
pub(crate) fn key_hash(seed: u64, key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, seed)
}

/// The place of a key among the keys of a database: its slot and the low half of its hash. Keys of one place come in
/// the order of their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) slot: u16,
    pub(crate) hash: u32,
}

impl Place {
    pub(crate) fn to_number(self) -> u64 {
        u64::from(self.slot) << 32 | u64::from(self.hash)
    }

    /// The place of a cursor; `None` beyond the last slot.
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        let slot = u16::try_from(number >> 32).ok()?;
        let hash = number as u32;
        (slot < SLOTS).then_some(Self { slot, hash })
    }
}

/// The key of the `keys` family.
#[cfg(test)]
pub(crate) fn record_key(db: u16, seed: u64, key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(KEY_PREFIX_BYTES + key.len());
    put_record_key(&mut out, db, seed, key);
    out
}

/// Appends the key of the `keys` family.
pub(crate) fn put_record_key(out: &mut Vec<u8>, db: u16, seed: u64, key: &[u8]) {
    let (slot, hash) = (slot_of(key), key_hash(seed, key) as u32);
    put_place(out, db, Place { slot, hash });
    out.extend_from_slice(key);
}

/// Whether `stored` is the key of the `keys` family for a user key.
pub(crate) fn is_record_key(stored: &[u8], db: u16, key: &[u8]) -> bool {
    stored.get(KEY_PREFIX_BYTES..) == Some(key) && stored.starts_with(&db.to_be_bytes())
}

/// The lowest key of the `keys` family at `place` of `db`.
pub(crate) fn place_key(db: u16, place: Place) -> Vec<u8> {
    let mut out = Vec::with_capacity(KEY_PREFIX_BYTES);
    put_place(&mut out, db, place);
    out
}

fn put_place(out: &mut Vec<u8>, db: u16, place: Place) {
    out.extend_from_slice(&db.to_be_bytes());
    out.extend_from_slice(&place.slot.to_be_bytes());
    out.extend_from_slice(&place.hash.to_be_bytes());
}

/// The place and the user key in a key of the `keys` family; `None` where it is no such key.
pub(crate) fn split_record_key(stored: &[u8]) -> Option<(u16, Place, &[u8])> {
    let (prefix, key) = stored.split_first_chunk::<KEY_PREFIX_BYTES>()?;
    let [d0, d1, s0, s1, h0, h1, h2, h3] = *prefix;
    let place = Place {
        slot: u16::from_be_bytes([s0, s1]),
        hash: u32::from_be_bytes([h0, h1, h2, h3]),
    };
    Some((u16::from_be_bytes([d0, d1]), place, key))
}

/// The kind of the entries of elements in the `sub` family.
pub(crate) const ELEMENT: u8 = b'e';

/// Appends the key of an element of a collection: the prefix, the kind, the hash of its name, its name.
pub(crate) fn put_element_key(out: &mut Vec<u8>, prefix: [u8; 8], seed: u64, name: &[u8]) {
    out.extend_from_slice(&prefix);
    out.push(ELEMENT);
    out.extend_from_slice(&xxh3_64_with_seed(name, seed).to_be_bytes());
    out.extend_from_slice(name);
}

/// Whether `entry` is the key of an element.
pub(crate) fn is_element_key(entry: &[u8], prefix: [u8; 8], name: &[u8]) -> bool {
    entry.get(SUB_PREFIX_BYTES + 9..) == Some(name) && entry.starts_with(&prefix)
}

/// Big-endian bytes of the low 48 bits of `number`.
pub(crate) fn u48(number: u64) -> [u8; 6] {
    let [_, _, bytes @ ..] = number.to_be_bytes();
    bytes
}

/// The number of six big-endian bytes.
pub(crate) fn from_u48(bytes: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = bytes;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// The number in the first six bytes, and the rest.
pub(crate) fn split_u48(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<6>()?;
    Some((from_u48(*number), rest))
}

/// The key of the `live` family.
pub(crate) fn live_key(db: u16, cid: u64) -> Vec<u8> {
    [&db.to_be_bytes()[..], &u48(cid)].concat()
}

/// The key of the `ttl` family.
pub(crate) fn ttl_key(expire_ms: u64, db: u16, key: &[u8]) -> Vec<u8> {
    [&u48(expire_ms)[..], &db.to_be_bytes(), key].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: slots are Redis's. Method: values of `CLUSTER KEYSLOT` of Redis 7.0.15.
    #[test]
    fn slots_are_those_of_redis_cluster() {
        assert_eq!(slot_of(b"123456789"), 12_739);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"foo{}{bar}"), 8_363);
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"user1000"));
        assert_eq!(hash_tag(b"foo{{bar}}zap"), b"{bar");
        assert_eq!(hash_tag(b"foo{bar}{zap}"), b"bar");
        assert_eq!(hash_tag(b"foo{bar"), b"foo{bar");
    }

    #[test]
    fn places_and_keys_come_back() {
        let stored = record_key(3, 7, b"key");
        let (db, place, key) = split_record_key(&stored).expect("a key");
        assert_eq!((db, key), (3, &b"key"[..]));
        assert_eq!(Place::from_number(place.to_number()), Some(place));
        assert!(place_key(3, place) <= stored);
        assert_eq!(Place::from_number(u64::from(SLOTS) << 32), None);
        assert_eq!(from_u48(u48(0x1234_5678_9abc)), 0x1234_5678_9abc);
    }
}
