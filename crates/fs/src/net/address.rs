//! Addresses of listeners and of both ends of a connection.

use core::net::SocketAddr;
use std::fmt;
use std::path::PathBuf;

/// An end of a connection, or a place to listen at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// An IPv4 or IPv6 address with its port. A listener at port 0 gets a port that is free.
    Tcp(SocketAddr),
    /// A path of the local machine.
    Unix(PathBuf),
    /// The end of a unix connection that was not bound to a path: the client's, as a rule.
    Unnamed,
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Unnamed => write!(f, "(unnamed)"),
        }
    }
}
