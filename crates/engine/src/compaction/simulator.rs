//! A tree of tables that exist only as descriptions, moved by a picker, for tests of how styles
//! behave over many flushes.
//!
//! Keys are numbers, every entry has the same size, and the only thing kept of an entry is its
//! sequence number: that is enough to see that no merge puts an older entry above a newer one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use drumlin_base::key::internal_key;
use drumlin_base::limits::LEVELS;
use drumlin_base::rng::Rng;
use drumlin_base::{KeyOrder, SEQNO_MAX, ValueKind};

use super::pick::pick;
use super::plan::{CompactionOptions, InFlight, Moment, Plan, Work};
use super::style::CompactionStyle;
use crate::version::{FileMeta, NewFile, Version};

/// Bytes of every entry.
pub(super) const ENTRY_BYTES: u64 = 100;
/// Entries of a memtable.
pub(super) const FLUSH_ENTRIES: usize = 200;

type Entries = Vec<(u32, u64)>;

/// The tree, and its history.
pub(super) struct Simulator {
    pub(super) options: CompactionOptions,
    levels: [Vec<Arc<FileMeta>>; LEVELS],
    content: HashMap<u64, Entries>,
    in_flight: InFlight,
    running: Vec<Plan>,
    number: u64,
    seqno: u64,
    /// Seconds; one passes with each flush.
    pub(super) now: u64,
    /// Bytes flushes wrote.
    pub(super) flushed: u64,
    /// Bytes compactions wrote.
    pub(super) compacted: u64,
    /// The most bytes there ever were, with the outputs of plans in flight.
    pub(super) bytes_peak: u64,
}

impl Simulator {
    pub(super) fn new(style: CompactionStyle) -> Self {
        Self {
            options: CompactionOptions {
                style,
                level_base_bytes: 4 * FLUSH_ENTRIES as u64 * ENTRY_BYTES,
                target_file_bytes: FLUSH_ENTRIES as u64 * ENTRY_BYTES,
                ..CompactionOptions::new(KeyOrder::Bytewise)
            },
            levels: Default::default(),
            content: HashMap::new(),
            in_flight: InFlight::default(),
            running: Vec::new(),
            number: 0,
            seqno: 0,
            now: 0,
            flushed: 0,
            compacted: 0,
            bytes_peak: 0,
        }
    }

    pub(super) fn version(&self) -> Version {
        Version::new(&self.options.order, self.levels.clone())
    }

    /// Writes `keys`, which may repeat, and flushes them.
    pub(super) fn flush(&mut self, keys: impl Iterator<Item = u32>) {
        let mut entries = BTreeMap::new();
        for key in keys {
            self.seqno += 1;
            entries.insert(key, self.seqno);
        }
        self.now += 1;
        let entries: Entries = entries.into_iter().collect();
        self.flushed += entries.len() as u64 * ENTRY_BYTES;
        let epoch = self.number + 1;
        let file = self.table(&entries, epoch);
        self.levels[0].insert(0, file);
        self.look();
    }

    /// Starts one more plan; false when there is none.
    pub(super) fn start(&mut self) -> bool {
        let moment = Moment {
            in_flight: &self.in_flight,
            now: self.now,
            oldest_snapshot: SEQNO_MAX,
            is_quiet: false,
            flush_cf: u64::MAX,
            has_space: true,
        };
        let Some(plan) = pick(&self.version(), &self.options, &moment) else {
            return false;
        };
        assert!(plan.claim(), "a plan takes idle tables only: {plan:?}");
        let running = plan.running(&self.options.order).unwrap();
        self.in_flight.running.push(running);
        self.running.push(plan);
        self.look();
        true
    }

    /// Ends one of the plans under way.
    pub(super) fn finish_one(&mut self, rng: &mut Rng) {
        if self.running.is_empty() {
            return;
        }
        let at = rng.below(self.running.len() as u64) as usize;
        let plan = self.running.swap_remove(at);
        self.carry_out(&plan);
        let ended = plan.running(&self.options.order).unwrap();
        self.in_flight.remove(&ended);
        plan.release_claims();
    }

    /// Works until nothing is due.
    pub(super) fn drain(&mut self, rng: &mut Rng) {
        while self.start() || !self.running.is_empty() {
            self.finish_one(rng);
        }
    }

    /// A flush of random keys below `keys`, and a random amount of compaction after it.
    pub(super) fn overwrite(&mut self, rng: &mut Rng, keys: u64) {
        let some: Vec<u32> = (0..FLUSH_ENTRIES).map(|_| rng.below(keys) as u32).collect();
        self.flush(some.into_iter());
        while self.running.len() < 2 && self.start() {}
        while rng.one_in(2) || self.levels[0].len() > 12 && !self.running.is_empty() {
            self.finish_one(rng);
            self.start();
        }
    }

    fn table(&mut self, entries: &[(u32, u64)], epoch: u64) -> Arc<FileMeta> {
        self.number += 1;
        let key = |at: Option<&(u32, u64)>| {
            let (key, seqno) = at.unwrap();
            internal_key(&key.to_be_bytes(), *seqno, ValueKind::Value)
        };
        self.content.insert(self.number, entries.to_vec());
        Arc::new(FileMeta::new(NewFile {
            number: self.number,
            size: entries.len() as u64 * ENTRY_BYTES,
            smallest: key(entries.first()),
            largest: key(entries.last()),
            epoch,
            creation_time: self.now,
            ..NewFile::default()
        }))
    }

    fn carry_out(&mut self, plan: &Plan) {
        for (level, file) in plan.files() {
            self.levels[level].retain(|other| other.number != file.number);
        }
        match plan.work {
            Work::Drop => {}
            Work::Move => {
                let moved = plan.files().map(|(_, file)| Arc::clone(file));
                self.levels[plan.output_level].extend(moved);
            }
            Work::Rewrite => self.rewrite(plan),
        }
        self.levels[0].sort_by_key(|file| Reverse(file.epoch));
        for level in &mut self.levels[1..] {
            level.sort_by(|a, b| a.smallest.cmp(&b.smallest));
        }
    }

    fn rewrite(&mut self, plan: &Plan) {
        let mut merged: BTreeMap<u32, u64> = BTreeMap::new();
        for (_, file) in plan.files() {
            for &(key, seqno) in &self.content[&file.number] {
                // Newest first, so present entries hide later ones.
                let newer = *merged.entry(key).or_insert(seqno);
                assert!(newer >= seqno, "{plan:?} puts older entries first");
            }
        }
        let epoch = plan.files().map(|(_, file)| file.epoch).min().unwrap();
        let merged: Entries = merged.into_iter().collect();
        self.compacted += merged.len() as u64 * ENTRY_BYTES;
        let per_table = match plan.output_level {
            0 => merged.len(),
            _ => (self.options.target_file_bytes / ENTRY_BYTES) as usize,
        };
        for entries in merged.chunks(per_table) {
            let file = self.table(entries, epoch);
            self.levels[plan.output_level].push(file);
        }
    }

    fn look(&mut self) {
        let coming: u64 = self.running.iter().map(Plan::input_bytes).sum();
        self.bytes_peak = self.bytes_peak.max(self.bytes() + coming);
    }

    /// Bytes of all tables.
    pub(super) fn bytes(&self) -> u64 {
        self.levels.iter().flatten().map(|file| file.size).sum()
    }

    /// Sorted runs that a read looks at.
    pub(super) fn runs(&self) -> usize {
        let deeper = self.levels[1..].iter().filter(|files| !files.is_empty());
        self.levels[0].len() + deeper.count()
    }

    /// Bytes written for each byte flushed.
    pub(super) fn write_amplification(&self) -> f64 {
        (self.flushed + self.compacted) as f64 / self.flushed as f64
    }

    /// Checks that levels are disjoint and that for every key newer entries are above older ones;
    /// the keys there are.
    pub(super) fn check(&self) -> usize {
        for level in &self.levels[1..] {
            for pair in level.windows(2) {
                assert!(pair[0].largest_user_key() < pair[1].smallest_user_key());
            }
        }
        let mut seen: HashMap<u32, u64> = HashMap::new();
        for file in self.levels.iter().flatten() {
            for &(key, seqno) in &self.content[&file.number] {
                if let Some(newer) = seen.insert(key, seqno) {
                    assert!(newer > seqno, "{key} in {file:?}\n{}", self.version());
                }
            }
        }
        seen.len()
    }
}
