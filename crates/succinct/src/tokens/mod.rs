//! Tokens: the strings of up to 15 bytes that texts are cut into.
//!
//! - [`vocabulary`]: the tokens of a model in the order of their symbols.
//! - [`finder`]: the longest token at a place of a text.
//! - [`pairs`]: how often tokens follow each other.
//! - [`training`]: a vocabulary for a sample.

mod finder;
mod pairs;
mod training;
mod vocabulary;

pub use finder::Finder;
pub use training::{Growth, Learned, learn};
pub use vocabulary::{ROW_BYTES, TOKEN_BYTES_MAX, Token, Vocabulary};
