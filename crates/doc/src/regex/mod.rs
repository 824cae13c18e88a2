//! Regular expressions as MongoDB has them, which are those of PCRE2.

mod pattern;
mod translate;

pub(crate) use pattern::Captured;
pub use pattern::Pattern;
