//! Pipelines of `aggregate`: documents are pushed through stages, one after the other.

mod bucket;
mod geo_near;
mod group;
mod lookup;
mod run;
mod running;
mod sample;
mod stage;
mod unwind;
mod update;
mod view;

pub(crate) use run::{of_view, run, run_view, take};
pub(crate) use running::Running;
pub(crate) use stage::{Pipeline, Stage};
pub(crate) use update::UpdatePipeline;
pub(crate) use view::through;
