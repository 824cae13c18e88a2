//! Connections and the threads that answer their messages.

pub(crate) mod connection;
pub(crate) mod scrape;
pub(crate) mod tls;
pub(crate) mod workers;
