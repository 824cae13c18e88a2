//! Goal: no option and no maintenance changes the result of a list of operations. Method: a short list
//! under every fixed set of options and as many random ones, a few lists under some of them, and every
//! list that once failed; `metamorphic run` does the same for as long as one likes.

use drumlin_metamorphic::{Choice, Op, Place, Progress, generate, parse_ops, run, shrink};

fn must(ops: &[Op], choices: &[Choice]) {
    if let Err(mismatch) = run(ops, choices) {
        panic!("{mismatch}");
    }
}

#[test]
fn a_list_leads_to_the_same_under_every_fixed_set() {
    must(&generate(1, 250), &Choice::fixed());
}

#[test]
fn a_plain_list_leads_to_the_same_in_the_directories_of_leveldb() {
    must(&generate(7, 250), &Choice::fixed());
}

#[test]
fn lists_lead_to_the_same_under_random_sets() {
    for seed in 2..26 {
        let mut choice = Choice::random(seed);
        if choice.place == Place::Disk {
            choice.place = Place::Strict;
        }
        must(&generate(seed * 8, 250), &[choice]);
    }
}

#[test]
fn lists_that_failed_once_lead_to_the_same_everywhere() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut count = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let ops = parse_ops(&text).unwrap();
        let mut sets = Choice::fixed();
        let noted = text.lines().find_map(|line| line.split_once(", set "));
        sets.extend(noted.and_then(|(_, set)| Choice::named(set)));
        if let Err(mismatch) = run(&ops, &sets) {
            panic!("{}: {mismatch}", path.display());
        }
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn a_watch_hears_of_a_list_that_is_cut_down() {
    let choice = Choice::fixed().remove(0);
    let progress = Progress::default();
    shrink(&generate(1, 20), &choice, 1, &progress);
    assert_eq!(progress.place().1, choice.name);
}
