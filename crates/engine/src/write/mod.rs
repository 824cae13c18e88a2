//! The write path: writers join a group, its leader logs and applies it, then publishes.

pub mod batch;
mod commit;
pub(crate) mod leader;
mod publish;
pub(crate) mod published;
pub(crate) mod queue;
mod rotate;
mod share;
mod stall;
mod supply;
pub(crate) mod turns;
