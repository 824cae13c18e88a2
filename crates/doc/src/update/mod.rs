//! Updates: compiled into a tree of the names they touch, and applied by writing the document anew in one pass.

mod apply;
mod array_filter;
mod moment;
mod operators;
mod parse;
mod tree;

pub use apply::Applied;
pub(crate) use apply::{matched_place, position};
pub use array_filter::ArrayFilter;
pub use moment::Moment;
pub use parse::Update;
