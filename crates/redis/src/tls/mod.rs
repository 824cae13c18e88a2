//! TLS: what the configuration says of it, and the session of a connection.

pub(crate) mod session;
pub(crate) mod settings;
