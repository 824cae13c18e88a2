//! Tokens: the strings of up to 15 bytes that texts are cut into.
//!
//! - [`vocabulary`]: the tokens of a model in the order of their symbols.
//! - [`finder`]: the tokens at a place of a text.
//! - [`cutting`]: texts cut into tokens so that their codes are short.
//! - [`pairs`]: counts of tokens that follow each other.
//! - [`training`]: a vocabulary for a sample.

mod cutting;
mod finder;
mod pairs;
mod training;
mod vocabulary;

pub use cutting::Cutter;
pub use finder::{COST_PARTS, Cut, Finder};
pub use training::{Cutting, Growth, Learned, learn};
pub use vocabulary::{ROW_BYTES, TOKEN_BYTES_MAX, Token, Vocabulary};
