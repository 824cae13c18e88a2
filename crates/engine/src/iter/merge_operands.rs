//! Merge operands gathered on the way to the value they apply to.
//!
//! A get and a forward walk meet operands newest first, a backward walk oldest first; the operator
//! wants them oldest first. One thread owns one collection.

use std::collections::VecDeque;

use drumlin_base::perf::{Measure, timed};
use drumlin_base::{Error, MergeOperator, PinnedSlice, Result};

/// Operands of one key, between its newest and its oldest seen so far.
///
/// Empty until the first operand: no allocation for keys without merges.
#[derive(Debug, Default)]
pub(crate) struct MergeOperands {
    /// Oldest first.
    operands: VecDeque<PinnedSlice>,
}

impl MergeOperands {
    /// Adds an operand older than all so far.
    pub(crate) fn push_older(&mut self, operand: PinnedSlice) {
        self.operands.push_front(operand);
    }

    /// Adds an operand newer than all so far.
    pub(crate) fn push_newer(&mut self, operand: PinnedSlice) {
        self.operands.push_back(operand);
    }

    /// Whether no operand was met.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.operands.is_empty()
    }

    /// Drops all operands and keeps the capacity.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if !self.operands.is_empty() {
            self.operands.clear();
        }
    }

    /// Applies the operands to `existing`, the value of `key`, and drops them.
    ///
    /// # Errors
    /// `InvalidArgument` when the family has no merge operator; the operator's own error, with its name.
    pub(crate) fn apply(
        &mut self,
        operator: Option<&dyn MergeOperator>,
        key: &[u8],
        existing: Option<&[u8]>,
    ) -> Result<Vec<u8>> {
        let Some(operator) = operator else {
            return Err(Error::invalid_argument(
                "the key holds merge operands, and the family was opened without a merge operator",
            ));
        };
        let mut operands: Vec<&[u8]> = self.operands.iter().map(|operand| &**operand).collect();
        if drumlin_base::bug!("reads-reorder-operands") {
            operands.reverse();
        }
        let merge = || operator.full_merge(key, existing, &operands);
        let merged = timed(Measure::MergeNanos, merge)
            .map_err(|error| error.context(format_args!("merge operator {}", operator.name())));
        self.operands.clear();
        merged
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use drumlin_base::ErrorKind;

    /// Joins the value and its operands with commas.
    pub(crate) struct Append;

    impl MergeOperator for Append {
        fn name(&self) -> &str {
            "append"
        }

        fn full_merge(
            &self,
            _key: &[u8],
            existing: Option<&[u8]>,
            operands: &[&[u8]],
        ) -> Result<Vec<u8>> {
            if operands.contains(&&b"poison"[..]) {
                return Err(Error::corruption("poisoned operand"));
            }
            let parts: Vec<&[u8]> = existing.iter().chain(operands).copied().collect();
            Ok(parts.join(&b','))
        }
    }

    fn operand(bytes: &[u8]) -> PinnedSlice {
        PinnedSlice::owned(bytes.to_vec())
    }

    #[test]
    fn operands_reach_the_operator_oldest_first_from_either_side() {
        let mut forward = MergeOperands::default();
        forward.push_older(operand(b"3"));
        forward.push_older(operand(b"2"));
        assert_eq!(
            forward.apply(Some(&Append), b"k", Some(b"1")).unwrap(),
            b"1,2,3"
        );
        assert!(forward.is_empty());

        let mut backward = MergeOperands::default();
        backward.push_newer(operand(b"2"));
        backward.push_newer(operand(b"3"));
        assert_eq!(backward.apply(Some(&Append), b"k", None).unwrap(), b"2,3");
    }

    #[test]
    fn operands_without_an_operator_are_an_invalid_argument() {
        let mut operands = MergeOperands::default();
        operands.push_older(operand(b"1"));
        let error = operands.apply(None, b"k", None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn the_operators_error_names_it() {
        let mut operands = MergeOperands::default();
        operands.push_older(operand(b"poison"));
        let error = operands.apply(Some(&Append), b"k", None).unwrap_err();
        assert!(error.is_corruption());
        assert!(error.to_string().contains("append"));
    }
}
