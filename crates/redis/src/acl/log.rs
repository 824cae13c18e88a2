//! The log of what was denied: the newest first. What is denied again within a minute is counted.

use std::collections::VecDeque;

/// Newest entries among which one like a new one is looked for.
const LOOKED_AT: usize = 10;
/// Times further apart than that are entries of their own.
const APART_MS: u64 = 60_000;

/// What was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Command,
    Key,
    Channel,
    Auth,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Key => "key",
            Self::Channel => "channel",
            Self::Auth => "auth",
        }
    }
}

/// Where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    TopLevel,
    Multi,
    Script,
}

impl Context {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TopLevel => "toplevel",
            Self::Multi => "multi",
            Self::Script => "lua",
        }
    }
}

/// An entry.
#[derive(Clone, Debug)]
pub(crate) struct LogEntry {
    pub(crate) count: u64,
    pub(crate) reason: Reason,
    pub(crate) context: Context,
    /// The command, the key, the channel, or the name of the command that authenticates.
    pub(crate) object: Vec<u8>,
    pub(crate) user: Vec<u8>,
    pub(crate) at_ms: u64,
    /// The line of the client, of the last time.
    pub(crate) client: String,
}

impl LogEntry {
    fn is_like(&self, other: &Self) -> bool {
        self.reason == other.reason
            && self.context == other.context
            && self.at_ms.abs_diff(other.at_ms) <= APART_MS
            && self.object == other.object
            && self.user == other.user
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct AclLog {
    entries: VecDeque<LogEntry>,
    /// All that was ever denied.
    pub(crate) denied: u64,
}

impl AclLog {
    /// Adds an entry, and keeps `most`.
    pub(crate) fn add(&mut self, mut entry: LogEntry, most: usize) {
        self.denied += 1;
        let mut newest = self.entries.iter().take(LOOKED_AT);
        let known = newest.position(|it| it.is_like(&entry));
        let known = known.and_then(|at| self.entries.remove(at));
        if let Some(known) = known {
            entry.count = known.count + 1;
        }
        self.entries.push_front(entry);
        self.entries.truncate(most);
    }

    /// The entries, the newest first.
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = &LogEntry> {
        self.entries.iter()
    }

    /// Forgets all entries.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{AclLog, Context, LogEntry, Reason};

    fn entry(object: &str, at_ms: u64) -> LogEntry {
        LogEntry {
            count: 1,
            reason: Reason::Key,
            context: Context::TopLevel,
            object: object.into(),
            user: b"u".to_vec(),
            at_ms,
            client: String::new(),
        }
    }

    /// Goal: what is denied again soon is one entry, which is the newest. Method: two keys in turn, at several times.
    #[test]
    fn what_is_denied_again_is_counted() {
        let mut log = AclLog::default();
        for (object, at_ms) in [("a", 0), ("b", 1), ("a", 60_000), ("a", 130_000)] {
            log.add(entry(object, at_ms), 3);
        }
        let seen: Vec<_> = log
            .entries()
            .map(|it| (it.object.clone(), it.count))
            .collect();
        assert_eq!(
            seen,
            [(b"a".to_vec(), 1), (b"a".to_vec(), 2), (b"b".to_vec(), 1)]
        );
        log.add(entry("c", 130_001), 3);
        assert_eq!(log.entries().count(), 3, "the oldest is forgotten");
        assert_eq!(log.denied, 5);
    }
}
