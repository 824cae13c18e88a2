//! The arguments of MIGRATE.

use core::net::{IpAddr, SocketAddr};
use std::collections::HashSet;
use std::time::Duration;

use drumlin_fs::net::Address;

/// See the module.
#[derive(Clone)]
pub(crate) struct Request {
    /// Who asked.
    pub(crate) client: u64,
    /// The keys, and their database here and there.
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) names: HashSet<Vec<u8>>,
    pub(crate) db: u16,
    pub(crate) target_db: i64,
    pub(crate) target: Address,
    /// The longest silence of the target.
    pub(crate) timeout: Duration,
    /// The keys stay here.
    pub(crate) copies: bool,
    /// Keys that are there are replaced.
    pub(crate) replaces: bool,
    /// The arguments of AUTH: a password, or a user and a password.
    pub(crate) auth: Vec<Vec<u8>>,
    /// The target is a node of a cluster.
    pub(crate) asks: bool,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Request({} keys to {})", self.keys.len(), self.target)
    }
}

/// The target at `host`, which is an address, and `port`.
pub(crate) fn target(host: &[u8], port: &[u8]) -> Option<Address> {
    let host = match std::str::from_utf8(host).ok()? {
        "localhost" => "127.0.0.1",
        other => other,
    };
    let ip: IpAddr = host.parse().ok()?;
    let port = drumlin_resp::integer(port).and_then(|port| u16::try_from(port).ok())?;
    Some(Address::Tcp(SocketAddr::new(ip, port)))
}
