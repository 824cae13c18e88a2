//! Expressions of aggregation: values that are computed from a document.

mod arithmetic;
mod array;
mod convert;
mod date;
mod date_math;
mod date_text;
mod deviation;
mod function;
mod parse;
mod set;
mod string;
mod table;
mod text_search;
mod tree;
mod zone;

pub use array::merged;
pub use deviation::Deviation;
pub use parse::Scope;
pub use tree::{Expression, Variables};
