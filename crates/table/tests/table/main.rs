//! Tables as their users see them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod damage;
mod golden;
mod places;
mod plain;
mod round_trip;
mod searchable;
mod together;
