//! A server of MongoDB's wire protocol over the engine.
//!
//! [`Server`] is the event loop: it takes messages from connections and has a pool of threads answer them. [`Embedded`] gives the same
//! collections in a process, without a socket. `docs/mongo.md` has what is served and what is refused.
//!
//! ```text
//! server -> net (connections, workers) -> answer -> wire
//!                                         answer -> command -> pipeline, query -> doc-store
//! ```

#![forbid(unsafe_code)]

mod answer;
mod auth;
mod command;
mod counters;
mod cursors;
mod embedded;
mod held;
mod net;
mod page;
mod pipeline;
mod query;
mod server;
mod shared;
mod sorting;
mod statistics;
mod tails;
mod wire;

pub use answer::{Answer, answer, answer_waited};
pub use embedded::Embedded;
pub use net::tls::{TlsMode, TlsOptions};
pub use server::{Server, ServerOptions, Stopper};
pub use shared::Shared;
pub use wire::limits::MESSAGE_BYTES_MAX;
