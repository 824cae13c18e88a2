//! From a failing case to a small one.

use crate::setup::{Case, Part};

/// Takes away the parts that `fails` does not need, then halves sizes. Each try is a run of its
/// own, so the smaller case may fail in another way; it fails all the same.
pub fn shrink(case: &Case, mut fails: impl FnMut(&Case) -> bool) -> Case {
    let mut small = case.clone();
    for (part, _) in Part::ALL {
        let less = small.clone().without(part);
        if less != small && fails(&less) {
            small = less;
        }
    }
    let limits: [fn(&mut Case) -> &mut u64; 3] = [
        |case| &mut case.rounds,
        |case| &mut case.writers,
        |case| &mut case.ops,
    ];
    for limit in limits {
        loop {
            let now = *limit(&mut small);
            let mut smaller = None;
            for next in [1, now / 2, now.saturating_sub(1)] {
                let mut less = small.clone();
                *limit(&mut less) = next;
                if next > 0 && next < now && fails(&less) {
                    smaller = Some(less);
                    break;
                }
            }
            match smaller {
                Some(less) => small = less,
                None => break,
            }
        }
    }
    small
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_failure_does_not_need_goes() {
        let needs = |case: &Case| case.ops >= 7 && case.writers >= 2 && !case.lacks(Part::Merges);
        let small = shrink(&Case::new(5), needs);
        assert_eq!((small.rounds, small.writers, small.ops), (1, 2, 7));
        assert!(small.lacks(Part::Readers) && !small.lacks(Part::Merges));
        let arguments = small.arguments();
        assert!(arguments.starts_with("--seed 5 --rounds 1 --ops 7 --writers 2 --without delays,"));
    }
}
