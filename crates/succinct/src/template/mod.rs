//! Records of a stable shape: literal text with fields between, each field in a column of a type.
//!
//! - [`number`]: numbers in the ways they are written.
//! - [`column`]: the types of a field, and their bits.
//! - [`shape`]: literals and columns; fields of a record; bits from fields.
//! - [`program`]: records from bits.
//! - [`document`]: what a template of documents' texts has in place of text.
//! - [`layout`]: records of one length, as numbers at fixed places.
//! - [`skeleton`]: shapes that a sample has.
//! - [`typing`]: columns for the fields of a sample.

mod column;
mod document;
mod layout;
mod number;
mod program;
mod shape;
mod skeleton;
mod typing;

pub use column::{COLUMNS_MAX, Column, Relation};
pub use layout::Layout;
pub use number::Style;
pub use shape::Template;
pub use skeleton::{frequent, skeletons};
pub use typing::type_columns;
