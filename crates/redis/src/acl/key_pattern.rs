//! A pattern of keys, and what may be done to those that match.

use crate::catalog::KeyFlags;
use crate::glob;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPattern {
    pub(super) pattern: Vec<u8>,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

impl KeyPattern {
    /// From a rule that begins with `~` or `%`; `None` if its rights make no sense.
    pub(super) fn parse(rule: &[u8]) -> Option<Self> {
        let mut pattern = Self {
            pattern: Vec::new(),
            reads: true,
            writes: true,
        };
        let Some(rights) = rule.strip_prefix(b"%") else {
            pattern.pattern = rule.get(1..)?.to_vec();
            return Some(pattern);
        };
        (pattern.reads, pattern.writes) = (false, false);
        let mut bytes = rights.iter();
        for byte in bytes.by_ref() {
            match byte.to_ascii_uppercase() {
                b'R' if !pattern.reads => pattern.reads = true,
                b'W' if !pattern.writes => pattern.writes = true,
                b'~' => break,
                _ => return None,
            }
        }
        pattern.pattern = bytes.as_slice().to_vec();
        (pattern.reads || pattern.writes).then_some(pattern)
    }

    /// Whether it gives the rights that `flags` need.
    pub(super) fn allows(&self, flags: KeyFlags) -> bool {
        (self.reads || !flags.reads()) && (self.writes || !flags.writes())
    }

    /// Whether `key` may be used so.
    pub(super) fn matches(&self, key: &[u8], flags: KeyFlags) -> bool {
        self.allows(flags) && glob::matches(&self.pattern, key)
    }

    /// As a rule.
    pub(super) fn describe(&self) -> Vec<u8> {
        let rights: &[u8] = match (self.reads, self.writes) {
            (true, false) => b"%R~",
            (false, true) => b"%W~",
            _ => b"~",
        };
        [rights, &self.pattern].concat()
    }
}
