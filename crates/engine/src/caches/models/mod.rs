//! The models that searchable tables share: their files, and which one a job writes with.
//!
//! - [`store`]: the files in the directory, loaded, held and given up;
//! - [`sample`]: values from across the key range of a job;
//! - [`scope`]: the keys that have a model of their own;
//! - [`choice`]: whether the model of a family or of a scope still serves, and a new one where it pays.

mod choice;
mod sample;
mod scope;
mod store;

pub(crate) use choice::{Appointment, Chooser, Wanted};
pub(crate) use scope::{Scope, Within, large_scopes};
pub(crate) use store::{ModelHold, ModelStore};
