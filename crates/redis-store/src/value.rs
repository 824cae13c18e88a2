//! A value that a round has put: a short one in its place, a longer one shared.
//!
//! Most values are short: scores, members of sets, counters, handles of trees. An allocation more for each of them would
//! cost as much as its place in the table of changes.

use std::ops::Deref;
use std::sync::Arc;

use drumlin::PinnedSlice;

/// With its length and a tag it is as long as five words.
const SHORT_BYTES: usize = 38;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Short { len: u8, bytes: [u8; SHORT_BYTES] },
    Long(Arc<Vec<u8>>),
}

impl Value {
    pub(crate) fn new(value: Vec<u8>) -> Self {
        let mut bytes = [0; SHORT_BYTES];
        match bytes.get_mut(..value.len()) {
            Some(place) => {
                place.copy_from_slice(&value);
                let len = value.len() as u8;
                Self::Short { len, bytes }
            }
            None => Self::Long(Arc::new(value)),
        }
    }

    /// The bytes, to be kept longer than the round.
    pub(crate) fn pinned(&self) -> PinnedSlice {
        let whole = || match self {
            Self::Short { .. } => None,
            Self::Long(bytes) => PinnedSlice::of_vector(bytes, 0..bytes.len()),
        };
        PinnedSlice::small(self).or_else(whole).unwrap_or_default()
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or(&[]),
            Self::Long(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_length_come_back() {
        for len in 0..200usize {
            let wanted: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let value = Value::new(wanted.clone());
            assert_eq!(matches!(value, Value::Short { .. }), len <= SHORT_BYTES);
            assert_eq!(*value, *wanted);
            assert_eq!(*value.pinned(), *wanted);
        }
        assert_eq!(size_of::<Option<Value>>(), 40);
    }
}
