//! How a client wants to be told of changes.

use std::collections::BTreeSet;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracking {
    /// The client that is told instead; 0 for none.
    pub(crate) redirect: u64,
    /// It is told of all keys with its prefixes, read or not.
    pub(crate) is_broadcast: bool,
    pub(crate) prefixes: BTreeSet<Vec<u8>>,
    /// The prefixes of the present call, as they were given.
    pub(crate) asked_prefixes: Vec<Vec<u8>>,
    /// Reads count only after CLIENT CACHING YES, or unless after CLIENT CACHING NO.
    pub(crate) opts_in: bool,
    pub(crate) opts_out: bool,
    /// CLIENT CACHING was the last command.
    pub(crate) is_caching: bool,
    /// A command of the script that runs has read keys.
    pub(crate) has_read_in_script: bool,
    /// It is not told of its own changes.
    pub(crate) no_loop: bool,
    /// The client that was to be told instead is gone.
    pub(crate) is_broken: bool,
}

impl Tracking {
    /// Whether the keys that the next command reads are remembered.
    pub(crate) fn remembers(&self) -> bool {
        let refused = self.opts_in && !self.is_caching || self.opts_out && self.is_caching;
        !self.is_broadcast && !refused
    }
}
