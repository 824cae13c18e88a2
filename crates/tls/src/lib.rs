//! TLS for servers: what is read from files, and the session of a connection.
//!
//! Files and the time come through the door of `drumlin-fs`. Errors of settings are sentences that begin with the option that they are
//! about, by the name that the server has for it.

#![forbid(unsafe_code)]

mod session;
mod settings;

pub use session::Tls;
pub use settings::{Clients, Named, Wanted, certificates, key, roots, settings};
