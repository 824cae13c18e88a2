//! A server of Redis's protocol whose data is in the engine, on disk, larger than memory.
//!
//! [`Server`] is the event loop; `dispatch` decides what a command may do and whom it concerns; the handlers are in
//! `cmd`, a table for each family; `workers` has the threads for what a loop must not wait for.
//!
//! ```text
//! server -> hands -> table -> cmd
//! server -> traffic, dispatch, workers -> round -> table -> cmd -> call -> state, session -> net, config, pubsub, notify
//!           dispatch, script -> permit -> acl -> catalog
//! ```

#![forbid(unsafe_code)]

mod accounts;
mod acl;
mod call;
mod catalog;
mod client_line;
mod clients;
mod cluster;
mod cmd;
mod cold;
mod command;
mod config;
mod config_names;
mod config_rewrite;
mod dispatch;
mod dispatch_multi;
mod double;
mod expire;
mod facts;
mod found_expired;
mod glob;
mod hands;
mod intake;
pub mod internals;
mod io;
mod known;
mod life;
mod limits;
mod listen;
mod log;
mod memory;
mod metrics;
mod migrate;
mod net;
mod notify;
mod observe;
mod opening;
mod options;
mod pause;
mod permit;
mod persist;
mod prefetch;
mod pubsub;
mod queue;
mod ran;
mod replay;
mod replica;
mod replicas;
mod round;
mod script;
mod server;
mod session;
mod state;
mod table;
mod tls;
mod tracking;
mod traffic;
mod wait;
mod waits;
mod wire;
mod woken;
mod workers;
mod writer;

pub use config::Config;
pub use intake::load_data;
pub use log::LogSink;
pub use options::{ServerOptions, Stopper};
pub use persist::export_rdb;
pub use persist::load::Loaded;
pub use server::Server;
