//! Goal: the picker takes the right tables and never ones that would reorder a key's history.
//! Method: small pictures of levels and the plan expected of each; then random versions, checked
//! against what every plan must keep.

use std::sync::Arc;

use drumlin_base::KeyOrder;
use drumlin_base::limits::LEVELS;
use drumlin_base::rng::Rng;

use super::leveled::{LevelTargets, Leveled, pending_compaction_bytes};
use super::picture::{IDLE, file, moment, show, version};
use super::plan::{CompactionOptions, InFlight, ManualRange, Moment, Picker, Running, Work};
use super::span::{OwnedSpan, Span};
use crate::version::{FileMeta, Version};

fn options() -> CompactionOptions {
    CompactionOptions {
        level_base_bytes: 100,
        target_file_bytes: 10,
        ..CompactionOptions::new(KeyOrder::Bytewise)
    }
}

fn pick(picture: &str) -> String {
    show(Leveled.pick(&version(picture), &options(), &IDLE))
}

#[test]
fn pictures_give_their_plans() {
    let cases = [
        ("few tables in L0 wait", "L0 3:a-f 2:a-f 1:a-f", "nothing"),
        (
            "overlapping L0 goes to the deepest level of an empty tree",
            "L0 4:a-f 3:a-f 2:c-d 1:a-b",
            "L0>L6 L0:4,3,2,1",
        ),
        (
            "disjoint tables of L0 are moved together",
            "L0 4:g-h 3:e-f 2:c-d 1:a-b",
            "L0>L6 L0:4,3,2,1 move",
        ),
        (
            "a table that overlaps another of L0 is not moved past it",
            "L0 5:i-j 4:g-h 3:a-f 2:e-h 1:a-b
             L6 9:x-z",
            "L0>L6 L0:4,3,2,1",
        ),
        (
            "tables below are taken along",
            "L0 4:a-c 3:b-d 2:c-d 1:b-c
             L6 7:a-b 8:d-e 9:f-g",
            "L0>L6 L0:4,3,2,1 L6:7,8",
        ),
        (
            "a crowded L0 that cannot go down is merged within itself",
            "L0 7:a-c=2 6:a-c=2 5:a-c=2 4:a-c=2 3:b-d=90 2:c-d 1:b-c*",
            "L0>L0 L0:7,6,5,4",
        ),
        (
            "while it is not crowded it waits",
            "L0 5:a-c=2 4:a-c=2 3:a-c=2 2:a-c=2 1:b-c*",
            "nothing",
        ),
        (
            "one compaction of L0 at a time: its oldest table is taken",
            "L0 5:a-c 4:a-c 3:b-d 2:c-d 1:b-c*
             L6 7:a-b 8:d-e",
            "nothing",
        ),
        (
            "a level over its size gives the table that overlaps least for its size",
            "L5 1:a-c=50 2:d-f=50 3:g-i=50
             L6 4:a-c=300 5:d-f=200 6:g-i=300",
            "L5>L6 L5:2 L6:5",
        ),
        (
            "a table with nothing below is moved",
            "L5 1:a-c=50 2:d-f=50 3:g-i=50
             L6 4:a-c=300 6:g-i=300",
            "L5>L6 L5:2 move",
        ),
        (
            "a table over too much of the level after next is rewritten",
            "L4 1:a-c=50 2:d-f=60
             L5 9:a-c=500
             L6 4:a-c=9000 6:d-f=900",
            "L4>L5 L4:2 over 6",
        ),
        (
            "tables under compaction stand aside, with what would need them",
            "L5 1:a-c=50* 2:d-f=70 3:g-i=70
             L6 4:a-c=300 5:d-f=200* 6:g-i=300",
            "L5>L6 L5:3 L6:6",
        ),
        (
            "versions of one key travel together, above and below",
            "L5 1:a-c=70 2:c-f=70
             L6 4:a-b=400 5:f-h=400 6:h-k=400",
            "L5>L6 L5:1,2 L6:4,5,6",
        ),
        (
            "an end that is excluded ties no tables together",
            "L5 1:a-c)=70 2:c-f)=70
             L6 4:a-b=400 5:f-h=900",
            "L5>L6 L5:2 move",
        ),
        (
            "upper tables that cost nothing more come along",
            "L5 1:a-b=60 2:c-d=60
             L6 3:a-d=90",
            "L5>L6 L5:1,2 L6:3",
        ),
        (
            "a marked table is rewritten though its level is small",
            "L5 1:a-c 2:d-f!
             L6 4:a-c 5:e-f",
            "L5>L6 L5:2 L6:5",
        ),
    ];
    for (name, picture, expected) in cases {
        assert_eq!(pick(picture), expected, "{name}\n{picture}");
    }
}

#[test]
fn tables_that_ask_for_it_are_compacted_when_it_helps() {
    let marked = "L5 1:a-c! 2:d-f
                  L6 4:x-z";
    let with_snapshot = |oldest_snapshot| {
        let moment = Moment {
            oldest_snapshot,
            ..IDLE
        };
        show(Leveled.pick(&version(marked), &options(), &moment))
    };
    // At the bottom nothing can go while a snapshot is older than the newest entry, which is 9.
    assert_eq!(with_snapshot(8), "nothing");
    assert_eq!(with_snapshot(9), "L5>L5 L5:1");
    let old = "L0 9:p-q@40
               L5 1:a-c@20 2:d-f@20
               L6 4:d-e@1 5:x-z@1";
    let at = |now, filters| {
        let options = CompactionOptions {
            age_max_seconds: Some(10),
            filters,
            ..options()
        };
        let moment = Moment { now, ..IDLE };
        show(Leveled.pick(&version(old), &options, &moment))
    };
    assert_eq!(at(29, false), "nothing");
    assert_eq!(
        at(30, false),
        "L5>L6 L5:2 L6:4",
        "what has older data below"
    );
    assert_eq!(at(50, false), "L0>L5 L0:9 move");
    assert_eq!(at(29, true), "L6>L6 L6:4", "a filter sees the bottom too");
}

#[test]
fn tables_that_waste_the_time_of_walks_are_compacted() {
    let version = version(
        "L5 1:a-c
         L6 4:b-d",
    );
    let pick = || show(Leveled.pick(&version, &options(), &IDLE));
    version.level(5)[0].note_dead_walked(1 << 19);
    assert_eq!(pick(), "nothing");
    version.level(5)[0].note_dead_walked(1 << 19);
    assert_eq!(pick(), "L5>L6 L5:1 L6:4");
}

#[test]
fn outputs_of_two_jobs_never_overlap() {
    let version = version(
        "L5 1:a-c=50 2:d-f=70
         L6 4:a-b=400",
    );
    let span = |first: &str, last: &str| OwnedSpan {
        first: first.into(),
        last: last.into(),
        last_included: true,
    };
    let running = |span| InFlight {
        running: vec![Running {
            level: 5,
            output_level: 6,
            span,
        }],
    };
    let picked = |in_flight| show(Leveled.pick(&version, &options(), &moment(&in_flight)));
    assert_eq!(picked(running(span("g", "h"))), "L5>L6 L5:2 move");
    assert_eq!(picked(running(span("e", "e"))), "L5>L6 L5:1 L6:4");
    assert_eq!(picked(running(span("a", "z"))), "nothing");
}

#[test]
fn a_move_never_changes_the_form_of_a_table() {
    let mut options = options();
    options.level_forms[6] = 1;
    let version = version("L0 4:g-h 3:e-f 2:c-d 1:a-b");
    let plan = Leveled.pick(&version, &options, &IDLE);
    assert_eq!(show(plan), "L0>L6 L0:1");
}

#[test]
fn manual_plans_take_what_the_range_touches() {
    let version = version(
        "L0 3:a-c 2:b-d 1:x-z
         L5 4:a-c 5:c-f 6:h-k
         L6 7:a-f 8:g-z",
    );
    let plan = |level, output_level, begin: &'static str, end: &'static str| {
        let range = ManualRange {
            level,
            output_level,
            begin: Some(begin.as_bytes()),
            end: Some(end.as_bytes()),
        };
        show(Leveled.plan_manual(&version, &options(), &InFlight::default(), &range))
    };
    assert_eq!(plan(0, 5, "d", "d"), "L0>L5 L0:3,2 L5:4,5 over 7");
    assert_eq!(plan(5, 6, "b", "b"), "L5>L6 L5:4,5 L6:7");
    assert_eq!(plan(6, 6, "h", "i"), "L6>L6 L6:8");
    assert_eq!(plan(5, 6, "g", "g"), "nothing");
}

#[test]
fn levels_that_are_not_dynamic_have_their_sizes_from_l1_on() {
    let options = CompactionOptions {
        dynamic_levels: false,
        ..options()
    };
    for text in ["", "L6 1:a-b=5000"] {
        let targets = LevelTargets::of(&version(text), &options);
        assert_eq!((targets.base_level, targets.last_level), (1, 6), "{text}");
        let expected: Vec<u64> = (0..6)
            .map(|n| options.level_base_bytes * options.level_multiplier.pow(n))
            .collect();
        assert_eq!(targets.bytes_max[1..], expected, "{text}");
    }
}

#[test]
fn level_targets_shrink_upward_from_the_deepest_level() {
    let targets = |picture: &str| LevelTargets::of(&version(picture), &options());
    let empty = targets("");
    assert_eq!(empty.base_level, 6);
    let small = targets("L6 1:a-b=90");
    assert_eq!((small.base_level, small.bytes_max[6]), (6, 100));
    let grown = targets("L6 1:a-b=5000");
    assert_eq!(grown.base_level, 4);
    assert_eq!(grown.bytes_max[4..], [100, 500, 5000]);
    let upper = targets("L3 2:a-b=10\nL6 1:a-b=5000");
    assert_eq!(upper.base_level, 3);
}

#[test]
fn debt_is_nothing_for_a_tree_in_shape_and_grows_with_l0() {
    let debt = |picture: &str| pending_compaction_bytes(&version(picture), &options());
    assert_eq!(debt("L5 1:a-b=90\nL6 2:a-b=900"), 0);
    let some = debt("L0 6:a-b=9 5:a-b=9 4:a-b=9 3:a-b=9\nL5 1:a-b=90\nL6 2:a-b=900");
    let more = debt("L0 6:a-b=90 5:a-b=9 4:a-b=9 3:a-b=9\nL5 1:a-b=90\nL6 2:a-b=900");
    assert!(some > 36 && more > some, "{some} {more}");
}

/// A random version whose levels below L0 are disjoint, some tables busy.
fn random_version(rng: &mut Rng) -> Version {
    let mut number = 100;
    let mut next = |rng: &mut Rng, first: u8, last: u8| {
        number -= 1;
        let size = 1 + rng.below(60);
        let busy = if rng.one_in(12) { "*" } else { "" };
        let open = if rng.one_in(3) && first != last {
            ")"
        } else {
            ""
        };
        file(&format!(
            "{number}:{}-{}{open}={size}{busy}",
            first as char, last as char
        ))
    };
    let mut levels: [Vec<Arc<FileMeta>>; LEVELS] = Default::default();
    for _ in 0..rng.below(8) {
        let first = b'a' + rng.below(20) as u8;
        let last = first + rng.below(6) as u8;
        let made = next(rng, first, last);
        levels[0].push(made);
    }
    for level in &mut levels[4..] {
        let mut at = b'a' + rng.below(4) as u8;
        while at < b'y' {
            let last = at + rng.below(3) as u8;
            level.push(next(rng, at, last));
            at = last + rng.below(3) as u8;
            if rng.one_in(2) || Span::of(level.last().unwrap()).first == [at] {
                at += 1;
            }
        }
    }
    Version::new(&KeyOrder::Bytewise, levels)
}

#[test]
fn every_plan_leaves_levels_whole() {
    let seed = 0x5eed_0002;
    let mut rng = Rng::new(seed);
    let order = KeyOrder::Bytewise;
    let mut plans = 0;
    for round in 0..3000 {
        let version = random_version(&mut rng);
        let Some(plan) = Leveled.pick(&version, &options(), &IDLE) else {
            continue;
        };
        plans += 1;
        let what = format!(
            "seed {seed:#x} round {round}: {} of\n{version}",
            show(Some(plan.clone()))
        );
        let taken = |f: &Arc<FileMeta>| plan.files().any(|(_, other)| other.number == f.number);
        if plan.output_level == 0 {
            let l0 = version.level(0);
            let first = l0.iter().position(taken).unwrap();
            let together = l0[first..].iter().take_while(|f| taken(f)).count();
            assert_eq!(together, plan.files().count(), "{what}");
            continue;
        }
        assert!(
            plan.files().all(|(_, file)| !file.is_compacting()),
            "{what}"
        );
        let span = plan.span(&order).unwrap();
        for other in version.level(plan.output_level) {
            let apart = !Span::of(other).overlaps(&order, &span);
            assert!(taken(other) || apart || plan.work == Work::Move, "{what}");
        }
        for (level, input) in plan.files() {
            let input = Span::of(input);
            for other in version.level(level).iter().filter(|other| !taken(other)) {
                // A table of L0 that stays behind must be newer than all it overlaps.
                let newer = level == 0
                    && plan.inputs[0].files.iter().all(|f| {
                        f.number < other.number || !Span::of(f).overlaps(&order, &Span::of(other))
                    });
                let apart = !Span::of(other).overlaps(&order, &input);
                assert!(apart || newer, "{what}");
            }
        }
    }
    assert!(plans > 1000, "{plans}");
}
