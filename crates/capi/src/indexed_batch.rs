//! `rocksdb_writebatch_wi_t`, and walks over writes that are not made yet.

use std::ops::{Deref, DerefMut};

use drumlin::{IndexedBatch, OverlayIterator};

/// What the handle holds.
#[derive(Debug, Default)]
pub(crate) struct Indexed {
    _batch: IndexedBatch,
}

/// A walk, and the copy of the writes that it goes over.
pub(crate) struct Overlaid {
    walk: OverlayIterator<'static>,
}

impl Deref for Overlaid {
    type Target = OverlayIterator<'static>;

    fn deref(&self) -> &Self::Target {
        &self.walk
    }
}

impl DerefMut for Overlaid {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.walk
    }
}

pub(crate) mod calls {}
