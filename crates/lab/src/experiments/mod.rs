//! The five reference measurements, cut down to a scale; one of the harness; db_bench's lines and
//! long loads of writes as asked for.
//!
//! Each is a list of stages that every engine goes through, and the flags the engines are opened with.

mod check;
mod data;
mod lines;
mod plan;
mod watched;
mod writes;

pub(crate) use data::BESIDE_CACHE;
pub use lines::Lines;
pub use plan::{Data, Opening, Plan, Reference, Stage, plan, plan_of_records};
pub use watched::{End, Load, Watched};
