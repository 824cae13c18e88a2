//! Elements by name, without an order that clients choose: the fields of a hash with their values, the members of a set.
//!
//! *Whole*, up to 2 KiB: varint of the elements, then each: a flags byte (hashes only), varint of the name's length, the name,
//! and of hashes the value likewise. *Collection*: the payload is the varint of the elements; each has an entry `e` hash
//! name, whose value is a flags byte and the field's value for hashes, empty for sets. No flag is defined yet.

mod packed;
mod pick;
mod value;

pub use pick::Draw;
pub(super) use value::Elements;
pub use value::{FieldValue, Pair};
