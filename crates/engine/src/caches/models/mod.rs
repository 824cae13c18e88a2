//! The models that searchable tables share: their files, and which one a job writes with.
//!
//! - [`store`]: the files in the directory, loaded, held and given up;
//! - [`sample`]: values from across the key range of a job;
//! - [`choice`]: whether the family's model still serves, and a new one where it pays.

mod choice;
mod sample;
mod store;

pub(crate) use choice::{Appointment, Chooser, Wanted};
pub(crate) use store::{ModelHold, ModelStore};
