//! Flushes and compactions: which one runs next, how it is carried out, and who may wait for it.
//!
//! From below: `background` has what every job needs; `flush_job` and `compaction_job` carry a job out, with `models`
//! for searchable tables; `pick` chooses the next; `quiet` runs those that only a store at rest does; `run` runs any
//! of them and books its end; `threads` are the loops around it, and callers wait for jobs by `wait`.

#[expect(
    clippy::module_inception,
    reason = "the module is named after its main type"
)]
pub(crate) mod background;
pub(crate) mod compaction_job;
pub(crate) mod flush_job;
pub(crate) mod made_files;
pub(crate) mod manual_queue;
pub(crate) mod models;
pub(crate) mod pick;
pub(crate) mod quiet;
pub(crate) mod run;
pub(crate) mod threads;
pub(crate) mod wait;
