//! Goal: a manual compaction takes everything it was asked for, once, in small pieces, whatever else
//! goes on. Method: pictures of levels, whose plans are carried out as one table for each piece.

use std::sync::Arc;

use drumlin_base::KeyOrder;
use drumlin_base::limits::LEVELS;
use drumlin_base::rng::Rng;

use super::manual::{ManualWork, Piece};
use super::picture::{file, show, version};
use super::plan::{CompactionOptions, InFlight, Plan, Running, Work};
use super::span::{OwnedSpan, Span};
use crate::version::{FileMeta, Version};

fn options() -> CompactionOptions {
    CompactionOptions {
        level_base_bytes: 100,
        target_file_bytes: 25,
        ..CompactionOptions::new(KeyOrder::Bytewise)
    }
}

/// `version` after `plan`: its inputs are one table, or moved.
fn carry_out(version: &Version, plan: &Plan, next: &mut u64) -> Version {
    let order = KeyOrder::Bytewise;
    let gone: Vec<u64> = plan.files().map(|(_, file)| file.number).collect();
    let mut levels: [Vec<Arc<FileMeta>>; LEVELS] = std::array::from_fn(|level| {
        let files = version.level(level).iter();
        files
            .filter(|file| !gone.contains(&file.number))
            .cloned()
            .collect()
    });
    let made: Vec<Arc<FileMeta>> = if plan.work == Work::Move {
        plan.files().map(|(_, file)| Arc::clone(file)).collect()
    } else {
        let span = plan.span(&order).unwrap();
        *next += 1;
        let text = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
        let (first, last) = (text(span.first), text(span.last));
        let bytes = plan.input_bytes();
        vec![file(&format!("{next}:{first}-{last}={bytes}"))]
    };
    let level = levels.get_mut(plan.output_level).unwrap();
    level.extend(made);
    level.sort_by(|a, b| a.smallest.cmp(&b.smallest));
    Version::new(&order, levels)
}

fn run(picture: &str, begin: Option<&str>, end: Option<&str>) -> Vec<String> {
    run_by(&options(), picture, begin, end)
}

fn run_by(
    options: &CompactionOptions,
    picture: &str,
    begin: Option<&str>,
    end: Option<&str>,
) -> Vec<String> {
    let mut version = version(picture);
    let (begin, end) = (begin.map(str::as_bytes), end.map(str::as_bytes));
    let mut work = ManualWork::new(&version, options, begin, end);
    let mut next = 100;
    let mut shown = Vec::new();
    loop {
        match work.next(&version, options, &InFlight::default()) {
            Piece::Plan(plan) => {
                version = carry_out(&version, &plan, &mut next);
                work.done(&plan, &options.order);
                shown.push(show(Some(plan)));
            }
            Piece::Blocked => panic!("nothing else runs"),
            Piece::Done => return shown,
        }
    }
}

#[test]
fn levels_that_are_not_dynamic_are_gone_through_to_the_first_that_takes_all() {
    let options = CompactionOptions {
        dynamic_levels: false,
        ..options()
    };
    let run = |picture| run_by(&options, picture, None, None);
    let small = run("L0 1:a-m=90");
    assert!(small[0].starts_with("L0>L1"), "{small:?}");
    assert!(small.iter().all(|plan| !plan.contains(">L2")), "{small:?}");
    let larger = run("L0 1:a-m=90 2:b-n=90");
    assert!(larger[0].starts_with("L0>L1"), "{larger:?}");
    assert!(larger[1].starts_with("L1>L2"), "{larger:?}");
}

#[test]
fn pieces_go_down_level_by_level_and_end_with_what_no_piece_made() {
    let pieces = run(
        "L0 1:a-m
         L5 2:a-c=30 3:d-f=30 4:g-i=30 5:p-q=30
         L6 6:a-b=40 7:d-e=40 8:g-h=40 9:x-z=40",
        None,
        None,
    );
    let expected = [
        "L0>L5 L0:1 L5:2,3,4 over 6,7,8",
        "L5>L6 L5:101 L6:6,7,8",
        "L5>L6 L5:5 move",
        "L6>L6 L6:5,9",
    ];
    assert_eq!(pieces, expected);
}

#[test]
fn a_piece_in_place_is_a_few_tables() {
    let pieces = run(
        "L6 1:a-b=40 2:c-d=40 3:e-f=40 4:g-h=300 5:i-j=10",
        None,
        None,
    );
    assert_eq!(
        pieces,
        ["L6>L6 L6:1,2", "L6>L6 L6:3", "L6>L6 L6:4", "L6>L6 L6:5"]
    );
}

#[test]
fn only_what_the_range_touches_is_taken() {
    let pieces = run(
        "L5 1:a-c=10 2:e-g=10 3:k-l=10
         L6 4:a-d=10 5:e-h=10 6:k-z=10",
        Some("f"),
        Some("i"),
    );
    assert_eq!(pieces, ["L5>L6 L5:2 L6:5"]);
}

#[test]
fn tables_of_another_job_are_waited_for() {
    let (version, options) = (version("L6 1:a-b=40 2:c-d=40"), options());
    let mut work = ManualWork::new(&version, &options, None, None);
    let busy = InFlight {
        running: vec![Running {
            level: 5,
            output_level: 6,
            span: OwnedSpan {
                first: b"a".to_vec(),
                last: b"a".to_vec(),
                last_included: true,
            },
        }],
    };
    assert!(matches!(
        work.next(&version, &options, &busy),
        Piece::Blocked
    ));
    let idle = InFlight::default();
    assert!(matches!(
        work.next(&version, &options, &idle),
        Piece::Plan(_)
    ));
}

#[test]
fn an_empty_tree_is_done_at_once() {
    assert!(run("", None, None).is_empty());
}

/// Two levels of random tables that cover the alphabet.
fn random_picture(rng: &mut Rng, number: &mut u64) -> String {
    let letter = |n: u64| char::from(b'a' + n as u8);
    let mut text = String::new();
    for level in [5, 6] {
        text.push_str(&format!("L{level}"));
        let mut at = 0;
        while at < 24 {
            let (from, to) = (at + rng.below(3), at + 3 + rng.below(2));
            let to = to.min(25).max(from);
            let size = 5 + rng.below(60);
            text.push_str(&format!(" {number}:{}-{}={size}", letter(from), letter(to)));
            *number += 1;
            at = to + 1;
        }
        text.push('\n');
    }
    text
}

/// `tree` after a compaction of another kind gave one of its tables a new number.
fn with_one_rewritten(tree: &Version, rng: &mut Rng, number: &mut u64) -> Version {
    let mut levels: [Vec<Arc<FileMeta>>; LEVELS] =
        std::array::from_fn(|level| tree.level(level).to_vec());
    let files = levels.get_mut(5 + rng.below(2) as usize).unwrap();
    let index = rng.below(files.len().max(1) as u64) as usize;
    if let Some(other) = files.get_mut(index) {
        let text = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
        let span = Span::of(other);
        let (first, last) = (text(span.first), text(span.last));
        *number += 1;
        *other = file(&format!("{number}:{first}-{last}={}", other.size));
    }
    Version::new(&KeyOrder::Bytewise, levels)
}

#[test]
fn the_work_ends_although_the_tree_changes_between_pieces() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let options = options();
        let mut number = 1;
        let mut tree = version(&random_picture(&mut rng, &mut number));
        let mut work = ManualWork::new(&tree, &options, None, None);
        let before = number;
        for pieces in 0.. {
            assert!(pieces < 200, "seed {seed}");
            match work.next(&tree, &options, &InFlight::default()) {
                Piece::Plan(plan) => {
                    tree = carry_out(&tree, &plan, &mut number);
                    work.done(&plan, &options.order);
                }
                Piece::Blocked => panic!("nothing else runs"),
                Piece::Done => break,
            }
            tree = with_one_rewritten(&tree, &mut rng, &mut number);
        }
        assert!(tree.level(5).is_empty(), "seed {seed}");
        let is_new = |file: &Arc<FileMeta>| file.number >= before;
        assert!(tree.level(6).iter().all(is_new), "seed {seed}");
    }
}
