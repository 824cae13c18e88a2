//! What was learned from a sample of records, and the codes of records under it.
//!
//! - [`store`]: the model itself: its bytes, its identity, decoding.
//! - [`encode`]: records to codes.
//! - [`train`]: choosing a model for a sample.

mod encode;
mod store;
mod train;

pub use encode::Encoder;
pub use store::{EXPANSION_MAX, Model};
pub use train::Effort;
