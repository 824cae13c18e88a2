//! Goal: a disk that becomes slow slows writers down and never stops them while it drains; nothing
//! acknowledged is lost, the reason can be read, and all is well again when the disk is. Method: real
//! background threads over a disk in memory whose operations are held up on a clock that jumps while
//! everybody waits, so that minutes of a slow disk pass in moments.

use std::sync::Arc;
use std::time::Duration;

use drumlin::{CompactionStyle, Db, Health, Options, WaitCause, WriteBatch, WriteOptions};
use drumlin_fs::{
    Clock, CrashPolicy, Fault, FaultFileSystem, FaultRule, FileKind, IdleClock, OpKind,
    StrictMemFileSystem,
};

use crate::support::{DIR, options};

struct Machine {
    memory: StrictMemFileSystem,
    faults: FaultFileSystem,
    clock: IdleClock,
}

impl Machine {
    fn new() -> Self {
        let memory = StrictMemFileSystem::new();
        let faults = FaultFileSystem::over_memory(&memory);
        let clock = IdleClock::new();
        faults.set_clock(Arc::new(clock.clone()));
        Self {
            memory,
            faults,
            clock,
        }
    }

    fn options(&self, threads: usize) -> Options {
        let mut options = Options {
            background_threads: Some(threads),
            ..options(Arc::new(self.faults.clone()))
        };
        options.env.clock = Arc::new(self.clock.clone());
        options
    }

    /// Holds `op` on files of these kinds up for `least` to three times that, in microseconds.
    fn slow(&self, op: OpKind, least: u64) {
        let slow = Fault::Slow {
            least: Duration::from_micros(least),
            most: Duration::from_micros(3 * least),
        };
        let mut rule = FaultRule::always(slow).seeded(least).on(op);
        for kind in [FileKind::Table, FileKind::Blob, FileKind::Wal] {
            // Appends to the WAL are copies to memory on a real machine too.
            if op != OpKind::Append || kind != FileKind::Wal {
                rule = rule.of_kind(kind);
            }
        }
        self.faults.add_rule(rule);
    }
}

fn key(n: usize) -> Vec<u8> {
    format!("key{:06}", n * 7919 % 1000).into_bytes()
}

/// The value of write `n`: some are kept apart.
fn value(n: usize) -> Vec<u8> {
    let len = if n.is_multiple_of(3) { 150 } else { 20 };
    format!("{n:08}{}", "v".repeat(len)).into_bytes()
}

/// Writes in order, each tenth synced; the longest time between two acknowledgements.
fn write(db: &Db, clock: &IdleClock, range: std::ops::Range<usize>) -> Duration {
    let (mut last, mut longest) = (clock.monotonic(), Duration::ZERO);
    for n in range {
        let mut batch = WriteBatch::new();
        batch.put(&key(n), &value(n)).unwrap();
        let options = WriteOptions {
            sync: Some(n.is_multiple_of(10)),
            ..WriteOptions::default()
        };
        db.write(batch, &options).unwrap();
        let now = clock.monotonic();
        longest = longest.max(now - last);
        last = now;
    }
    longest
}

/// Every key has the value of its last write before `count`.
fn check(db: &Db, count: usize) {
    for n in count.saturating_sub(1000)..count {
        let found = db.get(key(n)).unwrap();
        assert_eq!(found.as_deref(), Some(&value(n)[..]), "write {n}");
    }
}

fn a_disk_that_becomes_slow_and_fast_again(threads: usize) {
    let machine = Machine::new();
    let clock = &machine.clock;
    let db = Db::open(DIR, machine.options(threads)).unwrap();
    write(&db, clock, 0..1000);
    db.wait_for_background().unwrap();

    machine.slow(OpKind::Append, 500);
    machine.slow(OpKind::Sync, 5000);
    machine.slow(OpKind::Read, 300);
    let begin = clock.monotonic();
    let longest = write(&db, clock, 1000..2500);
    let took = clock.monotonic() - begin;
    let text = db.explain(db.default_family(), None);
    let waits = db.waits().of(WaitCause::Memtables).count();
    assert!(waits > 0, "nobody was slowed: {text}");
    assert!(longest < took / 8, "a write took {longest:?} of {took:?}");
    assert!(text.contains("disk: flushes wait for it"), "{text}");
    assert_eq!(db.health(), Health::Healthy);

    // A power cut in the middle of it: all before the last synced write is there.
    for (seed, policy) in (1..).zip(CrashPolicy::ALL) {
        let after = machine.memory.crash_image(seed, policy);
        let db = Db::open(DIR, options(Arc::new(after))).unwrap();
        let n = 2490;
        let found = db.get(key(n)).unwrap();
        assert_eq!(found.as_deref(), Some(&value(n)[..]), "{policy:?}");
        db.close().unwrap();
    }

    machine.faults.clear_rules();
    write(&db, clock, 2500..3000);
    // A memtable that is nearly full is more than half of the budget of two.
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    check(&db, 3000);
    let text = db.explain(db.default_family(), None);
    assert!(text.contains("verdict: writers are free"), "{text}");
    db.close().unwrap();
    check(&Db::open(DIR, machine.options(threads)).unwrap(), 3000);
}

#[test]
fn writers_are_slowed_by_a_slow_disk_and_never_stopped() {
    a_disk_that_becomes_slow_and_fast_again(2);
}

#[test]
fn with_one_background_thread_they_are_not_stopped_either() {
    a_disk_that_becomes_slow_and_fast_again(1);
}

/// How long two memtables took to fill, the second while the MANIFEST's sync hung, and the longest write beside it.
struct Hang {
    usual: Duration,
    took: Duration,
    longest: Duration,
}

impl Hang {
    fn run() -> Self {
        let machine = Machine::new();
        let clock = &machine.clock;
        let options = Options {
            compaction_style: CompactionStyle::Manual,
            ..machine.options(2)
        };
        let db = Db::open(DIR, options).unwrap();
        let mut keys = (0..).map(key);
        let mut write = || {
            clock.sleep(Duration::from_millis(4));
            let before = clock.monotonic();
            db.put(keys.next().unwrap(), [7; 20]).unwrap();
            clock.monotonic() - before
        };
        let flushes = || db.statistics().flushes.get();
        let mut fill = || {
            let (begin, before) = (clock.monotonic(), flushes());
            let mut longest = Duration::ZERO;
            while flushes() == before {
                longest = longest.max(write());
            }
            (clock.monotonic() - begin, longest)
        };
        fill();
        let (usual, _) = fill();
        // The next flush shows its table only when the memtable after it is full.
        let hang = usual * 5 / 4;
        let slow = Fault::Slow {
            least: hang,
            most: hang,
        };
        let rule = FaultRule::once(0, slow).on(OpKind::Sync);
        machine.faults.add_rule(rule.of_kind(FileKind::Manifest));
        let (took, longest) = fill();
        db.close().unwrap();
        Self {
            usual,
            took,
            longest,
        }
    }
}

/// A thread that the system does not run looks idle to the clock, which may then jump over the whole hang in the middle of a
/// write. A writer that is held is held each time.
#[test]
fn a_manifest_that_takes_long_to_sync_holds_no_writer() {
    let mut tries = (0..10).map(|_| Hang::run());
    let is_free = |hang: &Hang| hang.took > hang.usual * 2 && hang.longest < hang.usual / 10;
    assert!(
        tries.any(|hang| is_free(&hang)),
        "writes are held each time"
    );
}
