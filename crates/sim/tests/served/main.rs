//! Goal: the server of Redis's protocol keeps its promises whatever the order of threads, the network, the disk and the moment of
//! a power cut. Method: the real server with its threads, and clients on the network in memory, under the seeded scheduler;
//! what the clients were told is a history. Under `appendfsync always` each history, power cuts and all, has to be
//! linearizable, EXEC one step of it; under `everysec` a power cut leaves what was written up to some moment.
//! `SERVED_SEEDS=A..B` runs these seeds instead of a few.

#![expect(clippy::print_stdout, reason = "a campaign says what it has run")]

mod call;
mod client;
mod lent;
mod linear;
mod prefix;
mod stall;
mod unwritten;
mod world;

use std::ops::Range;
use std::time::Duration;

use world::{Fsync, Outcome, run, steps_after_half_a_command};

/// The seeds to run: those of `SERVED_SEEDS`, or `usual`.
fn seeds(usual: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("SERVED_SEEDS") else {
        return usual;
    };
    let ends = text.split_once("..").map(|(a, b)| (a.parse(), b.parse()));
    match ends {
        Some((Ok(from), Ok(to))) => from..to,
        _ => panic!("SERVED_SEEDS={text}: give A..B"),
    }
}

/// Runs seeds, and sums up what happened in them.
fn run_all(seeds: Range<u64>, fsync: Fsync) -> Outcome {
    let mut all = Outcome::default();
    for seed in seeds.clone() {
        let outcome = run(seed, fsync).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        all.add(&outcome);
    }
    println!("seeds {seeds:?} under {fsync:?}: {all}");
    all
}

#[test]
fn under_always_histories_are_linearizable_over_power_cuts() {
    let all = run_all(seeds(0..40), Fsync::Always);
    assert!(all.cuts > 0 && all.answered > 0 && all.open > 0, "{all}");
}

#[test]
fn under_everysec_a_power_cut_leaves_a_prefix() {
    let all = run_all(seeds(0..40), Fsync::EverySecond);
    assert!(all.cuts > 0 && all.lost > 0 && all.answered > 0, "{all}");
}

/// Goal: while the engine takes no writes, nobody is told of one that a power cut takes back, and who reads sees all that was
/// acknowledged. Method: tables that are written slowly beside writes of 8 KiB, a list that is a tree, a reader, and SAVE; a power
/// cut in the middle.
#[test]
fn under_stalls_replies_wait_for_what_they_tell_of() {
    for fsync in [Fsync::Always, Fsync::EverySecond] {
        let mut stalls = 0;
        for seed in seeds(0..8) {
            let stalled = stall::run(seed, fsync);
            stalls += stalled.unwrap_or_else(|why| panic!("seed {seed} under {fsync:?}: {why}"));
        }
        println!("{stalls} rounds waited for the engine under {fsync:?}");
        assert!(stalls > 0, "nothing waited");
    }
}

/// Goal: nobody is told of a change that was not written. Method: one client writes to a disk that takes nothing, another reads in the
/// same round, or before, or after.
#[test]
fn a_change_that_was_not_written_is_read_by_nobody() {
    let failed = (0..40).filter(|seed| unwritten::reader_is_told_of_the_error(*seed));
    assert!(failed.count() > 0, "they never were in one round");
}

/// Goal: clients whose connections are lent to hands and called home are answered as by the loop alone: in order, with all that was
/// acknowledged before they asked, exact in expiry, counts and pauses. Method: readers that send many commands at a time beside
/// writers, and operators who look, pause, swap, configure and cut off; a short and late network; the end while they are lent.
#[test]
fn lent_connections_answer_as_the_loop_does() {
    let mut lent = 0;
    for seed in seeds(0..30) {
        lent += lent::run(seed).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    println!("{lent} connections were lent");
    assert!(lent > 0, "nobody was lent");
}

/// Goal: a client that has sent a part of a command costs nothing until the rest comes. Method: the steps of a minute, in which
/// the loop looks ten times a second at what is due.
#[test]
fn half_a_command_keeps_nobody_busy() {
    let steps = steps_after_half_a_command(Duration::from_secs(60));
    assert!(steps < 20_000, "{steps} steps");
}

#[test]
fn a_seed_does_the_same_again() {
    for seed in 500..503 {
        for fsync in [Fsync::Always, Fsync::EverySecond] {
            assert_eq!(run(seed, fsync), run(seed, fsync), "seed {seed}");
        }
    }
}
