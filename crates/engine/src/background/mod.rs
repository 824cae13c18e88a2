//! Flushes and compactions: which one runs next, how it is carried out, and who may wait for it.
//!
//! From below: `setup` has what every job needs; `flush_job` and `compaction_job` carry a job out, with `models` for
//! searchable tables; `pick` says which is next; `quiet` runs those that only a store at rest does; `run` runs any and
//! books its end; `threads` are loops around it, and `wait` is for who waits for them.

pub(crate) mod compaction_job;
pub(crate) mod flush_job;
pub(crate) mod made_files;
pub(crate) mod manual_queue;
pub(crate) mod models;
pub(crate) mod pick;
pub(crate) mod quiet;
pub(crate) mod run;
pub(crate) mod setup;
pub(crate) mod threads;
pub(crate) mod wait;
