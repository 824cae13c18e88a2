//! Goal: no transaction loses an update, none that is serializable has skew or phantoms, and a power cut between prepare
//! and commit leaves nothing half. Method: a few seeds of histories; `drumlin-sim --histories A..B` runs more. The canary:
//! skew must be found where it is allowed.

use drumlin::Isolation;
use drumlin_sim::histories::{Outcome, run};

/// The histories of these seeds, none of which failed.
fn histories(seeds: std::ops::Range<u64>, isolation: Option<Isolation>) -> Vec<Outcome> {
    let made = seeds.map(|seed| {
        let outcome = run(seed, isolation);
        assert_eq!(outcome.failure, None, "seed {seed}, {isolation:?}");
        outcome
    });
    made.collect()
}

fn count(outcomes: &[Outcome], is: impl Fn(&Outcome) -> bool) -> usize {
    outcomes.iter().filter(|outcome| is(outcome)).count()
}

#[test]
fn serializable_transactions_have_a_serial_order() {
    let made = histories(0..40, Some(Isolation::Serializable));
    assert_eq!(count(&made, |it| it.skew), 0);
    assert!(
        made.iter().map(|it| it.committed).sum::<u64>() > 200,
        "they do something"
    );
}

#[test]
fn skew_is_found_where_it_is_allowed() {
    for isolation in [Isolation::Locks, Isolation::Snapshot] {
        let made = histories(100..140, Some(isolation));
        assert!(count(&made, |it| it.skew) > 0, "{isolation:?}");
    }
}

#[test]
fn mixed_transactions_survive_power_cuts_as_a_whole() {
    let made = histories(200..280, None);
    assert!(count(&made, |it| it.cut) > 10, "power is cut");
    assert!(
        count(&made, |it| it.found_prepared > 0) > 5,
        "between prepare and commit, too"
    );
}
