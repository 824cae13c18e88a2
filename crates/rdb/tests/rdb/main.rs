//! Goal: Redis's bytes are read and written as Redis does. Method: random values from a seed, through this crate alone
//! (`properties`) and back and forth between it and Debian's redis-server (`redis`).

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too; files are the server's"
)]

mod common;
mod old_forms;
mod properties;
mod redis;
