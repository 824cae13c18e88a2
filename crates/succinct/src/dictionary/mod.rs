//! A dictionary: the text that many records share, stored once.
//!
//! - [`text`]: the dictionary and references to it.
//! - [`anchors`]: places chosen by content: equal content has equal places in any text.
//! - [`matcher`]: the parts of a record that are in the dictionary.
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
