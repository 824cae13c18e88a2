//! Models learned from samples of records, and the codes of records under them.
//!
//! - [`form`]: the meanings that a record's bits may have.
//! - [`frame`]: very large records.
//! - [`store`]: the model itself: its bytes, its identity, decoding.
//! - [`encode`]: records to codes.
//! - [`train`]: choosing a model for a sample.
//! - [`build`]: one model for a sample.
//! - [`describe`]: a description of a model, for people.

mod build;
mod describe;
mod encode;
mod form;
#[cfg_attr(not(feature = "zstd"), path = "frame_absent.rs")]
mod frame;
mod store;
#[cfg(test)]
mod tests;
mod train;

pub use encode::{Counts, Encoder};
pub use store::{EXPANSION_MAX, Model};
pub use train::Effort;
