//! BSON documents, spelled as text.
//!
//! A template finds typed columns in text: decimal numbers between literals. A document has its numbers in binary, and lengths that
//! follow from what they count. Spelled as text its numbers are digits, its lengths are gone, and what lies between the values of one
//! shape of document is always the same:
//!
//! ```text
//! {"city": "Oslo", "n": 7, "at": ISODate("2023-11-14T22:13:20Z")}     {"sku": [1.5]}
//! a s city 00 Oslo 1F i n 00 7 1F t at 00 1700000000 1F 0 1F }        a [ sku 00 d 1.50 1F ] }
//! ```
//!
//! - [`spell`]: documents to text.
//! - [`read`]: text to documents.
//!
//! The grammar is in `docs/format/models.md`. BSON's is that of bsonspec.org, version 1.1.

mod read;
mod spell;

pub use read::read;
pub(crate) use read::{bson_of, double, integer, millis};
pub use spell::Spelled;

/// Ends every value.
pub(crate) const VALUE_END: u8 = 0x1F;
/// Ends a name.
pub(crate) const NAME_END: u8 = 0;
/// Documents and arrays in one another are fewer.
const NESTING_MAX: usize = 64;

/// The text of a document has at most so many times its bytes, and [`TEXT_BYTES_MORE`].
pub const TEXT_FACTOR: usize = 4;
/// See [`TEXT_FACTOR`].
pub const TEXT_BYTES_MORE: usize = 8;

/// What stands around the document in its record, the first byte of its text.
pub(crate) mod frame {
    /// Nothing.
    pub(crate) const WHOLE: u8 = b'a';
    /// A byte in front, told by its two digits.
    pub(crate) const BEHIND_BYTE: u8 = b'b';
    /// A byte in front, and the document has no length.
    pub(crate) const WITHOUT_LENGTH: u8 = b'c';
}

/// What is spelled how: the first byte of an element.
pub(crate) mod kind {
    pub(crate) const DECIMAL: u8 = b'd';
    /// A double by the digits of its bits.
    pub(crate) const BITS: u8 = b'D';
    pub(crate) const STRING: u8 = b's';
    /// A string behind its length.
    pub(crate) const COUNTED: u8 = b'S';
    pub(crate) const DOCUMENT: u8 = b'{';
    pub(crate) const DOCUMENT_END: u8 = b'}';
    /// An array, whose elements' names are their places.
    pub(crate) const ARRAY: u8 = b'[';
    pub(crate) const ARRAY_END: u8 = b']';
    pub(crate) const BINARY: u8 = b'x';
    pub(crate) const OBJECT_ID: u8 = b'o';
    pub(crate) const BOOL: u8 = b'b';
    pub(crate) const DATE: u8 = b't';
    pub(crate) const NULL: u8 = b'n';
    pub(crate) const INT32: u8 = b'i';
    pub(crate) const INT64: u8 = b'l';
    pub(crate) const TIMESTAMP: u8 = b'm';
}

/// BSON's types, as they are on disk.
mod bson {
    pub(super) const DOUBLE: u8 = 0x01;
    pub(super) const STRING: u8 = 0x02;
    pub(super) const DOCUMENT: u8 = 0x03;
    pub(super) const ARRAY: u8 = 0x04;
    pub(super) const BINARY: u8 = 0x05;
    pub(super) const OBJECT_ID: u8 = 0x07;
    pub(super) const BOOL: u8 = 0x08;
    pub(super) const DATE: u8 = 0x09;
    pub(super) const NULL: u8 = 0x0A;
    pub(super) const INT32: u8 = 0x10;
    pub(super) const TIMESTAMP: u8 = 0x11;
    pub(super) const INT64: u8 = 0x12;
}

#[cfg(test)]
mod tests;
