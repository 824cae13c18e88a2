//! A key to look for, and the eight-byte key prefixes that decide most comparisons.
//!
//! A key prefix is eight bytes of a user key from an offset on, as a number whose order never contradicts
//! the order of keys that agree in all bytes before the offset: key prefixes differ only as the keys do,
//! and equal key prefixes say nothing. Under the reverse order the key prefix is complemented; under a user's
//! own order every key prefix is zero, so that every comparison calls the comparator.

use std::cmp::Ordering as Order;

use drumlin_base::KeyOrder;

use crate::entry::Entry;

/// An internal key to look for, taken apart, and the order it is looked for in.
#[derive(Clone, Copy)]
pub(crate) struct Probe<'a> {
    pub(crate) order: &'a KeyOrder,
    pub(crate) user_key: &'a [u8],
    pub(crate) tag: u64,
}

impl<'a> Probe<'a> {
    /// The probe that finds `entry` itself.
    #[inline]
    pub(crate) fn of(order: &'a KeyOrder, entry: Entry<'a>) -> Self {
        let (user_key, tag) = entry.user_key_and_tag();
        Self {
            order,
            user_key,
            tag,
        }
    }

    /// The key prefix of this key after its first `shared` bytes.
    #[inline]
    pub(crate) fn prefix(&self, shared: usize) -> u64 {
        // In a node that changes meanwhile, a sought key may be shorter than the shared bytes.
        let prefix = eight_bytes(self.user_key.get(shared..).unwrap_or_default());
        match self.order {
            KeyOrder::Bytewise => prefix,
            KeyOrder::ReverseBytewise => !prefix,
            KeyOrder::Custom(_) => 0,
        }
    }

    /// How `entry` compares to this key.
    #[inline]
    pub(crate) fn order_of(&self, entry: Entry<'_>) -> Order {
        let (user_key, tag) = entry.user_key_and_tag();
        self.order
            .compare(user_key, self.user_key)
            .then_with(|| self.tag.cmp(&tag))
    }

    /// Bytes all user keys between this one and `other` share at their front; 0 when the order
    /// does not promise any.
    pub(crate) fn shared_bytes(&self, other: &Self) -> usize {
        if !self.order.equality_is_bytewise() {
            return 0;
        }
        let pairs = self.user_key.iter().zip(other.user_key);
        pairs.take_while(|(own, other)| own == other).count()
    }
}

/// The first eight bytes, big-endian, with zeros for those that are not there.
#[inline]
fn eight_bytes(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(eight) => u64::from_be_bytes(*eight),
        None => {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(padded)
        }
    }
}
