//! The present version of one family, with the other values its MANIFEST records.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin_base::KeyOrder;

use super::levels::Version;

/// The present version of one family.
#[derive(Clone, Debug)]
pub struct FamilyVersions {
    /// Its id; 0 is `default`.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The order of its keys.
    pub order: KeyOrder,
    /// WAL files below this number hold nothing the family still needs.
    pub log_number: u64,
    /// Its tables.
    pub current: Arc<Version>,
    /// The epoch of the next table of L0.
    pub(super) next_epoch: u64,
    /// Its history of timestamps is whole from here on only; `None` where all of it is.
    pub full_history_ts_low: Option<Vec<u8>>,
    /// Per level, the internal key at which the next compaction begins.
    pub(super) cursors: BTreeMap<u32, Vec<u8>>,
}

impl FamilyVersions {
    pub(super) fn new(id: u32, name: &str, order: KeyOrder, log_number: u64) -> Self {
        Self {
            id,
            name: name.to_owned(),
            order,
            log_number,
            current: Arc::new(Version::empty()),
            next_epoch: 1,
            full_history_ts_low: None,
            cursors: BTreeMap::new(),
        }
    }

    /// The internal key at which the next compaction of `level` begins.
    pub fn compact_cursor(&self, level: u32) -> Option<&[u8]> {
        self.cursors.get(&level).map(Vec::as_slice)
    }

    pub(super) fn compact_cursors(&self) -> Vec<(u32, Vec<u8>)> {
        let cursors = self.cursors.iter();
        cursors.map(|(&level, key)| (level, key.clone())).collect()
    }
}
