//! Goal: the universal picker merges the right runs and leaves their order alone. Method: pictures
//! and the plan expected of each.

use drumlin_base::KeyOrder;

use super::picture::{IDLE, moment, show, version};
use super::plan::{CompactionOptions, InFlight, Moment, Picker};
use super::style::UniversalOptions;
use super::universal::{Universal, pending_bytes};
use crate::watch::reason::Reason;

fn options() -> CompactionOptions {
    CompactionOptions {
        target_file_bytes: 10,
        ..CompactionOptions::new(KeyOrder::Bytewise)
    }
}

fn pick_with(limits: UniversalOptions, picture: &str) -> String {
    show(Universal { limits }.pick(&version(picture), &options(), &IDLE))
}

/// RocksDB's numbers, so that pictures stay small.
const LIMITS: UniversalOptions = UniversalOptions {
    runs_trigger: 4,
    size_ratio_percent: 1,
    merge_width_min: 2,
    merge_width_max: usize::MAX,
    space_percent_max: 200,
    levels_max: 7,
};

fn pick(picture: &str) -> String {
    pick_with(LIMITS, picture)
}

#[test]
fn pictures_give_their_plans() {
    let cases = [
        ("few runs wait", "L0 3:a-f 2:a-f 1:a-f", "nothing"),
        (
            "runs of one size go to the bottom when there is nothing older",
            "L0 4:a-f 3:a-f 2:a-f 1:a-f",
            "L0>L6 L0:4,3,2,1",
        ),
        (
            "a level is one run, and the result goes just above the next",
            "L0 4:a-f=2 3:a-f=2 2:a-f=2
             L6 1:a-c=50 5:d-f=50",
            "L0>L5 L0:4,3,2",
        ),
        (
            "a run that is larger than all the newer ones together is left alone",
            "L0 4:a-f=2 3:a-f=2 2:a-f=8
             L5 1:a-c=100",
            "L0>L0 L0:4,3",
        ),
        (
            "levels join when their turn comes",
            "L0 4:a-f=2 3:a-f=2
             L4 2:a-f=4
             L5 6:a-f=6
             L6 1:a-c=100",
            "L0>L5 L0:4,3 L4:2 L5:6",
        ),
        (
            "when nothing is alike the youngest are merged whatever their size",
            "L0 4:a-f=2 3:a-f=8
             L4 2:a-f=30
             L6 1:a-c=100",
            "nothing",
        ),
        (
            "and as many of them as there are too many",
            "L0 5:a-f=2 4:a-f=8 3:a-f=20
             L4 2:a-f=50
             L6 1:a-c=100",
            "L0>L0 L0:5,4",
        ),
        (
            "wasted space merges everything",
            "L0 5:a-f=2 4:a-f=8 3:a-f=20
             L4 2:a-f=70
             L6 1:a-c=50",
            "L0>L6 L0:5,4,3 L4:2 L6:1",
        ),
        (
            "runs under compaction stand aside",
            "L0 5:a-f=2 4:a-f=2 3:a-f=2* 2:a-f=2*
             L6 1:a-c=50",
            "L0>L0 L0:5,4",
        ),
        (
            "no merge reaches over one under way",
            "L0 5:a-f=2 4:a-f=2* 3:a-f=2
             L6 1:a-c=50",
            "nothing",
        ),
        (
            "a marked run is merged with the next older one",
            "L0 3:a-f=2! 2:a-f=9
             L6 1:a-c=50",
            "L0>L5 L0:3,2",
        ),
        (
            "of the oldest run only the marked tables are rewritten",
            "L0 3:a-f=2
             L6 1:a-c=50 2:d-e=50! 4:f-g=50",
            "L6>L6 L6:2",
        ),
    ];
    for (name, picture, expected) in cases {
        assert_eq!(pick(picture), expected, "{name}\n{picture}");
    }
}

#[test]
fn limits_are_kept() {
    let picture = "L0 6:a-f=2 5:a-f=2 4:a-f=2 3:a-f=2 2:a-f=4
                   L6 1:a-c=50";
    let widest = UniversalOptions {
        merge_width_max: 3,
        ..LIMITS
    };
    assert_eq!(pick_with(widest, picture), "L0>L0 L0:6,5,4");
    let strict = UniversalOptions {
        space_percent_max: 20,
        ..LIMITS
    };
    assert_eq!(pick_with(strict, picture), "L0>L6 L0:6,5,4,3,2 L6:1");
    let growing = "L0 4:a-f=10 3:a-f=12 2:a-f=30
                   L6 1:a-c=500";
    assert_eq!(pick(growing), "nothing");
    let lax = UniversalOptions {
        size_ratio_percent: 40,
        ..LIMITS
    };
    assert_eq!(pick_with(lax, growing), "L0>L5 L0:4,3,2");
}

#[test]
fn with_one_level_everything_stays_in_l0() {
    let limits = UniversalOptions {
        levels_max: 1,
        ..LIMITS
    };
    let all = "L0 4:a-f 3:a-f 2:a-f 1:a-f";
    assert_eq!(pick_with(limits, all), "L0>L0 L0:4,3,2,1");
    let wasted = "L0 5:a-f=2 4:a-f=8 3:a-f=20 1:a-f=10";
    assert_eq!(pick_with(limits, wasted), "L0>L0 L0:5,4,3,1");
    let three = UniversalOptions {
        levels_max: 3,
        ..LIMITS
    };
    assert_eq!(pick_with(three, all), "L0>L2 L0:4,3,2,1");
}

#[test]
fn outputs_of_two_jobs_never_overlap() {
    let version = version(
        "L0 4:a-f 3:a-f 2:a-f
         L6 1:a-c=50",
    );
    let limits = LIMITS;
    let pick =
        |in_flight: &InFlight| Universal { limits }.pick(&version, &options(), &moment(in_flight));
    let mut in_flight = InFlight::default();
    let plan = pick(&in_flight).unwrap();
    assert_eq!(plan.reason, Reason::RunsAlike);
    in_flight.running.extend(plan.running(&KeyOrder::Bytewise));
    assert_eq!(show(pick(&in_flight)), "nothing");
}

#[test]
fn debt_is_what_is_left_to_merge() {
    let limits = LIMITS;
    let debt = |picture: &str| pending_bytes(&version(picture), &limits);
    assert_eq!(debt(""), 0);
    assert_eq!(debt("L0 4:a-b=2 3:a-b=3\nL6 1:a-b=100"), 0);
    assert_eq!(debt("L0 4:a-b=2 3:a-b=3 2:a-b=9 5:a-b=9\nL6 1:a-b=100"), 5);
    let wasted = "L0 4:a-b=20 3:a-b=30 2:a-b=90 5:a-b=90\nL6 1:a-b=100";
    assert_eq!(debt(wasted), 330);
}

#[test]
fn an_old_run_with_no_level_below_it_is_rewritten_once_in_a_while() {
    let limits = UniversalOptions {
        levels_max: 1,
        ..LIMITS
    };
    let aging = CompactionOptions {
        age_max_seconds: Some(100),
        ..options()
    };
    let pick = |now: u64, picture: &str| {
        let moment = Moment { now, ..IDLE };
        show(Universal { limits }.pick(&version(picture), &aging, &moment))
    };
    assert_eq!(pick(200, "L0 1:a-f@5"), "L0>L0 L0:1");
    // Its data is as old as before, but it was just looked at.
    assert_eq!(pick(200, "L0 1:a-f@5/190"), "nothing");
    assert_eq!(pick(300, "L0 1:a-f@5/190"), "L0>L0 L0:1");
}

/// A directory of another style: the oldest data must not end up above newer data.
#[test]
fn runs_below_the_last_level_allowed_leave_it_only_all_together() {
    let limits = UniversalOptions {
        levels_max: 4,
        ..LIMITS
    };
    let pick = |picture: &str| pick_with(limits, picture);
    let deep = "L0 4:a-f=2
                L4 3:a-f=90
                L5 2:a-f=200
                L6 1:a-f=201";
    assert_eq!(pick(deep), "L5>L6 L5:2 L6:1");
    // Where those in flight will end is not asked.
    let beside = "L0 4:a-f=2* 3:a-f=2*
                  L4 2:a-f=90
                  L6 1:a-f=40";
    assert_eq!(pick(beside), "L4>L6 L4:2 L6:1");
    let all = "L0 4:a-f 3:a-f 2:a-f
               L6 1:a-f";
    assert_eq!(pick(all), "L0>L3 L0:4,3,2 L6:1");
}
