//! The doors of the server besides the plain one.

#![expect(clippy::disallowed_methods, reason = "tests make files for the server")]

mod hostile_primary;
mod log;
mod memory;
mod metrics;
mod ours;
mod secure;
mod strangers;
mod tls;
mod users;
