//! Goal: the memory of the process stays within the memory budget and a tenth of it, at every
//! moment and whatever goes on. Method: families with blocks of different sizes, more data than
//! memory, readers that hold on to values, a walker, a writer that keeps flushes and compactions
//! going; each looks at the process's anonymous memory as it works. One test alone in its process,
//! because memory is counted by process. (Mapped files, which the log is, belong to the system.)

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use drumlin::{
    ColumnFamily, Db, FamilyOptions, Options, PinnedSlice, ReadOptions, Tuning, WriteOptions,
};
use drumlin_base::rng::Rng;
use drumlin_testkit::temp_dir;

/// Families and the size of their blocks.
const FAMILIES: [(&str, usize); 4] = [
    ("small", 1 << 10),
    ("usual", 4 << 10),
    ("large", 16 << 10),
    ("huge", 64 << 10),
];
const ROW_BYTES: usize = 2000;
/// Rows that each family gets under each budget.
const ROWS: u64 = 9000;
/// Values a reader holds on to.
const HELD: usize = 200;

/// Nothing is made to fail here.
const HEALTHY: &str = "real files, and room for them";
/// Threads that panic end the test.
const UNPOISONED: &str = "no thread panicked while it held the lock";

/// Anonymous memory of this process, if the system tells.
fn anonymous_bytes() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("RssAnon"))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

/// The state that all threads of a round share.
struct Course {
    db: Db,
    families: Vec<ColumnFamily>,
    /// Rows `0..written` of each family are there.
    written: AtomicU64,
    until: u64,
    baseline: usize,
    budget: usize,
    most: AtomicUsize,
    /// The accounts at the peak.
    worst: Mutex<String>,
}

impl Course {
    fn look(&self) {
        if let Some(bytes) = anonymous_bytes() {
            let bytes = bytes.saturating_sub(self.baseline);
            if bytes > self.most.fetch_max(bytes, Ordering::Relaxed) && bytes > self.budget {
                let text = self.db.stats_text(self.db.default_family());
                let accounts = text.lines().find(|line| line.starts_with("memory:"));
                *self.worst.lock().expect(UNPOISONED) = format!("{bytes} bytes; {accounts:?}");
            }
        }
    }

    fn is_over(&self) -> bool {
        self.written.load(Ordering::Acquire) >= self.until
    }

    fn write(&self) {
        let (mut rng, mut value) = (Rng::new(self.until), vec![b'-'; ROW_BYTES]);
        for number in self.written.load(Ordering::Relaxed)..self.until {
            for family in &self.families {
                rng.fill(&mut value[..ROW_BYTES / 2]);
                self.db
                    .put_cf(family, key(number), &value, &WriteOptions::default())
                    .expect(HEALTHY);
            }
            self.written.store(number + 1, Ordering::Release);
            if number % 20 == 0 {
                self.look();
            }
        }
    }

    fn read(&self, seed: u64) {
        let mut rng = Rng::new(seed);
        let mut held: VecDeque<PinnedSlice> = VecDeque::new();
        while !self.is_over() {
            let there = self.written.load(Ordering::Acquire).max(1);
            let family = &self.families[rng.below(4) as usize];
            let read = ReadOptions::default();
            let found = self.db.get_cf(family, key(rng.below(there)), &read);
            held.extend(found.expect(HEALTHY));
            if held.len() > HELD {
                let value = held.pop_front().expect("more than one is held");
                assert_eq!(&value[ROW_BYTES / 2..], [b'-'; ROW_BYTES / 2]);
            }
            if rng.one_in(50) {
                self.look();
            }
        }
    }

    fn walk(&self) {
        let mut at = 0;
        while !self.is_over() {
            let family = &self.families[at % 4];
            let mut iter = self.db.iter_cf(family, ReadOptions::default());
            iter.seek(&key(at as u64 * 997));
            for _ in 0..300 {
                if iter.valid() {
                    iter.next();
                }
            }
            iter.status().expect(HEALTHY);
            at += 1;
            self.look();
        }
    }
}

/// Keys in an order of their own.
fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn tuning(block_bytes: usize) -> Tuning {
    Tuning {
        block_bytes,
        // Small enough that compactions never end.
        target_file_bytes: 4 << 20,
        level_base_bytes: Some(8 << 20),
        ..Tuning::default()
    }
}

fn open(dir: &std::path::Path, budget: usize) -> (Db, Vec<ColumnFamily>) {
    let options = Options {
        memory_budget: Some(budget),
        ..Options::default()
    };
    let own = |block_bytes| FamilyOptions {
        tuning: Some(tuning(block_bytes)),
        ..FamilyOptions::default()
    };
    let families = FAMILIES.map(|(name, block_bytes)| (name, own(block_bytes)));
    let db = if Db::list_families(dir, &options.env).is_ok() {
        Db::open_families(dir, options, &families).expect(HEALTHY)
    } else {
        let db = Db::open(dir, options).expect(HEALTHY);
        for (name, options) in families {
            db.create_family(name, options).expect(HEALTHY);
        }
        db
    };
    let families = FAMILIES.map(|(name, _)| db.column_family(name).expect(HEALTHY));
    (db, families.into())
}

#[test]
fn memory_stays_within_the_budget_and_a_tenth() {
    drumlin::machine::return_freed_memory();
    let dir = temp_dir();
    let baseline = anonymous_bytes().unwrap_or(0);
    let mut rows = 0;
    for budget in [64 << 20, 128 << 20] {
        let (db, families) = open(dir.path(), budget);
        let course = Course {
            db,
            families,
            written: AtomicU64::new(rows),
            until: rows + ROWS,
            baseline,
            budget,
            worst: Mutex::default(),
            most: AtomicUsize::new(0),
        };
        rows = course.until;
        std::thread::scope(|scope| {
            scope.spawn(|| course.write());
            scope.spawn(|| course.walk());
            for seed in 0..2 {
                let course = &course;
                scope.spawn(move || course.read(seed));
            }
        });
        let most = course.most.load(Ordering::Relaxed);
        let worst = course.worst.into_inner().unwrap();
        println!("at most {} of {} MiB. {worst}", most >> 20, budget >> 20);
        assert!(most <= budget + budget / 10, "{most} of {budget}. {worst}");
        course.db.close().unwrap();
    }
}
