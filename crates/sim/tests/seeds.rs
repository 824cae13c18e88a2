//! Goal: whatever the seed draws, nothing that was promised is broken, and everything drains once the
//! disk is well. Method: a few seeds of the simulation; `make sim` and `drumlin-sim --hours` run more.

use drumlin_sim::setup::Case;
use drumlin_sim::world::run;

/// Runs seeds; the first that failed, with its command.
fn failure(mut seeds: impl Iterator<Item = u64>) -> Option<String> {
    seeds.find_map(|seed| {
        let case = Case::new(seed);
        let why = run(&case).failure?;
        Some(format!("drumlin-sim {}: {why}", case.arguments()))
    })
}

#[test]
fn a_few_seeds_keep_every_promise() {
    assert_eq!(failure(0..8), None);
}

#[test]
fn what_tasks_read_is_compared_and_power_is_cut() {
    let reports: Vec<_> = (8..14).map(|seed| run(&Case::new(seed))).collect();
    assert!(reports.iter().all(|report| report.failure.is_none()));
    assert!(reports.iter().any(|report| report.cuts > 0));
    assert!(reports.iter().any(|report| report.injected > 0));
    assert!(reports.iter().map(|report| report.checks).sum::<u64>() > 50);
}
