//! The commands of a server by the names that clients call them.

use std::collections::BTreeMap;

use crate::facts::Facts;

/// See the module.
#[derive(Debug)]
pub(crate) struct Known {
    by_name: BTreeMap<Vec<u8>, Facts>,
}

impl Known {
    /// Of names in lower case and the facts about their commands.
    pub(crate) fn new(named: impl Iterator<Item = (Vec<u8>, Facts)>) -> Self {
        Self {
            by_name: named.collect(),
        }
    }

    /// The command called `name`, in any case.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Facts> {
        self.by_name.get(&name.to_ascii_lowercase())
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> impl ExactSizeIterator<Item = &Facts> {
        self.by_name.values()
    }
}
