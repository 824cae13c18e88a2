//! The arguments of MIGRATE.

use std::collections::HashSet;
use std::time::Duration;

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
    /// The host of the target, an address or a name, and its port.
    pub(crate) target: (String, u16),
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
        let (host, port) = &self.target;
        write!(f, "Request({} keys to {host}:{port})", self.keys.len())
    }
}

/// The target at `host` and `port`.
pub(crate) fn target(host: &[u8], port: &[u8]) -> Option<(String, u16)> {
    let host = std::str::from_utf8(host).ok()?.to_owned();
    let port = drumlin_resp::integer(port).and_then(|port| u16::try_from(port).ok())?;
    Some((host, port))
}
