//! The state shared by writers, background jobs and readers of one database.
//!
//! `store` is the whole and its lock, `state` the data under the lock; `health`, `install`, `obsolete` and `throttle`
//! are the operations on it. `identity`, `files`, `caches`, `history` and `watch` own the rest.

pub(crate) mod caches;
pub(crate) mod files;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod identity;
pub(crate) mod install;
pub(crate) mod obsolete;
pub(crate) mod settings;
pub(crate) mod state;
#[expect(
    clippy::module_inception,
    reason = "the module is named after its main type"
)]
pub(crate) mod store;
pub(crate) mod throttle;
pub(crate) mod watch;
