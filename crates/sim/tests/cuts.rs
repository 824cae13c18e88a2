//! Goal: after a power cut at any operation, every promised write is present when the database is opened
//! again. Method: a few small runs with cuts imagined in them; `drumlin-sim --cuts N` goes on to as many
//! as one likes.

use drumlin_sim::setup::{Case, Part};
use drumlin_sim::world::{Report, run};

/// A run of `seed` that fits in a moment.
fn small(seed: u64) -> Case {
    Case {
        rounds: 2,
        ops: 12,
        writers: 2,
        images: 1,
        ..Case::new(seed)
    }
}

fn survive(seeds: std::ops::Range<u64>) -> Vec<Report> {
    let reports = seeds.map(|seed| {
        let case = small(seed);
        let report = run(&case);
        assert_eq!(report.failure, None, "drumlin-sim {}", case.arguments());
        report
    });
    reports.collect()
}

#[test]
fn cuts_at_operations_of_several_threads_lose_nothing() {
    let images: u64 = survive(0..5).iter().map(|report| report.images).sum();
    assert!(images > 200, "only {images} cuts");
}

#[test]
fn cuts_do_not_change_the_run_they_are_imagined_in() {
    let mut without = small(13).without(Part::Families);
    without.images = 0;
    let with = Case {
        images: 3,
        ..without.clone()
    };
    let (without, with) = (run(&without), run(&with));
    assert!(with.images > 0 && without.images == 0);
    assert_eq!((with.hash, with.steps), (without.hash, without.steps));
}

#[test]
fn a_cut_is_replayed_without_the_others() {
    let alone = Case {
        at: Some(40),
        ..small(3)
    };
    let (all, alone) = (run(&small(3)), run(&alone));
    assert_eq!((all.failure, alone.failure), (None, None));
    assert!((1..all.images).contains(&alone.images), "{}", alone.images);
    assert_eq!(all.hash, alone.hash);
}
