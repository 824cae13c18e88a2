//! A dictionary: the text that many records share, stored once.
//!
//! - [`text`]: the dictionary and how it is referred to.
//! - [`anchors`]: places chosen by content, the same wherever the content stands.
//! - [`matcher`]: what of a record stands in the dictionary.
//! - [`assembly`]: a dictionary put together from overlapping records.

mod anchors;
mod assembly;
mod matcher;
mod text;

pub use assembly::assemble;
pub use matcher::{DictionaryMatch, Matcher};
pub use text::{
    DICTIONARY_BYTES_MAX, Dictionary, REFERENCE_BYTES_MAX, REFERENCE_BYTES_MIN, REFERENCE_CLASSES,
    class_of, reference_class,
};
