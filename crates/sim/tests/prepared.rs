//! Goal: a power cut between the prepare of a transaction and its end leaves it prepared, with its locks, or ended, and never half
//! there. Method: a few chains of cuts; `drumlin-sim --prepared A..B` runs more. The counts say that the cuts fall there.

use drumlin_sim::prepared::{CUTS_MAX, Sum, run};

#[test]
fn a_power_cut_between_prepare_and_end_leaves_nothing_half() {
    let mut sum = Sum::default();
    for seed in 0..4 {
        sum.add(&run(seed));
    }
    assert_eq!(sum.between + sum.others, 4 * CUTS_MAX);
    assert!(sum.between > sum.others, "{sum:?}");
    assert!(sum.within_its_end > 10, "{sum:?}");
    assert!(sum.in_recovery_of_prepared > 10, "{sum:?}");
}
