//! Goal: a follower of ours equals the RocksDB that it follows. Method: random histories in Debian's library with small
//! memtables, flushes, compactions, families that come and go and reopening; after every few steps the follower catches
//! up in the same process, and its rows and its sequence number are compared.

use drumlin::{Db, FollowOptions};
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
