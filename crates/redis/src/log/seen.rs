//! What the log told last, so that it tells what has changed.

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The primary, and how far the replica is.
    pub(super) link: Option<(String, &'static str)>,
    pub(super) link_error: Option<String>,
    /// Addresses of replicas that have all data.
    pub(super) replicas: Vec<String>,
    pub(super) error: Option<String>,
    pub(super) stalls: u64,
    pub(super) denied: u64,
}
