//! What a read sees.

use drumlin::{ReadOptions, ReadTier, Snapshot};
use napi_derive::napi;

/// The same moment, read from memory alone or from the disk too.
pub(crate) struct Reads {
    pub(crate) in_memory: ReadOptions,
    pub(crate) from_disk: ReadOptions,
}

impl Reads {
    pub(crate) fn new(snapshot: Option<Snapshot>) -> Self {
        let from_disk = ReadOptions {
            snapshot,
            ..ReadOptions::default()
        };
        let in_memory = ReadOptions {
            tier: ReadTier::BlockCache,
            ..from_disk.clone()
        };
        Self {
            in_memory,
            from_disk,
        }
    }
}

/// A snapshot of the store.
#[napi]
pub(crate) struct Moment {
    pub(crate) reads: Option<Reads>,
}

#[napi]
impl Moment {
    /// Lets go of what the snapshot keeps.
    #[napi]
    pub fn close(&mut self) {
        self.reads = None;
    }
}
