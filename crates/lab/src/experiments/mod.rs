//! The five reference measurements, cut down to a scale, and one of the harness.
//!
//! Each is a list of stages that every engine goes through, and the flags the engines are opened with.

mod check;
mod data;
mod plan;
mod writes;

pub(crate) use data::BESIDE_CACHE;
pub use plan::{Data, Opening, Plan, Reference, Stage, plan, plan_of_records};
