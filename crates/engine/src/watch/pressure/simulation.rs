//! Goal: the controller holds a store steady at the speed its disk drains. Method: a store of leveled
//! compaction in a few numbers, one flush thread, one compaction thread, writers that write as fast
//! as they may, and time in steps of a millisecond.

use std::collections::VecDeque;
use std::time::Duration;

use drumlin_base::rng::Rng;

use super::{Controller, Fill, Sample, Verdict, memory_fill};

const MB: f64 = 1e6;
const L0W: f64 = 1.5;

#[derive(Clone, Copy, Debug)]
struct Plant {
    memtable: f64,
    memtables_max: usize,
    level_base: f64,
    deep: f64,
    /// Bytes a second: writers at their fastest, flushes, compactions.
    writers: f64,
    flush: f64,
    compaction: f64,
    /// How much the disk's speed varies from one tenth of a second to the next, as a share.
    noise: f64,
    /// The share of its speed that a flush loses to a compaction beside it.
    shared: f64,
    /// Seconds a flush spends in its sync, in which it shows no progress.
    sync: f64,
    l0_slowdown: f64,
}

#[derive(Clone, Copy, Debug)]
struct Work {
    input: f64,
    done: f64,
    /// Bytes taken out of L0 (0: a job below it), tables of L0 it takes.
    from_l0: f64,
    tables: usize,
    from_base: f64,
}

#[derive(Debug)]
struct Store {
    plant: Plant,
    rng: Rng,
    controller: Controller,
    verdict: Verdict,
    now_ms: u64,
    pace: f64,
    mutable: f64,
    line: VecDeque<f64>,
    flushed_of_first: f64,
    sync_left: f64,
    l0: VecDeque<f64>,
    base: f64,
    job: Option<Work>,
    written: f64,
    flushed: f64,
    compacted: f64,
    /// Milliseconds in which writers found every memtable full.
    stopped_ms: u64,
    debt_share_max: f64,
}

impl Store {
    fn new(plant: Plant, seed: u64) -> Self {
        Self {
            plant,
            rng: Rng::new(seed),
            controller: Controller::default(),
            verdict: Verdict::FREE,
            now_ms: 0,
            pace: 1.0,
            mutable: 0.0,
            line: VecDeque::new(),
            flushed_of_first: 0.0,
            sync_left: 0.0,
            l0: VecDeque::new(),
            base: plant.level_base,
            job: None,
            written: 0.0,
            flushed: 0.0,
            compacted: 0.0,
            stopped_ms: 0,
            debt_share_max: 0.0,
        }
    }

    fn fan(&self) -> f64 {
        (self.plant.deep / self.base.max(1.0)).min(10.0)
    }

    fn debt(&self) -> f64 {
        let line: f64 = self.line.iter().sum();
        let l0: f64 = self.l0.iter().sum();
        let coming = l0 + line + self.mutable;
        let batch = coming.max(4.0 * self.plant.memtable);
        let top = coming * (1.0 + self.base / batch);
        let excess = (self.base + coming - self.plant.level_base).max(0.0);
        let done = self.job.map_or(0.0, |job| job.done);
        (top + excess * (1.0 + self.fan()) - done).max(0.0)
    }

    fn sample(&self) -> Sample {
        let line: f64 = self.line.iter().sum();
        let l0_done = self
            .job
            .map_or(0.0, |job| job.tables as f64 * job.done / job.input.max(1.0));
        let debt = Fill {
            used: self.debt(),
            limit: 32.0 * self.plant.level_base,
        };
        Sample {
            written: self.written as u64,
            flushed: (self.flushed + self.flushed_of_first) as u64,
            flushing: !self.line.is_empty(),
            compacted: (self.compacted + self.job.map_or(0.0, |job| job.done)) as u64,
            compacting: self.job.is_some(),
            memory: memory_fill(
                self.mutable,
                (!self.line.is_empty()).then_some(line - self.flushed_of_first),
                self.plant.memtable,
                self.plant.memtables_max,
            ),
            level0: Fill {
                used: self.l0.len() as f64 - l0_done,
                limit: 2.0 * self.plant.l0_slowdown,
            },
            debt,
            debt_bytes: debt.used,
            waste: Fill::default(),
            freed: 0,
            memtable_bytes: self.plant.memtable,
        }
    }

    fn tick(&mut self) {
        const STEP: f64 = 0.001;
        self.now_ms += 1;
        if self.now_ms.is_multiple_of(100) {
            let noise = self.rng.below(2001) as f64 / 1000.0 - 1.0;
            self.pace = 1.0 + noise * self.plant.noise;
        }
        if self.now_ms.is_multiple_of(10) {
            let sample = self.sample();
            self.debt_share_max = self.debt_share_max.max(sample.debt.share());
            let now = Duration::from_millis(self.now_ms);
            self.verdict = self.controller.step(now, &sample);
        }
        self.write(STEP);
        self.flush(STEP);
        self.compact(STEP);
    }

    fn write(&mut self, step: f64) {
        if self.mutable >= self.plant.memtable {
            if self.line.len() + 1 >= self.plant.memtables_max {
                self.stopped_ms += 1;
                return;
            }
            self.line.push_back(self.mutable);
            self.mutable = 0.0;
        }
        let bytes = self.plant.writers.min(self.verdict.bytes_per_second) * step;
        self.mutable += bytes;
        self.written += bytes;
    }

    fn flush(&mut self, step: f64) {
        let Some(&first) = self.line.front() else {
            return;
        };
        if self.sync_left > 0.0 {
            self.sync_left -= step;
            if self.sync_left <= 0.0 {
                self.line.pop_front();
                self.flushed += first;
                self.flushed_of_first = 0.0;
                self.l0.push_back(first);
            }
            return;
        }
        let lost = self.job.map_or(0.0, |_| self.plant.shared);
        let bytes = self.plant.flush * (1.0 - lost) * self.pace * step;
        self.flushed_of_first = (self.flushed_of_first + bytes).min(first);
        if self.flushed_of_first >= first {
            self.sync_left = self.plant.sync.max(step);
        }
    }

    fn compact(&mut self, step: f64) {
        let Some(mut job) = self.job.take().or_else(|| self.pick()) else {
            return;
        };
        job.done += self.plant.compaction * self.pace * step;
        if job.done < job.input {
            self.job = Some(job);
            return;
        }
        self.compacted += job.input;
        self.l0.drain(..job.tables);
        self.base += job.from_l0 - job.from_base;
    }

    fn pick(&self) -> Option<Work> {
        let excess = self.base - self.plant.level_base;
        let score = self.l0.len() as f64 / 4.0;
        if score >= 1.0 && score * L0W >= self.base / self.plant.level_base {
            let from_l0: f64 = self.l0.iter().sum();
            return Some(Work {
                input: from_l0 + self.base,
                done: 0.0,
                from_l0,
                tables: self.l0.len(),
                from_base: 0.0,
            });
        }
        (excess > 0.0).then(|| Work {
            input: 64.0 * MB * (1.0 + self.fan()),
            done: 0.0,
            from_l0: 0.0,
            tables: 0,
            from_base: 64.0 * MB,
        })
    }

    /// Bytes written in each of `seconds`.
    fn run(&mut self, seconds: usize) -> Vec<f64> {
        let mut each = Vec::new();
        for _ in 0..seconds {
            let before = self.written;
            for _ in 0..1000 {
                self.tick();
            }
            each.push(self.written - before);
        }
        each
    }
}

fn plant() -> Plant {
    Plant {
        memtable: 64.0 * MB,
        memtables_max: 4,
        level_base: 256.0 * MB,
        deep: 10_000.0 * MB,
        writers: 500.0 * MB,
        flush: 200.0 * MB,
        compaction: 150.0 * MB,
        noise: 0.2,
        shared: 0.0,
        sync: 0.03,
        l0_slowdown: 24.0,
    }
}

fn floor_over_median(seconds: &[f64]) -> f64 {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(1.0);
    sorted.first().copied().unwrap_or(0.0) / median
}

/// A plant chosen by `rng`, from a slow disk to one the writers cannot fill.
fn random_plant(rng: &mut Rng) -> Plant {
    let mut between = |low: f64, high: f64| low * (high / low).powf(rng.unit());
    let memtable = between(8.0, 256.0) * MB;
    let flush = between(20.0, 600.0) * MB;
    Plant {
        memtable,
        memtables_max: between(3.0, 7.0) as usize,
        level_base: (4.0 * memtable).max(256.0 * MB),
        deep: between(2000.0, 200_000.0) * MB,
        writers: between(200.0, 1000.0) * MB,
        flush,
        compaction: flush * between(0.3, 2.0),
        noise: between(0.02, 0.3),
        shared: 0.0,
        sync: between(0.005, 0.1),
        l0_slowdown: 24.0,
    }
}

#[test]
fn writers_are_never_stopped_and_the_slowest_second_is_near_the_median() {
    let mut rng = Rng::new(7);
    for seed in 0..40 {
        let plant = random_plant(&mut rng);
        let mut store = Store::new(plant, seed);
        let seconds = store.run(400);
        let steady = seconds.get(200..).unwrap_or_default();
        let floor = floor_over_median(steady);
        assert!(floor >= 0.75 - plant.noise / 2.0, "{floor} {plant:?}");
        assert_eq!(store.stopped_ms, 0, "{plant:?}");
        assert!(store.debt_share_max < 2.0, "{plant:?}");
    }
}

#[test]
fn a_usual_store_is_held_within_a_few_percent() {
    let calm = Plant {
        noise: 0.05,
        ..plant()
    };
    let large = Plant {
        memtable: 256.0 * MB,
        level_base: 1024.0 * MB,
        deep: 50_000.0 * MB,
        ..calm
    };
    let flush_bound = Plant {
        compaction: 5_000.0 * MB,
        deep: 300.0 * MB,
        ..calm
    };
    for plant in [calm, large, flush_bound] {
        let seconds = Store::new(plant, 3).run(400);
        let floor = floor_over_median(seconds.get(150..).unwrap_or_default());
        assert!(floor >= 0.85, "{floor} {plant:?}");
    }
}

#[test]
fn what_the_disk_drains_is_let_through() {
    let flush_bound = Plant {
        compaction: 20_000.0 * MB,
        deep: 300.0 * MB,
        ..plant()
    };
    let mut store = Store::new(flush_bound, 5);
    store.run(20);
    let seconds = store.run(60);
    let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
    let possible =
        flush_bound.memtable / (flush_bound.memtable / flush_bound.flush + flush_bound.sync);
    assert!(mean > 0.95 * possible, "{mean} of {possible}");
}

#[test]
fn with_two_memtables_nothing_of_the_flush_s_speed_is_lost() {
    let two = Plant {
        memtables_max: 2,
        compaction: 20_000.0 * MB,
        deep: 300.0 * MB,
        ..plant()
    };
    let mut store = Store::new(two, 5);
    store.run(20);
    let seconds = store.run(60);
    let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
    let possible = two.memtable / (two.memtable / two.flush + two.sync);
    assert!(mean > 0.9 * possible, "{mean} of {possible}");
    let floor = floor_over_median(&seconds);
    assert!(floor > 0.75, "{floor}");
}

#[test]
fn writers_that_ask_for_less_than_the_disk_drains_get_it() {
    let modest = Plant {
        writers: 6.0 * MB,
        ..plant()
    };
    let mut store = Store::new(modest, 1);
    for bytes in store.run(200) {
        assert!(bytes > 0.999 * modest.writers, "{bytes}");
    }
}

#[test]
fn after_a_step_of_the_disk_the_speed_follows() {
    let mut store = Store::new(plant(), 2);
    store.run(200);
    let before: f64 = store.run(40).iter().sum();
    store.plant.flush /= 2.0;
    store.plant.compaction /= 2.0;
    store.run(150);
    let after: f64 = store.run(40).iter().sum();
    let ratio = after / before;
    assert!((0.4..0.65).contains(&ratio), "{ratio}");
    assert_eq!(store.stopped_ms, 0);
}

#[test]
fn once_the_load_ends_writers_are_soon_free_again() {
    let mut store = Store::new(plant(), 4);
    store.run(200);
    assert_ne!(store.verdict, Verdict::FREE);
    store.plant.writers = 0.0;
    let needed = store.debt() / store.plant.compaction;
    store.run(needed as usize + 5);
    assert_eq!(store.verdict, Verdict::FREE);
}

#[test]
fn a_disk_that_hangs_for_a_while_slows_writers_before_it_stops_them() {
    let mut store = Store::new(plant(), 6);
    store.run(60);
    let usual = store.plant;
    store.plant.flush = usual.flush / 20.0;
    store.plant.compaction = usual.compaction / 20.0;
    let seconds = store.run(10);
    assert!(seconds.iter().all(|&bytes| bytes > 0.0), "{seconds:?}");
    store.plant = usual;
    store.run(120);
    let seconds = store.run(30);
    assert!(floor_over_median(&seconds) > 0.7, "{seconds:?}");
}

#[test]
fn compactions_that_take_from_flushes_for_a_while_hardly_slow_writers() {
    for shared in [0.3, 0.5] {
        let busy = Plant {
            memtable: 256.0 * MB,
            level_base: 1024.0 * MB,
            deep: 0.0,
            writers: 1000.0 * MB,
            flush: 500.0 * MB,
            compaction: 3000.0 * MB,
            noise: 0.05,
            shared,
            ..plant()
        };
        let mut store = Store::new(busy, 3);
        let seconds = store.run(200);
        let floor = floor_over_median(seconds.get(100..).unwrap_or_default());
        assert!(floor >= 0.8, "{floor} {busy:?}");
        assert_eq!(store.stopped_ms, 0);
    }
}

#[test]
fn flushes_that_are_slow_all_at_once_stop_nobody() {
    for (slower, memtable) in [(3.0, 16.0), (20.0, 16.0), (100.0, 16.0), (20.0, 256.0)] {
        let usual = Plant {
            memtable: memtable * MB,
            compaction: 20_000.0 * MB,
            deep: 300.0 * MB,
            ..plant()
        };
        let mut store = Store::new(usual, 6);
        store.run(60);
        store.plant.flush = usual.flush / slower;
        store.run(20);
        assert_eq!(store.stopped_ms, 0, "{slower} {memtable}");
    }
}
