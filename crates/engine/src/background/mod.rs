//! Flushes and compactions: which one runs next, how it is carried out, and who may wait for it.

pub(crate) mod jobs;
pub(crate) mod made_files;
pub(crate) mod manual;
pub(crate) mod manual_queue;
pub(crate) mod models;
pub(crate) mod quiet;
pub(crate) mod scheduler;
