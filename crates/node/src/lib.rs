//! The store for Node.js: the addon that the package `drumlin` wraps as an `abstract-level` database.
//!
//! ```text
//! store -> walk, moment -> frames, job, error, settings
//! ```
//!
//! Calls that find what they need in memory answer at once, on Node's loop. Those that would wait, for the disk, for a sync or
//! for other writers, return a promise and go on in a thread of Node's pool. Keys and values cross in packed buffers
//! ([`frames`]), because one call costs more than many copies.

mod error;
mod frames;
mod job;
mod moment;
mod settings;
mod store;
mod walk;
