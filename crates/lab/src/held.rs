//! How many bytes of keys and values a store holds, computed from the writes to it.

use crate::protocol::Act;

/// The content of a store. Of keys that are drawn with repetitions the expected number is counted, from
/// which the true one differs by less than a thousandth at a million keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Held {
    bytes: f64,
}

impl Held {
    /// Takes `operations` of `act` in, which wrote entries of `entry_bytes` on average to a space of
    /// `keys`.
    pub(crate) fn write(&mut self, act: Act, operations: u64, entry_bytes: f64, keys: u64) {
        let written = operations as f64 * entry_bytes;
        match act {
            Act::PutRandom => {
                let all = keys as f64 * entry_bytes;
                let missed = (-(operations as f64) / keys.max(1) as f64).exp();
                self.bytes = all - (all - self.bytes).max(0.0) * missed;
            }
            Act::PutAscending | Act::PutUnique => self.bytes = self.bytes.max(written),
            Act::LoadRecords => self.bytes += written,
            _ => {}
        }
    }

    /// The bytes; `None` for an empty store.
    pub(crate) fn bytes(self) -> Option<f64> {
        (self.bytes > 0.0).then_some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_written_again_are_held_once() {
        let mut held = Held::default();
        assert_eq!(held.bytes(), None);
        held.write(Act::GetUniform, 9, 1.0, 9);
        assert_eq!(held.bytes(), None);
        held.write(Act::PutRandom, 1000, 100.0, 1000);
        let first = held.bytes().expect("something");
        assert!((first / 63_212.0 - 1.0).abs() < 1e-4, "{first}");
        held.write(Act::PutRandom, 100_000, 100.0, 1000);
        assert!((held.bytes().expect("something") - 100_000.0).abs() < 1e-6);
        let mut held = Held::default();
        held.write(Act::PutUnique, 1000, 100.0, 1000);
        held.write(Act::PutRandom, 1000, 100.0, 1000);
        assert_eq!(held.bytes(), Some(100_000.0));
    }
}
