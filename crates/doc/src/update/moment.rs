//! When and for what an update runs.

use crate::raw::{Kind, OwnedValue};

use super::array_filter::ArrayFilter;

/// When and for what an update runs.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
    /// Whether a document is made by an upsert.
    pub is_insert: bool,
    /// The conditions of `$[name]`.
    pub filters: Vec<ArrayFilter>,
}

impl Moment {
    pub(super) fn value(&self, kind: Kind) -> OwnedValue {
        let bytes = match kind {
            // Seconds in the upper half, a counter in the lower.
            Kind::Timestamp => (((self.now_ms / 1000) << 32) | 1).to_le_bytes(),
            _ => self.now_ms.to_le_bytes(),
        };
        OwnedValue {
            kind,
            bytes: bytes.to_vec(),
        }
    }
}
