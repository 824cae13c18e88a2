//! Elements by name, without an order that clients choose: the fields of a hash with their values, the members of a set.
//!
//! *Whole*, up to 2 KiB: varint of the elements, then each: a flags byte (hashes only), varint of the name's length, the name,
//! and of hashes the value likewise. *Collection*: the payload is the varint of the elements; each has an entry `e` hash
//! name, whose value is a flags byte and the field's value for hashes, empty for sets.
//!
//! Fields may expire. Their expiry comes after the flags byte, and of a collection each has an entry `t` expiry name, too. A
//! field that has expired is not seen any more; it is deleted by the worker of expiry, which the record's first time calls.

mod packed;
mod pick;
mod value;

pub(super) use packed::Element;
pub use pick::Draw;
pub(super) use value::Elements;
pub use value::{FieldValue, Pair};
