//! Pipelines of `aggregate`: documents are pushed through stages, one after the other.

mod expression;
mod group;
mod reshape;
mod run;
mod stage;

pub(crate) use run::Pipeline;
pub(crate) use stage::Stage;
