//! What the commands of an EXEC or of a script were counted as, to be taken back if they are undone and run again. It has a row for
//! each command and time, not one for each call, as a script may call without end.

use std::collections::BTreeMap;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// By the place of the command in the catalogue, and microseconds: calls, and how many of them failed.
    pub(super) calls: BTreeMap<(usize, u64), (u64, u64)>,
    /// Of calls that were refused before they ran, by the place of the command.
    pub(super) refused: BTreeMap<usize, u64>,
    /// By the first word of an error, where it is counted by that.
    pub(super) errors: BTreeMap<String, u64>,
    /// All errors.
    pub(super) error_count: u64,
}

impl Noted {
    pub(super) fn ran(&mut self, index: usize, micros: u64, failed: bool) {
        let (calls, failures) = self.calls.entry((index, micros)).or_default();
        *calls += 1;
        *failures += u64::from(failed);
    }

    pub(super) fn refused(&mut self, index: usize) {
        *self.refused.entry(index).or_default() += 1;
    }

    pub(super) fn error(&mut self, code: &str, is_counted: bool) {
        self.error_count += 1;
        if is_counted {
            *self.errors.entry(code.to_owned()).or_default() += 1;
        }
    }
}
