//! Goal: under the same operations and options we and RocksDB answer alike: gets, walks with bounds
//! in both directions, at any moment, across flush, compaction and reopening. Method: 200,000 random
//! operations from seeds, applied to both in one process, each going on now and then with the other's
//! directory; at the end RocksDB's tools check our files. `DRUMLIN_DIFFERENTIAL_OPS` sets how many
//! operations each test does, `DRUMLIN_DIFFERENTIAL_SEED` from which seed on.

use drumlin::{Db, KeyOrder, Options, ReadOptions, Snapshot, UInt64Add};
use drumlin_base::rng::Rng;
use drumlin_interop::*;
use drumlin_testkit::{TempDir, temp_dir};
use std::sync::Arc;

const OPS: u64 = 50_000;
const KEYS: usize = 4000;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

struct Pair {
    ours: Option<Db>,
    rocks: Option<Rocks>,
    ours_dir: TempDir,
    rocks_dir: TempDir,
    options: Options,
    rocks_options: String,
    seed: u64,
    /// The pinned snapshots, with the rows they showed then.
    pinned: Option<(Snapshot, Rows)>,
}

impl Pair {
    fn new(seed: u64, options: Options, rocks_options: &str) -> Self {
        let seed = seed + setting("DRUMLIN_DIFFERENTIAL_SEED").unwrap_or(0);
        let mut pair = Self {
            ours: None,
            rocks: None,
            ours_dir: temp_dir(),
            rocks_dir: temp_dir(),
            options,
            rocks_options: format!(
                "create_if_missing=true;write_buffer_size=131072;\
                target_file_size_base=65536;max_bytes_for_level_base=131072;{rocks_options}"
            ),
            seed,
            pinned: None,
        };
        pair.open();
        pair
    }

    fn open(&mut self) {
        self.ours = Some(Db::open(self.ours_dir.path(), self.options.clone()).unwrap());
        self.rocks = Some(Rocks::open_default(self.rocks_dir.path(), &self.rocks_options).unwrap());
    }

    /// Closes both; when `swap`, each goes on with the other's directory.
    fn reopen(&mut self, swap: bool) {
        self.pinned = None;
        self.ours.take().unwrap().close().unwrap();
        self.rocks = None;
        if swap {
            std::mem::swap(&mut self.ours_dir, &mut self.rocks_dir);
        }
        self.open();
    }

    fn ours(&self) -> &Db {
        self.ours.as_ref().unwrap()
    }

    fn rocks(&self) -> &Rocks {
        self.rocks.as_ref().unwrap()
    }

    fn apply(&self, op: &Op) {
        apply_ours(self.ours(), self.ours().default_family(), op);
        apply_rocks(self.rocks(), "default", op);
    }

    fn get(&self, key: &[u8], at: usize) {
        let got = self.ours().get(key).unwrap();
        let want = self.rocks().get("default", key);
        let name = key.escape_ascii();
        assert!(
            got.as_deref() == want.as_deref(),
            "seed {}, step {at}: {name}",
            self.seed
        );
    }

    /// A walk over a part, both ways, from somewhere.
    fn scan(&self, rng: &mut Rng, at: usize) {
        let mut some = |chance| {
            rng.one_in(chance)
                .then(|| key(rng.below(KEYS as u64) as usize))
        };
        let mut scan = Scan {
            lower: some(2),
            upper: some(2),
            from: some(2),
            backward: false,
        };
        let order = self.ours().default_family().order().clone();
        if let (Some(lower), Some(upper)) = (&scan.lower, &scan.upper)
            && order.compare(lower, upper).is_gt()
        {
            std::mem::swap(&mut scan.lower, &mut scan.upper);
        }
        for backward in [false, true] {
            scan.backward = backward;
            let want = self.rocks().scan("default", &scan);
            let got = self.ours_scan(&scan);
            assert_rows(
                &format!("seed {}, step {at}, {scan:?}", self.seed),
                &got,
                &want,
            );
        }
    }

    fn ours_scan(&self, scan: &Scan) -> Rows {
        let mut iterator = self.ours().iter(ReadOptions {
            lower_bound: scan.lower.clone(),
            upper_bound: scan.upper.clone(),
            ..ReadOptions::default()
        });
        match (&scan.from, scan.backward) {
            (None, false) => iterator.seek_to_first(),
            (None, true) => iterator.seek_to_last(),
            (Some(from), false) => iterator.seek(from),
            (Some(from), true) => iterator.seek_for_prev(from),
        }
        let mut rows = Vec::new();
        while iterator.valid() {
            rows.push((iterator.key().to_vec(), iterator.value().to_vec()));
            match scan.backward {
                true => iterator.prev(),
                false => iterator.next(),
            }
        }
        iterator.status().unwrap();
        rows
    }

    /// Checks that the earlier snapshots still show the same rows, then pins new ones.
    fn check_pinned(&mut self) {
        if let Some((snapshot, want)) = self.pinned.take() {
            let options = ReadOptions {
                snapshot: Some(snapshot),
                ..ReadOptions::default()
            };
            let mut iterator = self.ours().iter(options);
            iterator.seek_to_first();
            let mut got = Vec::new();
            while iterator.valid() {
                got.push((iterator.key().to_vec(), iterator.value().to_vec()));
                iterator.next();
            }
            assert_rows(&format!("seed {}, pinned", self.seed), &got, &want);
        }
        let rows = self.rocks().rows("default");
        self.pinned = Some((self.ours().snapshot(), rows));
    }

    fn run(mut self, operators: Operators) {
        let mut rng = Rng::new(self.seed);
        let ops = setting("DRUMLIN_DIFFERENTIAL_OPS").unwrap_or(OPS);
        for at in 0..ops as usize {
            let op = random_op(&mut rng, KEYS, operators);
            self.apply(&op);
            if rng.one_in(4) {
                self.get(&key(rng.below(KEYS as u64) as usize), at);
            }
            if rng.one_in(400) {
                self.scan(&mut rng, at);
            }
            match rng.below(9000) {
                0 => self.ours().flush().unwrap(),
                1 => self.rocks().flush("default"),
                2 => {
                    let family = self.ours().default_family();
                    self.ours().compact_range(family, None, None).unwrap();
                }
                3 => self.rocks().compact("default"),
                4 => self.reopen(false),
                5 => self.reopen(true),
                6 | 7 => self.check_pinned(),
                _ => {}
            }
        }
        self.check_pinned();
        self.reopen(true);
        let want = self.rocks().rows("default");
        check_ours(
            self.ours(),
            self.ours().default_family(),
            &want,
            "at the end",
        );
        self.check_with_tools();
    }

    /// RocksDB's tools find nothing wrong with the directory we wrote last.
    fn check_with_tools(mut self) {
        let family = self.ours().default_family().clone();
        self.ours().compact_range(&family, None, None).unwrap();
        drop(family);
        self.pinned = None;
        self.ours.take().unwrap().close().unwrap();
        let dir = self.ours_dir.path();
        ldb(dir, &["checkconsistency", "--try_load_options"]).ok();
        for entry in dir.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "sst") {
                let said = sst_dump(&path, &["--command=verify"]).ok();
                assert!(!said.contains("Corruption"), "{said}");
            }
        }
    }
}

#[test]
fn puts_and_deletions_agree() {
    Pair::new(1, small(), "").run(Operators::default());
}

#[test]
fn range_deletions_agree() {
    let ranges = Operators {
        ranges: true,
        ..Operators::default()
    };
    let filter = "block_based_table_factory={filter_policy=bloomfilter:10:false}";
    Pair::new(2, small(), filter).run(ranges);
}

#[test]
fn merges_agree() {
    let mut options = small();
    options.family.merge_operator = Some(Arc::new(UInt64Add));
    let operators = Operators {
        merges: true,
        ranges: true,
        reverse: false,
    };
    Pair::new(3, options, "merge_operator=uint64add").run(operators);
}

#[test]
fn the_reverse_order_agrees() {
    let mut options = small();
    options.family.order = KeyOrder::ReverseBytewise;
    let operators = Operators {
        merges: false,
        ranges: true,
        reverse: true,
    };
    let theirs = "comparator=rocksdb.ReverseBytewiseComparator;compression=kZSTD";
    Pair::new(4, options, theirs).run(operators);
}
