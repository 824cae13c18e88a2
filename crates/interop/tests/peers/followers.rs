//! Goal: a follower of ours equals the RocksDB that it follows. Method: random histories in Debian's library with small
//! memtables, flushes, compactions, families that come and go and reopening; after every few steps the follower catches
//! up in the same process, and its rows and its sequence number are compared. And beside a RocksDB that never rests and
//! flushes late, of which each moment that the follower shows must be whole.

use std::sync::atomic::{AtomicBool, Ordering};

use drumlin::{Db, FollowOptions, ReadOptions};
use drumlin_base::rng::Rng;
use drumlin_interop::*;
use drumlin_testkit::temp_dir;

const KEYS: usize = 400;
const OPERATORS: Operators = Operators {
    merges: true,
    ranges: true,
    reverse: false,
};

#[test]
fn a_follower_equals_the_rocksdb_that_it_follows() {
    for seed in 0..4 {
        follow(seed);
    }
}

fn follow(seed: u64) {
    let dir = temp_dir();
    let mut rng = Rng::new(seed);
    let options = format!(
        "create_if_missing=true;create_missing_column_families=true;write_buffer_size=65536;\
         target_file_size_base=65536;level0_file_num_compaction_trigger=2;recycle_log_file_num={};\
         avoid_flush_during_recovery={};merge_operator=uint64add",
        seed % 3,
        seed % 2 == 1,
    );
    let mut names = vec!["default", "other"];
    let open = |names: &[&str]| {
        let families: Vec<_> = names.iter().map(|name| (*name, "")).collect();
        Rocks::open(dir.path(), &options, &families).unwrap()
    };
    let mut rocks = open(&names);
    let on_demand = FollowOptions { interval: None };
    let follower = Db::open_follower(dir.path(), small(), on_demand).unwrap();
    for step in 0..3_000 {
        let family = names[rng.below(names.len() as u64) as usize];
        apply_rocks(&rocks, family, &random_op(&mut rng, KEYS, OPERATORS));
        match rng.below(400) {
            0 => rocks.flush(family),
            1 => rocks.compact(family),
            2 => {
                drop(rocks);
                if names.len() < 4 {
                    names.push(["third", "fourth"][names.len() - 2]);
                }
                rocks = open(&names);
            }
            _ => {}
        }
        if rng.below(60) == 0 {
            let what = format!("seed {seed}, step {step}");
            if let Err(error) = follower.catch_up() {
                panic!("{what}: {error:?}");
            }
            for name in &names {
                let family = follower.db().column_family(name).unwrap();
                let rows = ours_rows(follower.db(), &family);
                assert_rows(&format!("{what}, {name}"), &rows, &rocks.rows(name));
            }
        }
    }
}

#[test]
fn a_follower_misses_nothing_of_a_rocksdb_that_never_rests() {
    const ROWS: u32 = 60_000;
    let dir = temp_dir();
    // Rows are in many WAL files, of which each is longer than what a follower reads at once, and in no table.
    let options = "create_if_missing=true;write_buffer_size=4194304;max_write_buffer_number=40;\
                   min_write_buffer_number_to_merge=30";
    let rocks = Rocks::open_default(dir.path(), options).unwrap();
    let on_demand = FollowOptions { interval: None };
    let follower = Db::open_follower(dir.path(), small(), on_demand).unwrap();
    let is_written = &AtomicBool::new(false);
    let (moments, rows) = std::thread::scope(|scope| {
        let following = scope.spawn(move || {
            let (mut moments, mut rows) = (0, 0_u32);
            loop {
                let is_last = is_written.load(Ordering::Acquire);
                follower.catch_up().unwrap();
                let before = rows;
                let view = follower.db().view();
                let family = follower.db().default_family();
                let mut iter = view.iter_cf(family, &ReadOptions::default());
                iter.seek(&rows.to_be_bytes());
                while iter.valid() {
                    assert_eq!(
                        iter.key(),
                        rows.to_be_bytes(),
                        "no row is missing before another"
                    );
                    rows += 1;
                    iter.next();
                }
                iter.status().unwrap();
                moments += u32::from(rows > before);
                if is_last {
                    return (moments, rows);
                }
            }
        });
        for row in 0..ROWS {
            rocks.put("default", &row.to_be_bytes(), &[7; 1000]);
        }
        is_written.store(true, Ordering::Release);
        following.join().unwrap()
    });
    assert_eq!(rows, ROWS);
    assert!(moments > 1, "it followed while rows were written");
}
