//! Goal: over a long life of overwrites, with plans that run side by side and end in any order, each
//! style keeps the order of versions, the number of runs and the space within its bounds. Method:
//! the simulator, seeded.

use drumlin_base::rng::Rng;

use super::simulator::{ENTRY_BYTES, FLUSH_ENTRIES, Simulator};
use super::style::{CompactionStyle, FifoOptions, UniversalOptions};

const KEYS: u64 = 8_000;
const RUNS: usize = 8;
const FLUSH_BYTES: u64 = FLUSH_ENTRIES as u64 * ENTRY_BYTES;

/// Ten times the database in overwrites; the tree when nothing is due any more.
fn live_through(style: CompactionStyle, seed: u64) -> Simulator {
    let mut rng = Rng::new(seed);
    let mut tree = Simulator::new(style);
    for round in 0..400 {
        tree.overwrite(&mut rng, KEYS);
        if round % 80 == 0 {
            tree.check();
        }
    }
    tree.drain(&mut rng);
    tree.check();
    tree
}

fn space(tree: &Simulator) -> f64 {
    tree.bytes() as f64 / (tree.check() as u64 * ENTRY_BYTES) as f64
}

fn universal(space_percent_max: u32) -> CompactionStyle {
    universal_with(UniversalOptions::default().runs_trigger, space_percent_max)
}

fn universal_with(runs_trigger: usize, space_percent_max: u32) -> CompactionStyle {
    CompactionStyle::Universal(UniversalOptions {
        runs_trigger,
        space_percent_max,
        ..UniversalOptions::default()
    })
}

#[test]
fn leveled_keeps_order_and_wastes_an_eighth() {
    for seed in [1, 2] {
        let tree = live_through(CompactionStyle::Leveled, seed);
        // The levels above the deepest, and an L0 that is not due yet.
        let bound = 1.0 + 1.0 / 8.0 + 4.0 * FLUSH_BYTES as f64 / tree.bytes() as f64;
        assert!(space(&tree) <= bound, "{} > {bound}", space(&tree));
        assert!(tree.runs() <= 3 + 4, "{}", tree.version());
    }
}

#[test]
fn universal_keeps_order_and_ends_within_its_space_and_its_runs() {
    for (seed, percent) in [(1, 200), (2, 100), (3, 25)] {
        let tree = live_through(universal(percent), seed);
        assert!(tree.runs() <= RUNS, "{}", tree.version());
        // With few runs nothing is due; they are young and small then.
        let young = RUNS as f64 * FLUSH_BYTES as f64 / tree.bytes() as f64;
        let bound = 1.0 + f64::from(percent) / 100.0 + young;
        assert!(space(&tree) <= bound, "{} > {bound}", space(&tree));
    }
}

#[test]
fn fifo_stays_within_its_size_and_rewrites_nothing() {
    let limits = FifoOptions {
        table_bytes_max: 10 * FLUSH_BYTES,
        ..FifoOptions::default()
    };
    let tree = live_through(CompactionStyle::Fifo(limits), 1);
    assert!(tree.bytes() <= limits.table_bytes_max);
    assert!(tree.bytes() > limits.table_bytes_max - 2 * FLUSH_BYTES);
    assert_eq!(tree.compacted, 0);
    let merging = FifoOptions {
        merge_small: true,
        ..limits
    };
    let tree = live_through(CompactionStyle::Fifo(merging), 1);
    assert!(tree.bytes() <= limits.table_bytes_max);
}

#[test]
fn a_change_of_style_brings_the_tree_into_its_new_shape() {
    let mut rng = Rng::new(5);
    let mut tree = Simulator::new(CompactionStyle::Leveled);
    let styles = [
        universal(200),
        CompactionStyle::Leveled,
        CompactionStyle::Fifo(FifoOptions {
            table_bytes_max: 5 * FLUSH_BYTES,
            ..FifoOptions::default()
        }),
        universal(100),
    ];
    for style in styles {
        for _ in 0..60 {
            tree.overwrite(&mut rng, KEYS);
        }
        tree.drain(&mut rng);
        tree.check();
        tree.options.style = style;
        tree.drain(&mut rng);
        tree.check();
        if let CompactionStyle::Fifo(limits) = style {
            assert!(tree.bytes() <= limits.table_bytes_max);
        }
    }
    assert!(tree.runs() <= RUNS);
}

/// `cargo test -p drumlin --lib simulator_tests -- --nocapture` prints the table of
/// `docs/compaction.md`.
#[test]
fn amplifications_are_as_documented() {
    println!("| style | runs that start a merge | bytes written | space at most |");
    let mut costs = Vec::new();
    for (name, style) in [
        ("leveled | 4", CompactionStyle::Leveled),
        ("universal, 200 % | 4", universal_with(4, 200)),
        ("universal, 200 % | 8", universal(200)),
        ("universal, 100 % | 8", universal(100)),
        ("universal, 25 % | 8", universal(25)),
    ] {
        let mut rng = Rng::new(11);
        let mut tree = Simulator::new(style);
        for _ in 0..1600 {
            tree.overwrite(&mut rng, 4 * KEYS);
            while tree.start() {
                tree.finish_one(&mut rng);
            }
        }
        let live = tree.check() as u64 * ENTRY_BYTES;
        let (cost, space) = (
            tree.write_amplification(),
            tree.bytes_peak as f64 / live as f64,
        );
        println!("| {name} | {cost:.1} | {space:.2} |");
        costs.push((cost, space));
    }
    let [leveled, four, lax, usual, strict] = costs.as_slice() else {
        panic!("five styles")
    };
    assert!(leveled.1 < 1.5 && strict.1 < usual.1 && usual.1 < lax.1);
    assert!(usual.0 < leveled.0 && usual.0 < strict.0 && usual.0 < four.0);
    assert!(usual.0 < lax.0 * 1.1, "a stricter limit costs little");
}
