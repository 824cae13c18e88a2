//! Compaction: rewriting tables into fewer, larger, deeper ones.
//!
//! A picker looks at a version and returns a plan; a job carries the plan out and returns what
//! changed. Neither installs anything.

pub mod cover;
pub mod keep;
pub mod stream;

#[cfg(test)]
mod stream_tests;
