//! Pipelines of `aggregate`: documents are pushed through stages, one after the other.

mod bucket;
mod group;
mod lookup;
mod run;
mod sample;
mod stage;
mod unwind;

pub(crate) use run::{Pipeline, Running, run};
pub(crate) use stage::Stage;
