//! Goal: no seed breaks a promise of the engine, and everything drains once the disk is healthy.
//! Method: a few seeds of the simulation; `make sim` and `drumlin-sim --hours` run more.

use std::process::Command;

use drumlin_sim::setup::Case;
use drumlin_sim::world::{Report, run};

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

/// The report of `seed` from a process of its own, whose addresses differ from this one's.
fn apart(seed: u64) -> Report {
    let output = Command::new(env!("CARGO_BIN_EXE_drumlin-sim"))
        .args(["--seed", &seed.to_string(), "--line"])
        .output()
        .expect("the program was built with this test");
    let text = String::from_utf8_lossy(&output.stdout);
    Report::of_line(&text).unwrap_or_else(|| panic!("seed {seed} said {text:?}"))
}

#[test]
fn a_seed_does_the_same_in_two_processes() {
    // The first two did not, once.
    for seed in [109, 120, 14, 15] {
        let (one, other) = (apart(seed), apart(seed));
        assert_eq!(one.hash, other.hash, "seed {seed}");
        assert_eq!(one.steps, other.steps, "seed {seed}");
    }
}

#[test]
fn threads_whose_jobs_fail_do_not_wake_each_other_for_ever() {
    assert_eq!(failure([231].into_iter()), None);
}

/// A disk that was full had room again, and damage met meanwhile was forgotten with it.
#[test]
fn room_on_the_disk_does_not_heal_damage() {
    assert_eq!(failure([273].into_iter()), None);
}

/// The failed work was not due any more when the disk was healthy again.
#[test]
fn a_database_with_nothing_left_to_do_is_healthy() {
    assert_eq!(failure([1014].into_iter()), None);
}

/// An error that only a scrub met is in its report.
#[test]
fn a_scrub_that_names_a_failed_read_has_told_of_it() {
    assert_eq!(failure([1050].into_iter()), None);
}

/// A reader put into the cache the block that another was about to, under a lock that the scheduler did
/// not know.
#[test]
fn locks_under_which_others_are_taken_are_the_schedulers() {
    assert_eq!(failure([3071].into_iter()), None);
}

/// Work that can wait for room on the disk was given up without a word.
#[test]
fn quiet_work_that_finds_no_room_tells_the_listener() {
    assert_eq!(failure([6633].into_iter()), None);
}

/// A file cut before a sync that failed, and written anew to the same length, had its old one after a power cut.
#[test]
fn a_cut_before_a_failed_sync_is_not_forgotten() {
    assert_eq!(failure([6796].into_iter()), None);
}
